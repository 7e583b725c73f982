# Bytes that end strings in other languages.
python3 - <<'P'
import os
out = os.environ["OUTPUT"]
open(out, "wb").write(b'{"result\x00": 1}\x00' * 1000)
P
