"""Under-keel check of scheduled ship movements from a tide gauge log, a revised schedule, port rules and notices.

All files and the answers are built from the same rows, which follow from the seed.
"""

import math
import random
from datetime import datetime, timedelta

STEP = 30
COUNT = 121
FAULT = -999
FOOT = 0.3048
VESSELS = [
    "Alba Star", "Baltic Wind", "Cala Verde", "Dorothea", "Eastern Lily", "Fjordgut", "Gannet Bay", "Harmonia",
    "Isle of Mull", "Juno Trader", "Kestrel", "Laguna Azul", "Merwede", "Nordlys", "Orfeo", "Port Regent",
    "Queen Maeve", "Rona Sea", "Santa Clara", "Tern Rock",
]


class Draw:
    """Small helpers over Random.random, which is stable between Python versions."""

    def __init__(self, seed):
        self.random = random.Random(seed).random

    def between(self, low, high):
        return low + (high - low) * self.random()

    def whole(self, low, high):
        return low + int(self.random() * (high - low + 1))

    def chance(self, share):
        return self.random() < share

    def shuffled(self, rows):
        return [row for _, row in sorted(((self.random(), i), row) for i, row in enumerate(rows))]


def stamp(start, minutes):
    return start + timedelta(minutes=minutes)


def squat(block, speed, limit):
    return block * min(speed, limit) ** 2 / 100


