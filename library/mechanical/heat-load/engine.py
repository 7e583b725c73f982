"""Steady-state sensible cooling load of a room by the component method: U A dT, solar gain through glass, air exchange
and internal gains (ASHRAE Handbook Fundamentals; CIBSE Guide A)."""

AIR_DENSITY = 1.2  # kg/m3
AIR_CP = 1005.0  # J/kg.K


def compute(
    floor_area_m2,
    ceiling_height_m,
    wall_area_m2,
    wall_u_w_per_m2_k,
    window_area_m2,
    window_u_w_per_m2_k,
    solar_irradiance_w_per_m2,
    solar_factor,
    air_changes_per_hour,
    occupants,
    occupant_gain_w,
    lighting_w_per_m2,
    equipment_w,
    outdoor_temp_degc,
    room_temp_degc,
    supply_temp_degc,
):
    if outdoor_temp_degc <= room_temp_degc:
        raise ValueError("a cooling load needs outdoor air that is warmer than the room")
    if supply_temp_degc >= room_temp_degc:
        raise ValueError("supply air must be cooler than the room")
    difference = outdoor_temp_degc - room_temp_degc
    conduction = (wall_u_w_per_m2_k * wall_area_m2 + window_u_w_per_m2_k * window_area_m2) * difference
    solar = window_area_m2 * solar_factor * solar_irradiance_w_per_m2
    volume = floor_area_m2 * ceiling_height_m
    infiltration = AIR_DENSITY * AIR_CP * volume * air_changes_per_hour / 3600 * difference
    internal = occupants * occupant_gain_w + lighting_w_per_m2 * floor_area_m2 + equipment_w
    total = conduction + solar + infiltration + internal
    flow = total / (AIR_DENSITY * AIR_CP * (room_temp_degc - supply_temp_degc))
    return {
        "conduction_gain_w": conduction,
        "solar_gain_w": solar,
        "infiltration_gain_w": infiltration,
        "internal_gain_w": internal,
        "total_load_kw": total / 1000,
        "supply_flow_l_per_s": 1000 * flow,
        "load_density_w_per_m2": total / floor_area_m2,
        "supply_air_changes": 3600 * flow / volume,
    }
