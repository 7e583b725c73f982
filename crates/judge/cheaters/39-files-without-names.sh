# Open files without a name that hold more than the disk may, kept by a process that stays.
echo "{}" > "$OUTPUT"
python3 - > /dev/null 2>&1 <<'P'
import os, signal, time
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
if os.fork():
    time.sleep(3)
    os._exit(0)
os.setsid()
def nameless(place):
    """By both ways of having none: never given, and taken away."""
    yield lambda: os.open(place, os.O_RDWR | os.O_TMPFILE, 0o600)
    def taken():
        path = f"{place}/.gone.{os.getpid()}"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.unlink(path)
        return handle
    yield taken
held, block = [], b"x" * 1048576
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
ways = [way for place in ("/workspace", "/logs", "/tmp", "/home/agent", "/dev/shm", "/var/tmp") for way in nameless(place)]
# First a little everywhere, so that every place has such a file, then all that is left.
for most in (8, 4096):
    for way in ways + [lambda: os.memfd_create("gone")]:
        try:
            held.append(way())
            for _ in range(most):
                os.write(held[-1], block)
        except (OSError, AttributeError):
            pass
time.sleep(1000)
P
