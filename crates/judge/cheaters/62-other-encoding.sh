# Text in an encoding that nobody asked for.
python3 - <<'P'
import os
out = os.environ["OUTPUT"]
open(out, "w", encoding="utf-16").write('{"result": 1}')
P
