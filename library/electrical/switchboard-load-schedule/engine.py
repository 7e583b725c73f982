"""Demand of an extended switchboard from a load schedule, a marked-up specification, a metering log and correspondence.

Everything that the files say is built once from the seed; `compute` works on the structures, `build_sources` prints them.
"""

import datetime
import math
import random

HP_KW = 0.7457
LETTERS = "ABCD"
BREAKERS_A = (160, 200, 250, 315, 400, 500, 630, 800, 1000, 1250, 1600, 2000, 2500, 3200, 4000)
CATEGORIES = (
    ("LTG", "lighting", (0.85, 0.9, 0.95, 1.0)),
    ("SKT", "socket outlets", (0.3, 0.35, 0.4, 0.5)),
    ("HVC", "heating, ventilation and cooling", (0.7, 0.75, 0.8, 0.85)),
    ("PMP", "pumps", (0.6, 0.65, 0.7, 0.75)),
    ("PRC", "process and special equipment", (0.55, 0.6, 0.65, 0.8)),
)
NAMES = {
    "LTG": ("corridor lighting", "hall lighting", "outdoor lighting", "emergency lighting"),
    "SKT": ("workshop sockets", "office sockets", "cleaning sockets"),
    "HVC": ("supply fan", "extract fan", "chiller", "condensing unit"),
    "PMP": ("booster pump", "sump pump", "circulating pump", "transfer pump"),
    "PRC": ("oven", "goods lift", "conveyor drive panel", "test bench", "washing machine"),
}
MOTOR_KW = (2.2, 3, 4, 5.5, 7.5, 11, 15, 18.5, 22, 30)
MOTOR_HP = (3, 4, 5.5, 7.5, 10, 15, 20, 25, 30, 40)
TRANSFORMERS = ((400, 600, 500), (300, 400, 500), (500, 800, 600), (250, 300, 400), (600, 800, 1000))
HARMLESS = ("", "", "", "", "cable route changed", "24 h operation", "room 1.07", "see data sheet")


class Dice:
    """Draws that do not depend on the version of Python: only random() is used."""

    def __init__(self, seed):
        self.next = random.Random(seed).random

    def pick(self, values):
        return values[int(self.next() * len(values))]

    def whole(self, low, high):
        return low + int(self.next() * (high - low + 1))

    def chance(self, probability):
        return self.next() < probability

    def distinct(self, count, low, high):
        found = []
        while len(found) < count:
            value = self.whole(low, high)
            if value not in found:
                found.append(value)
        return found


def item_data(dice, category):
    """Rating, unit, basis, efficiency and power factor of one revision of an item."""
    factor = dice.whole(82, 90) / 100
    efficiency = dice.whole(176, 190) / 2
    if category == "LTG":
        if dice.chance(0.6):
            return dice.whole(8, 60) * 50, "W", "input", None, 0.95
        return dice.whole(8, 40) / 10, "kW", "input", None, 0.95
    if category == "SKT":
        return dice.whole(4, 14) / 2, dice.pick(("kVA", "kW")), "input", None, 0.9
    if category == "HVC" and dice.chance(0.4):
        return dice.whole(6, 50) / 2, "kW", "input", None, factor
    if category in ("HVC", "PMP"):
        if dice.chance(0.4):
            return dice.pick(MOTOR_HP), "hp", "shaft", efficiency, factor
        return dice.pick(MOTOR_KW), "kW", "shaft", efficiency, factor
    if dice.chance(0.3):
        return dice.whole(10, 60), "kVA", "input", None, factor
    if dice.chance(0.3):
        return dice.whole(50, 400) * 100, "W", "input", None, factor
    return dice.whole(10, 45), "kW", "input", None, factor


def revised_data(dice, category, before):
    """Mostly a new rating of the same kind; sometimes quite another piece of equipment."""
    for _ in range(20):
        after = item_data(dice, category)
        if after[1:3] == before[1:3] or dice.chance(0.1):
            break
    return after


def remark(dice, tags, here):
    if dice.chance(0.16):
        alike = here and tags[here - 1][:3] == tags[here][:3] and tags[here][:3] in ("HVC", "PMP", "PRC")
        reasons = ("deleted", "by others, fed from DB-4") + (("standby to " + tags[here - 1],) if alike else ())
        return dice.pick(reasons)
    return dice.pick(HARMLESS)