def build(p):
    draw = Draw(p["log_seed"])
    traps = p["traps"]
    start = datetime(2026, 3, 1) + timedelta(days=draw.whole(0, 27))
    amplitude = p["tide_amplitude_m"]
    phase, phase2 = draw.between(0, 12.42), draw.between(0, 12)
    change = draw.whole(45, 62)
    shift = (draw.whole(15, 45) if draw.chance(0.5) else -draw.whole(15, 45)) if traps >= 2 else 0
    centimetres = draw.whole(80, 95) if traps >= 3 else COUNT
    depth_change = 60 * draw.whole(20, 40)
    new_depth = p["charted_depth_m"] + (0.1 * draw.whole(1, 3)) * (1 if draw.chance(0.4) else -1)
    if traps < 2:
        new_depth = p["charted_depth_m"]
    # Levels are held in whole centimetres, which keep files and answers equal to the last digit.
    offset = round(100 * p["gauge_offset_m"])

    gone = set()
    gaps = []
    for low, high in ((8, 30), (48, 72), (92, 108)):
        first, size = draw.whole(low, high), draw.whole(4, 7)
        gaps.append((first, size))
        gone.update(range(first, first + size))
    lines, resent = [], []
    level = {}
    for i in range(COUNT):
        t = i * STEP / 60
        tide = (
            1.45 * amplitude
            + 0.3
            + amplitude * math.cos(2 * math.pi * (t - phase) / 12.42)
            + 0.28 * amplitude * math.cos(2 * math.pi * (t - phase2) / 12)
            + 0.1 * math.sin(2 * math.pi * t / 40)
            + draw.between(-0.02, 0.02)
        )
        true = round(100 * tide)
        zero = offset + (shift if i >= change else 0)
        # The ends of the log stay valid, so that every movement lies between two readings.
        fate = draw.random() if 0 < i < COUNT - 1 else draw.random() + 1
        wrong = draw.whole(20, 90)
        if i in gone:
            continue
        if fate < 0.05:
            lines.append((i, true + zero + wrong, "B"))
        elif fate < 0.08:
            lines.append((i, true + zero - wrong, "M"))
        elif fate < 0.1:
            lines.append((i, FAULT, "G"))
        elif traps >= 2 and fate < 0.15:
            lines.append((i, true + zero + wrong, "G"))
            resent.append((i, true + zero, "G"))
            level[i] = true
        else:
            lines.append((i, true + zero, "G"))
            level[i] = true
    lines.sort()
    lines += draw.shuffled(resent)

    def tide_at(minutes):
        """Tide in metres on chart datum, or None if the bracketing readings are too far apart."""
        if minutes % STEP == 0 and minutes // STEP in level:
            return level[minutes // STEP] / 100
        before = max(i for i in level if i * STEP <= minutes)
        after = min(i for i in level if i * STEP >= minutes)
        if (after - before) * STEP > p["longest_gap_min"]:
            return None
        share = (minutes - before * STEP) / ((after - before) * STEP)
        return (level[before] + share * (level[after] - level[before])) / 100

    def depth_at(minutes):
        return new_depth if minutes >= depth_change else p["charted_depth_m"]

    def assess(m):
        draught = m["draught"] * (FOOT if m["unit"] == "ft" else 1)
        tide = tide_at(m["minutes"])
        required = max(p["least_clearance_m"], p["clearance_percent"] / 100 * draught)
        sinkage = squat(m["block"], m["speed"], p["speed_limit_knots"])
        row = {"draught": draught, "tide": tide, "required": required, "squat": sinkage}
        row["needed"] = draught + sinkage + required - depth_at(m["minutes"])
        if tide is not None:
            row["net"] = depth_at(m["minutes"]) + tide - draught - sinkage
            row["margin"] = row["net"] - required
        return row

    def deepen(m, steps):
        m["draught"] = round(m["draught"] + steps * (0.1 if m["unit"] == "m" else 0.3), 1)

    finals, rows = [], []
    total = draw.whole(13, 19)
    for n in range(total):
        minutes = 5 * draw.whole(15, (COUNT * STEP - 90) // 5)
        if n in (3, 7):
            first, size = gaps[n // 4]
            minutes = first * STEP + 5 * draw.whole(0, size * 4)
        m = {
            "id": f"M{n + 1:02d}",
            "vessel": VESSELS[(n + p["log_seed"]) % len(VESSELS)],
            "minutes": minutes,
            "block": round(draw.between(0.6, 0.84), 2),
            "speed": 0.5 * draw.whole(12, 24),
            "unit": "ft" if traps >= 3 and draw.chance(0.35) else "m",
            "status": "cancelled" if draw.chance(0.15) else "planned",
        }
        tide = tide_at(minutes)
        room = depth_at(minutes) + (p["tide_amplitude_m"] if tide is None else tide)
        room -= squat(m["block"], m["speed"], p["speed_limit_knots"])
        aim = draw.between(-0.45, 1.1)
        draught = min(room - p["least_clearance_m"], room / (1 + p["clearance_percent"] / 100)) - aim
        m["draught"] = round(draught / (FOOT if m["unit"] == "ft" else 1), 1)
        if tide is not None:
            while abs(assess(m)["margin"]) < 0.05:
                deepen(m, -1)
        revisions = draw.whole(1, 3)
        if n == 5:
            # At least one movement is withdrawn by its last revision.
            revisions, m["status"] = max(2, revisions), "cancelled"
        for r in range(1, revisions):
            old = dict(m)
            old["revision"] = "ABC"[r - 1]
            old["minutes"] = 5 * draw.whole(15, (COUNT * STEP - 90) // 5)
            old["draught"] = round(m["draught"] + draw.between(-0.9, 0.9) * (1 if m["unit"] == "m" else 3.3), 1)
            old["status"] = "cancelled" if traps >= 2 and draw.chance(0.15) else "planned"
            rows.append(old)
        m["revision"] = "ABC"[revisions - 1]
        rows.append(m)
        finals.append(m)
    live = [m for m in finals if m["status"] == "planned"]
    judged = [m for m in live if tide_at(m["minutes"]) is not None]
    if len(judged) < 6:
        raise ValueError("too few movements left")
    order = sorted(judged, key=lambda m: assess(m)["margin"])
    # One movement must be clearly the most critical.
    while assess(order[1])["margin"] - assess(order[0])["margin"] < 0.04 or assess(order[0])["margin"] > -0.05:
        deepen(order[0], 1)
    return {
        "start": start,
        "lines": lines,
        "centimetres": centimetres,
        "change": change,
        "shift": shift,
        "offset": offset,
        "level": level,
        "depth_change": depth_change,
        "new_depth": new_depth,
        "rows": draw.shuffled(rows),
        "live": live,
        "judged": judged,
        "assess": assess,
        "old_depth": p["charted_depth_m"] + 0.1 * draw.whole(4, 7),
    }


def compute(
    log_seed,
    traps,
    gauge_offset_m,
    tide_amplitude_m,
    charted_depth_m,
    least_clearance_m,
    clearance_percent,
    speed_limit_knots,
    longest_gap_min,
    utc_offset_h,
):
    b = build(dict(locals()))
    level = b["level"]
    times = sorted(level)
    results = {m["id"]: b["assess"](m) for m in b["live"]}
    judged = [m["id"] for m in b["judged"]]
    critical = min(judged, key=lambda i: results[i]["margin"])
    return {
        "valid_readings": len(level),
        "highest_tide_m": max(level.values()) / 100,
        "mean_tide_m": sum(level.values()) / len(level) / 100,
        "longest_interval_min": max(after - before for before, after in zip(times, times[1:])) * STEP,
        "live_movements": len(results),
        "not_assessable": len(results) - len(judged),
        "refused_movements": sum(results[i]["margin"] < 0 for i in judged),
        "least_margin_m": results[critical]["margin"],
        "critical_movement": critical,
        "critical_squat_m": results[critical]["squat"],
        "tide_needed_m": results[critical]["needed"],
        "clearances": [
            {"movement": i, "tide_m": results[i]["tide"], "net_clearance_m": results[i]["net"]} for i in sorted(judged)
        ],
    }


def build_sources(params):
    p = params
    b = build({k: p[k] for k in p})
    traps = p["traps"]
    start = b["start"]
    log = ["time_utc,reading,quality"]
    for i, value, quality in b["lines"]:
        text = str(value) if i >= b["centimetres"] else f"{value / 100:.2f}"
        log.append(f"{stamp(start, i * STEP):%Y-%m-%dT%H:%MZ},{text},{quality}")
    schedule = ["movement,revision,vessel,planned_local,draught,draught_unit,block_coefficient,speed_knots,status"]
    for m in b["rows"]:
        local = stamp(start, m["minutes"] + 60 * p["utc_offset_h"])
        schedule.append(
            f"{m['id']},{m['revision']},{m['vessel']},{local:%Y-%m-%d %H:%M},{m['draught']:.1f},{m['unit']},"
            f"{m['block']:.2f},{m['speed']:.1f},{m['status']}"
        )
    rules = f"""# Port rules, deep-draught movements

## 1 Times

The gauge logs in UTC. The movement schedule is kept in local time, which is UTC + {p["utc_offset_h"]:g} h.

## 2 Tide gauge

2.1 The gauge sends a reading every 30 minutes, in metres above gauge zero.
2.2 Gauge zero lies {p["gauge_offset_m"]:.2f} m below chart datum.
2.3 Quality mark: G good, B bad (spike filter), M maintenance. Only lines marked G may be used.
2.4 A reading of -9.99 m is the fault code of the logger whatever its quality mark.
2.5 A time may be sent twice. The line further down the file then replaces the earlier one.

## 3 Depth

The charted depth at the controlling point is {p["charted_depth_m"]:.1f} m, measured down from chart datum.

## 4 Clearance

4.1 Tide at the planned time: straight line between the valid readings before and after it. If these two are more than
{p["longest_gap_min"]:g} minutes apart, the movement cannot be assessed. A valid reading at the very time is used as it is.
4.2 Squat in metres is block coefficient x (speed in knots) squared / 100. Speed at the controlling point is limited to
{p["speed_limit_knots"]:g} knots: a higher planned speed is taken as the limit.
4.3 Net clearance is charted depth plus tide minus draught minus squat. It must be no less than the larger of
{p["least_clearance_m"]:.2f} m and {p["clearance_percent"]:g} % of the draught, otherwise the movement is refused.

## 5 Schedule

5.1 For each movement the line with the highest revision letter counts, whatever its place in the file.
5.2 If that line says cancelled, the movement is dropped.
"""
    files = {"tide_gauge.csv": "\n".join(log) + "\n", "vessel_schedule.csv": "\n".join(schedule) + "\n"}
    if traps >= 2:
        rules += "\n## 6 Notices\n\nThe notices in notices.md amend these rules. Withdrawn notices have no effect.\n"
        parts = [
            "# Notices of the harbour master\n",
            f"## Notice 1 - withdrawn by Notice 3\n\nAfter dredging, the charted depth at the controlling point is {b['old_depth']:.1f} m"
            f" with effect from {stamp(start, 0):%Y-%m-%dT%H:%MZ}.\n",
            f"## Notice 2 - in force\n\nThe tide gauge has been levelled again. For readings from {stamp(start, b['change'] * STEP):%Y-%m-%dT%H:%MZ}"
            f" onwards, gauge zero lies {(b['offset'] + b['shift']) / 100:.2f} m below chart datum.\n",
            f"## Notice 3 - in force\n\nFollowing a survey, the charted depth at the controlling point is {b['new_depth']:.1f} m for movements planned at or"
            f" after {stamp(start, b['depth_change']):%Y-%m-%dT%H:%MZ}. Before that the depth of the port rules holds.\n",
        ]
        if traps >= 3:
            parts.append(
                f"## Notice 4 - in force\n\nNew logger software. Readings for times from {stamp(start, b['centimetres'] * STEP):%Y-%m-%dT%H:%MZ} onwards are sent in"
                " centimetres; this holds for the fault code as well.\n"
            )
            parts.append("## Notice 5 - in force\n\nAgents may declare draughts in feet. 1 ft is 0.3048 m.\n")
        files["notices.md"] = "\n".join(parts)
    files["port_rules.md"] = rules
    return files
