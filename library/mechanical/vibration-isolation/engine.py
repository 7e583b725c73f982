"""Vertical vibration isolation of a rotating machine as a damped system of one degree of freedom, excited by the
residual unbalance of its rotor (balance quality grade of ISO 21940-11)."""

import math

G = 9.81  # m/s2


def compute(
    machine_mass_kg,
    mount_count,
    mount_stiffness_n_per_mm,
    damping_ratio,
    speed_rpm,
    rotor_mass_kg,
    balance_grade_mm_per_s,
    target_isolation_percent,
):
    if min(machine_mass_kg, mount_count, mount_stiffness_n_per_mm, speed_rpm) <= 0:
        raise ValueError("mass, mounts and speed must be positive")
    if rotor_mass_kg >= machine_mass_kg:
        raise ValueError("the rotor is part of the machine")
    stiffness = mount_count * mount_stiffness_n_per_mm * 1000
    deflection = machine_mass_kg * G / stiffness
    natural = math.sqrt(stiffness / machine_mass_kg) / (2 * math.pi)
    forcing = speed_rpm / 60
    ratio = forcing / natural
    damping_term = (2 * damping_ratio * ratio) ** 2
    dynamic = math.sqrt((1 - ratio**2) ** 2 + damping_term)
    transmissibility = math.sqrt(1 + damping_term) / dynamic
    omega = 2 * math.pi * forcing
    # The grade is eccentricity times angular speed.
    unbalance_force = rotor_mass_kg * balance_grade_mm_per_s / 1000 * omega
    target = 1 - target_isolation_percent / 100
    needed_natural = forcing / math.sqrt(1 + 1 / target)
    return {
        "static_deflection_mm": 1000 * deflection,
        "natural_frequency_hz": natural,
        "frequency_ratio": ratio,
        "transmissibility": transmissibility,
        "unbalance_force_n": unbalance_force,
        "transmitted_force_n": unbalance_force * transmissibility,
        "amplitude_um": 1e6 * unbalance_force / stiffness / dynamic,
        "needed_deflection_mm": 1000 * G / (2 * math.pi * needed_natural) ** 2,
        "target_met": 100 * (1 - transmissibility) >= target_isolation_percent,
    }
