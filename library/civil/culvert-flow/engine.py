"""Box culvert flowing full under outlet control: losses and headwater after FHWA HDS-5, exit loss of one velocity head."""

import math

GRAVITY_M_PER_S2 = 9.81


def compute(
    barrels,
    width_m,
    height_m,
    length_m,
    manning_n,
    entrance_coefficient,
    flow_m3_per_s,
    tailwater_m,
    slope_percent,
    outlet_invert_m,
    road_height_m,
    min_freeboard_m,
):
    if barrels < 1 or min(width_m, height_m, length_m, manning_n, flow_m3_per_s) <= 0:
        raise ValueError("the culvert and its flow must be above 0")
    area = width_m * height_m
    radius = area / (2 * (width_m + height_m))
    velocity = flow_m3_per_s / (barrels * area)
    velocity_head = velocity**2 / (2 * GRAVITY_M_PER_S2)
    entrance = entrance_coefficient * velocity_head
    friction = manning_n**2 * velocity**2 * length_m / radius ** (4 / 3)
    total = entrance + friction + velocity_head
    unit_flow = flow_m3_per_s / (barrels * width_m)
    # Critical depth of a rectangular barrel; it cannot exceed the barrel's height.
    critical = min((unit_flow**2 / GRAVITY_M_PER_S2) ** (1 / 3), height_m)
    control = max(tailwater_m, (critical + height_m) / 2)
    headwater = outlet_invert_m + control + total
    freeboard = outlet_invert_m + road_height_m - headwater
    return {
        "velocity_m_per_s": velocity,
        "hydraulic_radius_m": radius,
        "entrance_loss_m": entrance,
        "friction_loss_m": friction,
        "exit_loss_m": velocity_head,
        "total_loss_m": total,
        "critical_depth_m": critical,
        "headwater_level_m": headwater,
        "headwater_depth_m": control + total - length_m * slope_percent / 100,
        "freeboard_m": freeboard,
        "freeboard_sufficient": freeboard >= min_freeboard_m,
    }
