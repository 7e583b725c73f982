"""Reads ground levels and rock depths from the logs, then the corrections."""

import json
import pathlib
import re

found = {}
for log in sorted(pathlib.Path("logs").glob("*.md")):
    text = log.read_text()
    found[f"{log.stem}_ground_level_m"] = float(re.search(r"Ground level: ([\d.]+)", text).group(1))
    found[f"{log.stem}_rock_depth_m"] = float(re.search(r"\| ([\d.]+) \| [\d.]+ \| sandstone", text).group(1))
corrections = pathlib.Path("corrections.md").read_text()
for number, depth in re.findall(r"borehole (\d).*?top of rock is at ([\d.]+) m", corrections, re.DOTALL):
    found[f"bh{number}_rock_depth_m"] = float(depth)
pathlib.Path("output.json").write_text(json.dumps(found))
