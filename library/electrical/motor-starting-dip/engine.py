"""Voltage dip at the start of an induction motor: the motor at standstill as a constant impedance behind network, transformer and cable."""

import math

# Line current and torque of the starter relative to starting direct on line at the same voltage.
STARTER_FACTOR = {"direct on line": 1.0, "star-delta": 1 / 3, "autotransformer with 65 % tap": 0.65**2}


def compute(
    line_voltage_v,
    source_fault_level_mva,
    transformer_rating_kva,
    transformer_impedance_percent,
    transformer_resistance_percent,
    cable_length_m,
    cable_resistance_ohm_per_km,
    cable_reactance_ohm_per_km,
    motor_power_kw,
    motor_efficiency_percent,
    motor_power_factor,
    starting_current_ratio,
    starting_power_factor,
    starter,
    allowed_dip_percent,
):
    if starter not in STARTER_FACTOR:
        raise ValueError("unknown starter")
    if transformer_resistance_percent >= transformer_impedance_percent:
        raise ValueError("the resistance cannot reach the impedance")
    if not (0 < motor_power_factor <= 1 and 0 < starting_power_factor <= 1 and 0 < motor_efficiency_percent <= 100):
        raise ValueError("power factors and efficiency must be above 0 and not above 1")
    if min(line_voltage_v, source_fault_level_mva, transformer_rating_kva, motor_power_kw, starting_current_ratio) <= 0:
        raise ValueError("voltage, powers and the current ratio must be positive")
    square = line_voltage_v**2
    network = complex(0, square / (source_fault_level_mva * 1e6))
    base = square / (transformer_rating_kva * 1e3)
    reactance = math.sqrt(transformer_impedance_percent**2 - transformer_resistance_percent**2)
    upstream = network + base / 100 * complex(transformer_resistance_percent, reactance)
    cable = complex(cable_resistance_ohm_per_km, cable_reactance_ohm_per_km) * cable_length_m / 1000

    rated_kva = motor_power_kw / (motor_efficiency_percent / 100 * motor_power_factor)
    factor = STARTER_FACTOR[starter]
    starting_kva = rated_kva * starting_current_ratio * factor
    magnitude = square / (starting_kva * 1e3)
    motor = magnitude * complex(starting_power_factor, math.sqrt(1 - starting_power_factor**2))

    total = upstream + cable + motor
    at_busbar = abs((cable + motor) / total)
    at_motor = abs(motor / total)
    busbar_dip = 100 * (1 - at_busbar)
    return {
        "rated_current_a": 1000 * rated_kva / (math.sqrt(3) * line_voltage_v),
        "starting_power_kva": starting_kva,
        "standstill_impedance_mohm": 1000 * magnitude,
        "upstream_impedance_mohm": 1000 * abs(upstream),
        "cable_impedance_mohm": 1000 * abs(cable),
        "starting_current_a": line_voltage_v / math.sqrt(3) / abs(total),
        "busbar_dip_percent": busbar_dip,
        "terminal_dip_percent": 100 * (1 - at_motor),
        "terminal_voltage_v": line_voltage_v * at_motor,
        "starting_torque_percent": 100 * factor * at_motor**2,
        "dip_acceptable": busbar_dip <= allowed_dip_percent,
    }
