"""Cutting between three cross-sections by average end areas and by the prismoidal formula, with bulking and haulage."""

import math


def compute(
    formation_width_m,
    side_slope,
    depth_start_m,
    depth_middle_m,
    depth_end_m,
    spacing_m,
    swell_percent,
    shrinkage_percent,
    fill_m3,
    bank_density_t_per_m3,
    body_volume_m3,
    payload_t,
    cycle_min,
    trucks,
):
    if formation_width_m <= 0 or spacing_m <= 0 or min(depth_start_m, depth_middle_m, depth_end_m) <= 0:
        raise ValueError("width, spacing and depths must be above 0")
    if not 0 <= shrinkage_percent < 100 or swell_percent < 0 or trucks < 1:
        raise ValueError("swell, shrinkage and trucks are out of range")

    def area(depth):
        return (formation_width_m + side_slope * depth) * depth

    start, middle, end = area(depth_start_m), area(depth_middle_m), area(depth_end_m)
    end_area = spacing_m / 2 * (start + 2 * middle + end)
    prismoidal = spacing_m / 3 * (start + 4 * middle + end)
    for_fill = fill_m3 / (1 - shrinkage_percent / 100)
    spoil_bank = prismoidal - for_fill
    if spoil_bank <= 0:
        raise ValueError("the cutting does not yield enough for the fill")
    spoil_loose = spoil_bank * (1 + swell_percent / 100)
    spoil_mass = spoil_bank * bank_density_t_per_m3
    # A truck is full when either its body or its payload is used up.
    loads = max(spoil_loose / body_volume_m3, spoil_mass / payload_t)
    trips = math.ceil(loads)
    return {
        "start_area_m2": start,
        "middle_area_m2": middle,
        "end_area_m2": end,
        "end_area_volume_m3": end_area,
        "prismoidal_volume_m3": prismoidal,
        "fill_bank_volume_m3": for_fill,
        "spoil_bank_volume_m3": spoil_bank,
        "spoil_loose_volume_m3": spoil_loose,
        "spoil_mass_t": spoil_mass,
        "trips": trips,
        "haul_time_h": trips * cycle_min / (60 * trucks),
    }
