"""Preloaded bolted joint in tension: preload from proof strength, tightening torque with the nut factor, and the share of
the external load by the stiffness ratio (Shigley's Mechanical Engineering Design; stress area of ISO 898-1)."""

import math

BOLT_MODULUS = 205_000.0  # N/mm2


def compute(
    bolt_count,
    nominal_diameter_mm,
    pitch_mm,
    proof_strength_mpa,
    preload_percent,
    nut_factor,
    grip_length_mm,
    stiffness_ratio,
    external_load_kn,
    required_separation_factor,
):
    if bolt_count < 1 or stiffness_ratio <= 0 or pitch_mm >= nominal_diameter_mm:
        raise ValueError("not a bolted joint")
    area = math.pi / 4 * (nominal_diameter_mm - 0.9382 * pitch_mm) ** 2
    proof_load = proof_strength_mpa * area / 1000
    preload = preload_percent / 100 * proof_load
    share = 1 / (1 + stiffness_ratio)
    each = external_load_kn / bolt_count
    clamp = preload - (1 - share) * each
    if clamp <= 0:
        raise ValueError("the joint opens, the load share no longer holds")
    bolt_load = preload + share * each
    bolt_stiffness = BOLT_MODULUS * area / grip_length_mm / 1000
    separation = bolt_count * preload / (1 - share)
    return {
        "stress_area_mm2": area,
        "preload_kn": preload,
        "tightening_torque_n_m": nut_factor * preload * nominal_diameter_mm,
        "bolt_elongation_mm": preload / bolt_stiffness,
        "load_factor": share,
        "bolt_load_kn": bolt_load,
        "clamp_force_kn": clamp,
        "proof_utilisation_percent": 100 * bolt_load / proof_load,
        "separation_load_kn": separation,
        "separation_sufficient": separation / external_load_kn >= required_separation_factor,
    }
