"""PV string sizing: module voltages corrected linearly to cell temperature, inverter limits, 1.25 on short-circuit current (IEC 62548)."""

import math


def compute(
    module_voc_v,
    module_vmp_v,
    module_isc_a,
    module_power_w,
    voc_coefficient_percent,
    vmp_coefficient_percent,
    coldest_temperature_degc,
    hottest_temperature_degc,
    inverter_voltage_limit_v,
    tracker_lowest_voltage_v,
    tracker_highest_voltage_v,
    tracker_current_limit_a,
    tracker_count,
    inverter_power_kw,
):
    if module_vmp_v >= module_voc_v:
        raise ValueError("the voltage at maximum power must be below the open-circuit voltage")
    if voc_coefficient_percent >= 0 or vmp_coefficient_percent >= 0:
        raise ValueError("both coefficients must be negative")
    if not coldest_temperature_degc < 25 < hottest_temperature_degc:
        raise ValueError("the temperatures must lie on both sides of 25 degC")

    def corrected(value, coefficient, temperature):
        return value * (1 + coefficient / 100 * (temperature - 25))

    cold_voc = corrected(module_voc_v, voc_coefficient_percent, coldest_temperature_degc)
    cold_vmp = corrected(module_vmp_v, vmp_coefficient_percent, coldest_temperature_degc)
    hot_vmp = corrected(module_vmp_v, vmp_coefficient_percent, hottest_temperature_degc)
    most = min(
        math.floor(inverter_voltage_limit_v / cold_voc),
        math.floor(tracker_highest_voltage_v / cold_vmp),
    )
    least = math.ceil(tracker_lowest_voltage_v / hot_vmp)
    string_current = 1.25 * module_isc_a
    strings = math.floor(tracker_current_limit_a / string_current)
    if most < least or strings < 1:
        raise ValueError("modules and inverter do not fit")
    array_kw = most * strings * tracker_count * module_power_w / 1000
    return {
        "cold_voc_v": cold_voc,
        "cold_vmp_v": cold_vmp,
        "hot_vmp_v": hot_vmp,
        "most_modules": most,
        "least_modules": least,
        "string_voc_v": most * cold_voc,
        "string_hot_vmp_v": most * hot_vmp,
        "strings_per_tracker": strings,
        "tracker_design_current_a": strings * string_current,
        "array_power_kw": array_kw,
        "dc_ac_ratio": array_kw / inverter_power_kw,
    }
