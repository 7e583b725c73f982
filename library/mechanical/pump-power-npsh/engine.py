"""Duty of a centrifugal pump between two open tanks: Darcy-Weisbach losses, total head, power and NPSH available."""

import math

G = 9.81  # m/s2


def compute(
    flow_l_per_s,
    density_kg_per_m3,
    vapour_pressure_kpa,
    surface_pressure_kpa,
    suction_level_m,
    discharge_level_m,
    suction_diameter_mm,
    suction_length_m,
    suction_zeta,
    discharge_diameter_mm,
    discharge_length_m,
    discharge_zeta,
    friction_factor,
    pump_efficiency_percent,
    motor_efficiency_percent,
    npsh_required_m,
    required_ratio,
):
    if min(flow_l_per_s, density_kg_per_m3, suction_diameter_mm, discharge_diameter_mm) <= 0:
        raise ValueError("flow, density and diameters must be positive")
    flow = flow_l_per_s / 1000

    def loss(diameter_mm, length, zeta):
        diameter = diameter_mm / 1000
        velocity = flow / (math.pi * diameter**2 / 4)
        return velocity, (friction_factor * length / diameter + zeta) * velocity**2 / (2 * G)

    suction_velocity, suction_loss = loss(suction_diameter_mm, suction_length_m, suction_zeta)
    _, discharge_loss = loss(discharge_diameter_mm, discharge_length_m, discharge_zeta)
    # Both tanks are open, so the atmospheric pressures cancel in the head.
    head = discharge_level_m - suction_level_m + suction_loss + discharge_loss
    if head <= 0:
        raise ValueError("no pump is needed")
    hydraulic = density_kg_per_m3 * G * flow * head / 1000
    shaft = hydraulic / (pump_efficiency_percent / 100)
    available = (
        (surface_pressure_kpa - vapour_pressure_kpa) * 1000 / (density_kg_per_m3 * G) + suction_level_m - suction_loss
    )
    return {
        "suction_velocity_m_per_s": suction_velocity,
        "suction_loss_m": suction_loss,
        "discharge_loss_m": discharge_loss,
        "total_head_m": head,
        "hydraulic_power_kw": hydraulic,
        "shaft_power_kw": shaft,
        "motor_input_kw": shaft / (motor_efficiency_percent / 100),
        "npsh_available_m": available,
        "npsh_ratio": available / npsh_required_m,
        "ratio_sufficient": available / npsh_required_m >= required_ratio,
    }
