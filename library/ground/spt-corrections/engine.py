"""SPT corrections after Skempton (1986) and Liao and Whitman (1986), friction angle after Hatanaka and Uchida (1996)."""

import math

WATER = 9.81
LIMIT = 1.7


def compute(
    test_depth_m,
    water_depth_m,
    unit_weight_kn_per_m3,
    saturated_unit_weight_kn_per_m3,
    first_blows,
    second_blows,
    third_blows,
    energy_ratio_percent,
    borehole_factor,
    rod_factor,
    sampler_factor,
):
    if test_depth_m <= 0 or water_depth_m < 0 or min(first_blows, second_blows, third_blows) < 0:
        raise ValueError("depths and blows must not be negative")
    if not 0 < energy_ratio_percent <= 100 or min(borehole_factor, rod_factor, sampler_factor) <= 0:
        raise ValueError("energy ratio and factors must be above 0")
    blows = second_blows + third_blows
    dry = min(test_depth_m, water_depth_m)
    total = unit_weight_kn_per_m3 * dry + saturated_unit_weight_kn_per_m3 * (test_depth_m - dry)
    effective = total - WATER * (test_depth_m - dry)
    if blows <= 0 or effective <= 0:
        raise ValueError("no blows or no effective stress")
    n60 = blows * energy_ratio_percent / 60 * borehole_factor * rod_factor * sampler_factor
    stress_factor = min(math.sqrt(100 / effective), LIMIT)
    n160 = stress_factor * n60
    return {
        "effective_stress_kpa": effective,
        "n60": n60,
        "stress_factor": stress_factor,
        "n160": n160,
        "friction_angle_deg": math.sqrt(20 * n160) + 20,
        "relative_density_percent": 100 * math.sqrt(n160 / 60),
    }
