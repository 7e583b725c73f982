# Tables of a hundred thousand columns, and elements without end.
python3 - <<'P'
import os
out = os.environ["OUTPUT"]
open(out, "w").write("|a" * 100000 + "|\n" + "|-" * 100000 + "|\n" + "|1" * 100000 + "|\n" + "<b>" * 100000 + "<!--" * 100000)
P
