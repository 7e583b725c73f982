# Text that makes patterns go back and forth for ever.
python3 - <<'P'
import os
out = os.environ["OUTPUT"]
open(out, "w").write("a" * 60000 + "!\n" + "|" * 100000 + "\n" + "-|" * 100000 + "\n" + "(" * 100000)
P
