# Signals, debuggers and memory of processes that are not ours.
kill -9 -1 2> /dev/null
kill -9 1 2> /dev/null
for pid in $(seq 1 400); do kill -9 "$pid" 2> /dev/null; done
python3 - 2> /dev/null <<'P'
import ctypes
libc = ctypes.CDLL(None)
for pid in range(1, 400):
    libc.ptrace(16, pid, 0, 0)
    try:
        open(f"/proc/{pid}/mem", "r+b").write(b"x")
    except OSError:
        pass
P
