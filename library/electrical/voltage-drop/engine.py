"""Voltage drop of a cable run by the R cos(phi) + X sin(phi) approximation of IEC 60364-5-52, Annex G."""

import math


def compute(
    phases,
    supply_voltage_v,
    length_m,
    load_current_a,
    power_factor,
    resistance_ohm_per_km,
    reactance_ohm_per_km,
    allowed_drop_percent,
):
    if not 0 < power_factor <= 1:
        raise ValueError("the power factor must be above 0 and at most 1")
    sine = math.sqrt(1 - power_factor**2)
    per_km = resistance_ohm_per_km * power_factor + reactance_ohm_per_km * sine
    # Go and return for one phase; line-to-line voltage for three.
    factor = math.sqrt(3) if phases == 3 else 2
    conductors = 3 if phases == 3 else 2
    length_km = length_m / 1000
    drop = factor * load_current_a * per_km * length_km
    percent = 100 * drop / supply_voltage_v
    return {
        "voltage_drop_v": drop,
        "voltage_drop_percent": percent,
        "longest_run_m": length_m * allowed_drop_percent / percent,
        "loss_kw": conductors * load_current_a**2 * resistance_ohm_per_km * length_km / 1000,
        "receiving_voltage_v": supply_voltage_v - drop,
        "within_limit": percent <= allowed_drop_percent,
    }
