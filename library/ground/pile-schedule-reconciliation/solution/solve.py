"""Reference solution: reads the documents below the current directory and writes output.json."""

import csv
import json
import math
import re
from collections import defaultdict
from datetime import date, datetime


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def table_of(path):
    return list(csv.DictReader(text_of(path).splitlines()))


def pile_name(written):
    """P014, P-14, P14 and 14 are the same pile; trial piles and probe bores keep their names."""
    found = re.fullmatch(r"(?:P-?)?\s*(\d+)", written.strip())
    return f"P{int(found.group(1)):03d}" if found else written.strip()


def long_date(written):
    return datetime.strptime(written, "%d %B %Y").date()


register = table_of("document-register.csv")
papers = {entry["file"]: text_of(entry["file"]) for entry in register}
status = {entry["file"]: entry["status"] for entry in register}

# Limits: the specification, then its addenda in their order.
spec = papers["design/specification.md"]
tolerance = {
    "bearing": float(re.search(r"- (\d+) mm for bearing piles", spec).group(1)),
    "wall": float(re.search(r"- (\d+) mm for wall piles", spec).group(1)),
}
level_tolerance = float(re.search(r"differ from the design by more than (\d+) mm", spec).group(1))
length_tolerance = float(re.search(r"less than the design length by\s+more than ([\d.]+) m", spec).group(1))
ratios = re.search(r"ratio shall not be less than ([\d.]+) and not more than ([\d.]+)\.\n", spec)
low, high = float(ratios.group(1)), float(ratios.group(2))
for line in papers.get("design/addenda.md", "").splitlines():
    changed = re.search(r"Clause 5\.2: .*bearing piles is changed (?:once more, )?to (\d+) mm", line)
    if changed:
        tolerance["bearing"] = float(changed.group(1))
    changed = re.search(r"Clause 6\.3: the upper limit .* is changed to ([\d.]+)\. ", line)
    if changed:
        high = float(changed.group(1))

# The design: schedule rows and instructions, applied by date of issue.
steps = []
for row in table_of("design/pile-schedule.csv"):
    if row["status"] == "for comment":
        continue
    content = {
        "type": row["type"],
        "diameter": int(row["diameter_mm"]),
        "east": float(row["easting_m"]),
        "north": float(row["northing_m"]),
        "head": float(row["cut_off_m"]),
        "toe": float(row["toe_m"]),
    }
    if row["status"] == "deleted":
        content = None
    steps.append((date.fromisoformat(row["issued"]), ("put", row["pile"], content)))

cancelled, accepted = set(), set()
items = []
for path in sorted(papers):
    if not path.startswith("instructions/") or status[path] != "issued":
        continue
    issued = long_date(re.search(r"Date of issue: (.+)", papers[path]).group(1))
    label = re.search(r"instruction (EI-\d+)", papers[path]).group(1)
    for number, words in re.findall(r"^(\d+)\. (.*?)(?=^\d+\. |^Acknowledge)", papers[path], re.MULTILINE | re.DOTALL):
        items.append((issued, label, int(number), words))
        found = re.match(r"Item (\d+) of (EI-\d+) is cancelled", words)
        if found:
            cancelled.add((found.group(2), int(found.group(1))))
for issued, label, number, words in items:
    if (label, number) in cancelled:
        continue
    if found := re.match(r"(?:Pile (P\d+) is deleted|Delete pile (P\d+))\.", words):
        steps.append((issued, ("put", found.group(1) or found.group(2), None)))
    elif found := re.match(r"Pile (P\d+) is relocated to E ([\d.]+) m, N ([\d.]+) m", words):
        steps.append((issued, ("set", found.group(1), {"east": float(found.group(2)), "north": float(found.group(3))})))
    elif found := re.match(r"Pile (P\d+) is moved ([\d.]+) m (east|west) and ([\d.]+) m (north|south)", words):
        east = float(found.group(2)) * (1 if found.group(3) == "east" else -1)
        north = float(found.group(4)) * (1 if found.group(5) == "north" else -1)
        steps.append((issued, ("move", found.group(1), (east, north))))
    elif found := re.match(r"The toe level of piles? (.*?) is changed to RL (-?[\d.]+) m", words):
        for name in re.findall(r"P\d+", found.group(1)):
            steps.append((issued, ("set", name, {"toe": float(found.group(2))})))
    elif words.startswith("Add the following piles"):
        for line in re.findall(r"^\| (P\d+) \| (.*) \|$", words, re.MULTILINE):
            cells = line[1].split(" | ")
            east, north, head, toe = map(float, cells[3:])
            content = dict(type=cells[0], diameter=int(cells[2]), east=east, north=north, head=head, toe=toe)
            steps.append((issued, ("put", line[0], content)))
    elif found := re.match(r"The result of test IT-\d+ on pile (P\d+) is accepted", words):
        accepted.add(found.group(1))
