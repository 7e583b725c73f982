"""Wind on a free-standing wall: peak velocity pressure of EN 1991-1-4, section 4, and overturning of a gravity wall."""

import math

AIR_KG_PER_M3 = 1.25
ROUGHNESS_II_M = 0.05


def compute(
    basic_speed_m_per_s,
    roughness_m,
    minimum_height_m,
    wall_height_m,
    wall_length_m,
    net_coefficient,
    wall_thickness_m,
    unit_weight_kn_per_m3,
    required_safety,
):
    if min(basic_speed_m_per_s, roughness_m, wall_height_m, wall_thickness_m, unit_weight_kn_per_m3) <= 0:
        raise ValueError("speed, roughness, sizes and weight must be positive")
    height = max(wall_height_m, minimum_height_m)
    if height <= roughness_m:
        raise ValueError("the reference height must be above the roughness length")
    terrain = 0.19 * (roughness_m / ROUGHNESS_II_M) ** 0.07
    log = math.log(height / roughness_m)
    roughness_factor = terrain * log
    mean_speed = roughness_factor * basic_speed_m_per_s
    turbulence = 1 / log
    peak = (1 + 7 * turbulence) * 0.5 * AIR_KG_PER_M3 * mean_speed**2 / 1000  # kPa
    pressure = net_coefficient * peak
    shear = pressure * wall_height_m
    overturning = shear * wall_height_m / 2
    weight = unit_weight_kn_per_m3 * wall_thickness_m * wall_height_m
    safety = weight * wall_thickness_m / 2 / overturning
    return {
        "roughness_factor": roughness_factor,
        "mean_speed_m_per_s": mean_speed,
        "turbulence_intensity": turbulence,
        "peak_pressure_kpa": peak,
        "net_pressure_kpa": pressure,
        "base_shear_kn_per_m": shear,
        "total_force_kn": shear * wall_length_m,
        "overturning_kn_m_per_m": overturning,
        "safety_factor": safety,
        # The stabilising moment grows with the square of the thickness.
        "required_thickness_m": wall_thickness_m * math.sqrt(required_safety / safety),
        "stable": safety >= required_safety,
    }
