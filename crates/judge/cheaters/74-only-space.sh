# Forty million spaces.
python3 - <<'P'
import os
out = os.environ["OUTPUT"]
open(out, "w").write(" " * 40000000)
P
