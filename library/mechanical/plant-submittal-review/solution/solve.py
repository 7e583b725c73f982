"""Reference solution: reads the project's files below the current directory and writes output.json."""

import csv
import glob
import json
import os
import re

TO_BASE = {
    "L/s": 1, "m3/h": 1 / 3.6, "m3/s": 1000, "US gpm": 0.0630902, "cfm": 0.471947,
    "m": 1, "ft": 0.3048, "kPa": 1, "bar": 100, "psi": 6.89476, "Pa": 1, "mbar": 100, "in. w.g.": 249.089,
    "kW": 1, "hp": 0.7457, "TR": 3.51685, "kg": 1, "t": 1000, "lb": 0.453592, "mm/s": 1, "in/s": 25.4,
    "weeks": 1, "days": 1 / 7, "months": 1, "years": 12, "mm": 1,
}
SECTION_OF = {"pump": "21", "fan": "22", "air handling unit": "23", "chiller": "24"}
# First words of labels on data sheets, with what they name.
LABELS = {
    "Flow at duty point": "flow", "Rated flow": "flow",
    "Total head at duty point": "head", "Rated total head": "head",
    "Pressure at duty point": "pressure", "Rated pressure": "pressure",
    "Cooling capacity at duty point": "capacity", "Rated cooling capacity": "capacity",
    "Power absorbed at duty point": "absorbed", "Absorbed power (duty)": "absorbed",
    "Electrical input at duty point": "input", "Electrical input (duty)": "input",
    "Motor rated power": "motor", "Motor size": "motor",
    "Efficiency at duty point": "efficiency", "Efficiency (duty)": "efficiency",
    "NPSH required at duty point": "npsh", "NPSHr (duty)": "npsh",
    "Shaft speed": "speed", "Speed": "speed",
    "Sound pressure level at 1 m": "sound", "Lp at 1 m": "sound",
    "Vibration velocity, r.m.s.": "vibration", "Vibration (r.m.s.)": "vibration",
    "Motor efficiency class": "ie", "Efficiency class of motor": "ie",
    "Degree of protection": "ip", "Protection": "ip",
    "Warranty from taking over": "warranty", "Warranty": "warranty",
    "Delivery after order": "delivery", "Delivery time": "delivery",
    "Operating weight": "weight", "Weight, operating": "weight",
    "Cooling coil, width": "width", "Coil width": "width",
    "Cooling coil, height": "height", "Coil height": "height",
    "Temperature efficiency of heat recovery": "recovery", "Heat recovery, temperature efficiency": "recovery",
    "Casing leakage class": "leakage", "Leakage class of casing": "leakage",
    "Evaporator pressure drop": "drop", "Pressure drop, evaporator": "drop",
    "Least stable load": "turndown", "Minimum load": "turndown",
}
# For each title of a clause: the number in its text, whether it is a least value, and what is compared with it.
LEAST, MOST = True, False
CLAUSES = {
    "Sound": (r"exceed ([\d.]+) dB", MOST, lambda s, d: s["sound"]),
    "Vibration": (r"exceed ([\d.]+) mm/s", MOST, lambda s, d: s["vibration"]),
    "Motor efficiency class": (r"class IE(\d)", LEAST, lambda s, d: s["ie"]),
    "Degree of protection": (r"least IP(\d+)", LEAST, lambda s, d: s["ip"]),
    "Motor rating": (r"least ([\d.]+) %", LEAST, lambda s, d: (s["motor"] - s["absorbed"]) / s["absorbed"] * 100),
    "Warranty": (r"least (\d+) months", LEAST, lambda s, d: s["warranty"]),
    "Delivery": (r"within (\d+) weeks", MOST, lambda s, d: s["delivery"]),
    "Operating weight": (None, MOST, lambda s, d: s["weight"] - d["weight_allowance_kg"]),
    "Flow": (None, LEAST, lambda s, d: s["flow"] - d["flow_l_per_s"]),
    "Total head": (r"plus ([\d.]+) %", LEAST, lambda s, d: (s["head"] / d["head_m"] - 1) * 100),
    "Pressure": (r"plus ([\d.]+) %", LEAST, lambda s, d: (s["pressure"] / d["pressure_pa"] - 1) * 100),
    "Cooling capacity": (r"plus ([\d.]+) %", LEAST, lambda s, d: (s["capacity"] / d["capacity_kw"] - 1) * 100),
    "Efficiency": (r"than ([\d.]+) %", LEAST, lambda s, d: s["efficiency"]),
    "Net positive suction head": (r"least ([\d.]+) m\.", LEAST, lambda s, d: d["npsh_available_m"] - s["npsh"]),
    "Shaft speed": (r"exceed (\d+) rpm", MOST, lambda s, d: s["speed"]),
    "Specific fan power": (r"exceed ([\d.]+) W", MOST, lambda s, d: s["input"] * 1000 / s["flow"]),
    "Coil face velocity": (r"exceed ([\d.]+) m/s", MOST, lambda s, d: s["flow"] * 1e3 / (s["width"] * s["height"])),
    "Heat recovery": (r"than ([\d.]+) %", LEAST, lambda s, d: s["recovery"]),
    "Casing leakage": (r"class L(\d) or", MOST, lambda s, d: s["leakage"]),
    "Coefficient of performance": (r"than ([\d.]+)\.$", LEAST, lambda s, d: s["capacity"] / s["absorbed"]),
    "Evaporator pressure drop": (r"exceed ([\d.]+) kPa", MOST, lambda s, d: s["drop"]),
    "Least load": (r"down to ([\d.]+) %", MOST, lambda s, d: s["turndown"]),
}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# The specification: text and origin of each clause, as the addenda leave it.
clauses, replaced = {}, {}
for path in sorted(glob.glob("specification/2*.md")):
    for number, title, text in re.findall(r"^\*\*([\d.]+) ([^*]+?) \(R\)\.\*\* (.+)$", read(path), re.MULTILINE):
        origin = "general requirements" if number.startswith("20.") else "section"
        clauses[number] = {"title": title, "text": text, "source": origin}
