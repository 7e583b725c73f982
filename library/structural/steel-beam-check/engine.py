"""Simply supported welded steel beam under uniform and point load: statics, cross-section checks of EN 1993-1-1, 6.2, deflection."""

import math

GAMMA_G = 1.35
GAMMA_Q = 1.5
GAMMA_M0 = 1.0
MODULUS_MPA = 210000


def compute(
    span_m,
    permanent_kn_per_m,
    variable_kn_per_m,
    point_load_kn,
    point_position_m,
    yield_strength_mpa,
    depth_mm,
    flange_width_mm,
    flange_thickness_mm,
    web_thickness_mm,
    deflection_divisor,
):
    if not 0 < point_position_m < span_m:
        raise ValueError("the point load must be on the span")
    web_height = depth_mm - 2 * flange_thickness_mm
    if min(web_height, web_thickness_mm, flange_thickness_mm, flange_width_mm - web_thickness_mm) <= 0:
        raise ValueError("the plates do not make an I-section")
    second_moment = (flange_width_mm * depth_mm**3 - (flange_width_mm - web_thickness_mm) * web_height**3) / 12
    elastic_modulus = second_moment / (depth_mm / 2)
    plastic_modulus = (
        flange_width_mm * flange_thickness_mm * (depth_mm - flange_thickness_mm) + web_thickness_mm * web_height**2 / 4
    )
    udl = GAMMA_G * permanent_kn_per_m + GAMMA_Q * variable_kn_per_m
    point = GAMMA_Q * point_load_kn
    right_arm = span_m - point_position_m
    left = udl * span_m / 2 + point * right_arm / span_m
    right = udl * span_m + point - left

    # The moment is greatest where the shear force changes sign: left of the load, under it, or right of it.
    if left <= udl * point_position_m:
        moment = left**2 / (2 * udl)
    elif right <= udl * right_arm:
        moment = right**2 / (2 * udl)
    else:
        moment = left * point_position_m - udl * point_position_m**2 / 2
    shear = max(left, right)

    elastic = elastic_modulus * yield_strength_mpa / GAMMA_M0 / 1e6
    plastic = plastic_modulus * yield_strength_mpa / GAMMA_M0 / 1e6
    shear_resistance = web_height * web_thickness_mm * yield_strength_mpa / math.sqrt(3) / GAMMA_M0 / 1000

    stiffness = MODULUS_MPA * second_moment  # N mm2
    span = span_m * 1000
    arm = min(point_position_m, right_arm) * 1000
    deflection = 5 * variable_kn_per_m * span**4 / (384 * stiffness)
    deflection += point_load_kn * 1000 * arm * (3 * span**2 - 4 * arm**2) / (48 * stiffness)
    deflection_use = deflection / (span / deflection_divisor)
    return {
        "design_udl_kn_per_m": udl,
        "left_reaction_kn": left,
        "design_moment_kn_m": moment,
        "design_shear_kn": shear,
        "second_moment_cm4": second_moment / 1e4,
        "plastic_resistance_kn_m": plastic,
        "shear_resistance_kn": shear_resistance,
        "elastic_utilisation": moment / elastic,
        "plastic_utilisation": moment / plastic,
        "shear_utilisation": shear / shear_resistance,
        "deflection_mm": deflection,
        "deflection_utilisation": deflection_use,
        "adequate": max(moment / plastic, shear / shear_resistance, deflection_use) <= 1,
    }
