"""Bearing capacity of a shallow footing by Terzaghi (1943), general shear, with N-gamma by Coduto's approximation."""

import math

WATER = 9.81
# Coefficients of the cohesion term and of the self-weight term.
SHAPES = {"strip": (1.0, 0.5), "square": (1.3, 0.4), "circular": (1.3, 0.3)}


def compute(
    footing_shape,
    width_m,
    depth_m,
    cohesion_kpa,
    friction_angle_deg,
    unit_weight_kn_per_m3,
    saturated_unit_weight_kn_per_m3,
    water_depth_m,
    required_safety_factor,
    applied_load_kn,
):
    if footing_shape not in SHAPES:
        raise ValueError("unknown shape of footing")
    if width_m <= 0 or depth_m < 0 or water_depth_m < 0 or applied_load_kn <= 0 or cohesion_kpa < 0:
        raise ValueError("dimensions and loads must not be negative")
    if not 0 < friction_angle_deg < 45:
        raise ValueError("the friction angle must lie between 0 and 45 degrees")
    if saturated_unit_weight_kn_per_m3 < unit_weight_kn_per_m3 or unit_weight_kn_per_m3 <= WATER:
        raise ValueError("the unit weights do not fit each other")
    phi = math.radians(friction_angle_deg)
    tangent = math.tan(phi)
    nq = math.exp(2 * (0.75 * math.pi - phi / 2) * tangent) / (2 * math.cos(math.pi / 4 + phi / 2) ** 2)
    nc = (nq - 1) / tangent
    ngamma = 2 * (nq + 1) * tangent / (1 + 0.4 * math.sin(4 * phi))

    buoyant = saturated_unit_weight_kn_per_m3 - WATER
    dry_cover = min(depth_m, water_depth_m)
    overburden = unit_weight_kn_per_m3 * dry_cover + buoyant * (depth_m - dry_cover)
    # Share of the zone of one width below the base that lies above the water table.
    share = min(max((water_depth_m - depth_m) / width_m, 0), 1)
    below_base = buoyant + share * (unit_weight_kn_per_m3 - buoyant)

    on_cohesion, on_weight = SHAPES[footing_shape]
    ultimate = on_cohesion * cohesion_kpa * nc + overburden * nq + on_weight * below_base * width_m * ngamma
    if footing_shape == "strip":
        area = width_m
    elif footing_shape == "square":
        area = width_m**2
    else:
        area = math.pi * width_m**2 / 4
    actual = ultimate * area / applied_load_kn
    return {
        "nc": nc,
        "nq": nq,
        "ngamma": ngamma,
        "overburden_kpa": overburden,
        "weight_below_base_kn_per_m3": below_base,
        "ultimate_kpa": ultimate,
        "net_ultimate_kpa": ultimate - overburden,
        "allowable_kpa": ultimate / required_safety_factor,
        "allowable_load_kn": ultimate * area / required_safety_factor,
        "actual_safety_factor": actual,
        "safe": actual >= required_safety_factor,
    }
