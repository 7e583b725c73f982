"""Seepage below a sheet pile wall from its flow net: flow, exit gradient, piping and heave (Terzaghi's prism)."""

import math

WATER = 9.81


def compute(
    head_difference_m,
    vertical_permeability_m_per_s,
    permeability_ratio,
    flow_channels,
    head_drops,
    wall_length_m,
    embedment_m,
    exit_length_m,
    toe_head_percent,
    prism_head_percent,
    specific_gravity,
    void_ratio,
    required_safety,
):
    if min(head_difference_m, vertical_permeability_m_per_s, flow_channels, head_drops, wall_length_m) <= 0:
        raise ValueError("head, permeability, flow net and length must be above 0")
    if permeability_ratio < 1 or embedment_m <= 0 or exit_length_m <= 0 or void_ratio <= 0 or specific_gravity <= 1:
        raise ValueError("the ground is not defined")
    if not 0 < prism_head_percent <= toe_head_percent < 100:
        raise ValueError("the head must fall from the toe to the exit")
    # Permeability of the transformed section, k_h = ratio * k_v.
    permeability = vertical_permeability_m_per_s * math.sqrt(permeability_ratio)
    flow = permeability * head_difference_m * flow_channels / head_drops * wall_length_m
    drop = head_difference_m / head_drops
    gradient = drop / exit_length_m
    critical = (specific_gravity - 1) / (1 + void_ratio)
    buoyant = critical * WATER
    toe_head = head_difference_m * toe_head_percent / 100
    prism_head = head_difference_m * prism_head_percent / 100
    heave = buoyant * embedment_m / (WATER * prism_head)
    return {
        "flow_m3_per_d": flow * 86400,
        "head_drop_m": drop,
        "exit_gradient": gradient,
        "critical_gradient": critical,
        "piping_safety": critical / gradient,
        "toe_pore_pressure_kpa": WATER * (embedment_m + toe_head),
        "seepage_force_kn_per_m": WATER * prism_head * embedment_m / 2,
        "heave_safety": heave,
        "safe": critical / gradient >= required_safety and heave >= required_safety,
    }