def build_schedule(dice, item_count, revisions):
    """Rows of every revision; the last letter is for comment only and changes many items."""
    tags, kinds = [], []
    for number in range(item_count):
        code = dice.pick(CATEGORIES)[0]
        kinds.append(code)
        tags.append(f"{code}-{101 + number}")
    rows = []
    for here, (tag, code) in enumerate(zip(tags, kinds)):
        name = dice.pick(NAMES[code])
        section = "S" + str(dice.whole(1, 4))
        first = 0 if here < 4 or dice.chance(0.85) else dice.whole(0, revisions - 1)
        for number in range(first, revisions):
            if number > first and not dice.chance(0.4):
                continue
            data = item_data(dice, code) if number == first else revised_data(dice, code, data)
            rating, unit, basis, efficiency, factor = data
            # Some item counts and some is excluded, whatever the dice say.
            note = "" if here == 0 else "by others, fed from DB-4" if here == 3 else remark(dice, tags, here)
            rows.append({
                "tag": tag, "revision": LETTERS[number], "section": section, "description": name, "category": code,
                "quantity": dice.whole(1, 3), "rating": rating, "unit": unit, "basis": basis,
                "efficiency_percent": efficiency, "power_factor": factor, "remark": note,
            })
    # Issued by section and shuffled a little, so that the row that counts is not always the last one.
    for here in range(len(rows) - 1, 0, -1):
        if dice.chance(0.3):
            other = dice.whole(0, here)
            rows[here], rows[other] = rows[other], rows[here]
    return rows


def build_clauses(dice, revisions):
    """Clauses with their original value, what an amendment proposes, and whether it was accepted."""
    clauses = [[code, dice.pick(values), None, None, False] for code, _, values in CATEGORIES]
    clauses.append(["margin", dice.pick((10, 15, 20, 25)), None, None, False])
    clauses.append(["loading", dice.pick((75, 80, 85, 90)), None, None, False])
    choices = {code: values for code, _, values in CATEGORIES}
    choices.update(margin=(10, 15, 20, 25), loading=(75, 80, 85, 90))
    amended = sorted(dice.distinct(2 * (revisions - 1), 0, 6))
    for number, index in enumerate(amended):
        clause = clauses[index]
        others = [value for value in choices[clause[0]] if value != clause[1]]
        clause[2], clause[3] = dice.pick(others), number + 1
        # One of each kind at least.
        clause[4] = number == 0 or (number != 1 and dice.chance(0.5))
    return clauses


