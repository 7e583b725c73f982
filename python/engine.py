"""A Python process that waits in a room and runs the engines of templates in forks of itself.

Its stdin is a socket. A request is one JSON text with its length in front; so is the answer. A request has the modules of
one template and a list of calls; for every call the answer has a result or the reason why there is none.
"""

import ctypes
import importlib.abc
import importlib.util
import inspect
import json
import os
import resource
import signal
import socket
import struct
import sys

# Modules that engines import. Loading them here, once, makes engines fast.
import bisect, collections, csv, dataclasses, datetime, decimal, fractions, functools, io, itertools, math  # noqa
import random, re, statistics, string, textwrap, typing  # noqa


def keep_to_itself():
    """No fork of this process may read or change its memory."""
    PR_SET_DUMPABLE = 4
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


class Modules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The modules of a template, from memory."""

    def __init__(self, sources):
        self.sources = sources

    def find_spec(self, name, path=None, target=None):
        if f"{name}.py" in self.sources:
            return importlib.util.spec_from_loader(name, self, origin=f"{name}.py")
        return None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name = f"{module.__name__}.py"
        module.__file__ = name
        exec(compile(self.sources[name], name, "exec"), module.__dict__)


class TooSlow(BaseException):
    """A call took longer than it may. Not an Exception, so that engines do not catch it by accident."""


def late(signum, frame):
    raise TooSlow


def reason(error):
    """An exception in one line, with the line of the engine it came from."""
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "engine.py":
            line = trace.tb_lineno
        trace = trace.tb_next
    text = " ".join(str(error).split())[:300]
    where = f" (engine.py, line {line})" if line else ""
    return f"{type(error).__name__}: {text}{where}"


def describe(engine):
    """The engine's parameters and hooks, without calling it."""
    parameters = inspect.signature(engine.compute).parameters.values()
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {
        "parameters": [p.name for p in parameters if p.kind in named],
        "defaults": [p.name for p in parameters if p.kind in named and p.default is not p.empty],
        "any_keyword": any(p.kind is p.VAR_KEYWORD for p in parameters),
        "hooks": [
            name
            for name in ("build_sources", "build_golden_pass", "build_golden_fail")
            if callable(getattr(engine, name, None))
        ],
    }


def call(engine, request):
    kind = request["call"]
    if kind == "describe":
        return describe(engine)
    if kind == "compute":
        result = engine.compute(**request["params"])
        if not isinstance(result, dict):
            raise TypeError(f"compute returned {type(result).__name__}, not a dictionary")
        return result
    if kind == "build_sources":
        return {str(path): str(text) for path, text in engine.build_sources(dict(request["params"])).items()}
    return str(getattr(engine, kind)(dict(request["params"]), dict(request["answers"])))


def answer(request):
    sys.meta_path.insert(0, Modules(request["modules"]))
    signal.signal(signal.SIGALRM, late)
    seconds = request["seconds"]
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        engine = importlib.import_module("engine")
        if not callable(getattr(engine, "compute", None)):
            raise AttributeError("it has no function `compute`")
    except TooSlow:
        return {"fault": f"importing it took more than {seconds} s"}
    except BaseException as error:
        return {"fault": reason(error)}
    results = []
    for one in request["calls"]:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            result = call(engine, one)
            # Checked here, where the reason is known: an answer must be JSON.
            json.dumps(result, allow_nan=False)
            results.append({"result": result})
        except TooSlow:
            results.append({"late": f"it took more than {seconds} s"})
        except ValueError as error:
            results.append({"refused": reason(error)})
        except BaseException as error:
            results.append({"fault": reason(error)})
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    return {"results": results}


def bind():
    """Sets limits: an engine may start no processes and write no files, so it leaves nothing for the next one."""
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def child(control, pipe, message):
    control.close()
    nothing = os.open("/dev/null", os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    bind()
    request = json.loads(message)
    data = json.dumps(answer(request), allow_nan=False).encode()
    with open(pipe, "wb") as stream:
        stream.write(data)
    os._exit(0)


def receive(control, count):
    data = bytearray()
    while len(data) < count:
        piece = control.recv(min(count - len(data), 1 << 20))
        if not piece:
            sys.exit(0)
        data += piece
    return bytes(data)


def serve(control):
    while True:
        (size,) = struct.unpack("<Q", receive(control, 8))
        message = receive(control, size)
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            try:
                child(control, writer, message)
            finally:
                os._exit(1)
        os.close(writer)
        with open(reader, "rb") as stream:
            data = stream.read()
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status):
            data = json.dumps({"fault": f"it was ended by signal {os.WTERMSIG(status)}"}).encode()
        elif os.WEXITSTATUS(status) != 0 or not data:
            data = json.dumps({"fault": "it ended without an answer"}).encode()
        control.sendall(struct.pack("<Q", len(data)) + data)


if __name__ == "__main__":
    keep_to_itself()
    line = socket.socket(fileno=os.dup(0))
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    serve(line)
