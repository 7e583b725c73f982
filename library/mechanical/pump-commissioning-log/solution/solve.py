"""Reads the four files of the working directory and writes output.json."""

import csv
import json
import re
from math import pi

g = 9.81

sheet = open("pump_datasheet.md", encoding="utf-8").read()
history = re.findall(r"^\| ([A-Z]) \| (\S+) \| (.+?) \|$", sheet, re.MULTILINE)
revision = next(letter for letter, _, status in history if status == "approved")
section = re.search(rf"^## Revision {revision}$(.*?)(?=^## |\Z)", sheet, re.MULTILINE | re.DOTALL).group(1)


def stated(label):
    return float(re.search(rf"{label}[^:]*: (?:bore )?([\d.]+)", section).group(1))


flow_g, head_g, eta_g = stated("Guaranteed flow"), stated("Guaranteed total head"), stated("Guaranteed pump efficiency")
speed, eta_motor = stated("Rated speed"), stated("Motor efficiency") / 100
bore = {"suction": stated("Suction pipe"), "discharge": stated("Discharge pipe")}

spec = open("specification.md", encoding="utf-8").read()
rho = float(re.search(r"density is taken as ([\d.]+) kg/m3", spec).group(1))
# An addendum stands behind the clauses, so the last figure is the one in force.
tolerance = float(re.findall(r"7\.3[^\n]*?plus or minus ([\d.]+) %", spec)[-1])
allowance = float(re.findall(r"7\.4[^\n]*?([\d.]+) percentage points", spec)[-1])

with open("commissioning_log.csv", newline="", encoding="utf-8") as file:
    readings = {int(line["no"]): line for line in csv.DictReader(file)}
day = min(line["date"] for line in readings.values())

with open("instrument_register.csv", newline="", encoding="utf-8") as file:
    register = list(csv.DictReader(file))
gauge = {}
for side, tag in (("suction", "PG-11"), ("discharge", "PG-12")):
    gauge[side] = max(
        (line for line in register if line["tag"] == tag and line["calibrated_on"] < day),
        key=lambda line: line["calibrated_on"],
    )

repeats = {line["test_point"][:-1] for line in readings.values() if line["test_point"].endswith("R")}
measured = ("flow", "suction_pressure", "discharge_pressure", "motor_input_kw", "speed_rpm")
sums, unused = {}, []
for number in sorted(readings):
    line = readings[number]
    point = line["test_point"]
    bad = any(line[name].strip() in ("", "-999") for name in measured)
    bad = bad or re.search(r"disregard|do not use", line["remark"])
    if bad or point == "WU" or point in repeats:
        unused.append(number)
        continue
    q = float(line["flow"]) * {"m3/h": 1 / 3600, "L/s": 0.001}[line["flow_unit"]]
    energy = {}
    for side in ("suction", "discharge"):
        pascal = float(line[f"{side}_pressure"]) * {"kPa": 1e3, "bar": 1e5}[line[f"{side}_unit"]]
        pascal -= 1e3 * float(gauge[side]["zero_error_kpa"])
        v = 4 * q / (pi * (bore[side] / 1000) ** 2)
        energy[side] = pascal / (rho * g) + float(gauge[side]["height_above_datum_m"]) + v * v / (2 * g)
    ratio = speed / float(line["speed_rpm"])
    total = sums.setdefault(point.removesuffix("R"), [0, 0, 0, 0])
    total[0] += 1
    total[1] += q * ratio
    total[2] += (energy["discharge"] - energy["suction"]) * ratio**2
    total[3] += float(line["motor_input_kw"]) * ratio**3

points = []
for name in sorted(sums):
    n, q, h, p = sums[name]
    q, h, p = q / n, h / n, p / n
    points.append((q * 3600, h, 100 * rho * g * q * h / (1000 * p * eta_motor), name))
curve = sorted(points)
below = max(point for point in curve if point[0] <= flow_g)
above = min(point for point in curve if point[0] >= flow_g)
weight = (flow_g - below[0]) / (above[0] - below[0])
head = below[1] * (1 - weight) + above[1] * weight
eta = below[2] * (1 - weight) + above[2] * weight
deviation = 100 * (head - head_g) / head_g
answer = {
    "approved_revision": revision,
    "used_readings": len(readings) - len(unused),
    "unused_readings": unused,
    "points": [
        {"point": name, "flow_m3_per_h": q, "head_m": h, "efficiency_percent": e} for q, h, e, name in points
    ],
    "head_at_guarantee_m": head,
    "head_deviation_percent": deviation,
    "efficiency_at_guarantee_percent": eta,
    "shaft_power_at_guarantee_kw": rho * g * flow_g / 3600 * head / (10 * eta),
    "accepted": abs(deviation) <= tolerance and eta >= eta_g - allowance,
}
with open("output.json", "w", encoding="utf-8") as file:
    json.dump(answer, file, indent=1)
