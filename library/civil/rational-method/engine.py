"""Peak flow of a small catchment by the rational method, with Kirpich's time of concentration plus pipe travel time."""


def compute(
    roof_area_ha,
    paved_area_ha,
    grass_area_ha,
    roof_c,
    paved_c,
    grass_c,
    path_length_m,
    path_slope_percent,
    drain_length_m,
    drain_velocity_m_per_s,
    idf_a,
    idf_b_min,
    idf_n,
    natural_c,
):
    for coefficient in (roof_c, paved_c, grass_c, natural_c):
        if not 0 < coefficient <= 1:
            raise ValueError("a runoff coefficient must be above 0 and at most 1")
    if path_length_m <= 0 or path_slope_percent <= 0 or drain_velocity_m_per_s <= 0:
        raise ValueError("flow path, slope and velocity must be above 0")
    area = roof_area_ha + paved_area_ha + grass_area_ha
    if area <= 0:
        raise ValueError("the catchment has no area")
    composite = (roof_c * roof_area_ha + paved_c * paved_area_ha + grass_c * grass_area_ha) / area
    # Kirpich in SI units: length in metres, slope as a ratio, time in minutes.
    kirpich = 0.0195 * path_length_m**0.77 * (path_slope_percent / 100) ** -0.385
    drain = drain_length_m / (60 * drain_velocity_m_per_s)

    def intensity(minutes):
        return idf_a / (minutes + idf_b_min) ** idf_n

    developed = intensity(kirpich + drain)
    # Before development there is no drain, so the whole path takes Kirpich's time.
    natural = intensity(kirpich)
    peak = composite * developed * area / 360
    natural_peak = natural_c * natural * area / 360
    return {
        "composite_c": composite,
        "kirpich_time_min": kirpich,
        "concentration_time_min": kirpich + drain,
        "rainfall_intensity_mm_per_h": developed,
        "peak_flow_m3_per_s": peak,
        "specific_flow_l_per_s_ha": 1000 * peak / area,
        "natural_intensity_mm_per_h": natural,
        "natural_flow_m3_per_s": natural_peak,
        "flow_increase_percent": 100 * (peak / natural_peak - 1),
    }
