"""Bracket bolts under an eccentric in-plane load by the elastic (vector) method; bolt shear resistance to EN 1993-1-8."""

import math

GAMMA_M2 = 1.25


def compute(
    load_kn,
    load_angle_deg,
    eccentricity_mm,
    rows,
    columns,
    pitch_mm,
    gauge_mm,
    shear_planes,
    stress_area_mm2,
    ultimate_strength_mpa,
    shear_coefficient,
):
    if rows < 2 or columns < 2:
        raise ValueError("the group needs at least two rows and two columns")
    if min(load_kn, eccentricity_mm, pitch_mm, gauge_mm, stress_area_mm2) <= 0 or abs(load_angle_deg) >= 90:
        raise ValueError("load, eccentricity and spacings must be positive and the load must point down")
    count = rows * columns
    levels = [(i - (rows - 1) / 2) * pitch_mm for i in range(rows)]
    lines = [(j - (columns - 1) / 2) * gauge_mm for j in range(columns)]
    polar = sum(x * x + y * y for x in lines for y in levels)

    angle = math.radians(load_angle_deg)
    down = load_kn * math.cos(angle)
    out = load_kn * math.sin(angle)
    # The load acts at the level of the centroid, so its horizontal part has no arm.
    moment = down * eccentricity_mm

    def force(x, y):
        # x to the right (towards the load), y upwards; the moment is clockwise and pushes bolts at the right down.
        return math.hypot(out / count + moment * y / polar, down / count + moment * x / polar)

    corner_x, corner_y = lines[-1], levels[-1]
    top, bottom = force(corner_x, corner_y), force(corner_x, -corner_y)
    critical = max(top, bottom)
    resistance = shear_planes * shear_coefficient * ultimate_strength_mpa * stress_area_mm2 / GAMMA_M2 / 1000
    utilisation = critical / resistance
    return {
        "polar_sum_mm2": polar,
        "moment_kn_m": moment / 1000,
        "direct_force_kn": load_kn / count,
        "moment_force_kn": moment * math.hypot(corner_x, corner_y) / polar,
        "critical_force_kn": critical,
        "far_top_force_kn": force(-corner_x, corner_y),
        "bolt_resistance_kn": resistance,
        "utilisation": utilisation,
        "greatest_load_kn": load_kn / utilisation,
        "critical_bolt": "top" if top >= bottom else "bottom",
        "adequate": utilisation <= 1,
    }
