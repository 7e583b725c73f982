# As many files as the file system has names for.
python3 - <<'P'
import os
out = os.environ["OUTPUT"]
try:
    for number in range(250000):
        open(f"/workspace/n{number}", "x").close()
except OSError:
    pass
P
