"""Shoaling and refraction of a regular wave over straight parallel contours: linear theory and Snell's law."""

import math

GRAVITY = 9.81
DENSITY = 1025


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


def speeds(period, depth):
    k = wave_number(period, depth)
    celerity = 2 * math.pi / (k * period)
    return celerity, celerity * 0.5 * (1 + 2 * k * depth / math.sinh(2 * k * depth))


def compute(wave_height_m, period_s, buoy_depth_m, nearshore_depth_m, buoy_angle_deg, breaker_index):
    if min(wave_height_m, period_s, nearshore_depth_m, breaker_index) <= 0:
        raise ValueError("wave, depth and breaker index must be positive")
    if buoy_depth_m <= nearshore_depth_m:
        raise ValueError("the buoy must lie in deeper water")
    if not 0 <= buoy_angle_deg < 90:
        raise ValueError("the angle must be from 0 to below 90 degrees")
    c1, cg1 = speeds(period_s, buoy_depth_m)
    c2, cg2 = speeds(period_s, nearshore_depth_m)
    angle1 = math.radians(buoy_angle_deg)
    angle2 = math.asin(math.sin(angle1) * c2 / c1)
    shoaling = math.sqrt(cg1 / cg2)
    refraction = math.sqrt(math.cos(angle1) / math.cos(angle2))
    height = wave_height_m * shoaling * refraction
    deep_c = GRAVITY * period_s / (2 * math.pi)
    deep_angle = math.asin(min(1.0, math.sin(angle1) * deep_c / c1))
    # Back to deep water by the same two conservation laws.
    deep_height = wave_height_m * math.sqrt(cg1 * math.cos(angle1) / (deep_c / 2 * math.cos(deep_angle)))
    flux = DENSITY * GRAVITY * height**2 / 8 * cg2 / 1000
    return {
        "buoy_celerity_m_per_s": c1,
        "buoy_group_speed_m_per_s": cg1,
        "nearshore_celerity_m_per_s": c2,
        "nearshore_group_speed_m_per_s": cg2,
        "nearshore_wavelength_m": c2 * period_s,
        "nearshore_angle_deg": math.degrees(angle2),
        "shoaling_coefficient": shoaling,
        "refraction_coefficient": refraction,
        "nearshore_height_m": height,
        "deep_angle_deg": math.degrees(deep_angle),
        "deep_height_m": deep_height,
        "energy_flux_kw_per_m": flux,
        "longshore_flux_kw_per_m": flux * math.sin(angle2) * math.cos(angle2),
        "breaking_ratio": height / (breaker_index * nearshore_depth_m),
    }
