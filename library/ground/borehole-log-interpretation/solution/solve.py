"""Reference solution: reads the records in the current directory and writes output.json."""

import csv
import json
import re
import statistics
from pathlib import Path

GAMMA_W = 9.81


def markdown_tables(text):
    tables, rows = [], []
    for line in text.splitlines() + [""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            tables.append([dict(zip(rows[0], row)) for row in rows[2:]])
            rows = []
    return tables


memo = Path("memo/design-memo.md").read_text()
body, _, addendum = memo.partition("## Addendum")
ratio = {row["rig"]: float(row["energy ratio (%)"]) for row in markdown_tables(body)[0]}
refusal_cap = float(re.search(r"but not more than ([\d.]+)\. Such", body)[1])
cn_cap = float(re.search(r"stress correction is limited to ([\d.]+)\.\s", body)[1])
stroud = float(re.search(r"penetration tests: ([\d.]+) kPa times N60", body)[1])
k = float(re.search(r"mean less ([\d.]+) times the sample", body)[1])
for rig, value in re.findall(r"Rig (\w+) was calibrated again.*?energy ratio is ([\d.]+) %", addendum):
    ratio[rig] = float(value)
for value in re.findall(r"is raised by ([\d.]+) kPa", addendum):
    stroud += float(value)

hole_rows, reading_rows = markdown_tables(Path("field/boreholes.md").read_text())
holes = {row["borehole"]: row for row in hole_rows}
levels = []
for row in reading_rows:
    figure = row["depth of water below ground (m)"]
    if figure == "-" or re.search("blocked|surface water|cap missing", row["remark"]):
        continue
    levels.append(float(holes[row["standpipe in"]]["ground level (m)"]) - float(figure))
water = max(levels)

with open("lab/results.csv", newline="") as file:
    lab = list(csv.DictReader(file))
replaced = {found[1] for row in lab if (found := re.search(r"replaces (\w+)", row["note"]))}
lab = [row for row in lab if row["status"] == "final" and row["result"] not in replaced]
gamma, cu_lab = {}, []
for row in lab:
    value = float(row["value"])
    if row["unit"] == "kPa":
        cu_lab.append(value / 2 if row["test"].startswith("unconfined") else value)
    else:
        gamma.setdefault(row["stratum"], []).append(value * GAMMA_W if row["unit"] == "Mg/m3" else value)
gamma = {stratum: statistics.fmean(values) for stratum, values in gamma.items()}

with open("field/spt.csv", newline="") as file:
    tests = list(csv.DictReader(file))
repeated = {found[1] for row in tests if (found := re.search(r"repeat of (\S+)", row["remark"]))}
discarded = [row["test"] for row in tests if row["remark"].startswith("void") or row["test"] in repeated]
sand, clay, n60_by_hole = [], [], {name: [] for name in holes}
for row in tests:
    if row["test"] in discarded or row["stratum"] not in ("Sand", "Clay"):
        continue
    hole, depth = holes[row["borehole"]], float(row["depth_m"])
    refusal = re.search(r"refusal: 50 blows for (\d+) mm", row["remark"])
    if refusal:
        n = min(refusal_cap, 50 / int(refusal[1]) * 300)
    else:
        n = int(row["blows_150_2"]) + int(row["blows_150_3"])
    rod = [f for limit, f in ((4, 0.75), (6, 0.85), (10, 0.95), (1e9, 1.0)) if depth < limit][0]
    n60 = n * ratio[hole["rig"]] / 60 * rod
    if row["stratum"] == "Clay":
        clay.append(stroud * n60)
        continue
    made = float(hole["base of made ground (m depth)"])
    total = gamma["Made ground"] * made + gamma["Sand"] * (depth - made)
    pore = GAMMA_W * max(0.0, depth - float(hole["ground level (m)"]) + water)
    sand.append(n60 * min(cn_cap, (100 / (total - pore)) ** 0.5))
    n60_by_hole[row["borehole"]].append(n60)


def cautious(values):
    return statistics.fmean(values) - k * statistics.stdev(values)


answer = {
    "design_water_level_m": water,
    "sand_tests": len(sand),
    "sand_unit_weight_kn_per_m3": gamma["Sand"],
    "mean_n160": statistics.fmean(sand),
    "cautious_n160": cautious(sand),
    "friction_angle_deg": (20 * cautious(sand)) ** 0.5 + 20,
    "clay_tests": len(clay),
    "clay_strength_spt_kpa": cautious(clay),
    "clay_strength_lab_kpa": cautious(cu_lab),
    "design_clay_strength_kpa": min(cautious(clay), cautious(cu_lab)),
    "discarded_tests": discarded,
    "borehole_summary": [
        {"borehole": name, "sand_tests": len(values), "mean_n60": statistics.fmean(values)}
        for name, values in n60_by_hole.items()
    ],
}
Path("output.json").write_text(json.dumps(answer, indent=1))
