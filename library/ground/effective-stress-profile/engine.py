"""Vertical stresses in sand over clay over a confined aquifer: capillary rise in the sand, upward seepage in the clay."""

WATER = 9.81


def compute(
    sand_thickness_m,
    water_depth_m,
    capillary_rise_m,
    sand_unit_weight_kn_per_m3,
    sand_saturated_unit_weight_kn_per_m3,
    clay_thickness_m,
    clay_saturated_unit_weight_kn_per_m3,
    artesian_level_m,
):
    if not 0 <= capillary_rise_m < water_depth_m <= sand_thickness_m or clay_thickness_m <= 0:
        raise ValueError("the water table and its capillary zone must lie in the sand")
    if min(sand_saturated_unit_weight_kn_per_m3, clay_saturated_unit_weight_kn_per_m3) <= WATER:
        raise ValueError("saturated unit weights must exceed that of water")
    top = water_depth_m - capillary_rise_m
    below_water = sand_thickness_m - water_depth_m

    total_top = sand_unit_weight_kn_per_m3 * top
    total_water = total_top + sand_saturated_unit_weight_kn_per_m3 * capillary_rise_m
    total_sand = total_water + sand_saturated_unit_weight_kn_per_m3 * below_water
    total_clay = total_sand + clay_saturated_unit_weight_kn_per_m3 * clay_thickness_m
    pore_sand = WATER * below_water
    pore_clay = WATER * (sand_thickness_m + clay_thickness_m + artesian_level_m)
    if pore_clay <= 0:
        raise ValueError("the aquifer is not under pressure")
    # Steady seepage: the head, and with it the pore pressure, is linear through the clay.
    pore_middle = (pore_sand + pore_clay) / 2
    total_middle = (total_sand + total_clay) / 2
    loss = artesian_level_m + water_depth_m
    return {
        "capillary_top_effective_kpa": total_top + WATER * capillary_rise_m,
        "water_table_total_kpa": total_water,
        "sand_base_total_kpa": total_sand,
        "sand_base_pore_kpa": pore_sand,
        "sand_base_effective_kpa": total_sand - pore_sand,
        "clay_middle_pore_kpa": pore_middle,
        "clay_middle_effective_kpa": total_middle - pore_middle,
        "clay_base_pore_kpa": pore_clay,
        "clay_base_effective_kpa": total_clay - pore_clay,
        "clay_gradient": loss / clay_thickness_m,
        "uplift_safety": total_clay / pore_clay,
    }
