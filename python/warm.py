"""A Python process that waits in a room and runs verifiers in forks of itself.

Its stdin is a socket. Each request is one line of JSON with the script to run; two descriptors come with it, for the
script's stdout and stderr. The answer is one line with the exit code, or minus the signal. The answer is "unfit" if
anything that a fork inherits has changed since the beginning; then this process runs nothing more.

A fork may start threads but no other process: the kernel ends it if it tries. So when a fork has ended, nothing of it
is left that could act on this process.
"""

import atexit
import ctypes
import json
import os
import resource
import signal
import socket
import sys
import threading
import traceback
import types

# Modules that verifiers import. Loading them here, once, makes verifiers fast.
import argparse, collections, csv, dataclasses, datetime, decimal, fractions, functools, io, itertools, math  # noqa
import pathlib, re, statistics, string, typing  # noqa

PRCTL = ctypes.CDLL(None, use_errno=True).prctl
PRCTL.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong]
LIMITS = sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})
# What a canary ends with: no script that failed ends like this by chance.
WELL = 77
# A verification whose result is known.
CANARY = """
import json, math, os, re
answer = json.loads('{"flow": 3.22, "note": "caf\\u00e9", "depth": [1.25, 0]}')
well = math.isclose(answer["flow"], 3.217, rel_tol=0.01) and not math.isclose(answer["flow"], 3.1, rel_tol=0.01)
well = well and re.findall("[a-z]+", answer["note"]) == ["caf"] and sum(answer["depth"]) == 1.25
well = well and json.dumps({"reward": 1 / 3}) == '{"reward": 0.3333333333333333}' and os.listdir("/workspace") == []
raise SystemExit(WELL if well else 1)
""".replace("WELL", str(WELL))


class Program(ctypes.Structure):
    """A filter of system calls, as the kernel takes it."""

    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


def keep_to_itself():
    """No fork of this process may read or change its memory."""
    PR_SET_DUMPABLE = 4
    PRCTL(PR_SET_DUMPABLE, 0, None, 0, 0)


def without_children(instructions):
    """Prepares a filter under which a process cannot start another one. Returns what installs it."""
    PR_SET_SECCOMP, SECCOMP_MODE_FILTER, SIZE = 22, 2, 8
    buffer = ctypes.create_string_buffer(instructions, len(instructions))
    program = Program(len(instructions) // SIZE, ctypes.cast(buffer, ctypes.c_void_p))

    def install():
        if PRCTL(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "no filter of system calls")

    install.keeps = buffer
    return install


def inherited():
    """What a fork inherits of this process and another process could change."""
    with open("/proc/self/status") as status:
        kept = ("Sig", "Shd", "Cap", "NoNewPrivs", "Seccomp", "Uid", "Gid", "Groups", "Umask", "Threads")
        status = [line for line in status if line.startswith(kept) and not line.startswith("SigQ")]
    with open("/proc/self/oom_score_adj") as score:
        score = score.read()
    limits = [resource.getrlimit(limit) for limit in LIMITS]
    priority = (os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), os.sched_getaffinity(0), score)
    return limits, priority, status, os.getcwd(), dict(os.environ)


def open_descriptors():
    # The one through which the directory is listed is closed when its name is looked up.
    return {int(name) for name in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{name}")}


def set_limits(limits):
    """Sets every limit anew, and checks it."""
    for limit, wanted in zip(LIMITS, limits):
        if resource.getrlimit(limit) != wanted:
            resource.setrlimit(limit, wanted)


def run_script(request):
    """Runs a script as `python3 SCRIPT` would, and returns the exit code."""
    script = request["script"]
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    sys.argv = [script]
    if request["script_directory_first"]:
        sys.path.insert(0, os.path.dirname(script))
    with open(script, "rb") as source:
        return run_source(source.read(), script)


def run_source(source, script):
    main = types.ModuleType("__main__")
    main.__file__ = script
    main.__builtins__ = __builtins__
    sys.modules["__main__"] = main
    code = 0
    try:
        exec(compile(source, script, "exec"), main.__dict__)
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            code = (stop.code or 0) & 0xFF
        else:
            print(stop.code, file=sys.stderr)
            code = 1
    except BaseException as error:
        # Without this process's own frame, as if the script had been started directly.
        trace = error.__traceback__.tb_next if error.__traceback__ else None
        traceback.print_exception(type(error), error, trace)
        code = 1
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        code = code or 120
    return code


def child(control, request, descriptors, limits, install):
    control.close()
    nothing = os.open("/dev/null", os.O_RDONLY)
    for number, descriptor in ((0, nothing), (1, descriptors[0]), (2, descriptors[1])):
        os.dup2(descriptor, number)
    for descriptor in (nothing, *descriptors):
        os.close(descriptor)
    os.setsid()
    sys.stdin = open(0, "r", closefd=False)
    sys.stdout = open(1, "w", closefd=False, encoding="utf-8")
    sys.stderr = open(2, "w", closefd=False, encoding="utf-8", errors="backslashreplace", buffering=1)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    set_limits(limits)
    install()
    os._exit(run_source(CANARY, "canary") if request.get("canary") else run_script(request))


def serve(control, install):
    before, open_before = inherited(), open_descriptors()
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 65536, 2)
        if not message:
            return
        if len(descriptors) != 2 or inherited() != before or open_descriptors() - set(descriptors) != open_before:
            control.sendall(b"unfit\n")
            return
        pid = os.fork()
        if pid == 0:
            try:
                child(control, json.loads(message), descriptors, before[0], install)
            finally:
                # Not the script failed. The opener takes this signal for an attempt to start a process.
                os.kill(os.getpid(), signal.SIGSYS)
        for descriptor in descriptors:
            os.close(descriptor)
        _, status = os.waitpid(pid, 0)
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
        control.sendall(b"%d\n" % code)


if __name__ == "__main__":
    keep_to_itself()
    # Descriptor 0 is the socket, which scripts must not be able to use.
    line = socket.socket(fileno=os.dup(0))
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    serve(line, without_children(bytes(json.loads(sys.argv.pop()))))
