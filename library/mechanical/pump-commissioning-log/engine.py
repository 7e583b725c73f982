"""Acceptance test of a pump from its commissioning log: total head from gauge readings, conversion to rated speed by the
affinity laws and comparison with the guarantee point, after ISO 9906."""

import math
import random

G = 9.81  # m/s2
BORES = (80, 100, 125, 150, 200, 250)
FRACTIONS = (0.55, 0.75, 0.92, 1.08, 1.22, 1.35)
HARMLESS = (
    "gauges steady",
    "shift change, new reader",
    "light rain on site",
    "discharge valve not touched since last reading",
    "client's witness present",
)
DAMNING = (
    "disregard: air in discharge gauge line",
    "valve still being moved, do not use",
    "disregard: suction strainer being flushed",
    "flow meter display frozen, do not use",
)


def pick(rng, items):
    return items[int(rng.random() * len(items))]


def between(rng, low, high):
    return low + (high - low) * rng.random()


def bore(diameter, shift):
    return BORES[max(0, min(len(BORES) - 1, BORES.index(int(diameter)) + shift))]


def build(params):
    """The whole site as data: every number is already rounded as the files print it."""
    rng = random.Random(int(params["schedule_seed"]))
    level = int(params["trap_level"])
    count = int(params["revision_count"])
    letters = "ABCD"[:count]
    # The newest revision is a draft in about half of the cases, so the letter alone decides nothing.
    approved = count - 1 if rng.random() < 0.5 else count - 2
    guarantee = {
        "flow": params["guaranteed_flow_m3_per_h"],
        "head": params["guaranteed_head_m"],
        "efficiency": params["guaranteed_efficiency_percent"],
        "speed": params["rated_speed_rpm"],
        "motor": params["motor_efficiency_percent"],
        "suction": params["suction_bore_mm"],
        "discharge": params["discharge_bore_mm"],
    }
    revisions = []
    for index, letter in enumerate(letters):
        values = dict(guarantee)
        if index != approved:
            step = index - approved
            values["flow"] += 10 * step
            values["head"] += 1.5 * step * (1 if rng.random() < 0.5 else -1)
            values["efficiency"] -= 1 + int(3 * rng.random())
            values["speed"] += 15 * step
            values["motor"] -= 0.5 * (1 + int(2 * rng.random()))
            values["discharge"] = bore(values["discharge"], 1)
        status = "approved" if index == approved else "superseded" if index < approved else "draft for comment"
        revisions.append({"letter": letter, "status": status, "date": f"2023-{3 + 2 * index:02d}-{10 + 3 * index}", **values})

    month, day = 3 + int(6 * rng.random()), 6 + int(20 * rng.random())
    date = f"2024-{month:02d}-{day:02d}"
    heights = {"PG-11": round(between(rng, 0.1, 0.5), 2), "PG-12": round(between(rng, 0.8, 1.6), 2)}
    dates = [f"2023-{month + 2:02d}-{day:02d}", f"2024-{month - 1:02d}-{day:02d}"]
    if level >= 2:
        dates.append(f"2024-{month + 1:02d}-{day:02d}")
    register, errors = [], {}
    for number, when in enumerate(dates):
        for tag, service in (("PG-11", "suction pressure"), ("PG-12", "discharge pressure")):
            error = round(between(rng, -14, 14) * 2) / 2
            register.append((tag, service, f"{heights[tag]:.2f}", f"{error:.1f}", when, f"C-{410 + 7 * number}"))
            if number == 1:
                errors[tag] = error
        register.append(("FM-21", "flow", "", "", when, f"C-{413 + 7 * number}"))

    density = params["water_density_kg_per_m3"]
    flow_rated, rated_speed = guarantee["flow"], guarantee["speed"]
    head_actual = guarantee["head"] * params["performance_percent"] / 100
    best = guarantee["efficiency"] + params["efficiency_shift_percent"]
    suction_base = between(rng, -25, 35)
    rows = []

    def velocity(flow, diameter):
        return flow / 3600 / (math.pi * (diameter / 1000) ** 2 / 4)

    def run(point, fraction, readings, spoiled, bias):
        for index in range(readings):
            speed = round(rated_speed * between(rng, 0.983, 1.004))
            s = speed / rated_speed
            q = flow_rated * fraction
            h = head_actual * (1.26 - 0.26 * fraction**2) * bias
            eta = best / 100 * (1 - ((fraction - 1.03) / 1.15) ** 2)
            shaft = density * G * q / 3600 * h / eta / 1000
            flow = q * s * between(rng, 0.995, 1.005)
            head = h * s**2 * between(rng, 0.996, 1.004)
            power = shaft * s**3 / (guarantee["motor"] / 100) * between(rng, 0.995, 1.005)
            lift = heights["PG-12"] - heights["PG-11"]
            kinetic = (velocity(flow, guarantee["discharge"]) ** 2 - velocity(flow, guarantee["suction"]) ** 2) / (2 * G)
            suction = suction_base - 12 * fraction**2 + between(rng, -0.8, 0.8)
            discharge = suction + density * G * (head - lift - kinetic) / 1000
            suction += errors["PG-11"]
            discharge += errors["PG-12"]
            remark = pick(rng, HARMLESS) if rng.random() < 0.22 else ""
            kind = ""
            # Every third reading is sound, so no test point is left empty.
            if index % 3 and rng.random() < spoiled:
                kind = pick(rng, ("blank", "sentinel", "remark", "remark"))
            if kind == "remark":
                remark = pick(rng, DAMNING)
                discharge *= between(rng, 0.82, 0.93)
                flow *= between(rng, 0.9, 1.1)
            litres = rng.random() < 0.35
            cells = {
                "flow": f"{flow / 3.6:.2f}" if litres else f"{flow:.1f}",
                "suction": f"{suction:.1f}",
                "discharge": f"{discharge:.1f}",
                "power": f"{power:.2f}",
                "speed": str(speed),
            }
            units = {"flow": "L/s" if litres else "m3/h", "suction": "kPa", "discharge": "kPa"}
            for name, value in (("suction", suction), ("discharge", discharge)):
                if rng.random() < 0.3:
                    cells[name], units[name] = f"{value / 100:.3f}", "bar"
            if kind in ("blank", "sentinel"):
                cells[pick(rng, ("flow", "discharge", "power"))] = "" if kind == "blank" else "-999"
            minute = 8 * 60 + 30 + 4 * len(rows)
            rows.append({
                "no": len(rows) + 1,
                "time": f"{minute // 60:02d}:{minute % 60:02d}",
                "point": point,
                "cells": cells,
                "units": units,
                "remark": remark,
                "void": bool(kind),
            })

    run("WU", 1.0, 3, 0, 1.05)
    repeated = 2 + int(3 * rng.random()) if level >= 2 else 0
    for number, fraction in enumerate(FRACTIONS, 1):
        # A leaking bypass spoils the first run of the point that is repeated later.
        bias = 0.9 if number == repeated else 1
        run(f"TP{number}", fraction + between(rng, -0.02, 0.02), 6 + int(4 * rng.random()), 0.16 + 0.06 * level, bias)
    if repeated:
        rows[-1]["remark"] = rows[-1]["remark"] or "test point list complete"
        run(f"TP{repeated}R", FRACTIONS[repeated - 1] + between(rng, -0.02, 0.02), 7, 0.3, 1)
    twice = [index for index in range(3, len(rows)) if rng.random() < 0.06] if level >= 3 else []
    return {
        "revisions": revisions,
        "guarantee": guarantee,
        "approved": letters[approved],
        "register": register,
        "errors": errors,
        "heights": heights,
        "date": date,
        "rows": rows,
        "repeated": repeated,
        "twice": twice,
        "density": density,
        "level": level,
    }


