"""Stopping sight distance from reaction time and a longitudinal deceleration coefficient corrected for grade."""

import math

GRAVITY_M_PER_S2 = 9.81


def compute(speed_km_per_h, reaction_time_s, deceleration_coefficient, grade_percent, available_sight_m, radius_m):
    # On a downgrade gravity works against the brakes.
    braking_ratio = deceleration_coefficient + grade_percent / 100
    if braking_ratio <= 0:
        raise ValueError("the vehicle cannot stop on this grade")
    if speed_km_per_h <= 0 or reaction_time_s <= 0 or available_sight_m <= 0 or radius_m <= 0:
        raise ValueError("speed, time, distance and radius must be above 0")
    speed = speed_km_per_h / 3.6
    deceleration = GRAVITY_M_PER_S2 * braking_ratio
    reaction = speed * reaction_time_s
    braking = speed**2 / (2 * deceleration)
    stopping = reaction + braking
    level = reaction + speed**2 / (2 * GRAVITY_M_PER_S2 * deceleration_coefficient)
    # Root of v^2 / 2a + v t = sight distance.
    greatest = deceleration * (
        math.sqrt(reaction_time_s**2 + 2 * available_sight_m / deceleration) - reaction_time_s
    )
    half_angle = stopping / (2 * radius_m)
    if half_angle >= math.pi / 2:
        raise ValueError("the curve is too sharp for this sight distance")
    return {
        "reaction_distance_m": reaction,
        "braking_distance_m": braking,
        "stopping_distance_m": stopping,
        "braking_time_s": speed / deceleration,
        "level_stopping_distance_m": level,
        "sightline_offset_m": radius_m * (1 - math.cos(half_angle)),
        "greatest_speed_km_per_h": 3.6 * greatest,
        "sight_adequate": stopping <= available_sight_m,
    }
