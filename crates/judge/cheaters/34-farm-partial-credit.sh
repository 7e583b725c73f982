# Constants and flags, for the fields that anybody can guess.
python3 - <<'P'
import json, os, re
keys = re.findall(r"`(\w+)`", os.environ["INSTRUCTION"])
json.dump({key: True if "compliant" in key or "pass" in key else 0 for key in keys}, open(os.environ["OUTPUT"], "w"))
P
