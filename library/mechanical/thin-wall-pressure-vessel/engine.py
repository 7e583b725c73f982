"""Cylindrical shell under internal pressure: membrane stresses, thickness and working pressure by ASME BPVC Section
VIII Division 1, UG-27(c), and hydrostatic test pressure by UG-99(b)."""

import math


def compute(
    design_pressure_mpa,
    inside_diameter_mm,
    wall_thickness_mm,
    corrosion_allowance_mm,
    joint_efficiency,
    allowable_stress_mpa,
    test_allowable_stress_mpa,
):
    corroded = wall_thickness_mm - corrosion_allowance_mm
    if corroded <= 0:
        raise ValueError("nothing is left of the wall after corrosion")
    radius = inside_diameter_mm / 2 + corrosion_allowance_mm
    if design_pressure_mpa >= 0.385 * allowable_stress_mpa * joint_efficiency or corroded > radius / 2:
        raise ValueError("beyond the range of the thin-wall formula")
    hoop = design_pressure_mpa * radius / corroded
    longitudinal = hoop / 2
    strength = allowable_stress_mpa * joint_efficiency
    required = design_pressure_mpa * radius / (strength - 0.6 * design_pressure_mpa) + corrosion_allowance_mm
    test_pressure = 1.3 * design_pressure_mpa * test_allowable_stress_mpa / allowable_stress_mpa
    return {
        "hoop_stress_mpa": hoop,
        "longitudinal_stress_mpa": longitudinal,
        "von_mises_stress_mpa": math.sqrt(hoop**2 - hoop * longitudinal + longitudinal**2),
        "required_thickness_mm": required,
        "working_pressure_mpa": strength * corroded / (radius + 0.6 * corroded),
        "test_pressure_mpa": test_pressure,
        # The vessel is tested new, before any corrosion.
        "test_hoop_stress_mpa": test_pressure * inside_diameter_mm / (2 * wall_thickness_mm),
        "thickness_sufficient": wall_thickness_mm >= required,
    }