def build_log(dice, metering_days, existing_peak_kw, factor, revisions):
    """Readings as printed: time, kW as text, power factor, status; and the time from which they are right."""
    start = datetime.datetime(2025, 1, 6, 0, 30) + datetime.timedelta(days=dice.whole(0, 300))
    count = 48 * metering_days
    reset = dice.whole(count // 3, 2 * count // 3) if revisions > 2 else count
    bad = dice.distinct(3 * revisions, 2, count - 3)
    readings = []
    for index in range(count):
        hour = (index + 1) % 48 / 2
        shape = 0.35 + 0.5 * math.exp(-(((hour - 13) / 4.5) ** 2)) + 0.1 * dice.next()
        true = existing_peak_kw * shape
        kw = round(true / factor if index < reset else true, 1)
        power_factor = dice.whole(82, 96) / 100
        text, status = f"{kw:.1f}", "OK"
        if index in bad:
            kind = bad.index(index) % 5
            if kind == 0:
                text, status = f"{2.5 * kw:.1f}", "ERR"
            elif kind == 1:
                text = "9999.9"
            elif kind == 2:
                continue
            elif kind == 3:
                text = ""
            else:
                text = f"-{kw:.1f}"
        readings.append((start + datetime.timedelta(minutes=30 * index), text, power_factor, status))
    return readings, start + datetime.timedelta(minutes=30 * reset) if reset < count else None


def model(schedule_seed, item_count, metering_days, existing_peak_kw, nominal_voltage_v, revisions):
    if not 2 <= revisions <= 4 or item_count < 8 or metering_days < 1 or existing_peak_kw <= 0:
        raise ValueError("parameters out of range")
    dice = Dice(schedule_seed)
    ratio = dice.pick(TRANSFORMERS)
    rows = build_schedule(dice, item_count, revisions)
    clauses = build_clauses(dice, revisions)
    readings, reset = build_log(dice, metering_days, existing_peak_kw, ratio[1] / ratio[0], revisions)
    return {"ratio": ratio, "rows": rows, "clauses": clauses, "readings": readings, "reset": reset,
            "issued": LETTERS[revisions - 2], "comment": LETTERS[revisions - 1], "voltage": nominal_voltage_v}


def input_kw(row):
    rating = row["rating"]
    power = {"kW": rating, "W": rating / 1000, "kVA": rating * row["power_factor"], "hp": rating * HP_KW}[row["unit"]]
    if row["basis"] == "shaft":
        power /= row["efficiency_percent"] / 100
    return power * row["quantity"]


def reactive(power, factor):
    return power * math.tan(math.acos(factor))


def valid_kw(text, status):
    return status == "OK" and text != "" and 0 <= float(text) < 9000


def compute(schedule_seed, item_count, metering_days, existing_peak_kw, nominal_voltage_v, revisions):
    data = model(schedule_seed, item_count, metering_days, existing_peak_kw, nominal_voltage_v, revisions)
    values = {code: new if accepted else old for code, old, new, _, accepted in data["clauses"]}

    latest = {}
    for row in data["rows"]:
        known = latest.get(row["tag"])
        if row["revision"] <= data["issued"] and (known is None or row["revision"] > known["revision"]):
            latest[row["tag"]] = row
    words = ("deleted", "standby", "by others")
    excluded = sorted(tag for tag, row in latest.items() if any(word in row["remark"] for word in words))
    counted = [row for tag, row in latest.items() if tag not in excluded]
    sections = {}
    demand = demand_reactive = connected = 0.0
    for row in counted:
        power = input_kw(row)
        share = power * values[row["category"]]
        connected += power
        demand += share
        demand_reactive += reactive(share, row["power_factor"])
        section = sections.setdefault(row["section"], [0.0, 0.0])
        section[0] += power
        section[1] += share

    factor = data["ratio"][1] / data["ratio"][0]
    corrected = {}
    for time, text, power_factor, status in data["readings"]:
        if valid_kw(text, status):
            wrong = data["reset"] is None or time < data["reset"]
            corrected[time] = (float(text) * factor if wrong else float(text), power_factor)
    times = sorted(corrected)
    # Rounded, so that equal readings stay equal after the correction; max takes the first of them.
    peak_time = max(times, key=lambda time: round(corrected[time][0], 6))
    peak, peak_factor = corrected[peak_time]
    energy = 0.0
    for before, after in zip(times, times[1:]):
        # A straight line over the gap: its intervals are the steps after `before` up to and including `after`.
        steps = round((after - before).total_seconds() / 1800)
        low, high = corrected[before][0], corrected[after][0]
        energy += sum(low + (high - low) * step / steps for step in range(1, steps + 1)) / 2
    energy += corrected[times[0]][0] / 2

    grown = 1 + values["margin"] / 100
    total_active = demand * grown + peak
    total_reactive = demand_reactive * grown + reactive(peak, peak_factor)
    apparent = math.hypot(total_active, total_reactive)
    current = 1000 * apparent / (math.sqrt(3) * nominal_voltage_v)
    needed = current / (values["loading"] / 100)
    # On the edge of a standard rating the choice would hang on rounding.
    if any(abs(needed / rating - 1) < 0.004 for rating in BREAKERS_A):
        raise ValueError("the current lies on the edge of a standard rating")
    breaker = next((rating for rating in BREAKERS_A if rating >= needed), None)
    if breaker is None:
        raise ValueError("no breaker is large enough")
    return {
        "counted_items": len(counted),
        "connected_load_kw": connected,
        "diversified_demand_kw": demand,
        "diversified_demand_kvar": demand_reactive,
        "valid_readings": len(times),
        "metered_peak_kw": peak,
        "metered_peak_time": peak_time.strftime("%Y-%m-%d %H:%M"),
        "metered_energy_kwh": energy,
        "total_demand_kva": apparent,
        "design_current_a": current,
        "main_breaker_a": breaker,
        "excluded_tags": excluded,
        "section_demands": [
            {"section": name, "connected_kw": sections[name][0], "demand_kw": sections[name][1]} for name in sorted(sections)
        ],
    }


def plain(value):
    return "" if value is None else f"{value:g}" if not isinstance(value, int) else str(value)


def print_schedule(rows):
    columns = ("tag", "revision", "section", "description", "category", "quantity", "rating", "unit", "basis",
               "efficiency_percent", "power_factor", "remark")
    lines = [",".join(columns)]
    for row in rows:
        cells = [row[name] if isinstance(row[name], str) else plain(row[name]) for name in columns]
        # Remarks may hold a comma.
        lines.append(",".join(f'"{cell}"' if "," in cell else cell for cell in cells))
    return "\n".join(lines) + "\n"


def print_clause(old, new, number, form):
    if new is None:
        return form.format(old)
    return f"~~{form.format(old)}~~ **{form.format(new)}** (amendment {number})"


def print_specification(data):
    clauses = {clause[0]: clause for clause in data["clauses"]}
    lines = [
        "# Particular specification, part 4: demand and incoming supply", "",
        "Contract copy with amendments marked up. Deleted text is struck through, new text is bold.", "",
        "## 4.1 System", "",
        f"Three-phase supply, {data['voltage']:g} V line-to-line, 50 Hz, one main switchboard.", "",
        "## 4.2 Diversity factors", "",
        "Each item of the load schedule is taken with the factor of its category.", "",
        "| category | loads | diversity factor |", "|---|---|---|",
    ]
    for code, name, _ in CATEGORIES:
        _, old, new, number, _ = clauses[code]
        lines.append(f"| {code} | {name} | {print_clause(old, new, number, '{:.2f}')} |")
    _, old, new, number, _ = clauses["margin"]
    lines += ["", "## 4.3 Margin", "",
              f"The demand of the new loads is increased by {print_clause(old, new, number, '{} %')} for future growth, active and",
              "reactive power alike. The existing load is not increased.", "", "## 4.4 Main circuit-breaker", ""]
    _, old, new, number, _ = clauses["loading"]
    lines += [f"The design current shall not exceed {print_clause(old, new, number, '{} %')} of the rating of the main circuit-breaker.",
              "Standard ratings: " + ", ".join(str(rating) for rating in BREAKERS_A) + " A.", "",
              "## Register of amendments", "", "| amendment | status |", "|---|---|"]
    for clause in sorted((c for c in data["clauses"] if c[3]), key=lambda c: c[3]):
        lines.append(f"| {clause[3]} | {'accepted' if clause[4] else 'rejected by the client'} |")
    return "\n".join(lines) + "\n"


def print_log(readings):
    lines = ["end_of_interval,kW,power_factor,status"]
    for time, text, power_factor, status in readings:
        lines.append(f"{time:%Y-%m-%d %H:%M},{text},{power_factor:.2f},{status}")
    return "\n".join(lines) + "\n"


def print_mail(data):
    set_to, right, misread = data["ratio"]
    last = data["readings"][-1][0]
    issued, comment = data["issued"], data["comment"]
    day = [last + datetime.timedelta(days=days) for days in (2, 3, 6, 8)]
    reset = (
        "It was corrected during the measurement: the first interval recorded with the right ratio is the one that ends on "
        f"{data['reset']:%Y-%m-%d} at {data['reset']:%H:%M}."
        if data["reset"] else "It stayed like that to the end of the log."
    )
    earlier = (
        f"For the moment revision {LETTERS[LETTERS.index(issued) - 1]} is the one issued for construction."
        if issued != "A" else "No revision has been issued for construction yet."
    )
    return "\n".join([
        f"Date: {day[0]:%Y-%m-%d} 09:12", "From: site metering", "Subject: log of the existing board", "",
        "The log of the existing main board is on the server. One thing: the recorder was programmed for current",
        f"transformers of {set_to}/5 A, but those in the board are {misread}/5 A as far as I could see.",
        "All kW values have to be scaled by the ratio of the true to the programmed primary current.", "",
        f"Date: {day[1]:%Y-%m-%d} 16:40", "From: design office", "Subject: load schedule", "",
        f"The load schedule is with the client. {earlier}",
        "Rows of revisions that are not issued are for comment and must not be used.", "",
        f"Date: {day[2]:%Y-%m-%d} 08:05", "From: site metering", "Subject: RE: log of the existing board", "",
        f"I opened the cubicle again. The plates say {right}/5 A; forget the other figure. The recorder was indeed set to",
        f"{set_to}/5 A. {reset}", "",
        f"Date: {day[3]:%Y-%m-%d} 11:27", "From: design office", "Subject: RE: load schedule", "",
        f"Revision {issued} of the load schedule is now issued for construction. Revision {comment} in the same file stays for",
        "comment.", "",
    ])


def build_sources(params):
    names = ("schedule_seed", "item_count", "metering_days", "existing_peak_kw", "nominal_voltage_v", "revisions")
    data = model(*(params[name] for name in names))
    return {
        "load_schedule.csv": print_schedule(data["rows"]),
        "specification.md": print_specification(data),
        "metering_log.csv": print_log(data["readings"]),
        "correspondence.txt": print_mail(data),
    }
