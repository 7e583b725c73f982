"""A Python process that waits in a room and runs verifiers in forks of itself.

Its stdin is a socket. Each request is one line of JSON with the script to run; two descriptors come with it, for the
script's stdout and stderr. The answer is one line with the exit code, or minus the signal.
"""

import atexit
import ctypes
import json
import os
import socket
import sys
import threading
import traceback
import types

# Modules that verifiers import. Loading them here, once, makes verifiers fast.
import argparse, collections, csv, dataclasses, datetime, decimal, fractions, functools, io, itertools, math  # noqa
import pathlib, re, statistics, string, typing  # noqa


def keep_to_itself():
    """No fork of this process may read or change its memory."""
    PR_SET_DUMPABLE = 4
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def run_script(request):
    """Runs a script as `python3 SCRIPT` would, and returns the exit code."""
    script = request["script"]
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    sys.argv = [script]
    if request["script_directory_first"]:
        sys.path.insert(0, os.path.dirname(script))
    main = types.ModuleType("__main__")
    main.__file__ = script
    main.__builtins__ = __builtins__
    sys.modules["__main__"] = main
    code = 0
    try:
        with open(script, "rb") as source:
            compiled = compile(source.read(), script, "exec")
        exec(compiled, main.__dict__)
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


def child(control, request, descriptors):
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
    os._exit(run_script(request))


def serve(control):
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 65536, 2)
        if not message:
            return
        pid = os.fork()
        if pid == 0:
            child(control, json.loads(message), descriptors)
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
    serve(line)
