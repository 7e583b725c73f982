"""Adiabatic mixing of two moist-air streams and the load of the cooling coil behind them; perfect-gas relations of the
ASHRAE Handbook Fundamentals with the Magnus formula for the saturation pressure."""

import math

GAS_CONSTANT = 0.287042  # kJ/kg.K, dry air
MASS_RATIO = 0.621945  # water vapour to dry air
CP_AIR, CP_VAPOUR, EVAPORATION = 1.006, 1.86, 2501.0
MAGNUS_A, MAGNUS_B, MAGNUS_C = 0.61094, 17.625, 243.04


def saturation_pressure(temperature):
    return MAGNUS_A * math.exp(MAGNUS_B * temperature / (temperature + MAGNUS_C))


def dew_point(vapour_pressure):
    logarithm = math.log(vapour_pressure / MAGNUS_A)
    return MAGNUS_C * logarithm / (MAGNUS_B - logarithm)


def enthalpy(temperature, ratio):
    return CP_AIR * temperature + ratio * (EVAPORATION + CP_VAPOUR * temperature)


def compute(
    outdoor_temp_degc,
    outdoor_rh_percent,
    outdoor_flow_m3_per_s,
    return_temp_degc,
    return_rh_percent,
    return_flow_m3_per_s,
    pressure_kpa,
    coil_temp_degc,
    coil_rh_percent,
):
    def state(temperature, humidity):
        vapour = humidity / 100 * saturation_pressure(temperature)
        if not 0 < humidity <= 100 or vapour >= pressure_kpa:
            raise ValueError("no such state of moist air")
        return vapour, MASS_RATIO * vapour / (pressure_kpa - vapour)

    def dry_flow(volume_flow, temperature, vapour):
        return volume_flow * (pressure_kpa - vapour) / (GAS_CONSTANT * (temperature + 273.15))

    outdoor_vapour, outdoor_ratio = state(outdoor_temp_degc, outdoor_rh_percent)
    return_vapour, return_ratio = state(return_temp_degc, return_rh_percent)
    _, coil_ratio = state(coil_temp_degc, coil_rh_percent)
    outdoor = dry_flow(outdoor_flow_m3_per_s, outdoor_temp_degc, outdoor_vapour)
    recirculated = dry_flow(return_flow_m3_per_s, return_temp_degc, return_vapour)
    total = outdoor + recirculated
    ratio = (outdoor * outdoor_ratio + recirculated * return_ratio) / total
    mixed_enthalpy = (
        outdoor * enthalpy(outdoor_temp_degc, outdoor_ratio) + recirculated * enthalpy(return_temp_degc, return_ratio)
    ) / total
    temperature = (mixed_enthalpy - EVAPORATION * ratio) / (CP_AIR + CP_VAPOUR * ratio)
    vapour = ratio * pressure_kpa / (MASS_RATIO + ratio)
    if vapour >= saturation_pressure(temperature):
        raise ValueError("the mixture is fog")
    if coil_temp_degc >= temperature or coil_ratio >= ratio:
        raise ValueError("the coil must cool and dry the air")
    load = total * (mixed_enthalpy - enthalpy(coil_temp_degc, coil_ratio))
    # Cooling at constant leaving humidity ratio is the sensible part.
    sensible = total * (CP_AIR + CP_VAPOUR * coil_ratio) * (temperature - coil_temp_degc)
    return {
        "outdoor_humidity_ratio_g_per_kg": 1000 * outdoor_ratio,
        "return_humidity_ratio_g_per_kg": 1000 * return_ratio,
        "dry_air_flow_kg_per_s": total,
        "mixed_humidity_ratio_g_per_kg": 1000 * ratio,
        "mixed_temp_degc": temperature,
        "mixed_enthalpy_kj_per_kg": mixed_enthalpy,
        "mixed_dew_point_degc": dew_point(vapour),
        "coil_load_kw": load,
        "condensate_kg_per_h": 3600 * total * (ratio - coil_ratio),
        "sensible_heat_ratio": sensible / load,
    }
