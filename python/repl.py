"""A Python session inside a room: runs cells for the harness outside and asks it for everything that is not Python.

Its stdin is a socket: each message is a length of four bytes and that many bytes of JSON. Output of cells goes to stdout,
which the harness reads; a mark that the harness chose ends the output of each cell. The harness trusts nothing here: it
enforces the limits, and it stores everything that must outlive this process.
"""

import sys

# Nothing that the agent left in its directory may take the place of a module of this session.
OWN_DIRECTORY = [place for place in sys.path if not place]
sys.path = [place for place in sys.path if place]

import ast
import builtins
import concurrent.futures
import csv
import io
import json
import linecache
import os
import re
import signal
import socket
import struct
import threading
import traceback
import types

# The agent's own code finds its own modules.
sys.path = OWN_DIRECTORY + sys.path

MOST_VARIABLES = 200
PREVIEW = 200
LONGEST_MESSAGE = 64 * 1024 * 1024
# The name under which this code was compiled.
HERE = sys._getframe().f_code.co_filename


class Line:
    """The socket. Messages are written whole; each answer goes to the thread that waits for it."""

    def __init__(self, channel):
        self.channel = channel
        self.owner = os.getpid()
        self.writing = threading.Lock()
        self.waiting = {}
        self.count = 0
        self.orders = []
        self.arrived = threading.Condition()
        os.register_at_fork(after_in_child=self.abandon)

    def abandon(self):
        """Closes the socket in a fork of this process, which must not use it."""
        os.close(self.channel.detach())

    def send(self, message):
        data = json.dumps(message, default=str, allow_nan=False).encode("utf-8", "backslashreplace")
        if len(data) > LONGEST_MESSAGE:
            raise ValueError(f"{len(data)} bytes are more than can be handed over")
        with self.writing:
            self.channel.sendall(struct.pack(">I", len(data)) + data)

    def read(self, count):
        data = bytearray()
        while len(data) < count:
            piece = self.channel.recv(min(count - len(data), 1 << 20))
            if not piece:
                os._exit(0)
            data += piece
        return bytes(data)

    def receive(self):
        (length,) = struct.unpack(">I", self.read(4))
        return json.loads(self.read(length))

    def listen(self):
        while True:
            message = self.receive()
            kind = message["type"]
            if kind == "answer":
                waiting = self.waiting.pop(message["id"], None)
                if waiting is not None:
                    waiting[1] = message
                    waiting[0].set()
            elif kind == "interrupt":
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            else:
                with self.arrived:
                    self.orders.append(message)
                    self.arrived.notify()

    def next_order(self):
        with self.arrived:
            while not self.orders:
                self.arrived.wait()
            return self.orders.pop(0)

    def ask(self, name, arguments, parent=None):
        """Asks the harness and waits for its answer."""
        waiting = [threading.Event(), None]
        with self.writing:
            self.count += 1
            number = self.count
        self.waiting[number] = waiting
        try:
            self.send({"type": "call", "id": number, "name": name, "arguments": arguments, "parent": parent})
            waiting[0].wait()
        finally:
            self.waiting.pop(number, None)
        answer = waiting[1]
        if answer.get("error") is not None:
            raise CallError(answer["error"])
        return answer.get("value")


class CallError(RuntimeError):
    """What the harness refused, or what went wrong outside."""


class Result:
    """The answer of a sub-call. Its fields are attributes; a wrong name is told the right ones."""

    def __init__(self, fields):
        self.__dict__.update(fields)

    def __getattr__(self, name):
        have = ", ".join(sorted(self.__dict__)) or "nothing"
        raise AttributeError(f"there is no `{name}` here; this result has: {have}")

    def __getitem__(self, name):
        if name in self.__dict__:
            return self.__dict__[name]
        return getattr(self, str(name))

    def __repr__(self):
        inside = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"Result({inside})"


