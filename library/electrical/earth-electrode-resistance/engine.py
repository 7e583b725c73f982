"""Earth rods in a straight line after BS 7430, with the tolerable touch voltage of IEEE 80 for a body of 50 kg."""

import math

# BS 7430: factor lambda for rods in a straight line, by number of rods.
LINE_FACTOR = {2: 1.00, 3: 1.66, 4: 2.15, 5: 2.54, 6: 2.87, 7: 3.15, 8: 3.39, 9: 3.61, 10: 3.81}


def compute(
    soil_resistivity_ohm_m,
    rod_length_m,
    rod_diameter_mm,
    rod_count,
    rod_spacing_m,
    electrode_current_a,
    touch_share_percent,
    surface_resistivity_ohm_m,
    surface_depth_m,
    fault_duration_s,
):
    if rod_count not in LINE_FACTOR:
        raise ValueError("the table covers 2 to 10 rods")
    if min(soil_resistivity_ohm_m, rod_length_m, rod_diameter_mm, rod_spacing_m, electrode_current_a, fault_duration_s) <= 0:
        raise ValueError("dimensions, resistivity, current and time must be positive")
    if surface_resistivity_ohm_m < soil_resistivity_ohm_m:
        raise ValueError("the surface layer must be more resistive than the soil")
    length = rod_length_m
    single = soil_resistivity_ohm_m / (2 * math.pi * length) * (math.log(8 * length / (rod_diameter_mm / 1000)) - 1)
    alpha = soil_resistivity_ohm_m / (2 * math.pi * single * rod_spacing_m)
    group = single * (1 + LINE_FACTOR[rod_count] * alpha) / rod_count
    rise = electrode_current_a * group
    touch = rise * touch_share_percent / 100
    reduction = 1 - 0.09 * (1 - soil_resistivity_ohm_m / surface_resistivity_ohm_m) / (2 * surface_depth_m + 0.09)
    tolerable = (1000 + 1.5 * reduction * surface_resistivity_ohm_m) * 0.116 / math.sqrt(fault_duration_s)
    return {
        "single_rod_resistance_ohm": single,
        "proximity_ratio": alpha,
        "group_resistance_ohm": group,
        "group_efficiency_percent": 100 * single / rod_count / group,
        "potential_rise_v": rise,
        "touch_voltage_v": touch,
        "surface_reduction_factor": reduction,
        "tolerable_touch_voltage_v": tolerable,
        "largest_resistance_ohm": group * tolerable / touch,
        "touch_voltage_tolerable": touch <= tolerable,
    }
