"""Three-phase short circuit fed once through a transformer and a cable, as in IEC 60909-0.

Equivalent voltage source at the fault; all impedances as ohms on the low-voltage side; motors contribute nothing.
"""

import cmath
import math


def compute(
    source_fault_level_mva,
    transformer_rating_kva,
    transformer_voltage_v,
    short_circuit_voltage_percent,
    resistive_voltage_percent,
    nominal_voltage_v,
    voltage_factor,
    cable_length_m,
    parallel_cables,
    cable_resistance_ohm_per_km,
    cable_reactance_ohm_per_km,
    breaker_capacity_ka,
):
    if resistive_voltage_percent >= short_circuit_voltage_percent:
        raise ValueError("the resistive part cannot reach the short-circuit voltage")
    if min(source_fault_level_mva, transformer_rating_kva, transformer_voltage_v, nominal_voltage_v, parallel_cables) <= 0:
        raise ValueError("ratings, voltages and the number of cables must be positive")
    # c = 1.1 belongs to the medium-voltage network; its voltage cancels when the ratio of the transformer is its nominal one.
    source_z = 1.1 * transformer_voltage_v**2 / (source_fault_level_mva * 1e6)
    source_x = 0.995 * source_z
    source = complex(0.1 * source_x, source_x)

    base = transformer_voltage_v**2 / (transformer_rating_kva * 1e3)
    reactive = math.sqrt(short_circuit_voltage_percent**2 - resistive_voltage_percent**2) / 100
    correction = 0.95 * voltage_factor / (1 + 0.6 * reactive)
    transformer = correction * base * complex(resistive_voltage_percent / 100, reactive)

    cable = complex(cable_resistance_ohm_per_km, cable_reactance_ohm_per_km) * cable_length_m / 1000 / parallel_cables

    voltage = voltage_factor * nominal_voltage_v / math.sqrt(3)
    total = source + transformer + cable
    current = voltage / abs(total)
    kappa = 1.02 + 0.98 * math.exp(-3 * total.real / total.imag)
    return {
        "source_impedance_mohm": 1000 * source_z,
        "transformer_impedance_mohm": 1000 * abs(transformer),
        "cable_impedance_mohm": 1000 * abs(cable),
        "total_resistance_mohm": 1000 * total.real,
        "total_reactance_mohm": 1000 * total.imag,
        "fault_current_ka": current / 1000,
        "fault_angle_deg": math.degrees(cmath.phase(total)),
        "kappa": kappa,
        "peak_current_ka": kappa * math.sqrt(2) * current / 1000,
        "busbar_fault_current_ka": voltage / abs(source + transformer) / 1000,
        "breaker_adequate": current / 1000 <= breaker_capacity_ka,
    }
