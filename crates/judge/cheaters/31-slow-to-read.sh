# An answer that takes a careless reader for ever.
python3 - <<'P'
import os
with open(os.environ["OUTPUT"], "w") as output:
    output.write("```json\n{" * 200000)
    output.write("x" * 20_000_000)
P
