"""Flexural buckling of a steel column about both axes to EN 1993-1-1, 6.3.1."""

import math

GAMMA_M1 = 1.0
MODULUS_MPA = 210000


def compute(
    area_cm2,
    radius_y_mm,
    radius_z_mm,
    buckling_length_y_m,
    buckling_length_z_m,
    yield_strength_mpa,
    imperfection_y,
    imperfection_z,
    axial_load_kn,
):
    if min(area_cm2, radius_y_mm, radius_z_mm, buckling_length_y_m, buckling_length_z_m) <= 0:
        raise ValueError("section properties and buckling lengths must be positive")
    squash = area_cm2 * yield_strength_mpa / 10  # kN

    def axis(radius_mm, length_m, imperfection):
        critical = math.pi**2 * MODULUS_MPA * area_cm2 * 100 * (radius_mm / (length_m * 1000)) ** 2 / 1000
        slenderness = math.sqrt(squash / critical)
        phi = 0.5 * (1 + imperfection * (slenderness - 0.2) + slenderness**2)
        chi = min(1.0, 1 / (phi + math.sqrt(phi**2 - slenderness**2)))
        return critical, slenderness, chi

    critical_y, slenderness_y, chi_y = axis(radius_y_mm, buckling_length_y_m, imperfection_y)
    critical_z, slenderness_z, chi_z = axis(radius_z_mm, buckling_length_z_m, imperfection_z)
    resistance_y = chi_y * squash / GAMMA_M1
    resistance_z = chi_z * squash / GAMMA_M1
    resistance = min(resistance_y, resistance_z)
    return {
        "critical_load_y_kn": critical_y,
        "critical_load_z_kn": critical_z,
        "slenderness_y": slenderness_y,
        "slenderness_z": slenderness_z,
        "chi_y": chi_y,
        "chi_z": chi_z,
        "resistance_kn": resistance,
        "utilisation": axial_load_kn / resistance,
        "governing_axis": "y" if resistance_y <= resistance_z else "z",
        "adequate": axial_load_kn <= resistance,
    }
