"""Rigid pad footing with one-way eccentricity: linear soil pressure, bending at the column face, one-way shear."""

CONCRETE_KN_PER_M3 = 25


def compute(
    column_load_kn,
    base_moment_kn_m,
    length_m,
    width_m,
    thickness_m,
    column_size_m,
    bar_axis_m,
    load_factor,
    allowable_pressure_kpa,
):
    if min(column_load_kn, length_m, width_m, thickness_m, column_size_m, bar_axis_m) <= 0:
        raise ValueError("loads and sizes must be positive")
    effective_depth = thickness_m - bar_axis_m
    if effective_depth <= 0 or column_size_m >= length_m:
        raise ValueError("bars or column do not fit the footing")
    weight = CONCRETE_KN_PER_M3 * length_m * width_m * thickness_m
    total = column_load_kn + weight
    eccentricity = base_moment_kn_m / total
    if eccentricity >= length_m / 3:
        raise ValueError("less than half of the base is in contact")
    if eccentricity <= length_m / 6:
        mean = total / (length_m * width_m)
        highest = mean * (1 + 6 * eccentricity / length_m)
        lowest = mean * (1 - 6 * eccentricity / length_m)
        slope = (highest - lowest) / length_m
    else:
        contact = 3 * (length_m / 2 - eccentricity)
        highest = 2 * total / (width_m * contact)
        lowest = 0.0
        slope = highest / contact

    # The weight of the footing is carried straight to the ground and causes no bending.
    net = highest - CONCRETE_KN_PER_M3 * thickness_m
    arm = (length_m - column_size_m) / 2
    moment = load_factor * width_m * (net * arm**2 / 2 - slope * arm**3 / 6)
    reach = arm - effective_depth
    if reach <= 0:
        raise ValueError("the shear section lies outside the footing")
    shear = load_factor * width_m * (net * reach - slope * reach**2 / 2)
    return {
        "total_load_kn": total,
        "eccentricity_mm": eccentricity * 1000,
        "highest_pressure_kpa": highest,
        "lowest_pressure_kpa": lowest,
        "face_pressure_kpa": highest - slope * arm,
        "design_moment_kn_m": moment,
        "design_shear_kn": shear,
        "shear_stress_mpa": shear / (width_m * effective_depth) / 1000,
        "pressure_utilisation": highest / allowable_pressure_kpa,
        "within_pressure": highest <= allowable_pressure_kpa,
    }
