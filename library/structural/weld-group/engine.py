"""Fillet weld group as a line under an eccentric in-plane load, elastic method; strength by EN 1993-1-8, 4.5.3.3."""

import math

GAMMA_M2 = 1.25


def compute(
    weld_pattern,
    width_mm,
    depth_mm,
    load_kn,
    load_angle_deg,
    load_arm_mm,
    ultimate_strength_mpa,
    correlation_factor,
    throat_mm,
):
    if min(width_mm, depth_mm, load_kn, ultimate_strength_mpa, correlation_factor, throat_mm) <= 0:
        raise ValueError("sizes, load and strengths must be positive")
    if abs(load_angle_deg) >= 90 or load_arm_mm <= width_mm:
        raise ValueError("the load must point down and act beyond the welds")
    half = depth_mm / 2
    # Straight runs from point to point; origin at mid-height of the left-hand vertical weld.
    left = ((0.0, -half), (0.0, half))
    right = ((width_mm, -half), (width_mm, half))
    top = ((0.0, half), (width_mm, half))
    bottom = ((0.0, -half), (width_mm, -half))
    runs = {
        "two vertical welds": [left, right],
        "closed rectangle": [left, right, top, bottom],
        "C open to the right": [left, top, bottom],
    }[weld_pattern]

    lengths = [math.dist(a, b) for a, b in runs]
    total = sum(lengths)
    centroid = sum(length * (a[0] + b[0]) / 2 for length, (a, b) in zip(lengths, runs)) / total
    polar = 0.0
    for length, (a, b) in zip(lengths, runs):
        x, y = (a[0] + b[0]) / 2 - centroid, (a[1] + b[1]) / 2
        polar += length**3 / 12 + length * (x * x + y * y)

    angle = math.radians(load_angle_deg)
    down, out = load_kn * math.cos(angle), load_kn * math.sin(angle)
    # The load acts at mid-height, so its horizontal part has no arm.
    torsion = down * (load_arm_mm - centroid)  # kN mm, clockwise

    # The far right ends are the farthest points, and the direct and torsional parts add up there.
    x = width_mm - centroid
    vertical = down / total + torsion * x / polar
    horizontal = abs(out) / total + torsion * half / polar
    resultant = math.hypot(vertical, horizontal) * 1000  # N/mm
    strength = ultimate_strength_mpa / (math.sqrt(3) * correlation_factor * GAMMA_M2)
    required = resultant / strength
    return {
        "weld_length_mm": total,
        "centroid_mm": centroid,
        "polar_moment_mm3": polar,
        "torsion_kn_m": torsion / 1000,
        "vertical_n_per_mm": vertical * 1000,
        "horizontal_n_per_mm": horizontal * 1000,
        "resultant_n_per_mm": resultant,
        "weld_strength_mpa": strength,
        "required_throat_mm": required,
        "required_leg_mm": required * math.sqrt(2),
        "greatest_load_kn": load_kn * throat_mm / required,
        "adequate": throat_mm >= required,
    }