class ParallelError:
    """What went wrong with one of several calls."""

    def __init__(self, index, error):
        self.index, self.error = index, error

    def __repr__(self):
        return f"ParallelError(index={self.index}, error={self.error!r})"

    def __bool__(self):
        return False


class Report:
    """The report that the task wants, section by section. The harness holds it."""

    def __init__(self, session):
        self._session = session

    def __getattr__(self, name):
        have = "fill_section, get_status, get_section, get_writing_guidance, submit"
        raise AttributeError(f"the report has no `{name}`; it has {have}")

    def fill_section(self, section_id, content):
        return Result(self._session.ask("report_fill", {"id": section_id, "content": content}))

    def get_status(self):
        return self._session.ask("report_status", {})

    def get_section(self, section_id):
        return self._session.ask("report_section", {"id": section_id})

    def get_writing_guidance(self, section_id):
        return self._session.ask("report_section", {"id": section_id})["guidance"]

    def submit(self):
        return Result(self._session.ask("report_submit", {}))


class CallLog:
    """The sub-calls of this session, oldest first."""

    def __init__(self):
        self._entries = []

    def all(self):
        return list(self._entries)

    def last(self, count=1):
        return self._entries[-count:]

    def by_type(self, name):
        return [entry for entry in self._entries if entry["type"] == name]

    def __repr__(self):
        return f"<{len(self._entries)} sub-calls>"


