"""Elements and setting-out data of a simple circular curve between two straights."""

import math


def compute(radius_m, deflection_deg, pi_chainage_m, peg_interval_m):
    if radius_m <= 0 or peg_interval_m <= 0 or not 0 < deflection_deg < 180:
        raise ValueError("radius and interval must be above 0 and the deflection between 0 and 180 degrees")
    angle = math.radians(deflection_deg)
    tangent = radius_m * math.tan(angle / 2)
    length = radius_m * angle
    start = pi_chainage_m - tangent
    end = start + length
    # Pegs stand at whole multiples of the interval, strictly between the two tangent points.
    first_peg = (math.floor(start / peg_interval_m) + 1) * peg_interval_m
    last_peg = (math.ceil(end / peg_interval_m) - 1) * peg_interval_m
    if last_peg < first_peg:
        raise ValueError("no peg falls on the curve")
    first_arc = first_peg - start
    return {
        "tangent_length_m": tangent,
        "curve_length_m": length,
        "long_chord_m": 2 * radius_m * math.sin(angle / 2),
        "external_distance_m": radius_m * (1 / math.cos(angle / 2) - 1),
        "middle_ordinate_m": radius_m * (1 - math.cos(angle / 2)),
        "start_chainage_m": start,
        "end_chainage_m": end,
        "first_arc_m": first_arc,
        "last_arc_m": end - last_peg,
        # The angle between tangent and chord is half the angle at the centre.
        "first_deflection_deg": math.degrees(first_arc / (2 * radius_m)),
        "pegs": round((last_peg - first_peg) / peg_interval_m) + 1,
    }
