# Take resources from the first process of the room, so that the room ends and the attempt is repeated.
python3 - <<'P'
import os
out = os.environ["OUTPUT"]
import resource, signal
kinds = [resource.RLIMIT_NOFILE, resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU]
for pid in (1, 2, 3, os.getppid()):
    for kind in kinds:
        try:
            resource.prlimit(pid, kind, (0, 0))
        except (OSError, ValueError):
            pass
for kind in (signal.SIGSTOP, signal.SIGKILL):
    try:
        os.kill(1, kind)
    except OSError:
        pass
P
