"""Crest vertical curve: equal-tangent parabola, its high point, K value and the sight distance over it."""

import math


def compute(
    grade_in_percent,
    grade_out_percent,
    curve_length_m,
    pvi_chainage_m,
    pvi_level_m,
    check_offset_m,
    eye_height_m,
    object_height_m,
    required_sight_m,
):
    change = grade_in_percent - grade_out_percent
    if grade_in_percent <= 0 or grade_out_percent >= 0:
        raise ValueError("a summit needs a rising grade before and a falling grade after it")
    if curve_length_m <= 0 or not 0 < check_offset_m < curve_length_m:
        raise ValueError("the point to check must lie on the curve")

    start_chainage = pvi_chainage_m - curve_length_m / 2
    start_level = pvi_level_m - grade_in_percent / 100 * curve_length_m / 2

    def level(offset):
        return start_level + grade_in_percent / 100 * offset - change / (200 * curve_length_m) * offset**2

    summit = grade_in_percent * curve_length_m / change
    heights = (math.sqrt(eye_height_m) + math.sqrt(object_height_m)) ** 2
    sight = math.sqrt(200 * curve_length_m * heights / change)
    if sight > curve_length_m:
        # Eye and object stand on the straight grades.
        sight = curve_length_m / 2 + 100 * heights / change
    required = change * required_sight_m**2 / (200 * heights)
    if required < required_sight_m:
        required = 2 * required_sight_m - 200 * heights / change
    if required <= 0:
        raise ValueError("no curve is needed for this sight distance")
    return {
        "k_value_m": curve_length_m / change,
        "start_level_m": start_level,
        "end_level_m": level(curve_length_m),
        "check_level_m": level(check_offset_m),
        "high_point_chainage_m": start_chainage + summit,
        "high_point_level_m": level(summit),
        "mid_offset_m": change * curve_length_m / 800,
        "sight_distance_m": sight,
        "required_length_m": required,
        "sight_adequate": sight >= required_sight_m,
    }
