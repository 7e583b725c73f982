"""Uniform flow in a part-full circular pipe by Manning's formula with a roughness that does not vary with depth."""

import math

GRAVITY_M_PER_S2 = 9.81
WATER_N_PER_M3 = 9810


def compute(diameter_mm, fill_ratio, slope_percent, manning_n, min_shear_pa):
    if not 0 < fill_ratio < 1:
        raise ValueError("the pipe must be part full")
    if diameter_mm <= 0 or slope_percent <= 0 or manning_n <= 0:
        raise ValueError("diameter, slope and roughness must be above 0")
    diameter = diameter_mm / 1000
    slope = slope_percent / 100
    # Angle at the centre of the pipe that the wetted arc spans.
    angle = 2 * math.acos(1 - 2 * fill_ratio)
    area = diameter**2 / 8 * (angle - math.sin(angle))
    perimeter = diameter * angle / 2
    radius = area / perimeter
    surface = diameter * math.sin(angle / 2)
    velocity = radius ** (2 / 3) * math.sqrt(slope) / manning_n
    flow = area * velocity
    full_velocity = (diameter / 4) ** (2 / 3) * math.sqrt(slope) / manning_n
    full_flow = math.pi * diameter**2 / 4 * full_velocity
    shear = WATER_N_PER_M3 * radius * slope
    return {
        "flow_area_m2": area,
        "wetted_perimeter_m": perimeter,
        "hydraulic_radius_m": radius,
        "velocity_m_per_s": velocity,
        "flow_l_per_s": 1000 * flow,
        "full_flow_l_per_s": 1000 * full_flow,
        "flow_ratio": flow / full_flow,
        "wall_shear_pa": shear,
        "froude_number": velocity / math.sqrt(GRAVITY_M_PER_S2 * area / surface),
        "self_cleansing": shear >= min_shear_pa,
    }
