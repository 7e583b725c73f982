# A number that is nearly nothing, and a zero with a sign.
python3 - <<'P'
import json, os, re
keys = re.findall(r"`(\w+)`", os.environ["INSTRUCTION"]) or ["result"]
def put(value):
    with open(os.environ["OUTPUT"], "w") as output:
        output.write("{" + ", ".join(json.dumps(key) + ": " + value for key in keys) + "}")
put("-1e-999999")
P
