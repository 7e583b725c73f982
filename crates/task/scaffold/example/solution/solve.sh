#!/usr/bin/env bash
# The reference solution: leaves the right answer where the instruction asks for it.
set -euo pipefail
python3 - <<'PYTHON'
import csv, json

current, length, voltage, limit = 63, 85, 400, 2.5
with open("/workspace/cables.csv", newline="", encoding="utf-8") as sheet:
    for row in csv.DictReader(sheet):
        drop = current * length * float(row["voltage_drop_mv_per_a_m"]) / 1000
        percent = 100 * drop / voltage
        if percent <= limit:
            break
answer = {
    "cable_size_mm2": int(row["size_mm2"]),
    "voltage_drop_v": round(drop, 4),
    "voltage_drop_percent": round(percent, 4),
}
with open("/workspace/output.json", "w", encoding="utf-8") as output:
    json.dump(answer, output)
PYTHON
