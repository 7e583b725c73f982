"""Reference solution: reads the three files in the current directory and writes output.json."""

import csv
import json
import math
import re

with open("specification.md", encoding="utf-8") as file:
    specification = file.read()
with open("survey-note.txt", encoding="utf-8") as file:
    note = file.read()
with open("pipe-schedule.csv", encoding="utf-8", newline="") as file:
    schedule = list(csv.DictReader(file))


def number(pattern, text):
    return float(re.search(pattern, text).group(1))


pipe_table = {
    int(size): (float(grade), int(wall))
    for size, grade, wall in re.findall(r"^\| (\d+) \| ([\d.]+) \| (\d+) \|$", specification, re.MULTILINE)
}
roughness = {
    "RC": number(r"\(RC\): ([\d.]+)", specification),
    "PVC": number(r"of PVC: ([\d.]+)", specification),
}
velocity_limit = number(r"less than ([\d.]+) m/s", specification)
cover_limit = {
    "road": number(r"([\d.]+) m for pipes in the road", specification),
    "verge": number(r"([\d.]+) m for pipes in the verge", specification),
}
changed = re.search(r"Amendment 1, clause 5: .* changed to ([\d.]+) m", specification)
if changed:
    cover_limit["road"] = float(changed.group(1))

national = number(r"BM 4, national datum: +([\d.]+)", note)
site = number(r"BM 4, site datum: +([\d.]+)", note)
first, _, check = note.partition("Check survey")
reading = r"^  ([A-Z]\d+) +([\d.]+) *(.*)$"
ground = {pit: float(level) + site - national for pit, level, _ in re.findall(reading, first, re.MULTILINE)}
for pit, level, remark in re.findall(reading, check, re.MULTILINE):
    if "rejected" not in remark:
        ground[pit] = float(level) + site - national

latest = {}
for row in schedule:
    if row["status"] == "draft":
        continue
    if row["pipe"] not in latest or row["rev"] > latest[row["pipe"]]["rev"]:
        latest[row["pipe"]] = row

count = 0
volume = 0.0
lengths, flat, shallow, slow = {}, [], [], []
covers, depths, velocities = [], [], []
for name in sorted(latest):
    row = latest[name]
    if row["status"] == "deleted":
        continue
    count += 1
    size = int(row["diameter_mm"])
    least_grade, wall = pipe_table[size]
    length = float(row["length"]) / (1000 if row["length_unit"] == "mm" else 1)
    upper, lower = float(row["us_invert_m"]), float(row["ds_invert_m"])
    slope = (upper - lower) / length
    bore = size / 1000
    velocity = (bore / 4) ** (2 / 3) * math.sqrt(slope) / roughness[row["material"]]
    here = []
    for pit, invert in ((row["from_pit"], upper), (row["to_pit"], lower)):
        depths.append(ground[pit] - invert)
        here.append(ground[pit] - invert - bore - wall / 1000)
    covers += here
    velocities.append(velocity)
    lengths[size] = lengths.get(size, 0) + length
    volume += math.pi * bore**2 / 4 * length
    if 100 * slope < least_grade:
        flat.append(name)
    if min(here) < cover_limit[row["location"]]:
        shallow.append(name)
    if velocity < velocity_limit:
        slow.append(name)

with open("output.json", "w", encoding="utf-8") as file:
    json.dump(
        {
            "current_pipes": count,
            "total_length_m": round(sum(lengths.values()), 3),
            "pipe_volume_m3": volume,
            "flat_pipes": flat,
            "shallow_pipes": shallow,
            "slow_pipes": slow,
            "least_cover_m": min(covers),
            "greatest_depth_m": max(depths),
            "least_velocity_m_per_s": min(velocities),
            "length_by_diameter": [
                {"diameter_mm": size, "length_m": round(lengths[size], 3)} for size in sorted(lengths)
            ],
        },
        file,
        indent=1,
    )
