"""Cable sizing as in IEC 60364-5-52 (rating and correction factors) and IEC 60364-4-43 (adiabatic short-circuit check).

Ratings: copper, three loaded conductors, reference method C, air at 30 degC (tables B.52.4 and B.52.5).
"""

import math

SIZES_MM2 = (4, 6, 10, 16, 25, 35, 50, 70, 95, 120, 150, 185, 240, 300)
RATINGS_A = {
    "PVC": (32, 41, 57, 76, 96, 119, 144, 184, 223, 259, 299, 341, 403, 464),
    "XLPE": (40, 52, 71, 96, 119, 147, 179, 229, 278, 322, 371, 424, 500, 576),
}
ADIABATIC_K = {"PVC": 115, "XLPE": 143}
DEVICES_A = (16, 20, 25, 32, 40, 50, 63, 80, 100, 125, 160, 200, 250, 315, 400)


def first_from(values, least):
    for value in values:
        if value >= least:
            return value
    raise ValueError("nothing in the list is large enough")


def compute(
    insulation,
    design_current_a,
    ambient_factor,
    grouping_factor,
    fault_current_ka,
    clearing_time_s,
):
    if insulation not in RATINGS_A:
        raise ValueError("unknown insulation")
    if not (0 < ambient_factor <= 1.2 and 0 < grouping_factor <= 1):
        raise ValueError("a correction factor is out of range")
    if design_current_a <= 0 or fault_current_ka <= 0 or clearing_time_s <= 0:
        raise ValueError("currents and times must be positive")
    ratings = RATINGS_A[insulation]
    k = ADIABATIC_K[insulation]
    correction = ambient_factor * grouping_factor
    device = first_from(DEVICES_A, design_current_a)
    required = device / correction
    tabulated = first_from(ratings, required)
    size = SIZES_MM2[ratings.index(tabulated)]
    capacity = tabulated * correction
    fault_a = 1000 * fault_current_ka
    thermal_size = fault_a * math.sqrt(clearing_time_s) / k
    return {
        "device_rating_a": device,
        "required_rating_a": required,
        "size_by_current_mm2": size,
        "corrected_capacity_a": capacity,
        "adiabatic_minimum_mm2": thermal_size,
        "utilisation_percent": 100 * design_current_a / capacity,
        "longest_clearing_time_s": (k * size / fault_a) ** 2,
        "final_size_mm2": first_from(SIZES_MM2, max(size, thermal_size)),
        "withstands_fault": size >= thermal_size,
    }
