"""One-dimensional consolidation settlement of a clay layer (C_c, C_r, OCR) and its rate by Terzaghi's theory."""

import math

WATER = 9.81


def degree(time_factor):
    """Average degree of consolidation in per cent, inverse of the two usual expressions for T_v."""
    if time_factor <= math.pi / 4 * 0.36:
        return 100 * math.sqrt(4 * time_factor / math.pi)
    return 100 - 10 ** ((1.781 - time_factor) / 0.933)


def compute(
    sand_thickness_m,
    water_depth_m,
    sand_unit_weight_kn_per_m3,
    sand_saturated_unit_weight_kn_per_m3,
    clay_thickness_m,
    clay_saturated_unit_weight_kn_per_m3,
    void_ratio,
    compression_index,
    recompression_index,
    overconsolidation_ratio,
    stress_increase_kpa,
    consolidation_coefficient_m2_per_yr,
    drainage,
    elapsed_time_yr,
):
    if not 0 <= water_depth_m <= sand_thickness_m:
        raise ValueError("the water table must lie in the sand")
    if min(clay_thickness_m, void_ratio, compression_index, recompression_index, stress_increase_kpa) <= 0:
        raise ValueError("thickness, void ratio, indices and stress increase must be above 0")
    if overconsolidation_ratio < 1 or recompression_index >= compression_index:
        raise ValueError("OCR must be at least 1 and C_r below C_c")
    if consolidation_coefficient_m2_per_yr <= 0 or elapsed_time_yr <= 0 or drainage not in ("single", "double"):
        raise ValueError("the rate of consolidation is not defined")
    initial = (
        sand_unit_weight_kn_per_m3 * water_depth_m
        + (sand_saturated_unit_weight_kn_per_m3 - WATER) * (sand_thickness_m - water_depth_m)
        + (clay_saturated_unit_weight_kn_per_m3 - WATER) * clay_thickness_m / 2
    )
    past = overconsolidation_ratio * initial
    final = initial + stress_increase_kpa
    strain_per_decade = 1 / (1 + void_ratio)
    reload = recompression_index * math.log10(min(final, past) / initial)
    virgin = compression_index * math.log10(max(final / past, 1))
    settlement = 1000 * clay_thickness_m * strain_per_decade * (reload + virgin)
    if overconsolidation_ratio == 1:
        branch = "virgin"
    elif final <= past:
        branch = "recompression"
    else:
        branch = "both"

    path = clay_thickness_m if drainage == "single" else clay_thickness_m / 2
    time_factor = consolidation_coefficient_m2_per_yr * elapsed_time_yr / path**2
    consolidated = degree(time_factor)
    return {
        "initial_stress_kpa": initial,
        "past_pressure_kpa": past,
        "final_stress_kpa": final,
        "settlement_mm": settlement,
        "time_factor": time_factor,
        "consolidation_percent": consolidated,
        "settlement_at_time_mm": settlement * consolidated / 100,
        "time_to_90_percent_yr": (1.781 - 0.933) * path**2 / consolidation_coefficient_m2_per_yr,
        "branch": branch,
    }
