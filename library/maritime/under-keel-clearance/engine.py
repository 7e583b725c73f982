"""Under-keel clearance of a ship under way: Barrass squat, heel, waves, tide and water density."""

import math

SEA_DENSITY = 1.025


def compute(
    charted_depth_m,
    tide_level_m,
    sea_draught_m,
    water_density_t_per_m3,
    beam_m,
    block_coefficient,
    speed_knots,
    waterway,
    channel_width_m,
    heel_deg,
    wave_height_m,
    wave_factor,
    bed_allowance_m,
    required_clearance_m,
):
    if min(charted_depth_m, sea_draught_m, beam_m, block_coefficient, speed_knots, channel_width_m) <= 0:
        raise ValueError("depth, ship, speed and channel must be positive")
    depth = charted_depth_m + tide_level_m
    draught = sea_draught_m * SEA_DENSITY / water_density_t_per_m3
    if depth <= draught:
        raise ValueError("the ship is aground")
    blockage = beam_m * draught / (channel_width_m * depth)
    if waterway == "confined channel":
        factor, power = block_coefficient * blockage**0.81 / 20, 2.08
    elif waterway == "open water":
        factor, power = block_coefficient / 100, 2
    else:
        raise ValueError("unknown waterway")
    squat = factor * speed_knots**power
    heel = beam_m / 2 * math.sin(math.radians(heel_deg))
    waves = wave_factor * wave_height_m
    dynamic = draught + squat + heel + waves
    net = depth - dynamic - bed_allowance_m
    # What is left for squat if the clearance is just the required one.
    available = depth - draught - heel - waves - bed_allowance_m - required_clearance_m
    if available <= 0:
        raise ValueError("no speed satisfies the required clearance")
    return {
        "water_depth_m": depth,
        "port_draught_m": draught,
        "static_clearance_m": depth - draught,
        "blockage_factor": blockage,
        "squat_m": squat,
        "heel_allowance_m": heel,
        "wave_allowance_m": waves,
        "dynamic_draught_m": dynamic,
        "net_clearance_m": net,
        "limit_speed_knots": (available / factor) ** (1 / power),
        "clearance_sufficient": net >= required_clearance_m,
    }
