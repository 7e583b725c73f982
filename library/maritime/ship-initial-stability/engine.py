"""Initial transverse stability of a hull: Morrish's KB, waterplane inertia, free surface and heel by a shifted weight."""

import math

GRAVITY = 9.81


def compute(
    length_m,
    beam_m,
    draught_m,
    block_coefficient,
    waterplane_coefficient,
    water_density_t_per_m3,
    centre_of_gravity_m,
    tank_length_m,
    tank_breadth_m,
    tank_divisions,
    liquid_density_t_per_m3,
    shifted_weight_t,
    shift_distance_m,
    gyration_percent,
):
    if min(length_m, beam_m, draught_m, water_density_t_per_m3, tank_length_m, tank_breadth_m) <= 0:
        raise ValueError("dimensions and densities must be positive")
    if not 0 < block_coefficient <= waterplane_coefficient <= 1:
        raise ValueError("coefficients must satisfy 0 < block <= waterplane <= 1")
    if tank_divisions < 1:
        raise ValueError("a tank has at least one compartment")
    volume = block_coefficient * length_m * beam_m * draught_m
    displacement = volume * water_density_t_per_m3
    kb = draught_m * (5 / 6 - block_coefficient / (3 * waterplane_coefficient))
    inertia = waterplane_coefficient**2 * length_m * beam_m**3 / 12
    bm = inertia / volume
    km = kb + bm
    solid = km - centre_of_gravity_m
    compartment = tank_breadth_m / tank_divisions
    surface = tank_divisions * tank_length_m * compartment**3 / 12
    loss = liquid_density_t_per_m3 * surface / displacement
    fluid = solid - loss
    if fluid <= 0:
        raise ValueError("the ship is not initially stable")
    heel = math.atan(shifted_weight_t * shift_distance_m / (displacement * fluid))
    return {
        "displacement_t": displacement,
        "kb_m": kb,
        "bm_m": bm,
        "km_m": km,
        "solid_gm_m": solid,
        "free_surface_loss_m": loss,
        "fluid_gm_m": fluid,
        "heel_deg": math.degrees(heel),
        "righting_moment_kn_m": displacement * GRAVITY * fluid * math.sin(math.radians(5)),
        "roll_period_s": 2 * math.pi * gyration_percent / 100 * beam_m / math.sqrt(GRAVITY * fluid),
    }
