# Texts that become numbers of every odd kind.
python3 - <<'P'
import json, os, re
keys = re.findall(r"`(\w+)`", os.environ["INSTRUCTION"]) or ["result"]
def put(value):
    with open(os.environ["OUTPUT"], "w") as output:
        output.write("{" + ", ".join(json.dumps(key) + ": " + value for key in keys) + "}")
odd = ["inf", "1e400", "nan", "0x10", "1_000", "\u0661\u0662"]
with open(os.environ["OUTPUT"], "w") as output:
    json.dump({key: odd[at % len(odd)] for at, key in enumerate(keys)}, output)
P
