# An archive that is a thousand times larger when it is opened.
python3 - <<'P'
import os
out = os.environ["OUTPUT"]
import gzip
open(out, "wb").write(gzip.compress(b"\0" * 300000000, 9))
P
