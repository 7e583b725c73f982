"""Immediate settlement of a loaded rectangle on an elastic half-space with tabulated influence factors."""

import math

# Length by width, factors of the flexible area at its centre, at a corner and on average.
FACTORS = [
    (1.0, 1.12, 0.56, 0.95),
    (1.5, 1.36, 0.68, 1.15),
    (2.0, 1.53, 0.77, 1.30),
    (3.0, 1.78, 0.89, 1.53),
    (5.0, 2.10, 1.05, 1.83),
    (10.0, 2.54, 1.27, 2.25),
]
RIGID = 0.93


def interpolated(ratio):
    for low, high in zip(FACTORS, FACTORS[1:]):
        if low[0] <= ratio <= high[0]:
            share = (ratio - low[0]) / (high[0] - low[0])
            return [a + share * (b - a) for a, b in zip(low[1:], high[1:])]
    raise ValueError("the ratio of length to width must lie between 1 and 10")


def compute(
    width_m,
    length_m,
    depth_m,
    load_kn,
    unit_weight_kn_per_m3,
    modulus_mpa,
    poisson_ratio,
    allowable_settlement_mm,
):
    if width_m <= 0 or depth_m < 0 or load_kn <= 0 or modulus_mpa <= 0:
        raise ValueError("dimensions, load and modulus must be above 0")
    if not 0 <= poisson_ratio <= 0.5:
        raise ValueError("Poisson's ratio must lie between 0 and 0.5")
    centre, corner, average = interpolated(length_m / width_m)
    pressure = load_kn / (width_m * length_m) - unit_weight_kn_per_m3 * depth_m
    if pressure <= 0:
        raise ValueError("the footing is lighter than the soil it replaces")
    # kPa * m / MPa is a thousandth of a metre.
    unit = pressure * width_m * (1 - poisson_ratio**2) / modulus_mpa
    half_diagonal = math.hypot(width_m, length_m) / 2
    return {
        "net_pressure_kpa": pressure,
        "centre_factor": centre,
        "centre_settlement_mm": unit * centre,
        "corner_settlement_mm": unit * corner,
        "average_settlement_mm": unit * average,
        "rigid_settlement_mm": unit * centre * RIGID,
        "slope_one_in": half_diagonal * 1000 / (unit * (centre - corner)),
        "acceptable": unit * average <= allowable_settlement_mm,
    }
