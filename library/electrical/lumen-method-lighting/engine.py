"""Lumen method for the general lighting of a rectangular room: N = E A / (F UF MF), UF by room index and reflectances."""

import math

ROOM_INDICES = (0.6, 0.8, 1, 1.25, 1.5, 2, 2.5, 3, 4, 5)
# Reflectances of ceiling/walls/floor in per cent.
UTILISATION = {
    "70/50/20": (0.46, 0.55, 0.63, 0.70, 0.75, 0.82, 0.87, 0.91, 0.95, 0.98),
    "50/30/20": (0.40, 0.49, 0.56, 0.63, 0.68, 0.76, 0.81, 0.85, 0.90, 0.93),
    "30/10/20": (0.35, 0.44, 0.51, 0.58, 0.63, 0.71, 0.76, 0.80, 0.86, 0.89),
}


def interpolated(x, xs, ys):
    if not xs[0] <= x <= xs[-1]:
        raise ValueError("the room index is outside the table")
    for i in range(1, len(xs)):
        if x <= xs[i]:
            return ys[i - 1] + (ys[i] - ys[i - 1]) * (x - xs[i - 1]) / (xs[i] - xs[i - 1])


def compute(
    room_length_m,
    room_width_m,
    luminaire_height_m,
    working_plane_m,
    reflectances,
    target_illuminance_lx,
    luminaire_flux_lm,
    luminaire_power_w,
    maintenance_factor,
    spacing_ratio,
):
    height = luminaire_height_m - working_plane_m
    if height <= 0:
        raise ValueError("the luminaires must hang above the working plane")
    if reflectances not in UTILISATION:
        raise ValueError("no utilisation factors for these reflectances")
    if not 0 < maintenance_factor <= 1 or min(room_length_m, room_width_m, luminaire_flux_lm, spacing_ratio) <= 0:
        raise ValueError("dimensions, flux and factors must be positive")
    area = room_length_m * room_width_m
    index = area / (height * (room_length_m + room_width_m))
    utilisation = interpolated(index, ROOM_INDICES, UTILISATION[reflectances])
    useful = luminaire_flux_lm * utilisation * maintenance_factor
    exact = target_illuminance_lx * area / useful
    largest_spacing = spacing_ratio * height
    rows = math.ceil(room_width_m / largest_spacing)
    per_row = max(math.ceil(exact / rows), math.ceil(room_length_m / largest_spacing))
    installed = rows * per_row
    illuminance = installed * useful / area
    density = installed * luminaire_power_w / area
    return {
        "room_index": index,
        "utilisation_factor": utilisation,
        "calculated_luminaires": exact,
        "rows": rows,
        "luminaires_per_row": per_row,
        "installed_luminaires": installed,
        "maintained_illuminance_lx": illuminance,
        "initial_illuminance_lx": illuminance / maintenance_factor,
        "power_density_w_per_m2": density,
        "normalised_density_w_per_m2": 100 * density / illuminance,
    }
