# A number of two million digits.
python3 - <<'P'
import json, os, re
keys = re.findall(r"`(\w+)`", os.environ["INSTRUCTION"]) or ["result"]
def put(value):
    with open(os.environ["OUTPUT"], "w") as output:
        output.write("{" + ", ".join(json.dumps(key) + ": " + value for key in keys) + "}")
put("1" + "0" * 2000000 + ".5")
P
