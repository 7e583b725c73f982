"""External stability of a cantilever retaining wall with Rankine's active thrust on the virtual back through the heel."""

import math

CONCRETE = 24.0


def compute(
    stem_height_m,
    stem_thickness_m,
    base_thickness_m,
    toe_length_m,
    heel_length_m,
    backfill_friction_deg,
    backfill_unit_weight_kn_per_m3,
    surcharge_kpa,
    base_friction_deg,
    allowable_bearing_kpa,
):
    if min(stem_height_m, stem_thickness_m, base_thickness_m, toe_length_m, heel_length_m) <= 0:
        raise ValueError("dimensions must be above 0")
    if not 0 < backfill_friction_deg < 50 or not 0 < base_friction_deg < 50 or surcharge_kpa < 0:
        raise ValueError("angles must lie between 0 and 50 degrees")
    ka = math.tan(math.pi / 4 - math.radians(backfill_friction_deg) / 2) ** 2
    height = stem_height_m + base_thickness_m
    width = toe_length_m + stem_thickness_m + heel_length_m
    soil_thrust = ka * backfill_unit_weight_kn_per_m3 * height**2 / 2
    surcharge_thrust = ka * surcharge_kpa * height
    thrust = soil_thrust + surcharge_thrust
    overturning = soil_thrust * height / 3 + surcharge_thrust * height / 2

    stem = CONCRETE * stem_thickness_m * stem_height_m
    base = CONCRETE * base_thickness_m * width
    backfill = backfill_unit_weight_kn_per_m3 * heel_length_m * stem_height_m
    vertical = stem + base + backfill
    resisting = (
        stem * (toe_length_m + stem_thickness_m / 2) + base * width / 2 + backfill * (width - heel_length_m / 2)
    )
    arm = (resisting - overturning) / vertical
    if arm <= 0:
        raise ValueError("the resultant falls outside the toe")
    eccentricity = width / 2 - arm
    if abs(eccentricity) <= width / 6:
        toe_pressure = vertical / width * (1 + 6 * eccentricity / width)
        heel_pressure = vertical / width * (1 - 6 * eccentricity / width)
    elif eccentricity > 0:
        # No tension below the base: a triangle whose centroid is under the resultant.
        toe_pressure, heel_pressure = 2 * vertical / (3 * arm), 0.0
    else:
        raise ValueError("the resultant falls behind the middle third")
    sliding = vertical * math.tan(math.radians(base_friction_deg)) / thrust
    return {
        "active_coefficient": ka,
        "thrust_kn_per_m": thrust,
        "vertical_load_kn_per_m": vertical,
        "overturning_moment_kn_m_per_m": overturning,
        "resisting_moment_kn_m_per_m": resisting,
        "sliding_safety": sliding,
        "overturning_safety": resisting / overturning,
        "eccentricity_m": eccentricity,
        "toe_pressure_kpa": toe_pressure,
        "heel_pressure_kpa": heel_pressure,
        "stable": sliding >= 1.5 and resisting / overturning >= 2 and toe_pressure <= allowable_bearing_kpa,
    }
