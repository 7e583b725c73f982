"""Rankine's active pressure on a vertical smooth wall: two layers, uniform surcharge, water in the lower layer."""

import math

WATER = 9.81


def compute(
    upper_thickness_m,
    lower_thickness_m,
    water_depth_m,
    surcharge_kpa,
    upper_unit_weight_kn_per_m3,
    upper_friction_deg,
    lower_unit_weight_kn_per_m3,
    lower_saturated_unit_weight_kn_per_m3,
    lower_friction_deg,
    lower_cohesion_kpa,
):
    height = upper_thickness_m + lower_thickness_m
    if upper_thickness_m <= 0 or lower_thickness_m <= 0 or surcharge_kpa < 0 or lower_cohesion_kpa < 0:
        raise ValueError("thicknesses must be above 0, loads and cohesion not below 0")
    if not upper_thickness_m <= water_depth_m <= height:
        raise ValueError("the water table must lie in the lower layer")
    if lower_saturated_unit_weight_kn_per_m3 <= WATER:
        raise ValueError("the saturated unit weight must exceed that of water")
    ka1 = math.tan(math.pi / 4 - math.radians(upper_friction_deg) / 2) ** 2
    ka2 = math.tan(math.pi / 4 - math.radians(lower_friction_deg) / 2) ** 2
    moist = water_depth_m - upper_thickness_m
    wet = height - water_depth_m

    interface = surcharge_kpa + upper_unit_weight_kn_per_m3 * upper_thickness_m
    at_water = interface + lower_unit_weight_kn_per_m3 * moist
    at_base = at_water + (lower_saturated_unit_weight_kn_per_m3 - WATER) * wet
    relief = 2 * lower_cohesion_kpa * math.sqrt(ka2)
    top = ka1 * surcharge_kpa
    above = ka1 * interface
    below = ka2 * interface - relief
    mid = ka2 * at_water - relief
    foot = ka2 * at_base - relief
    if below < 0:
        raise ValueError("the lower layer would be in tension")

    # Thickness, pressures at top and bottom, height of the bottom above the base.
    parts = [
        (upper_thickness_m, top, above, lower_thickness_m),
        (moist, below, mid, wet),
        (wet, mid, foot, 0.0),
    ]
    earth = sum((a + b) / 2 * h for h, a, b, _ in parts)
    moment = sum(a * h * (z + h / 2) + (b - a) / 2 * h * (z + h / 3) for h, a, b, z in parts)
    water = WATER * wet**2 / 2
    total = earth + water
    base_moment = moment + water * wet / 3
    return {
        "upper_coefficient": ka1,
        "lower_coefficient": ka2,
        "pressure_above_interface_kpa": above,
        "pressure_below_interface_kpa": below,
        "earth_pressure_at_base_kpa": foot,
        "earth_thrust_kn_per_m": earth,
        "water_thrust_kn_per_m": water,
        "total_thrust_kn_per_m": total,
        "moment_about_base_kn_m_per_m": base_moment,
        "height_of_action_m": base_moment / total,
    }
