"""Anchor chain as an inextensible catenary that leaves the seabed horizontally; grounded chain and anchor holding power."""

import math

GRAVITY = 9.81
BUOYANCY = 0.87


def compute(
    water_depth_m,
    hawse_height_m,
    chain_mass_kg_per_m,
    horizontal_force_kn,
    paid_out_m,
    friction_coefficient,
    anchor_mass_t,
    holding_factor,
    required_safety,
):
    if min(water_depth_m, chain_mass_kg_per_m, horizontal_force_kn, paid_out_m, anchor_mass_t, required_safety) <= 0:
        raise ValueError("depth, chain, force, anchor and safety must be positive")
    if hawse_height_m < 0 or friction_coefficient < 0:
        raise ValueError("height and friction must not be negative")
    weight = BUOYANCY * chain_mass_kg_per_m * GRAVITY / 1000
    height = water_depth_m + hawse_height_m
    parameter = horizontal_force_kn / weight
    suspended = math.sqrt(height**2 + 2 * height * parameter)
    if suspended > paid_out_m:
        raise ValueError("the chain would pull upwards on the anchor")
    reach = parameter * math.acosh(1 + height / parameter)
    grounded = paid_out_m - suspended
    anchor_load = horizontal_force_kn - friction_coefficient * weight * grounded
    if anchor_load <= 0:
        raise ValueError("the chain alone holds the ship")
    holding = holding_factor * anchor_mass_t * GRAVITY
    return {
        "submerged_weight_n_per_m": weight * 1000,
        "suspended_length_m": suspended,
        "suspended_weight_kn": weight * suspended,
        "suspended_reach_m": reach,
        "top_tension_kn": horizontal_force_kn + weight * height,
        "fairlead_angle_deg": math.degrees(math.atan(weight * suspended / horizontal_force_kn)),
        "grounded_length_m": grounded,
        "anchor_distance_m": reach + grounded,
        "anchor_load_kn": anchor_load,
        "holding_power_kn": holding,
        "safety_factor": holding / anchor_load,
        "lift_off_force_kn": weight * (paid_out_m**2 - height**2) / (2 * height),
        "anchor_holds": holding / anchor_load >= required_safety,
    }