def compute(
    schedule_seed,
    revision_count,
    trap_level,
    guaranteed_flow_m3_per_h,
    guaranteed_head_m,
    guaranteed_efficiency_percent,
    rated_speed_rpm,
    motor_efficiency_percent,
    suction_bore_mm,
    discharge_bore_mm,
    water_density_kg_per_m3,
    performance_percent,
    efficiency_shift_percent,
    head_tolerance_percent,
    efficiency_allowance_percent,
):
    params = dict(locals())
    site = build(params)
    density, guarantee = site["density"], site["guarantee"]
    lift = site["heights"]["PG-12"] - site["heights"]["PG-11"]
    groups, used, unused = {}, 0, []
    for row in site["rows"]:
        point = row["point"]
        replaced = point == f"TP{site['repeated']}"
        if point == "WU" or replaced or row["void"]:
            unused.append(row["no"])
            continue
        used += 1
        cells, units = row["cells"], row["units"]
        flow = float(cells["flow"]) * (3.6 if units["flow"] == "L/s" else 1)
        suction = float(cells["suction"]) * (100 if units["suction"] == "bar" else 1) - site["errors"]["PG-11"]
        discharge = float(cells["discharge"]) * (100 if units["discharge"] == "bar" else 1) - site["errors"]["PG-12"]
        areas = [math.pi * (guarantee[side] / 1000) ** 2 / 4 for side in ("suction", "discharge")]
        kinetic = (flow / 3600) ** 2 * (1 / areas[1] ** 2 - 1 / areas[0] ** 2) / (2 * G)
        head = (discharge - suction) * 1000 / (density * G) + lift + kinetic
        s = guarantee["speed"] / float(cells["speed"])
        groups.setdefault(point.rstrip("R"), []).append((flow * s, head * s**2, float(cells["power"]) * s**3))
    points = []
    for name in sorted(groups):
        flow, head, power = (sum(column) / len(column) for column in zip(*groups[name]))
        efficiency = 100 * density * G * flow / 3600 * head / (power * 1000 * guarantee["motor"] / 100)
        points.append({"point": name, "flow_m3_per_h": flow, "head_m": head, "efficiency_percent": efficiency})
    points.sort(key=lambda item: item["flow_m3_per_h"])
    target = guarantee["flow"]
    pairs = [pair for pair in zip(points, points[1:]) if pair[0]["flow_m3_per_h"] <= target <= pair[1]["flow_m3_per_h"]]
    if not pairs:
        raise ValueError("the guarantee point lies outside the test points")
    low, high = pairs[0]
    share = (target - low["flow_m3_per_h"]) / (high["flow_m3_per_h"] - low["flow_m3_per_h"])
    head = low["head_m"] + share * (high["head_m"] - low["head_m"])
    efficiency = low["efficiency_percent"] + share * (high["efficiency_percent"] - low["efficiency_percent"])
    deviation = 100 * (head / guarantee["head"] - 1)
    lowest = guarantee["efficiency"] - efficiency_allowance_percent
    return {
        "approved_revision": site["approved"],
        "used_readings": used,
        "unused_readings": unused,
        "points": sorted(points, key=lambda item: item["point"]),
        "head_at_guarantee_m": head,
        "head_deviation_percent": deviation,
        "efficiency_at_guarantee_percent": efficiency,
        "shaft_power_at_guarantee_kw": density * G * target / 3600 * head / (efficiency / 100) / 1000,
        "accepted": abs(deviation) <= head_tolerance_percent and efficiency >= lowest,
    }


