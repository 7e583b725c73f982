# A socket where the answer belongs.
python3 - <<'P'
import os
out = os.environ["OUTPUT"]
import socket
os.path.lexists(out) and os.remove(out)
os.chdir(os.path.dirname(out))
socket.socket(socket.AF_UNIX).bind(os.path.basename(out))
P
