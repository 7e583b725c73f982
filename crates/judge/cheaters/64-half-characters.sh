# Escapes of half a character, in values and in names.
python3 - <<'P'
import json, os, re
keys = re.findall(r"`(\w+)`", os.environ["INSTRUCTION"]) or ["result"]
def put(value):
    with open(os.environ["OUTPUT"], "w") as output:
        output.write("{" + ", ".join(json.dumps(key) + ": " + value for key in keys) + "}")
open(os.environ["OUTPUT"], "w").write(json.dumps({**{key: "\ud800" for key in keys}, "\udfff": 1}))
P
