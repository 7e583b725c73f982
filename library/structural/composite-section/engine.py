"""Elastic properties and stresses of a steel-concrete composite section by the transformed section, EN 1994-1-1, 5.4.2.2."""

STEEL_MODULUS_GPA = 210
CREEP_MULTIPLIER = 1.1  # psi_L for permanent loads


def compute(
    slab_width_mm,
    slab_thickness_mm,
    top_flange_width_mm,
    top_flange_thickness_mm,
    web_height_mm,
    web_thickness_mm,
    bottom_flange_width_mm,
    bottom_flange_thickness_mm,
    concrete_modulus_gpa,
    creep_coefficient,
    moment_kn_m,
    shear_kn,
    studs_per_row,
    stud_resistance_kn,
):
    if min(slab_width_mm, slab_thickness_mm, web_height_mm, concrete_modulus_gpa) <= 0 or creep_coefficient < 0:
        raise ValueError("sizes and moduli must be positive")
    ratio = STEEL_MODULUS_GPA / concrete_modulus_gpa * (1 + CREEP_MULTIPLIER * creep_coefficient)
    depth = bottom_flange_thickness_mm + web_height_mm + top_flange_thickness_mm
    # (width, height, level of the centre above the underside), widths as of steel
    steel = [
        (bottom_flange_width_mm, bottom_flange_thickness_mm, bottom_flange_thickness_mm / 2),
        (web_thickness_mm, web_height_mm, bottom_flange_thickness_mm + web_height_mm / 2),
        (top_flange_width_mm, top_flange_thickness_mm, depth - top_flange_thickness_mm / 2),
    ]
    slab = (slab_width_mm / ratio, slab_thickness_mm, depth + slab_thickness_mm / 2)

    def properties(parts):
        area = sum(b * h for b, h, _ in parts)
        axis = sum(b * h * y for b, h, y in parts) / area
        return axis, sum(b * h**3 / 12 + b * h * (y - axis) ** 2 for b, h, y in parts)

    steel_axis, steel_inertia = properties(steel)
    axis, inertia = properties([*steel, slab])
    if axis >= depth:
        raise ValueError("part of the slab is in tension")
    top = depth + slab_thickness_mm
    moment = moment_kn_m * 1e6
    first_moment = slab[0] * slab[1] * (slab[2] - axis)
    flow = shear_kn * 1000 * first_moment / inertia  # N/mm = kN/m
    return {
        "modular_ratio": ratio,
        "steel_second_moment_cm4": steel_inertia / 1e4,
        "neutral_axis_mm": axis,
        "second_moment_cm4": inertia / 1e4,
        "concrete_stress_mpa": moment * (top - axis) / inertia / ratio,
        "top_steel_stress_mpa": moment * (depth - axis) / inertia,
        "bottom_steel_stress_mpa": moment * axis / inertia,
        "slab_force_kn": moment * first_moment / inertia / 1000,
        "shear_flow_kn_per_m": flow,
        "stud_spacing_mm": studs_per_row * stud_resistance_kn * 1000 / flow,
    }
