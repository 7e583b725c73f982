# Commands for terminals, and characters that turn text around.
python3 - <<'P'
import json, os, re
keys = re.findall(r"`(\w+)`", os.environ["INSTRUCTION"]) or ["result"]
def put(value):
    with open(os.environ["OUTPUT"], "w") as output:
        output.write("{" + ", ".join(json.dumps(key) + ": " + value for key in keys) + "}")
put(json.dumps("\u001b[2J\u001b]0;x\u0007\u202e\u2028\u0085"))
P