steps.sort(key=lambda step: step[0])
design = {}
for _, (kind, name, content) in steps:
    if kind == "put":
        design.pop(name, None)
        if content:
            design[name] = dict(content)
    elif kind == "set":
        design[name].update(content)
    else:
        design[name]["east"] += content[0]
        design[name]["north"] += content[1]

# Bores: (date, pile, diameter in mm, platform level, depth in m, depth of the concrete in m, complete or not).
bores = []
for row in table_of("rig-logs/rig-1.csv"):
    if row["outcome"] != "probe":
        done = row["outcome"] == "complete"
        top = float(row["concrete_top_depth_m"]) if done else None
        numbers = (int(row["diameter_mm"]), float(row["platform_rl_m"]), float(row["bored_depth_m"]))
        bores.append((date.fromisoformat(row["date"]), pile_name(row["pile"]), *numbers, top, done))
for path in sorted(papers):
    if path.startswith("rig-logs/rig-2"):
        day = platform = name = size = depth = top = None
        for line in papers[path].splitlines():
            if found := re.match(r"Sheet \d+ +\w+ (\d+ \w+ \d{4}) ", line):
                day = long_date(found.group(1))
            elif found := re.match(r"Platform RL ([\d.]+)", line):
                platform = float(found.group(1))
            elif found := re.match(r"  Pile (\d+) +auger (\d+) mm", line):
                name, size, top = pile_name(found.group(1)), int(found.group(2)), None
            elif found := re.match(r"    bored to ([\d.]+) m", line):
                depth = float(found.group(1))
                cast = re.search(r"cast to RL ([\d.]+)", line)
                top = platform - float(cast.group(1)) if cast else None
            elif found := re.match(r"    result: (\w+)", line):
                bores.append((day, name, size, platform, depth, top, found.group(1) == "complete"))
    elif path.startswith("rig-logs/rig-3"):
        log = papers[path]
        unit = 0.3048 if "counter unit: ft" in log else 1
        first = float(re.search(r"platform RL ([\d.]+) m up to", log).group(1))
        later, since = re.search(r"platform RL ([\d.]+) m from (\d\d/\d\d/\d\d)", log).groups()
        since = datetime.strptime(since, "%d/%m/%y").date()
        for line in log.splitlines():
            cells = [cell.strip() for cell in line.split("|")]
            if re.fullmatch(r"\d\d/\d\d/\d\d", cells[0]):
                day = datetime.strptime(cells[0], "%d/%m/%y").date()
                done = cells[5] == "C"
                platform = float(later) if day >= since else first
                top = float(cells[4]) * unit if done else None
                bores.append((day, pile_name(cells[1]), int(cells[2]), platform, float(cells[3]) * unit, top, done))
bores = sorted((bore for bore in bores if not bore[1].startswith("TP")), key=lambda bore: bore[0])
pile_bore = {bore[1]: bore for bore in bores if bore[6]}
lost = sum(bore[4] for bore in bores if pile_bore.get(bore[1]) is not bore)

loads = defaultdict(float)
seen = set()
for row in table_of("concrete/dockets.csv"):
    if row["docket"] in seen or row["mix"] != "P40" or row["remark"].startswith("rejected"):
        continue
    seen.add(row["docket"])
    volume = (float(row["volume"]) - float(row["returned"])) * (0.001 if row["unit"] == "L" else 1)
    loads[pile_name(row["pile"]), date.fromisoformat(row["date"])] += volume

