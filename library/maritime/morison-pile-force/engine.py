"""Morison force and seabed moment on a slender vertical pile: linear wave theory integrated from the bed to still water level."""

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


def greatest(drag, inertia):
    """Maximum over the wave of drag cos|cos| + inertia sin."""
    return inertia if inertia >= 2 * drag else drag + inertia**2 / (4 * drag)


def compute(
    wave_height_m, period_s, depth_m, pile_diameter_m, drag_coefficient, inertia_coefficient, water_density_kg_per_m3
):
    if min(wave_height_m, period_s, depth_m, pile_diameter_m, drag_coefficient, inertia_coefficient) <= 0:
        raise ValueError("wave, depth, diameter and coefficients must be positive")
    k = wave_number(period_s, depth_m)
    kd = k * depth_m
    length = 2 * math.pi / k
    if pile_diameter_m > 0.2 * length:
        raise ValueError("the pile is not slender")
    sinh = math.sinh(kd)
    velocity = math.pi * wave_height_m / period_s / math.tanh(kd)
    acceleration = 2 * math.pi / period_s * velocity
    # Amplitudes at the bed-referred scale: u(s) = u0 cosh(ks), s measured upwards from the bed.
    u0 = math.pi * wave_height_m / period_s / sinh
    a0 = 2 * math.pi / period_s * u0
    inertia_line = inertia_coefficient * water_density_kg_per_m3 * math.pi / 4 * pile_diameter_m**2 * a0 / 1000
    drag_line = 0.5 * drag_coefficient * water_density_kg_per_m3 * pile_diameter_m * u0**2 / 1000
    inertia = inertia_line * sinh / k
    inertia_moment = inertia_line * (depth_m * sinh / k - (math.cosh(kd) - 1) / k**2)
    drag = drag_line * (depth_m / 2 + math.sinh(2 * kd) / (4 * k))
    drag_moment = drag_line * (
        depth_m**2 / 4 + depth_m * math.sinh(2 * kd) / (4 * k) - (math.cosh(2 * kd) - 1) / (8 * k**2)
    )
    force = greatest(drag, inertia)
    moment = greatest(drag_moment, inertia_moment)
    return {
        "wavelength_m": length,
        "surface_velocity_m_per_s": velocity,
        "surface_acceleration_m_per_s2": acceleration,
        "keulegan_carpenter": velocity * period_s / pile_diameter_m,
        "drag_force_kn": drag,
        "inertia_force_kn": inertia,
        "drag_moment_kn_m": drag_moment,
        "inertia_moment_kn_m": inertia_moment,
        "drag_arm_m": drag_moment / drag,
        "inertia_arm_m": inertia_moment / inertia,
        "total_force_kn": force,
        "total_moment_kn_m": moment,
    }
