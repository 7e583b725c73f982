"""Stationary lead-acid battery for a constant load with the correction factors of IEEE 485.

The current is that at the end voltage, where a constant-power load draws most, and is held for the whole autonomy.
"""

import math


def compute(
    load_power_kw,
    inverter_efficiency_percent,
    autonomy_min,
    highest_voltage_v,
    float_cell_voltage_v,
    end_cell_voltage_v,
    cells_per_block,
    rate_factor,
    ageing_factor,
    temperature_factor,
    design_margin,
    block_capacity_ah,
    charge_factor,
    recharge_time_h,
):
    if not 0 < inverter_efficiency_percent <= 100 or not 0 < rate_factor <= 1:
        raise ValueError("efficiency and rate factor must be above 0 and not above 1")
    if end_cell_voltage_v >= float_cell_voltage_v:
        raise ValueError("the end voltage must be below the float voltage")
    if min(load_power_kw, autonomy_min, recharge_time_h, block_capacity_ah, end_cell_voltage_v) <= 0:
        raise ValueError("load, times, voltages and capacities must be positive")
    blocks = math.floor(highest_voltage_v / (float_cell_voltage_v * cells_per_block))
    if blocks < 1:
        raise ValueError("not even one block fits below the highest voltage")
    cells = blocks * cells_per_block
    battery_power = load_power_kw / (inverter_efficiency_percent / 100)
    hours = autonomy_min / 60
    lowest = cells * end_cell_voltage_v
    current = 1000 * battery_power / lowest
    drawn = current * hours
    required = drawn / rate_factor * ageing_factor * temperature_factor * design_margin
    strings = math.ceil(required / block_capacity_ah)
    installed = strings * block_capacity_ah
    return {
        "series_cells": cells,
        "lowest_voltage_v": lowest,
        "battery_energy_kwh": battery_power * hours,
        "battery_current_a": current,
        "drawn_charge_ah": drawn,
        "required_capacity_ah": required,
        "parallel_strings": strings,
        "installed_energy_kwh": installed * 2 * cells / 1000,
        "surplus_percent": 100 * (installed / required - 1),
        "recharge_current_a": charge_factor * drawn / recharge_time_h,
        "float_voltage_v": cells * float_cell_voltage_v,
    }
