"""Simply supported timber floor joist: bending, shear and deflection with the modification factors of EN 1995-1-1."""

GAMMA_G = 1.35
GAMMA_Q = 1.5
GAMMA_M = 1.3
CRACK_FACTOR = 0.67


def compute(
    span_m,
    spacing_mm,
    breadth_mm,
    depth_mm,
    permanent_kpa,
    imposed_kpa,
    bending_strength_mpa,
    shear_strength_mpa,
    modulus_mpa,
    k_mod,
    k_def,
    k_sys,
    psi2,
    deflection_divisor,
):
    if min(span_m, spacing_mm, breadth_mm, depth_mm, bending_strength_mpa, shear_strength_mpa, modulus_mpa, k_mod) <= 0:
        raise ValueError("sizes, strengths and factors must be positive")
    permanent = permanent_kpa * spacing_mm / 1000
    imposed = imposed_kpa * spacing_mm / 1000
    design = GAMMA_G * permanent + GAMMA_Q * imposed
    moment = design * span_m**2 / 8
    shear = design * span_m / 2

    k_h = min((150 / depth_mm) ** 0.2, 1.3) if depth_mm < 150 else 1.0
    bending_stress = moment * 1e6 / (breadth_mm * depth_mm**2 / 6)
    bending_strength = k_mod * k_h * k_sys * bending_strength_mpa / GAMMA_M
    shear_stress = 1.5 * shear * 1000 / (CRACK_FACTOR * breadth_mm * depth_mm)
    shear_strength = k_mod * k_sys * shear_strength_mpa / GAMMA_M

    second_moment = breadth_mm * depth_mm**3 / 12
    per_load = 5 * (span_m * 1000) ** 4 / (384 * modulus_mpa * second_moment)  # mm for 1 kN/m = 1 N/mm
    instant = per_load * (permanent + imposed)
    final = per_load * (permanent * (1 + k_def) + imposed * (1 + psi2 * k_def))
    limit = span_m * 1000 / deflection_divisor
    return {
        "design_moment_kn_m": moment,
        "bending_stress_mpa": bending_stress,
        "design_bending_strength_mpa": bending_strength,
        "bending_utilisation": bending_stress / bending_strength,
        "shear_stress_mpa": shear_stress,
        "design_shear_strength_mpa": shear_strength,
        "shear_utilisation": shear_stress / shear_strength,
        "instant_deflection_mm": instant,
        "final_deflection_mm": final,
        "deflection_utilisation": final / limit,
        "adequate": max(bending_stress / bending_strength, shear_stress / shear_strength, final / limit) <= 1,
    }
