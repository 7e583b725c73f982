"""Losses, efficiency and voltage drop of a loaded two-winding transformer (IEC 60076-8 for the drop, IEC TS 60076-20 for the peak efficiency index)."""

import math


def compute(
    rated_power_kva,
    rated_voltage_v,
    impedance_percent,
    no_load_loss_w,
    load_loss_w,
    load_power_kw,
    load_power_factor,
    loss_load_factor,
):
    if not 0 < load_power_factor <= 1 or not 0 < loss_load_factor <= 1:
        raise ValueError("power factor and loss load factor must be above 0 and not above 1")
    if min(rated_power_kva, rated_voltage_v, no_load_loss_w, load_loss_w, load_power_kw) <= 0:
        raise ValueError("ratings, losses and load must be positive")
    resistive = load_loss_w / (10 * rated_power_kva)
    if resistive >= impedance_percent:
        raise ValueError("the load loss does not fit the impedance")
    reactive = math.sqrt(impedance_percent**2 - resistive**2)
    load_kva = load_power_kw / load_power_factor
    loading = load_kva / rated_power_kva
    sine = math.sqrt(1 - load_power_factor**2)
    along = resistive * load_power_factor + reactive * sine
    across = reactive * load_power_factor - resistive * sine
    drop = loading * along + (loading * across) ** 2 / 200
    losses_w = no_load_loss_w + loading**2 * load_loss_w
    best = math.sqrt(no_load_loss_w / load_loss_w)
    yearly = 8.76 * (no_load_loss_w + loss_load_factor * loading**2 * load_loss_w)
    return {
        "loading_percent": 100 * loading,
        "resistive_drop_percent": resistive,
        "reactive_drop_percent": reactive,
        "voltage_drop_percent": drop,
        "secondary_voltage_v": rated_voltage_v * (1 - drop / 100),
        "total_loss_kw": losses_w / 1000,
        "efficiency_percent": 100 * load_power_kw / (load_power_kw + losses_w / 1000),
        "best_load_kva": best * rated_power_kva,
        "highest_efficiency_percent": 100
        / (1 + 2 * no_load_loss_w / (1000 * best * rated_power_kva * load_power_factor)),
        "peak_efficiency_index_percent": 100 * (1 - 2 * no_load_loss_w / (1000 * best * rated_power_kva)),
        "yearly_loss_kwh": yearly,
    }