for path in sorted(glob.glob("specification/addendum-*.md")):
    addendum = read(path)
    issued = re.search(r"Issued on ([\d-]+)", addendum).group(1)
    source = "addendum " + re.search(r"# Addendum (\d)", addendum).group(1)
    for number, text in re.findall(r"^A\d\.\d+ Clause ([\d.]+), .*?\(R\): .*?\"(.+)\"$", addendum, re.MULTILINE):
        clauses[number].update(text=text, source=source)
        replaced.setdefault(number, []).append(issued)
    for number in re.findall(r"^A\d\.\d+ Clause ([\d.]+), .*: the clause is deleted", addendum, re.MULTILINE):
        del clauses[number]
        replaced.setdefault(number, []).append(issued)


def in_force(section):
    """Clauses for one kind of plant, by title; its own ones come after the general ones and take their place."""
    if not any(number.startswith(section + ".") for number in clauses):
        # Without its requirements nothing can be said to comply.
        raise SystemExit(f"section {section} of the specification is missing")
    found = {}
    for prefix in ("20.", section + "."):
        for number, clause in clauses.items():
            if number.startswith(prefix):
                found[clause["title"]] = (number, clause)
    if section == "24":
        for title in ("Motor rating", "Motor efficiency class"):
            found.pop(title, None)
    return found


# The schedule, as closed requests for information leave it.
schedule = {}
for row in rows("schedule/equipment.csv"):
    if row["status"] != "in contract":
        continue
    duty = {key: float(value) for key, value in row.items() if re.fullmatch(r"[\d.]+", value or "")}
    schedule[row["item"]] = (row["kind"], duty)
granted = {}
if os.path.exists("registers/deviations-and-rfis.md"):
    register = read("registers/deviations-and-rfis.md")
    columns = {"total head": "head_m", "pressure": "pressure_pa", "cooling capacity": "capacity_kw"}
    change = r"closed: the scheduled (.+?) of (\S+) is changed from .+? to ([\d.]+) "
    for name, item, value in re.findall(change, register):
        schedule[item][1][columns[name]] = float(value)
    for number, item, clause, history in re.findall(
        r"^### (DEV-\d+): (\S+), clause ([\d.]+) .*?\n(.*?)(?=\n### |\n## |\Z)", register, re.MULTILINE | re.DOTALL
    ):
        last = re.findall(r"^- ([\d-]+) (.+)$", history, re.MULTILINE)[-1]
        if not last[1].startswith("accepted"):
            continue
        if any(issued > last[0] for issued in replaced.get(clause, [])):
            continue
        bound = float(re.search(r"(?:up|down) to ([\d.]+)", last[1]).group(1))
        granted.setdefault((item, clause), []).append((number, bound))

