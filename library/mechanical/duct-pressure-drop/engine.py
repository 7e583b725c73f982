"""Pressure loss of a rectangular sheet-metal duct by the Darcy equation with the Altshul-Tsal friction factor (ASHRAE
Handbook Fundamentals, duct design), fitting losses by loss coefficients, and fan power."""


def compute(
    flow_m3_per_s,
    width_mm,
    height_mm,
    length_m,
    roughness_mm,
    air_density_kg_per_m3,
    viscosity_mm2_per_s,
    fittings_zeta,
    equipment_loss_pa,
    fan_efficiency_percent,
    running_hours_h,
):
    if min(flow_m3_per_s, width_mm, height_mm, length_m, viscosity_mm2_per_s) <= 0:
        raise ValueError("flow, dimensions and viscosity must be positive")
    velocity = flow_m3_per_s / (width_mm * height_mm * 1e-6)
    diameter_mm = 2 * width_mm * height_mm / (width_mm + height_mm)
    reynolds = velocity * diameter_mm / 1000 / (viscosity_mm2_per_s * 1e-6)
    trial = 0.11 * (roughness_mm / diameter_mm + 68 / reynolds) ** 0.25
    friction_factor = trial if trial >= 0.018 else 0.85 * trial + 0.0028
    velocity_pressure = air_density_kg_per_m3 * velocity**2 / 2
    friction_rate = friction_factor / (diameter_mm / 1000) * velocity_pressure
    friction = friction_rate * length_m
    fittings = fittings_zeta * velocity_pressure
    total = friction + fittings + equipment_loss_pa
    power_kw = flow_m3_per_s * total / (fan_efficiency_percent / 100) / 1000
    return {
        "velocity_m_per_s": velocity,
        "hydraulic_diameter_mm": diameter_mm,
        "reynolds_number": reynolds,
        "friction_factor": friction_factor,
        "friction_rate_pa_per_m": friction_rate,
        "friction_loss_pa": friction,
        "fittings_loss_pa": fittings,
        "total_loss_pa": total,
        "fan_power_kw": power_kw,
        "annual_energy_kwh": power_kw * running_hours_h,
    }
