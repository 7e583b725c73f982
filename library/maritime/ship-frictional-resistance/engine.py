"""Calm-water resistance and effective power with the ITTC 1957 line, a form factor and a given wave resistance coefficient."""

import math

GRAVITY = 9.81
KNOT = 1852 / 3600


def compute(
    waterline_length_m,
    beam_m,
    draught_m,
    block_coefficient,
    wetted_surface_m2,
    speed_knots,
    form_factor,
    wave_coefficient,
    roughness_allowance,
    water_density_kg_per_m3,
    viscosity_mm2_per_s,
    propulsive_efficiency_percent,
):
    if min(waterline_length_m, wetted_surface_m2, speed_knots, water_density_kg_per_m3, viscosity_mm2_per_s) <= 0:
        raise ValueError("length, surface, speed, density and viscosity must be positive")
    if not 0 < propulsive_efficiency_percent <= 100:
        raise ValueError("efficiency must be above 0 and at most 100 per cent")
    speed = speed_knots * KNOT
    reynolds = speed * waterline_length_m / (viscosity_mm2_per_s * 1e-6)
    if reynolds < 1e6:
        raise ValueError("the line holds for turbulent flow")
    friction = 0.075 / (math.log10(reynolds) - 2) ** 2
    total = (1 + form_factor) * friction + wave_coefficient + roughness_allowance
    scale = 0.5 * water_density_kg_per_m3 * wetted_surface_m2 * speed**2 / 1000
    power = total * scale * speed
    return {
        "reynolds_number": reynolds,
        "froude_number": speed / math.sqrt(GRAVITY * waterline_length_m),
        "displacement_t": water_density_kg_per_m3
        * block_coefficient
        * waterline_length_m
        * beam_m
        * draught_m
        / 1000,
        "friction_coefficient": friction,
        "frictional_resistance_kn": friction * scale,
        "viscous_resistance_kn": (1 + form_factor) * friction * scale,
        "wave_resistance_kn": wave_coefficient * scale,
        "total_coefficient": total,
        "total_resistance_kn": total * scale,
        "effective_power_kw": power,
        "delivered_power_kw": power / (propulsive_efficiency_percent / 100),
    }
