"""Shunt compensation of a three-phase load from the power triangle: Q = P (tan phi1 - tan phi2)."""

import math


def compute(
    active_power_kw,
    initial_power_factor,
    target_power_factor,
    line_voltage_v,
    frequency_hz,
    connection,
    capacitor_voltage_v,
    step_kvar,
):
    if not 0 < initial_power_factor < target_power_factor <= 1:
        raise ValueError("the target must lie above the initial power factor and not above 1")
    if connection not in ("delta", "star"):
        raise ValueError("the capacitors are in delta or in star")
    if min(active_power_kw, line_voltage_v, frequency_hz, capacitor_voltage_v, step_kvar) <= 0:
        raise ValueError("powers, voltages and frequency must be positive")
    tan_before = math.tan(math.acos(initial_power_factor))
    tan_after = math.tan(math.acos(target_power_factor))
    required = active_power_kw * (tan_before - tan_after)
    apparent_before = active_power_kw / initial_power_factor
    apparent_after = active_power_kw / target_power_factor
    to_current = 1000 / (math.sqrt(3) * line_voltage_v)

    # In star each capacitor sees U/sqrt(3): three times the capacitance for the same reactive power.
    branches = 3 if connection == "delta" else 1
    capacitance = 1000 * required / (branches * 2 * math.pi * frequency_hz * line_voltage_v**2)

    # A capacitor below its rated voltage gives less than its rating, by the square of the voltage.
    step = step_kvar * (line_voltage_v / capacitor_voltage_v) ** 2
    steps = math.ceil(required / step)
    installed = steps * step
    remaining = active_power_kw * tan_before - installed
    apparent_final = math.hypot(active_power_kw, remaining)
    return {
        "required_power_kvar": required,
        "apparent_before_kva": apparent_before,
        "apparent_after_kva": apparent_after,
        "current_before_a": apparent_before * to_current,
        "current_after_a": apparent_after * to_current,
        "current_reduction_percent": 100 * (1 - initial_power_factor / target_power_factor),
        "capacitance_uf": 1e6 * capacitance,
        "steps": steps,
        "installed_power_kvar": installed,
        "remaining_power_kvar": remaining,
        "final_power_factor": active_power_kw / apparent_final,
        "loss_reduction_percent": 100 * (1 - (apparent_final / apparent_before) ** 2),
    }
