"""Planar slide in an infinite slope with seepage parallel to the surface, in effective stress (Mohr-Coulomb)."""

import math

WATER = 9.81


def compute(
    slope_angle_deg,
    slip_depth_m,
    water_height_m,
    unit_weight_kn_per_m3,
    saturated_unit_weight_kn_per_m3,
    cohesion_kpa,
    friction_angle_deg,
    target_safety,
):
    if not 0 < slope_angle_deg < 60 or not 0 < friction_angle_deg < 50:
        raise ValueError("angles out of range")
    if slip_depth_m <= 0 or not 0 <= water_height_m <= slip_depth_m or cohesion_kpa < 0:
        raise ValueError("the water level must lie between the slip surface and the ground surface")
    if saturated_unit_weight_kn_per_m3 < unit_weight_kn_per_m3 or unit_weight_kn_per_m3 <= WATER:
        raise ValueError("the unit weights do not fit each other")
    beta = math.radians(slope_angle_deg)
    normal, shear = math.cos(beta) ** 2, math.sin(beta) * math.cos(beta)
    friction = math.tan(math.radians(friction_angle_deg))

    def state(water):
        weight = unit_weight_kn_per_m3 * (slip_depth_m - water) + saturated_unit_weight_kn_per_m3 * water
        pore = WATER * water * normal
        strength = cohesion_kpa + (weight * normal - pore) * friction
        return weight * normal, pore, weight * shear, strength

    total, pore, stress, strength = state(water_height_m)
    *_, dry_stress, dry_strength = state(0)
    *_, full_stress, full_strength = state(slip_depth_m)
    # Strength and target times shear stress are linear in the height of the water.
    surplus = dry_strength - target_safety * dry_stress
    change = (full_strength - target_safety * full_stress - surplus) / slip_depth_m
    if surplus <= 0 or surplus + change * slip_depth_m >= 0:
        raise ValueError("no water level within the slope gives the target")
    buoyant = saturated_unit_weight_kn_per_m3 - WATER
    drive = saturated_unit_weight_kn_per_m3 * shear - buoyant * normal * friction
    if drive <= 0:
        raise ValueError("the saturated slope stands at any depth")
    return {
        "normal_stress_kpa": total,
        "pore_pressure_kpa": pore,
        "shear_stress_kpa": stress,
        "shear_strength_kpa": strength,
        "safety": strength / stress,
        "safety_dry": dry_strength / dry_stress,
        "safety_saturated": full_strength / full_stress,
        "critical_depth_m": cohesion_kpa / drive,
        "highest_water_m": -surplus / change,
    }
