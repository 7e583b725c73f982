"""Properties of a regular wave by linear (Airy) theory: dispersion relation, speeds, energy, kinematics and pressure."""

import math

GRAVITY = 9.81


def wave_number(period, depth):
    omega = 2 * math.pi / period
    k = omega**2 / GRAVITY / math.sqrt(math.tanh(omega**2 * depth / GRAVITY))
    for _ in range(100):
        t = math.tanh(k * depth)
        step = (GRAVITY * k * t - omega**2) / (GRAVITY * (t + k * depth * (1 - t * t)))
        k -= step
        if abs(step) < 1e-14 * k:
            break
    return k


def compute(wave_height_m, period_s, depth_m, submergence_m, water_density_kg_per_m3, frontage_m):
    if min(wave_height_m, period_s, depth_m, water_density_kg_per_m3, frontage_m) <= 0:
        raise ValueError("wave, depth, density and frontage must be positive")
    if not 0 <= submergence_m <= depth_m:
        raise ValueError("the point must lie between the still water level and the bed")
    k = wave_number(period_s, depth_m)
    length = 2 * math.pi / k
    speed = length / period_s
    ratio = 0.5 * (1 + 2 * k * depth_m / math.sinh(2 * k * depth_m))
    group = ratio * speed
    energy = water_density_kg_per_m3 * GRAVITY * wave_height_m**2 / 8
    flux = energy * group / 1000
    surface = math.pi * wave_height_m / period_s
    above_bed = depth_m - submergence_m
    return {
        "wavelength_m": length,
        "deep_wavelength_m": GRAVITY * period_s**2 / (2 * math.pi),
        "celerity_m_per_s": speed,
        "group_ratio": ratio,
        "group_speed_m_per_s": group,
        "energy_kj_per_m2": energy / 1000,
        "energy_flux_kw_per_m": flux,
        "frontage_power_mw": flux * frontage_m / 1000,
        "bed_velocity_m_per_s": surface / math.sinh(k * depth_m),
        "bed_excursion_m": wave_height_m / 2 / math.sinh(k * depth_m),
        "point_velocity_m_per_s": surface * math.cosh(k * above_bed) / math.sinh(k * depth_m),
        "point_acceleration_m_per_s2": 2 * math.pi / period_s * surface * math.cosh(k * above_bed) / math.sinh(k * depth_m),
        "pressure_amplitude_kpa": water_density_kg_per_m3
        * GRAVITY
        * wave_height_m
        / 2
        * math.cosh(k * above_bed)
        / math.cosh(k * depth_m)
        / 1000,
        "steepness": wave_height_m / length,
    }
