"""Sizing of a single-pass heat exchanger by the logarithmic mean temperature difference method."""

import math


def lmtd(first, second):
    if first <= 0 or second <= 0:
        raise ValueError("the temperatures cross")
    # The mean tends to the common value when both ends are equal.
    if abs(first - second) < 1e-9 * first:
        return first
    return (first - second) / math.log(first / second)


def compute(
    hot_flow_kg_per_s,
    hot_cp_kj_per_kg_k,
    hot_in_degc,
    hot_out_degc,
    cold_flow_kg_per_s,
    cold_cp_kj_per_kg_k,
    cold_in_degc,
    clean_u_w_per_m2_k,
    fouling_m2_k_per_w,
    tube_diameter_mm,
):
    if not hot_in_degc > hot_out_degc > cold_in_degc:
        raise ValueError("the hot stream must cool towards the cold inlet")
    duty = hot_flow_kg_per_s * hot_cp_kj_per_kg_k * (hot_in_degc - hot_out_degc)
    cold_capacity = cold_flow_kg_per_s * cold_cp_kj_per_kg_k
    cold_out = cold_in_degc + duty / cold_capacity
    counter = lmtd(hot_in_degc - cold_out, hot_out_degc - cold_in_degc)
    parallel = lmtd(hot_in_degc - cold_in_degc, hot_out_degc - cold_out)
    service_u = 1 / (1 / clean_u_w_per_m2_k + fouling_m2_k_per_w)
    area_counter = 1000 * duty / (service_u * counter)
    smaller = min(hot_flow_kg_per_s * hot_cp_kj_per_kg_k, cold_capacity)
    return {
        "duty_kw": duty,
        "cold_out_degc": cold_out,
        "lmtd_counter_k": counter,
        "lmtd_parallel_k": parallel,
        "service_u_w_per_m2_k": service_u,
        "area_counter_m2": area_counter,
        "area_parallel_m2": 1000 * duty / (service_u * parallel),
        "tube_length_m": area_counter / (math.pi * tube_diameter_mm / 1000),
        "effectiveness": duty / (smaller * (hot_in_degc - cold_in_degc)),
    }
