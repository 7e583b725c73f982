"""Singly reinforced rectangular section in bending with the rectangular stress block of EN 1992-1-1, 3.1.7(3)."""

import math

GAMMA_C = 1.5
GAMMA_S = 1.15
BLOCK = 0.8  # lambda; eta = 1, both for f_ck up to 50 MPa
CRUSHING_STRAIN = 0.0035
STEEL_MODULUS_MPA = 200000


def compute(
    width_mm,
    effective_depth_mm,
    concrete_strength_mpa,
    steel_strength_mpa,
    alpha_cc,
    design_moment_kn_m,
    bar_count,
    bar_diameter_mm,
):
    if min(width_mm, effective_depth_mm, steel_strength_mpa, design_moment_kn_m, bar_diameter_mm) <= 0 or bar_count < 1:
        raise ValueError("sizes, strength, moment and bars must be positive")
    if not 12 <= concrete_strength_mpa <= 50:
        raise ValueError("the block is that of concrete up to 50 MPa")
    fcd = alpha_cc * concrete_strength_mpa / GAMMA_C
    fyd = steel_strength_mpa / GAMMA_S
    moment = design_moment_kn_m * 1e6

    # M = b s fcd (d - s / 2) with s the depth of the block.
    root = effective_depth_mm**2 - 2 * moment / (width_mm * fcd)
    if root <= 0:
        raise ValueError("the concrete cannot carry the moment")
    block = effective_depth_mm - math.sqrt(root)
    lever = effective_depth_mm - block / 2
    required = moment / (fyd * lever)

    provided = bar_count * math.pi * bar_diameter_mm**2 / 4
    neutral_axis = provided * fyd / (BLOCK * width_mm * fcd)
    if neutral_axis >= effective_depth_mm:
        raise ValueError("over-reinforced section")
    strain = CRUSHING_STRAIN * (effective_depth_mm - neutral_axis) / neutral_axis
    if strain < fyd / STEEL_MODULUS_MPA:
        raise ValueError("the steel does not yield")
    resistance = provided * fyd * (effective_depth_mm - BLOCK * neutral_axis / 2) / 1e6
    mean_tensile = 0.3 * concrete_strength_mpa ** (2 / 3)
    minimum = max(0.26 * mean_tensile / steel_strength_mpa, 0.0013) * width_mm * effective_depth_mm
    return {
        "lever_arm_mm": lever,
        "required_steel_mm2": required,
        "provided_steel_mm2": provided,
        "neutral_axis_mm": neutral_axis,
        "moment_resistance_kn_m": resistance,
        "steel_strain_percent": 100 * strain,
        "minimum_steel_mm2": minimum,
        "steel_ratio_percent": 100 * provided / (width_mm * effective_depth_mm),
        "utilisation": design_moment_kn_m / resistance,
        "adequate": resistance >= design_moment_kn_m,
    }