class Session:
    """One namespace with the names of the harness in it."""

    def __init__(self, line):
        self.line = line
        self.names = {}
        self.space = {}
        self.depth = threading.local()
        self.log = CallLog()
        self.final = None
        self.workers = 1

    def ask(self, name, arguments):
        return self.line.ask(name, arguments, getattr(self.depth, "parent", None))

    def set_up(self, order):
        self.workers = order["workers"]
        help_text = order["help"]
        names = {
            "context": order["context"],
            "FINAL": self.finish,
            "FINAL_VAR": self.finish_with,
            "SHOW_VARS": self.show_variables,
            "HELP": lambda: print(help_text),
            "NOTE": lambda key, value: self.ask("note", {"key": str(key), "value": plain(value)}),
            "RECALL": lambda key=None: self.ask("recall", {"key": None if key is None else str(key)}),
            "grep": grep,
            "parallel": self.parallel,
            "SUBCALL_LOG": self.log,
        }
        for call in order["subcalls"]:
            names[call["name"]] = self.subcall(call)
        if order["report"]:
            names["report"] = Report(self)
            names["fill_parallel"] = self.fill_parallel
        if order["advisor"]:
            names["ADVISOR"] = self.advisor
        problems = []
        for custom in order["custom"]:
            try:
                names[custom["name"]] = self.custom(custom)
            except BaseException as error:
                problems.append(f"{custom['name']}: {describe(error)}")
        self.space = {"__name__": "__main__", "__builtins__": builtins}
        for given in order["inputs"]:
            try:
                self.space[given["name"]] = load(given)
            except BaseException as error:
                problems.append(f"{given['name']}: {describe(error)}")
        self.names = names
        self.restore()
        return problems

    def restore(self):
        self.space.update(self.names)

    def subcall(self, call):
        name, wanted = call["name"], call["parameters"]

        def asked(*arguments, **named):
            if len(arguments) > len(wanted):
                raise TypeError(f"{name}({', '.join(wanted)}) takes no more than {len(wanted)} arguments")
            given = dict(zip(wanted, arguments))
            for key, value in named.items():
                if key not in wanted:
                    raise TypeError(f"{name} has no argument `{key}`; it has {', '.join(wanted)}")
                if key in given:
                    raise TypeError(f"{name} got `{key}` twice")
                given[key] = value
            given = {key: plain(value) for key, value in given.items() if value is not None}
            result = Result(self.ask(name, given))
            self.log._entries.append({"type": name, "args": given, "result": result})
            return result

        asked.__name__ = name
        asked.__doc__ = call["description"]
        return asked

    def custom(self, custom):
        """A sub-call that the task implements. What it asks in turn is one deeper."""
        module = types.ModuleType(custom["name"])
        module.__file__ = custom["path"]
        module.ask_model = self.subcall({"name": "ask_model", "parameters": ["prompt", "system"], "description": ""})
        with open(custom["path"], "rb") as source:
            exec(compile(source.read(), custom["path"], "exec"), module.__dict__)
        function = getattr(module, custom["function"])

        def asked(*arguments, **named):
            number = self.ask("enter", {"name": custom["name"]})
            before = getattr(self.depth, "parent", None)
            self.depth.parent = number
            try:
                return function(*arguments, **named)
            finally:
                self.depth.parent = before

        asked.__name__ = custom["name"]
        return asked

    def parallel(self, callables, max_workers=None):
        """Calls several things at once; results in order, failures as ParallelError."""
        callables = list(callables)
        parent = getattr(self.depth, "parent", None)

        def call(function):
            self.depth.parent = parent
            return function()

        workers = max(1, min(int(max_workers or self.workers), self.workers, len(callables) or 1))
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(call, function) for function in callables]
            results = []
            for index, future in enumerate(futures):
                try:
                    results.append(future.result())
                except Exception as error:
                    results.append(ParallelError(index, describe(error)))
            return results

    def fill_parallel(self, generator, section_ids=None, max_workers=None):
        """Lets `generator(section_id)` write the open sections at once, then fills them one by one."""
        report = self.names["report"]
        wanted = list(section_ids or report.get_status()["unlocked"])
        written = self.parallel([lambda section=section: generator(section) for section in wanted], max_workers)
        filled = {}
        for section, content in zip(wanted, written):
            failed = isinstance(content, ParallelError)
            filled[section] = content if failed else report.fill_section(section, content)
        return filled

    def advisor(self, *, goal, problem, attempt=None):
        given = {"goal": plain(goal), "problem": plain(problem), "attempt": plain(attempt)}
        return Result(self.ask("advisor", given))

    def finish(self, value=None):
        """Ends the work. A value is the answer; without one it is what lies in the output file or was submitted."""
        self.final = {"value": plain(value)}

    def finish_with(self, name):
        """Ends the work with a variable, given by its name or itself."""
        if isinstance(name, str) and name in self.space and name not in self.names:
            return self.finish(self.space[name])
        return self.finish(name)

    def show_variables(self):
        shown = self.variables()
        for one in shown:
            print(f"{one['name']}: {one['type']}{one['size']} {one['preview']}")
        if not shown:
            print("There are no variables yet.")

    def variables(self):
        hidden = ("__name__", "__builtins__")
        own = [name for name in self.space if name not in hidden and name not in self.names]
        own = [name for name in own if not name.startswith("_")]
        own = [name for name in own if not isinstance(self.space[name], types.ModuleType)]
        return [describe_variable(name, self.space[name]) for name in sorted(own)[:MOST_VARIABLES]]

    def run(self, order):
        self.final = None
        source, name = order["code"], f"<cell {order['id']}>"
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        error = None
        try:
            self.execute(source, name)
        except BaseException as raised:
            error = {"kind": type(raised).__name__, "text": trace(raised)}
            if isinstance(raised, KeyboardInterrupt):
                error["kind"] = "Interrupted"
        # A late interrupt must not end the session.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if os.getpid() != self.line.owner:
            os._exit(0)
        self.restore()
        marked = self.mark(order["end"])
        done = {"type": "done", "id": order["id"], "error": error, "marked": marked, "final": self.final}
        try:
            done["variables"] = self.variables()
        except BaseException:
            done["variables"] = []
        self.line.send(done)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def execute(self, source, name):
        tree = ast.parse(source, name)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)
        exec(compile(tree, name, "exec"), self.space)
        if last is not None:
            value = eval(compile(last, name, "eval"), self.space)
            if value is not None:
                self.space["_"] = value
                print(repr(value))

    def mark(self, end):
        """Ends the output of a cell; false when it has closed its output."""
        try:
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except (OSError, ValueError, AttributeError):
                    pass
            data = end.encode()
            while data:
                data = data[os.write(1, data) :]
            return True
        except OSError:
            return False
        finally:
            sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__


