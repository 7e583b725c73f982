"""Axial capacity of a bored or driven pile in two clay layers by the alpha method (total stress)."""

import math

BASE_FACTOR = 9.0
# Overall factor, and separate factors for shaft and base.
OVERALL, ON_SHAFT, ON_BASE = 2.0, 1.5, 3.0


def compute(
    diameter_m,
    length_m,
    ignored_length_m,
    upper_thickness_m,
    upper_strength_kpa,
    upper_adhesion,
    lower_strength_kpa,
    lower_adhesion,
    base_strength_kpa,
    column_load_kn,
):
    if diameter_m <= 0 or column_load_kn <= 0 or min(upper_strength_kpa, lower_strength_kpa, base_strength_kpa) <= 0:
        raise ValueError("diameter, load and strengths must be above 0")
    if not 0 <= ignored_length_m < upper_thickness_m < length_m:
        raise ValueError("the pile must pass from the upper into the lower layer")
    if not 0 < upper_adhesion <= 1 or not 0 < lower_adhesion <= 1:
        raise ValueError("adhesion factors must lie between 0 and 1")
    perimeter = math.pi * diameter_m
    area = math.pi * diameter_m**2 / 4
    upper = upper_adhesion * upper_strength_kpa * perimeter * (upper_thickness_m - ignored_length_m)
    lower = lower_adhesion * lower_strength_kpa * perimeter * (length_m - upper_thickness_m)
    shaft = upper + lower
    base = BASE_FACTOR * base_strength_kpa * area
    overall = (shaft + base) / OVERALL
    separate = shaft / ON_SHAFT + base / ON_BASE
    allowable = min(overall, separate)
    return {
        "upper_shaft_kn": upper,
        "lower_shaft_kn": lower,
        "base_kn": base,
        "ultimate_kn": shaft + base,
        "allowable_overall_kn": overall,
        "allowable_separate_kn": separate,
        "allowable_kn": allowable,
        "base_share_percent": 100 * base / (shaft + base),
        "piles": math.ceil(column_load_kn / allowable),
    }
