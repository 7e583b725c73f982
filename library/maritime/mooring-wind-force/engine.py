"""Wind force on a moored ship from drag coefficients, shared between breast and spring lines by plane statics (OCIMF practice)."""

import math

AIR_DENSITY = 1.225


def compute(
    wind_speed_m_per_s,
    side_area_m2,
    end_area_m2,
    transverse_coefficient,
    longitudinal_coefficient,
    force_offset_m,
    bow_group_m,
    stern_group_m,
    bow_lines,
    stern_lines,
    spring_lines,
    breast_angle_deg,
    spring_angle_deg,
    vertical_angle_deg,
    breaking_load_kn,
    allowed_percent,
):
    if min(wind_speed_m_per_s, side_area_m2, end_area_m2, bow_group_m, stern_group_m, breaking_load_kn) <= 0:
        raise ValueError("speed, areas, distances and breaking load must be positive")
    if min(bow_lines, stern_lines, spring_lines) < 1:
        raise ValueError("each group needs a line")
    if not -stern_group_m < force_offset_m < bow_group_m:
        raise ValueError("the wind force must act between the two groups")
    pressure = 0.5 * AIR_DENSITY * wind_speed_m_per_s**2
    transverse = pressure * transverse_coefficient * side_area_m2 / 1000
    longitudinal = pressure * longitudinal_coefficient * end_area_m2 / 1000
    # Moments about the other group of breast lines.
    bow = transverse * (stern_group_m + force_offset_m) / (bow_group_m + stern_group_m)
    stern = transverse - bow
    rise = math.cos(math.radians(vertical_angle_deg))
    across = rise * math.cos(math.radians(breast_angle_deg))
    along = rise * math.cos(math.radians(spring_angle_deg))
    bow_tension = bow / (bow_lines * across)
    stern_tension = stern / (stern_lines * across)
    spring_tension = longitudinal / (spring_lines * along)
    greatest = max(bow_tension, stern_tension, spring_tension)
    used = 100 * greatest / breaking_load_kn
    return {
        "wind_pressure_pa": pressure,
        "transverse_force_kn": transverse,
        "longitudinal_force_kn": longitudinal,
        "yaw_moment_kn_m": transverse * force_offset_m,
        "resultant_angle_deg": math.degrees(math.atan2(longitudinal, transverse)),
        "bow_group_force_kn": bow,
        "stern_group_force_kn": stern,
        "bow_line_tension_kn": bow_tension,
        "stern_line_tension_kn": stern_tension,
        "spring_line_tension_kn": spring_tension,
        "bollard_uplift_kn": greatest * math.sin(math.radians(vertical_angle_deg)),
        "utilisation_percent": used,
        "limit_wind_speed_m_per_s": wind_speed_m_per_s * math.sqrt(allowed_percent / used),
        "lines_adequate": used <= allowed_percent,
    }
