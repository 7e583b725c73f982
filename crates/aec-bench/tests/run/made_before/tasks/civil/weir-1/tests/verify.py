import json
from pathlib import Path

try:
    found = json.loads(Path("/workspace/output.json").read_text())["flow_m3_s"]
except (OSError, ValueError, KeyError, TypeError):
    found = None
Path("/logs/verifier/reward.json").write_text(json.dumps({"reward": float(found == 3.217)}))
