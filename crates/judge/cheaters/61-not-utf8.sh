# Bytes that are no text.
python3 - <<'P'
import os
out = os.environ["OUTPUT"]
open(out, "wb").write(b'{"result": "\xff\xfe\x80"}' + bytes(range(256)))
P
