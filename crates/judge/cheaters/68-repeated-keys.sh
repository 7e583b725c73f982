# One name a hundred thousand times, with another value each time.
python3 - <<'P'
import json, os, re
keys = re.findall(r"`(\w+)`", os.environ["INSTRUCTION"]) or ["result"]
def put(value):
    with open(os.environ["OUTPUT"], "w") as output:
        output.write("{" + ", ".join(json.dumps(key) + ": " + value for key in keys) + "}")
open(os.environ["OUTPUT"], "w").write("{" + ",".join(f'"{keys[0]}": {n}' for n in range(100000)) + "}")
P
