"""Reference solution: reads the schedule, the section table, the specification and the RFI log; writes output.json."""

import csv
import json
import math
import re
from pathlib import Path


def first(pattern, text):
    found = re.search(pattern, text, re.DOTALL)
    if not found:
        raise SystemExit(f"not found: {pattern}")
    return found.group(1)


def metres(text):
    value, unit = text.split()
    return float(value) / {"m": 1, "mm": 1000}[unit]


spec = re.sub(r"~~.*?~~", "", Path("documents/specification.md").read_text(encoding="utf-8"))
gamma_m0 = float(first(r"γM0 =\s+([\d.]+)\.", spec))
gamma_g = float(first(r"permanent actions\s+([\d.]+)", spec))
gamma_q = float(first(r"variable\s+actions\s+([\d.]+)\.", spec))
divisor = {use: float(first(rf"\| {use} \| span /\s+([\d.]+)", spec)) for use in ("floor", "roof")}
addition = float(first(r"Add ([\d.]+) % to the mass", spec))
strength = {grade: float(value) for grade, value in re.findall(r"(S\d+) (\d+) MPa", spec)}
modulus = float(first(r"Modulus of elasticity (\d+) GPa", spec)) * 1000

with open("schedule/sections.csv", newline="", encoding="utf-8") as file:
    sections = {row["section"]: {k: float(v) for k, v in row.items() if k != "section"} for row in csv.DictReader(file)}

latest = {}
with open("schedule/beams.csv", newline="", encoding="utf-8") as file:
    for row in csv.DictReader(file):
        if row["status"] == "draft":
            continue
        rank = ("PC".index(row["rev"][0]), int(row["rev"][1:]))
        if row["mark"] not in latest or rank > latest[row["mark"]][0]:
            latest[row["mark"]] = rank, row
beams = {}
for mark, (_, row) in latest.items():
    if row["status"] != "deleted" and row["remark"] != "existing beam, retained":
        row["span"] = metres(row["span"])
        row["permanent"], row["variable"] = float(row["permanent_kN_per_m"]), float(row["variable_kN_per_m"])
        beams[mark] = row

applied = 0
log = Path("documents/rfi-log.md").read_text(encoding="utf-8")
for entry in re.split(r"^## ", log, flags=re.MULTILINE)[1:]:
    mark = first(r"Beam: (\S+)", entry)
    closed = re.search(r"Status: closed (\S+)", entry)
    if not closed or mark not in beams or closed.group(1) <= beams[mark]["date"]:
        continue
    answer = first(r"Answer: ([^\n]+)", entry)
    if match := re.fullmatch(r"Section to be (IPE \d+)\.", answer):
        beams[mark]["section"] = match.group(1)
    elif match := re.fullmatch(r"Variable load to be ([\d.]+) kN/m\.", answer):
        beams[mark]["variable"] = float(match.group(1))
    elif match := re.fullmatch(r"Span to be ([\d.]+) m\.", answer):
        beams[mark]["span"] = float(match.group(1))
    else:
        continue
    applied += 1

use, governed, mass = {}, 0, {}
for mark, beam in beams.items():
    section, span = sections[beam["section"]], beam["span"]
    fy = strength[beam["grade"]] / gamma_m0
    line = gamma_g * (beam["permanent"] + section["mass_kg_per_m"] * 9.81e-3) + gamma_q * beam["variable"]
    bending = (line * span * span / 8) / (section["plastic_modulus_cm3"] * 1e-6 * fy * 1e3)
    shear = (line * span / 2) / (section["shear_area_cm2"] * 1e-4 * fy / math.sqrt(3) * 1e3)
    stiffness = modulus * 1e3 * section["second_moment_cm4"] * 1e-8
    sag = 5 / 384 * beam["variable"] * span**4 / stiffness
    deflection = sag / (span / divisor[beam["use"]])
    use[mark] = max(bending, shear, deflection)
    governed += deflection >= max(bending, shear)
    mass[mark] = section["mass_kg_per_m"] * span * (1 + addition / 100) / 1000

critical = max(use, key=use.get)
Path("output.json").write_text(
    json.dumps(
        {
            "beams_in_force": len(beams),
            "total_mass_t": sum(mass.values()),
            "critical_beam": critical,
            "highest_utilisation": use[critical],
            "mean_utilisation": sum(use.values()) / len(use),
            "s355_mass_t": sum(mass[mark] for mark in beams if beams[mark]["grade"] == "S355"),
            "rfis_applied": applied,
            "failing_beams": sorted(mark for mark in use if use[mark] > 1),
            "deflection_governed": governed,
            "level_2_beams": [{"mark": mark, "utilisation": use[mark]} for mark in sorted(beams) if beams[mark]["level"] == "L2"],
        },
        indent=2,
    )
    + "\n",
    encoding="utf-8",
)
