"""Uniform flow in a trapezoidal channel by Manning's formula, with Froude number, specific energy and critical depth."""

import math

GRAVITY_M_PER_S2 = 9.81
WATER_N_PER_M3 = 9810


def compute(bed_width_m, side_slope, depth_m, bed_slope_percent, manning_n):
    if bed_width_m <= 0 or depth_m <= 0 or bed_slope_percent <= 0 or manning_n <= 0 or side_slope < 0:
        raise ValueError("the dimensions, slope and roughness of the channel must be above 0")

    def area(depth):
        return (bed_width_m + side_slope * depth) * depth

    def top_width(depth):
        return bed_width_m + 2 * side_slope * depth

    slope = bed_slope_percent / 100
    flow_area = area(depth_m)
    perimeter = bed_width_m + 2 * depth_m * math.sqrt(1 + side_slope**2)
    radius = flow_area / perimeter
    velocity = radius ** (2 / 3) * math.sqrt(slope) / manning_n
    flow = flow_area * velocity
    froude = velocity / math.sqrt(GRAVITY_M_PER_S2 * flow_area / top_width(depth_m))

    # Q^2 T = g A^3 at critical depth; the left side over the right falls steadily with depth, so bisection is safe.
    low, high = 1e-6, 1.0
    while flow**2 * top_width(high) > GRAVITY_M_PER_S2 * area(high) ** 3:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if flow**2 * top_width(middle) > GRAVITY_M_PER_S2 * area(middle) ** 3:
            low = middle
        else:
            high = middle

    return {
        "flow_area_m2": flow_area,
        "wetted_perimeter_m": perimeter,
        "hydraulic_radius_m": radius,
        "velocity_m_per_s": velocity,
        "flow_m3_per_s": flow,
        "top_width_m": top_width(depth_m),
        "froude_number": froude,
        "specific_energy_m": depth_m + velocity**2 / (2 * GRAVITY_M_PER_S2),
        "bed_shear_pa": WATER_N_PER_M3 * radius * slope,
        "critical_depth_m": (low + high) / 2,
        "regime": "supercritical" if froude > 1 else "subcritical",
    }