# The submission of each item that counts.
log = rows("registers/submittal-log.csv")
counting, submissions = {}, {}
for entry in log:
    item = entry["item"]
    submissions[item] = submissions.get(item, 0) + 1
    if "withdrawn" in entry["status"]:
        continue
    if item not in counting or entry["submission"] > counting[item]["submission"]:
        counting[item] = entry


def data_sheet(item):
    entry = counting[item]
    text = read("submittals/" + entry["file"])
    letter = entry["submission"]
    part = re.search(rf"=== Submission {letter},.*?===\n(.*?)(?=\n=== Submission|\Z)", text, re.DOTALL).group(1)
    values = {}
    for line in part.splitlines():
        match = (
            re.fullmatch(r"  (.+?) \.+ (\S+)(?: (.+))?", line)
            or re.fullmatch(r"\| (.+?) \| (\S+) \| (.+) \|", line)
            or re.fullmatch(r" ?\d+\. (.+?): (\S+)(?: (.+))?", line)
        )
        name = match and LABELS.get(match.group(1))
        if not name:
            continue
        unit = match.group(3) or ""
        value = float(re.sub(r"^[A-Z]+", "", match.group(2))) * TO_BASE.get(unit, 1)
        if name == "head" and unit in ("kPa", "bar"):
            value = value * 1000 / (998 * 9.81)
        values[name] = value
    return values


sheets = {item: data_sheet(item) for item in counting}
statuses, rejected, relied, resubmitted = [], [], [], []
power, weights, head_margins, suction_margins, fan_powers = 0.0, [], [], [], []
for item, (kind, duty) in schedule.items():
    sheet = sheets[item]
    failing, helped = [], []
    for title, (number, clause) in in_force(SECTION_OF[kind]).items():
        pattern, least, figure_of = CLAUSES[title]
        bound = float(re.search(pattern, clause["text"]).group(1)) if pattern else 0.0
        figure = round(figure_of(sheet, duty), 9)
        meets = (lambda other: figure >= other) if least else (lambda other: figure <= other)
        if meets(bound):
            continue
        covering = [name for name, other in granted.get((item, number), []) if meets(other)]
        if covering:
            helped.append(covering[0])
        else:
            failing.append((number, clause["source"]))
    if submissions[item] > 1:
        resubmitted.append({"item": item, "submission": counting[item]["submission"]})
    if failing:
        statuses.append({"item": item, "status": "rejected"})
        rejected += [{"item": item, "clause": number, "source": source} for number, source in failing]
        continue
    statuses.append({"item": item, "status": "accepted with deviation" if helped else "compliant"})
    relied += helped
    power += sheet["absorbed"] * duty["duty_units"]
    weights.append(sheet["weight"])
    if kind == "pump":
        head_margins.append((sheet["head"] / duty["head_m"] - 1) * 100)
        suction_margins.append(duty["npsh_available_m"] - sheet["npsh"])
    if kind == "fan":
        fan_powers.append(sheet["input"] * 1000 / sheet["flow"])

with open("output.json", "w", encoding="utf-8") as file:
    json.dump(
        {
            "items_reviewed": len(schedule),
            "item_status": statuses,
            "rejected_items": rejected,
            "total_absorbed_power_kw": power,
            "least_head_margin_percent": min(head_margins, default=None),
            "heaviest_operating_weight_kg": max(weights, default=None),
            "least_npsh_margin_m": min(suction_margins, default=None),
            "greatest_specific_fan_power_w_s_per_l": max(fan_powers, default=None),
            "deviations_relied_on": relied,
            "counting_submissions": resubmitted,
        },
        file,
        indent=1,
    )
