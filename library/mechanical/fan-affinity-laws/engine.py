"""Speed control of a fan by the affinity laws on a quadratic system curve with a fixed part, against damper control on
the fan's own quadratic curve."""

import math


def compute(
    speed_rpm,
    flow_m3_per_s,
    fan_pressure_pa,
    fixed_pressure_pa,
    shutoff_percent,
    new_flow_percent,
    fan_efficiency_percent,
    throttled_efficiency_percent,
    motor_efficiency_percent,
    drive_efficiency_percent,
    running_hours_h,
):
    if not 0 <= fixed_pressure_pa < fan_pressure_pa or shutoff_percent <= 100:
        raise ValueError("the duty point must lie on both curves")
    if not 0 < new_flow_percent < 100:
        raise ValueError("the new flow must be a reduced one")
    new_flow = flow_m3_per_s * new_flow_percent / 100
    system = (fan_pressure_pa - fixed_pressure_pa) / flow_m3_per_s**2
    new_pressure = fixed_pressure_pa + system * new_flow**2
    shutoff = fan_pressure_pa * shutoff_percent / 100
    slope = (shutoff - fan_pressure_pa) / flow_m3_per_s**2
    # By affinity p = p0 - a Q2 becomes p = s2 p0 - a Q2 at the speed ratio s; s = flow ratio only without a fixed part.
    ratio = math.sqrt((new_pressure + slope * new_flow**2) / shutoff)
    throttled_pressure = shutoff - slope * new_flow**2
    present = flow_m3_per_s * fan_pressure_pa / (fan_efficiency_percent / 100) / 1000
    new = new_flow * new_pressure / (fan_efficiency_percent / 100) / 1000
    throttled = new_flow * throttled_pressure / (throttled_efficiency_percent / 100) / 1000
    damper_input = throttled / (motor_efficiency_percent / 100)
    drive_input = new / (motor_efficiency_percent * drive_efficiency_percent / 10000)
    return {
        "system_coefficient_pa_s2_per_m6": system,
        "new_pressure_pa": new_pressure,
        "new_speed_rpm": speed_rpm * ratio,
        "present_shaft_power_kw": present,
        "new_shaft_power_kw": new,
        "throttled_pressure_pa": throttled_pressure,
        "throttled_shaft_power_kw": throttled,
        "annual_saving_kwh": (damper_input - drive_input) * running_hours_h,
        "saving_percent": 100 * (1 - drive_input / damper_input),
    }
