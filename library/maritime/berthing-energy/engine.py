"""Berthing energy by the kinetic method of PIANC WG 33 (2002) and BS 6349-4, and the fender that absorbs it."""

import math


def compute(
    length_m,
    beam_m,
    draught_m,
    block_coefficient,
    under_keel_clearance_m,
    added_mass_method,
    contact_offset_percent,
    berthing_angle_deg,
    approach_speed_m_per_s,
    softness_factor,
    configuration_factor,
    abnormal_factor,
    fender_tolerance_percent,
    energy_reaction_ratio_m,
    panel_area_m2,
    allowed_hull_pressure_kpa,
):
    if min(length_m, beam_m, draught_m, panel_area_m2, energy_reaction_ratio_m) <= 0:
        raise ValueError("dimensions must be positive")
    if not 0 < block_coefficient <= 1:
        raise ValueError("the block coefficient must be above 0 and at most 1")
    displacement = 1.025 * block_coefficient * length_m * beam_m * draught_m
    if added_mass_method == "Vasco Costa":
        mass = 1 + 2 * draught_m / beam_m
    elif added_mass_method == "PIANC":
        ratio = under_keel_clearance_m / draught_m
        # 1.8 in shallow water, 1.5 in deep water, straight line between.
        mass = 1.8 - 0.3 * (min(max(ratio, 0.1), 0.5) - 0.1) / 0.4
    else:
        raise ValueError("unknown method for the added mass")
    gyration = (0.19 * block_coefficient + 0.11) * length_m
    offset = contact_offset_percent / 100 * length_m
    radius = math.hypot(offset, beam_m / 2)
    angle = 90 - berthing_angle_deg - math.degrees(math.asin(beam_m / (2 * radius)))
    eccentricity = (gyration**2 + (radius * math.cos(math.radians(angle))) ** 2) / (gyration**2 + radius**2)
    # Tonnes and m/s give kN.m directly.
    normal = (
        0.5 * displacement * approach_speed_m_per_s**2 * mass * eccentricity * softness_factor * configuration_factor
    )
    abnormal = normal * abnormal_factor
    tolerance = fender_tolerance_percent / 100
    # The weakest fender must absorb the energy; the stiffest one loads the hull.
    rated = abnormal / (1 - tolerance)
    reaction = rated / energy_reaction_ratio_m * (1 + tolerance)
    pressure = reaction / panel_area_m2
    return {
        "displacement_t": displacement,
        "mass_coefficient": mass,
        "gyration_radius_m": gyration,
        "contact_radius_m": radius,
        "velocity_angle_deg": angle,
        "eccentricity_coefficient": eccentricity,
        "normal_energy_kn_m": normal,
        "abnormal_energy_kn_m": abnormal,
        "rated_energy_kn_m": rated,
        "fender_reaction_kn": reaction,
        "hull_pressure_kpa": pressure,
        "hull_pressure_allowed": pressure <= allowed_hull_pressure_kpa,
    }
