"""Reference solution: reads the four files of the current directory and writes output.json."""

import csv
import json
import math
import re
from datetime import datetime, timedelta
from pathlib import Path

mail = Path("correspondence.txt").read_text(encoding="utf-8")
messages = []
for block in re.split(r"(?m)^Date: ", mail)[1:]:
    stamp, text = block.split("\n", 1)
    messages.append((datetime.strptime(stamp.strip(), "%Y-%m-%d %H:%M"), " ".join(text.split())))
messages.sort()
issued = true_primary = set_primary = reset = None
for _, text in messages:
    for pattern in (r"[Rr]evision ([A-D]) is the one issued", r"Revision ([A-D]) of the load schedule is now issued"):
        if found := re.search(pattern, text):
            issued = found[1]
    if found := re.search(r"(?:programmed for current transformers of|indeed set to) (\d+)/5 A", text):
        set_primary = int(found[1])
    if found := re.search(r"(?:those in the board are|plates say) (\d+)/5 A", text):
        true_primary = int(found[1])
    if found := re.search(r"ends on (\d{4}-\d\d-\d\d) at (\d\d:\d\d)", text):
        reset = datetime.strptime(found[1] + " " + found[2], "%Y-%m-%d %H:%M")
scale = true_primary / set_primary

spec = Path("specification.md").read_text(encoding="utf-8")
status = {int(n): s for n, s in re.findall(r"(?m)^\| (\d+) \| (accepted|rejected[^|]*) \|$", spec)}


def settle(match):
    old, new, number = match[1], match[2], int(match[3])
    return new if status[number] == "accepted" else old


clean = re.sub(r"~~(.+?)~~ \*\*(.+?)\*\* \(amendment (\d+)\)", settle, spec)
diversity = {c: float(f) for c, f in re.findall(r"(?m)^\| ([A-Z]{3}) \|[^|]*\| ([\d.]+) \|$", clean)}
margin = float(re.search(r"increased by (\d+) %", clean)[1]) / 100
limit = float(re.search(r"not exceed (\d+) %", clean)[1]) / 100
voltage = float(re.search(r"supply, ([\d.]+) V", clean)[1])
ratings = [int(n) for n in re.search(r"Standard ratings: ([\d, ]+) A", clean)[1].split(",")]

items = {}
with open("load_schedule.csv", newline="", encoding="utf-8") as file:
    for row in csv.DictReader(file):
        if row["revision"] > issued:
            continue
        if row["tag"] not in items or items[row["tag"]]["revision"] < row["revision"]:
            items[row["tag"]] = row
excluded = sorted(t for t, r in items.items() if re.search("deleted|standby|by others", r["remark"]))
boards = {}
p = q = connected = 0.0
for tag in sorted(items):
    if tag in excluded:
        continue
    row = items[tag]
    pf = float(row["power_factor"])
    kw = float(row["rating"]) * int(row["quantity"])
    kw *= {"kW": 1, "W": 1e-3, "kVA": pf, "hp": 0.7457}[row["unit"]]
    if row["basis"] == "shaft":
        kw *= 100 / float(row["efficiency_percent"])
    part = kw * diversity[row["category"]]
    connected += kw
    p += part
    q += part * math.sqrt(1 / pf**2 - 1)
    board = boards.setdefault(row["section"], {"section": row["section"], "connected_kw": 0.0, "demand_kw": 0.0})
    board["connected_kw"] += kw
    board["demand_kw"] += part

good = {}
with open("metering_log.csv", newline="", encoding="utf-8") as file:
    for row in csv.DictReader(file):
        if row["status"] != "OK" or not row["kW"]:
            continue
        kw = float(row["kW"])
        if 0 <= kw < 9000:
            when = datetime.strptime(row["end_of_interval"], "%Y-%m-%d %H:%M")
            good[when] = (kw if reset and when >= reset else kw * scale, float(row["power_factor"]))
highest = max(value for value, _ in good.values())
peak_time = min(when for when, (value, _) in good.items() if highest - value < 1e-6)
top = good[peak_time][0]
peak_pf = good[peak_time][1]
half = timedelta(minutes=30)
known = sorted(good)
energy, now = 0.0, known[0]
while now <= known[-1]:
    if now in good:
        kw = good[now][0]
    else:
        before = max(t for t in known if t < now)
        after = min(t for t in known if t > now)
        weight = (now - before) / (after - before)
        kw = good[before][0] * (1 - weight) + good[after][0] * weight
    energy += kw * 0.5
    now += half

active = p * (1 + margin) + top
reactive = q * (1 + margin) + top * math.sqrt(1 / peak_pf**2 - 1)
apparent = math.sqrt(active**2 + reactive**2)
current = apparent * 1000 / math.sqrt(3) / voltage
answer = {
    "counted_items": len(items) - len(excluded),
    "connected_load_kw": connected,
    "diversified_demand_kw": p,
    "diversified_demand_kvar": q,
    "valid_readings": len(good),
    "metered_peak_kw": top,
    "metered_peak_time": peak_time.strftime("%Y-%m-%d %H:%M"),
    "metered_energy_kwh": energy,
    "total_demand_kva": apparent,
    "design_current_a": current,
    "main_breaker_a": min(r for r in ratings if r * limit >= current),
    "excluded_tags": excluded,
    "section_demands": [boards[name] for name in sorted(boards)],
}
Path("output.json").write_text(json.dumps(answer, indent=1), encoding="utf-8")
