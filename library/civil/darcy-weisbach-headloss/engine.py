"""Head loss of a full pipe by Darcy-Weisbach, friction factor by Swamee and Jain (1976)."""

import math

GRAVITY_M_PER_S2 = 9.81
WATER_KN_PER_M3 = 9.81


def compute(
    flow_l_per_s,
    diameter_mm,
    length_m,
    roughness_mm,
    viscosity_mm2_per_s,
    minor_coefficient,
    static_lift_m,
    efficiency_percent,
):
    if min(flow_l_per_s, diameter_mm, length_m, viscosity_mm2_per_s, efficiency_percent) <= 0:
        raise ValueError("flow, pipe, viscosity and efficiency must be above 0")
    if roughness_mm < 0 or minor_coefficient < 0:
        raise ValueError("roughness and loss coefficient must not be negative")
    flow = flow_l_per_s / 1000
    diameter = diameter_mm / 1000
    velocity = 4 * flow / (math.pi * diameter**2)
    reynolds = velocity * diameter / (viscosity_mm2_per_s * 1e-6)
    if not 5e3 <= reynolds <= 1e8 or roughness_mm / diameter_mm > 0.02:
        raise ValueError("outside the range of the Swamee-Jain formula")
    factor = 0.25 / math.log10(roughness_mm / diameter_mm / 3.7 + 5.74 / reynolds**0.9) ** 2
    velocity_head = velocity**2 / (2 * GRAVITY_M_PER_S2)
    friction = factor * length_m / diameter * velocity_head
    minor = minor_coefficient * velocity_head
    total = static_lift_m + friction + minor
    return {
        "velocity_m_per_s": velocity,
        "reynolds_number": reynolds,
        "friction_factor": factor,
        "friction_loss_m": friction,
        "minor_loss_m": minor,
        "pressure_drop_kpa": WATER_KN_PER_M3 * (friction + minor),
        "total_head_m": total,
        "pump_power_kw": WATER_KN_PER_M3 * flow * total / (efficiency_percent / 100),
    }