def describe(error):
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def trace(error):
    """A traceback without the frames of the session itself."""
    told = traceback.TracebackException(type(error), error, error.__traceback__)
    own = [frame for frame in told.stack if frame.filename != HERE]
    if isinstance(error, SyntaxError) and not any(frame.filename.startswith("<cell") for frame in own):
        own = []
    told.stack = traceback.StackSummary.from_list(own)
    return "".join(told.format())


def plain(value):
    """A value as JSON has it."""
    try:
        return json.loads(json.dumps(value, allow_nan=False, default=as_plain))
    except (TypeError, ValueError, RecursionError):
        return str(value)


def as_plain(value):
    if isinstance(value, Result):
        return value.__dict__
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


def describe_variable(name, value):
    kind = type(value).__name__
    size, preview = "", ""
    if isinstance(value, (str, bytes, list, tuple, dict, set, frozenset)):
        size = f"[{len(value)}]"
    if isinstance(value, (str, bytes, int, float, bool, type(None))):
        preview = repr(value[: PREVIEW + 1] if isinstance(value, (str, bytes)) else value)
    elif isinstance(value, (list, tuple, dict)) and len(value) <= 50:
        try:
            preview = json.dumps(value, default=lambda other: f"<{type(other).__name__}>")
        except (TypeError, ValueError, RecursionError):
            preview = ""
    return {"name": name, "type": kind, "size": size, "preview": preview[:PREVIEW]}


def grep(text, pattern, context=3):
    """Lines of a text that match, each with the lines around it."""
    if not isinstance(text, str):
        text = "\n".join(str(line) for line in text) if isinstance(text, (list, tuple)) else str(text)
    lines = text.splitlines()
    found = [at for at, line in enumerate(lines) if re.search(pattern, line, re.IGNORECASE)]
    matching = set(found)
    shown = [f"{len(found)} match(es) for /{pattern}/:"]
    before = -1
    for at in found:
        begin, end = max(at - context, before + 1), min(at + context, len(lines) - 1)
        if begin > before + 1 and before >= 0:
            shown.append("--")
        for number in range(begin, end + 1):
            shown.append(f"{'>' if number in matching else ' '} {number + 1}: {lines[number]}")
        before = max(before, end)
    return "\n".join(shown)


def load(given):
    """An input of the task as the value that its type says; a directory as a dict of its files."""
    if os.path.isdir(given["path"]):
        files = {}
        for directory, _, names in sorted(os.walk(given["path"])):
            for name in sorted(names):
                path = os.path.join(directory, name)
                files[os.path.relpath(path, given["path"])] = load({**given, "path": path})
        return files
    with open(given["path"], "rb") as source:
        data = source.read()
    kind = given["kind"]
    if kind == "bytes":
        return data
    text = data.decode("utf-8-sig")
    if not given["pre_parse"]:
        return text
    if kind == "json":
        return json.loads(text)
    if kind == "toml":
        import tomllib

        return tomllib.loads(text)
    if kind == "csv":
        return list(csv.DictReader(io.StringIO(text)))
    return text.splitlines()


def main():
    channel = socket.socket(fileno=os.dup(0))
    os.set_inheritable(channel.fileno(), False)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    line = Line(channel)
    session = Session(line)
    threading.Thread(target=line.listen, daemon=True).start()
    while True:
        try:
            order = line.next_order()
        except KeyboardInterrupt:
            continue
        if order["type"] == "setup":
            problems = session.set_up(order)
            line.send({"type": "ready", "problems": problems})
        elif order["type"] == "cell":
            session.run(order)


if __name__ == "__main__":
    main()