def log_file(site):
    lines = [
        "no,date,time,test_point,flow,flow_unit,suction_pressure,suction_unit,discharge_pressure,discharge_unit,"
        "motor_input_kw,speed_rpm,remark"
    ]
    for index, row in enumerate(site["rows"]):
        cells, units = row["cells"], row["units"]
        remark = f'"{row["remark"]}"' if "," in row["remark"] else row["remark"]
        line = (
            f"{row['no']},{site['date']},{row['time']},{row['point']},{cells['flow']},{units['flow']},{cells['suction']},"
            f"{units['suction']},{cells['discharge']},{units['discharge']},{cells['power']},{cells['speed']},{remark}"
        )
        lines += [line] * (2 if index in site["twice"] else 1)
    return "\n".join(lines) + "\n"


def datasheet_file(site):
    text = ["# Data sheet of pump P-201", "", "| revision | date | status |", "|---|---|---|"]
    text += [f"| {item['letter']} | {item['date']} | {item['status']} |" for item in site["revisions"]]
    for item in reversed(site["revisions"]):
        text += [
            "",
            f"## Revision {item['letter']}",
            "",
            f"- Guaranteed flow: {item['flow']:g} m3/h",
            f"- Guaranteed total head: {item['head']:g} m",
            f"- Guaranteed pump efficiency at that point: {item['efficiency']:g} %",
            f"- Rated speed: {item['speed']:g} rpm",
            f"- Motor efficiency: {item['motor']:g} %",
            f"- Suction pipe at gauge PG-11: bore {item['suction']:g} mm",
            f"- Discharge pipe at gauge PG-12: bore {item['discharge']:g} mm",
        ]
    return "\n".join(text) + "\n"


def register_file(site):
    head = "tag,service,height_above_datum_m,zero_error_kpa,calibrated_on,certificate"
    # Kept by certificate number in the office, not by date.
    rows = sorted(site["register"], key=lambda row: (row[0], row[5]), reverse=True)
    return "\n".join([head] + [",".join(row) for row in rows]) + "\n"


def specification_file(site, tolerance, allowance):
    level = site["level"]
    clause_head = tolerance if level < 2 else {2: 3, 3: 5, 4: 6, 5: 4, 6: 5}[int(tolerance)]
    clause_efficiency = allowance if level < 3 else allowance + 1
    text = [
        "# Particular specification, section 7: acceptance of pumps on site",
        "",
        "7.1 Tests are run with clean water. For the evaluation its density is taken as "
        f"{site['density']:g} kg/m3 and g as 9.81 m/s2.",
        "",
        "7.2 At least five test points are taken. The flow of the guarantee point shall lie between two of them.",
        "",
        f"7.3 The total head at the guaranteed flow shall be within plus or minus {clause_head:g} % of the guaranteed head.",
        "",
        "7.4 The pump efficiency at the guaranteed flow shall not be lower than the guaranteed efficiency less "
        f"{clause_efficiency:g} percentage points.",
        "",
        "7.5 Noise and vibration are assessed under section 8 and are no part of this acceptance.",
    ]
    if level >= 2:
        text += ["", "## Addendum 1", "", f"In clause 7.3 the tolerance is changed to plus or minus {tolerance:g} %."]
    if level >= 3:
        text += ["", "## Addendum 2", "", f"In clause 7.4 the allowance is changed to {allowance:g} percentage points."]
    return "\n".join(text) + "\n"


def build_sources(params):
    site = build(params)
    return {
        "commissioning_log.csv": log_file(site),
        "pump_datasheet.md": datasheet_file(site),
        "instrument_register.csv": register_file(site),
        "specification.md": specification_file(
            site, params["head_tolerance_percent"], params["efficiency_allowance_percent"]
        ),
    }