note = papers["survey/setting-out.md"]
grid = {
    system: tuple(map(float, re.search(rf"\| {system} grid and datum \| (\S+) \| (\S+) \| (\S+) \|", note).groups()))
    for system in ("site", "national")
}
turn = math.radians(float(re.search(r"t = ([\d.]+) degrees", note).group(1)))
heads = {}
for row in sorted(table_of("survey/as-built.csv"), key=lambda row: row["date"]):
    name = pile_name(row["pile"])
    if row["kind"] != "as-built" or row["remark"].startswith("rejected") or name not in pile_bore:
        continue
    if date.fromisoformat(row["date"]) > pile_bore[name][0]:
        east = float(row["national_easting_m"]) - grid["national"][0]
        north = float(row["national_northing_m"]) - grid["national"][1]
        heads[name] = (
            grid["site"][0] + east * math.cos(turn) + north * math.sin(turn),
            grid["site"][1] - east * math.sin(turn) + north * math.cos(turn),
            grid["site"][2] + float(row["national_level_m"]) - grid["national"][2],
        )

grades = {}
for row in sorted(table_of("integrity/tests.csv"), key=lambda row: row["date"]):
    name = pile_name(row["pile"])
    if row["class"] != "V" and name in pile_bore and date.fromisoformat(row["date"]) > pile_bore[name][0]:
        grades[name] = row["class"]

answer = {name: [] for name in ("off_position_piles", "off_level_piles", "short_piles", "wrong_diameter_piles")}
answer.update({name: [] for name in ("overbreak_piles", "failed_piles", "untested_piles")})
groups = defaultdict(lambda: {"piles": 0, "bored_m": 0.0, "theoretical_m3": 0.0, "placed_m3": 0.0})
for name in sorted(set(design) & set(pile_bore)):
    pile = design[name]
    day, _, size, platform, depth, top, _ = pile_bore[name]
    east, north, head = heads[name]
    deviation = 1000 * math.dist((east, north), (pile["east"], pile["north"]))
    if deviation > tolerance[pile["type"]]:
        answer["off_position_piles"].append({"pile": name, "deviation_mm": deviation})
    if 1000 * abs(head - pile["head"]) > level_tolerance:
        answer["off_level_piles"].append(name)
    shortfall = (pile["head"] - pile["toe"]) - (head - (platform - depth))
    if shortfall > length_tolerance:
        answer["short_piles"].append({"pile": name, "shortfall_m": shortfall})
    if size != pile["diameter"]:
        answer["wrong_diameter_piles"].append(name)
    theory = math.pi * (size / 2000) ** 2 * (depth - top)
    placed = loads[name, day]
    if placed / theory < low or placed / theory > high:
        answer["overbreak_piles"].append({"pile": name, "ratio": placed / theory})
    if name not in grades:
        answer["untested_piles"].append(name)
    elif grades[name] in ("C", "D") and name not in accepted:
        answer["failed_piles"].append(name)
    group = groups[size]
    group["piles"] += 1
    group["bored_m"] += depth
    group["theoretical_m3"] += theory
    group["placed_m3"] += placed

keys = ("piles", "bored_m", "theoretical_m3", "placed_m3")
faulty = set()
for key, found in answer.items():
    faulty.update(entry if isinstance(entry, str) else entry["pile"] for entry in found)
total = {key: sum(group[key] for group in groups.values()) for key in keys}
answer.update(
    design_piles=len(design),
    built_piles=total["piles"],
    released_piles=total["piles"] - len(faulty),
    missing_piles=sorted(set(design) - set(pile_bore)),
    extra_piles=sorted(set(pile_bore) - set(design)),
    bored_length_m=total["bored_m"],
    lost_boring_m=lost,
    theoretical_concrete_m3=total["theoretical_m3"],
    placed_concrete_m3=total["placed_m3"],
    overbreak_percent=100 * (total["placed_m3"] / total["theoretical_m3"] - 1),
    by_diameter=[{"diameter_mm": size, **groups[size]} for size in sorted(groups)],
)
with open("output.json", "w", encoding="utf-8") as file:
    json.dump(answer, file, indent=1)
