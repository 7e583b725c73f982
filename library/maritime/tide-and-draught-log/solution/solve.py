"""Reference solution: reads only the files of the workspace."""

import csv
import json
import re
from bisect import bisect_left
from datetime import datetime, timedelta


def find(pattern, text):
    found = re.search(pattern, text)
    if not found:
        raise SystemExit("not found: " + pattern)
    return found.groups() if found.re.groups > 1 else found.group(1)


def utc(text):
    return datetime.strptime(text, "%Y-%m-%dT%H:%MZ")


rules = " ".join(open("port_rules.md").read().split())
hours = float(find(r"UTC \+ ([\d.]+) h", rules))
zero = float(find(r"Gauge zero lies ([\d.]+) m below", rules))
depth = float(find(r"charted depth at the controlling point is ([\d.]+) m", rules))
longest = float(find(r"more than ([\d.]+) minutes", rules))
limit = float(find(r"limited to ([\d.]+) knots", rules))
least, share = map(float, find(r"larger of ([\d.]+) m and ([\d.]+) %", rules))
new_zero = new_depth = centimetres = None
if "notices.md" in rules:
    for block in open("notices.md").read().split("## ")[1:]:
        block = " ".join(block.split())
        if "in force" not in block:
            continue
        when = re.search(r"\d{4}-\d\d-\d\dT\d\d:\d\dZ", block)
        if "gauge zero" in block:
            new_zero = (utc(when.group()), float(find(r"lies ([\d.]+) m below", block)))
        elif "charted depth" in block:
            new_depth = (utc(when.group()), float(find(r"controlling point is ([\d.]+) m", block)))
        elif "centimetres" in block:
            centimetres = utc(when.group())

readings = {}
for row in csv.DictReader(open("tide_gauge.csv")):
    time = utc(row["time_utc"])
    value = float(row["reading"])
    if centimetres and time >= centimetres:
        value /= 100
    # A later line replaces an earlier one, so keep the last and judge it afterwards.
    readings[time] = (value, row["quality"])
tides = {}
for time, (value, quality) in readings.items():
    if quality == "G" and abs(value + 9.99) > 1e-6:
        tides[time] = value - (new_zero[1] if new_zero and time >= new_zero[0] else zero)
times = sorted(tides)


def tide_at(time):
    if time in tides:
        return tides[time]
    place = bisect_left(times, time)
    a, b = times[place - 1], times[place]
    if (b - a).total_seconds() / 60 > longest:
        return None
    return tides[a] + (tides[b] - tides[a]) * ((time - a) / (b - a))


latest = {}
for row in csv.DictReader(open("vessel_schedule.csv")):
    if row["movement"] not in latest or row["revision"] > latest[row["movement"]]["revision"]:
        latest[row["movement"]] = row
live = {name: row for name, row in sorted(latest.items()) if row["status"] == "planned"}

table, margins, squats, needs = [], {}, {}, {}
for name, row in live.items():
    time = datetime.strptime(row["planned_local"], "%Y-%m-%d %H:%M") - timedelta(hours=hours)
    draught = float(row["draught"]) * {"m": 1, "ft": 0.3048}[row["draught_unit"]]
    tide = tide_at(time)
    if tide is None:
        continue
    here = new_depth[1] if new_depth and time >= new_depth[0] else depth
    squat = float(row["block_coefficient"]) * min(float(row["speed_knots"]), limit) ** 2 / 100
    required = max(least, share / 100 * draught)
    net = here + tide - draught - squat
    table.append({"movement": name, "tide_m": tide, "net_clearance_m": net})
    margins[name], squats[name] = net - required, squat
    needs[name] = draught + squat + required - here

critical = min(margins, key=margins.get)
json.dump(
    {
        "valid_readings": len(tides),
        "highest_tide_m": max(tides.values()),
        "mean_tide_m": sum(tides.values()) / len(tides),
        "longest_interval_min": round(max((b - a).total_seconds() for a, b in zip(times, times[1:])) / 60),
        "live_movements": len(live),
        "not_assessable": len(live) - len(table),
        "refused_movements": sum(m < 0 for m in margins.values()),
        "least_margin_m": margins[critical],
        "critical_movement": critical,
        "critical_squat_m": squats[critical],
        "tide_needed_m": needs[critical],
        "clearances": table,
    },
    open("output.json", "w"),
    indent=1,
)
