"""Detention storage by triangular inflow and outflow hydrographs, with an orifice outlet and a prismatic tank."""

import math

GRAVITY_M_PER_S2 = 9.81


def compute(
    inflow_peak_m3_per_s,
    inflow_base_min,
    rise_time_min,
    release_m3_per_s,
    storage_depth_m,
    orifice_height_m,
    discharge_coefficient,
):
    if not 0 < release_m3_per_s < inflow_peak_m3_per_s:
        raise ValueError("the release must be above 0 and below the peak inflow")
    if not 0 < rise_time_min < inflow_base_min:
        raise ValueError("the inflow must peak before it ends")
    head = storage_depth_m - orifice_height_m
    if head <= 0 or discharge_coefficient <= 0:
        raise ValueError("the orifice must lie below the top water level")
    base = 60 * inflow_base_min
    ratio = release_m3_per_s / inflow_peak_m3_per_s
    # The outflow peaks where its rising line meets the falling limb of the inflow; there the storage is greatest.
    storage = base * (inflow_peak_m3_per_s - release_m3_per_s) / 2
    area = release_m3_per_s / (discharge_coefficient * math.sqrt(2 * GRAVITY_M_PER_S2 * head))
    plan = storage / storage_depth_m
    return {
        "runoff_volume_m3": inflow_peak_m3_per_s * base / 2,
        "storage_volume_m3": storage,
        "storage_share_percent": 100 * (1 - ratio),
        "outflow_peak_time_min": inflow_base_min - (inflow_base_min - rise_time_min) * ratio,
        "plan_area_m2": plan,
        "orifice_area_m2": area,
        "orifice_diameter_mm": 1000 * math.sqrt(4 * area / math.pi),
        # Integral of plan area over the orifice outflow, from full head to none.
        "emptying_time_min": 2 * plan * head / release_m3_per_s / 60,
    }
