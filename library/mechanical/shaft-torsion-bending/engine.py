"""Solid round shaft under torsion and bending by the maximum distortion energy (von Mises) criterion with shock
factors, as in Shigley's Mechanical Engineering Design and the older ASME shaft code."""

import math


def compute(
    power_kw,
    speed_rpm,
    radial_force_kn,
    bearing_span_mm,
    gear_position_mm,
    shaft_diameter_mm,
    bending_factor,
    torsion_factor,
    yield_strength_mpa,
    required_safety,
):
    if not 0 < gear_position_mm < bearing_span_mm:
        raise ValueError("the force must act between the bearings")
    if min(power_kw, speed_rpm, shaft_diameter_mm) <= 0:
        raise ValueError("power, speed and diameter must be positive")
    torque = power_kw * 1000 / (2 * math.pi * speed_rpm / 60)
    moment = radial_force_kn * gear_position_mm * (bearing_span_mm - gear_position_mm) / bearing_span_mm
    bending = 32 * moment * 1000 / (math.pi * shaft_diameter_mm**3)
    shear = 16 * torque * 1000 / (math.pi * shaft_diameter_mm**3)
    equivalent = math.sqrt((bending_factor * bending) ** 2 + 3 * (torsion_factor * shear) ** 2)
    safety = yield_strength_mpa / equivalent
    return {
        "torque_n_m": torque,
        "bending_moment_n_m": moment,
        "bending_stress_mpa": bending,
        "shear_stress_mpa": shear,
        "equivalent_stress_mpa": equivalent,
        "greatest_shear_stress_mpa": math.sqrt((bending_factor * bending / 2) ** 2 + (torsion_factor * shear) ** 2),
        "safety_factor": safety,
        # Both stresses go with the inverse cube of the diameter.
        "required_diameter_mm": shaft_diameter_mm * (required_safety / safety) ** (1 / 3),
        "acceptable": safety >= required_safety,
    }
