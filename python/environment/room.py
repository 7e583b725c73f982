"""Rooms, in which commands of a policy and verifiers run, isolated from this machine, the package and each other.

`launcher.py` works inside the room; this module works outside: it decides what a room sees, enforces time limits and
collects output.
"""

from __future__ import annotations

import asyncio
import fcntl
import glob
import json
import os
import subprocess
import sys
import tempfile
import time
import weakref
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .core import DIRECTORY, Limits, PackageError

ROOM_ID = 64999
# Tests set this variable to simulate machines that permit no namespaces.
SWITCH = "AEC_BENCH_TEST_NO_NAMESPACES"
# What rooms show of the host, if it is there: programs, libraries, headers and shared data, not /usr/local or /usr/src.
SYSTEM = (
    *("/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin"),
    *("/usr/bin", "/usr/include", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/libx32", "/usr/sbin"),
    "/usr/share",
)
CONFIGURATION = ("/etc/alternatives", "/etc/ld.so.cache")
PACKAGES = ("site-packages", "dist-packages")
# A directory that holds one of these is a package, or a project.
MARKS = ("tasks.json", "aec-bench.toml")
# Paths of a room that never show the host's files.
REPLACED = ("/dev", "/etc", "/home/agent", "/logs", "/proc", "/run", "/tests", "/tmp", "/workspace")
LAUNCHER = str(DIRECTORY / "launcher.py")
PROCESSES = 512
OPEN_FILES = 1024
SCRATCH_MB = 256
KEPT_OUTPUT = 16 * 1024
# Environment variables of a policy's commands: as few as in the rooms of this project's own harnesses.
POLICY_ENVIRONMENT = ("PATH", "HOME", "LANG")
WATCH_SECONDS = 1.0
END_SECONDS = 10.0
LOCK_SECONDS = 20.0
MEBIBYTE = 1024 * 1024
# Most entries counted when a directory is measured; a room with more is over its limit.
MOST_ENTRIES = 200_000


class RoomError(RuntimeError):
    """A command could not be run at all. That is this machine's fault, never the policy's."""


class WorkEnded(Exception):
    """The policy's work has ended, so that nothing may change what it left."""

    def __init__(self) -> None:
        super().__init__("the time for this work is over")


@dataclass(frozen=True)
class Outcome:
    """How a command ended. `stopped` says why it was killed, if it was; `timed_out` is the time limit that it reached."""

    exit_code: int | None
    stdout: Captured
    stderr: Captured
    stopped: str | None
    timed_out: float | None

    @property
    def output(self) -> str:
        """The beginning and the end of both streams."""
        return (self.stdout.whole() + self.stderr.whole()).decode(errors="replace")


@dataclass(frozen=True)
class Command:
    """A command and the room that it runs in.

    `binds` are (directory of the host, path in the room, "rw" or "ro"); `root` is an empty directory on which the
    room is built. With a `holder` (see `Store`), the directories of `binds` are as that process sees them. The files
    below `watched` count against the storage limit. The `lock` is held while any process is left, and the command runs
    only while the file `open` exists. `home` is for commands without a room. The first `kept` bytes of each stream are
    kept, and as many at its end. Commands of a `policy` have fewer variables in their environment than verifiers.
    """

    argv: tuple[str, ...]
    cwd: str
    timeout_sec: float
    limits: Limits
    binds: tuple[tuple[str, str, str], ...] = ()
    root: str = ""
    holder: int | None = None
    watched: tuple[str, ...] = ()
    lock: str | None = None
    open: str | None = None
    home: str = "/nonexistent"
    kept: int = KEPT_OUTPUT
    policy: bool = False


@cache
def namespaces() -> tuple[str | None, str]:
    """How rooms can be made on this machine, as `root` or as an ordinary `user`, or else why they cannot."""
    if os.environ.get(SWITCH):
        return None, f"switched off by {SWITCH}"
    if sys.platform != "linux":
        return None, "they exist on Linux only"
    prefix = interpreter()[1]
    if prefix == "/" or any(_below(prefix, place) for place in REPLACED):
        return None, f"the Python of this process lies in {prefix}, which rooms have as their own"
    if not _filters():
        return None, f"packages have no filter of system calls for the processor {os.uname().machine}"
    reason = ""
    for mode in ("root", "user") if os.geteuid() == 0 else ("user",):
        with tempfile.TemporaryDirectory(prefix="aec-bench-probe-") as root:
            probe = Command(("true",), "/", 10.0, Limits(1, None, 10.0, 10.0, 10.0, 1, 1024, 1024), root=root)
            reason = _probe(_spec(probe, mode))
        if not reason:
            return mode, ""
    return None, reason


def _probe(spec: dict[str, Any]) -> str:
    """Why a room cannot be made; empty if it can."""
    status, say = os.pipe()
    try:
        done = subprocess.run(
            _launcher_argv(say),
            input=_line(spec),
            pass_fds=(say,),
            env={},
            capture_output=True,
            timeout=20,
            start_new_session=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    finally:
        os.close(say)
        with os.fdopen(status, "rb") as file:
            message = file.read()
    said = (
        json.loads(message.splitlines()[0])
        if message
        else {"error": done.stderr.decode(errors="replace").strip()[-200:]}
    )
    return said.get("error", "" if said.get("exit") == 0 else "a command in a room did not run")


def isolation(confinement: str, needed_by: str | None) -> str:
    """`namespaces`, `none`, or `unneeded` when nothing that is run needs a room.

    `needed_by` says what needs a room. Raises PackageError if the requested confinement is not possible.
    """
    if confinement == "none":
        return "none"
    if needed_by is None and confinement == "auto":
        return "unneeded"
    mode, reason = namespaces()
    if mode is not None:
        return "unneeded" if needed_by is None else "namespaces"
    what = needed_by or "confinement is `required`"
    raise PackageError(
        f"{what}, and this machine permits no namespaces to confine it ({reason}). Use a Linux machine or container "
        "that permits them (root with CAP_SYS_ADMIN, or unprivileged user namespaces), or accept that commands run "
        'on this machine itself with confinement="none"'
    )


def owner() -> int | None:
    """The user who must own directories of rooms, if it is not this one."""
    return ROOM_ID if namespaces()[0] == "root" else None


@cache
def interpreter() -> tuple[str, str]:
    """The Python for rooms, and its prefix: the base interpreter of this environment, without its packages."""
    names = (f"python{sys.version_info.major}.{sys.version_info.minor}", "python3", "python")
    for name in names:
        path = os.path.join(sys.base_prefix, "bin", name)
        if os.access(path, os.X_OK):
            return os.path.realpath(path), os.path.realpath(sys.base_prefix)
    return os.path.realpath(sys.executable), os.path.realpath(sys.base_prefix)


@cache
def library() -> tuple[str, ...]:
    """The standard library of the interpreter, and the shared objects outside the system's directories that it needs."""
    try:
        done = subprocess.run(
            [interpreter()[0], "-I", "-S", "-B", str(DIRECTORY / "interpreter.py")],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={},
            timeout=20,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise RoomError(f"the interpreter of rooms does not work: {error}") from error
    told = (line.partition(" ") for line in done.stdout.decode(errors="surrogateescape").splitlines())
    return tuple(value for word, _, value in told if word in ("library", "object"))


@cache
def _view() -> tuple[tuple[str, str], ...]:
    """What rooms see of the host: ("show", path) and ("cover", path), directories before what is inside of them.

    Packages that are installed for an interpreter are covered, because some have answers; so is this one.
    """
    shown = {*SYSTEM, *CONFIGURATION, interpreter()[0], *library()}
    hidden = {str(DIRECTORY), os.path.realpath(os.path.expanduser("~")), os.path.realpath(tempfile.gettempdir())}
    for root in filter(os.path.isdir, (*library(), *glob.glob("/usr/lib*/py*"))):
        hidden.update(os.path.join(root, name) for name in PACKAGES)
    hidden.update(str(place) for place in DIRECTORY.parents if (place / MARKS[1]).is_file())
    for place in {str(DIRECTORY.parent), *shown}:
        # Packages beside this one, and wherever else they, or projects, may have been put.
        for mark in MARKS:
            hidden.update(map(os.path.dirname, glob.glob(f"{glob.escape(place)}/*/{mark}")))
    covered = {path for path in hidden - shown if any(_below(path, root) for root in shown)}
    parts: list[tuple[str, str]] = []
    for path in sorted(shown | covered, key=lambda path: path.split("/")):
        what = "cover" if path in covered else "show"
        around = next((one for one, place in reversed(parts) if _below(path, place)), "cover")
        # Inside of what is shown nothing needs to be shown, and likewise for what is covered.
        if what != around:
            parts.append((what, path))
    return tuple(parts)


@cache
def _filters() -> tuple[str, ...]:
    """The filters of system calls for this processor (`filter.json`): the same that this project's own rooms have."""
    return tuple(json.loads((DIRECTORY / "filter.json").read_bytes()).get(os.uname().machine, ()))


def _below(path: str, root: str) -> bool:
    return os.path.commonpath((path, root)) == root


def environment(programs: str = "/run/aec-bench/bin", home: str = "/home/agent") -> dict[str, str]:
    """The whole environment of commands and verifiers."""
    return {
        "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin",
        "HOME": home,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
    }


def _spec(command: Command, mode: str) -> dict[str, Any]:
    limits = command.limits
    return {
        "mode": mode,
        "holder": command.holder,
        "argv": command.argv,
        "cwd": command.cwd,
        "env": {
            name: value
            for name, value in (
                environment(os.path.dirname(interpreter()[0]), command.home) if mode == "host" else environment()
            ).items()
            if name in POLICY_ENVIRONMENT or not command.policy
        },
        "root": command.root,
        "binds": command.binds,
        "view": () if mode == "host" else _view(),
        "filter": () if mode == "host" else _filters(),
        "programs": {name: interpreter()[0] for name in ("python3", "python")},
        "scratch_mb": SCRATCH_MB,
        "limits": {
            "RLIMIT_AS": limits.memory_mb * MEBIBYTE,
            "RLIMIT_FSIZE": limits.storage_mb * MEBIBYTE,
            "RLIMIT_CPU": int(command.timeout_sec * max(limits.cpus, 1)) + 1,
            "RLIMIT_NOFILE": OPEN_FILES,
            "RLIMIT_CORE": 0,
            # On the host, the limit would count all processes of this user together.
            **({} if mode == "host" else {"RLIMIT_NPROC": PROCESSES}),
        },
    }


def _line(spec: dict[str, Any]) -> bytes:
    return json.dumps(spec).encode() + b"\n"


def _launcher_argv(*descriptors: int) -> list[str]:
    return [interpreter()[0], "-I", "-S", "-B", LAUNCHER, *map(str, descriptors)]


async def run(command: Command, confined: bool) -> Outcome:
    """Runs a command until it ends or reaches its time or storage limit. None of its processes is left afterwards."""
    mode = namespaces()[0] if confined else "host"
    if mode is None:
        raise RoomError(f"no room can be made: {namespaces()[1]}")
    status, *passed = os.pipe()
    with os.fdopen(status, "rb") as reader:
        try:
            if command.lock is not None:
                passed.append(os.open(command.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
                fcntl.flock(passed[-1], fcntl.LOCK_SH)
            if has_ended(command):
                raise WorkEnded
            process = await asyncio.create_subprocess_exec(
                *_launcher_argv(*passed),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=passed,
                env={},
                start_new_session=True,
            )
        except OSError as error:
            raise RoomError(f"the launcher cannot be started: {error}") from error
        finally:
            for descriptor in passed:
                os.close(descriptor)
        out, err = Captured(command.kept), Captured(command.kept)
        why = await _follow(process, _line(_spec(command, mode)), command, out, err)
        message = reader.read()
    said = json.loads(message.splitlines()[0]) if message else {}
    if "error" in said:
        raise RoomError(said["error"])
    stopped, timed_out = why
    outcome = Outcome(said.get("exit") if stopped is None else None, out, err, stopped, timed_out)
    if not said and stopped is None:
        raise RoomError(f"the launcher ended without a word: {outcome.output[-300:]}")
    return outcome


async def _follow(
    process: Any, line: bytes, command: Command, out: Captured, err: Captured
) -> tuple[str | None, float | None]:
    """Collects output until the command ends. Returns why it must be killed, and its time limit if that is why."""
    process.stdin.write(line)
    collecting = asyncio.gather(out.collect(process.stdout), err.collect(process.stderr))
    # The end of the output does not mean the end of the command, which may close its output early.
    ending = asyncio.ensure_future(process.wait())
    clock = asyncio.get_running_loop().time
    deadline = clock() + command.timeout_sec
    try:
        while True:
            await asyncio.wait({ending}, timeout=max(min(WATCH_SECONDS, deadline - clock()), 0.0))
            if ending.done():
                return None, None
            if has_ended(command):
                return str(WorkEnded()), None
            if clock() >= deadline:
                return f"it took more than {command.timeout_sec:g} seconds", command.timeout_sec
            if await asyncio.to_thread(is_over, command.watched, command.limits.storage_mb):
                return f"it wrote more than the {command.limits.storage_mb} MiB that the task allows", None
    finally:
        # When its input is closed, the launcher kills everything and then ends.
        process.stdin.close()
        await asyncio.wait({collecting, ending}, timeout=END_SECONDS)
        if not ending.done():
            process.kill()
            await ending
        collecting.cancel()


def has_ended(command: Command) -> bool:
    """Whether the work that the command belongs to has ended."""
    return command.open is not None and not os.path.exists(command.open)


class Captured:
    """The beginning and the end of what a command printed."""

    def __init__(self, kept: int) -> None:
        self.kept = kept
        self.head = bytearray()
        self.tail: deque[bytes] = deque()
        self.tail_size = 0
        self.dropped = 0

    async def collect(self, stream: asyncio.StreamReader) -> None:
        while piece := await stream.read(65536):
            room = self.kept - len(self.head)
            self.head += piece[:room]
            if piece := piece[room:]:
                self.tail.append(piece)
                self.tail_size += len(piece)
            while self.tail and self.tail_size - len(self.tail[0]) >= self.kept:
                gone = len(self.tail.popleft())
                self.tail_size -= gone
                self.dropped += gone

    @property
    def size(self) -> int:
        return len(self.head) + self.tail_size + self.dropped

    @property
    def parts(self) -> tuple[bytes, bytes, int]:
        """The beginning, the end, and how many bytes between them are not kept."""
        tail = b"".join(self.tail)
        cut = max(len(tail) - self.kept, 0)
        return bytes(self.head), tail[cut:], self.dropped + cut

    def replace(self, old: bytes, new: bytes) -> None:
        """Replaces a text in everything that is kept."""
        head, tail, omitted = self.parts
        self.head = bytearray(head.replace(old, new))
        self.tail = deque((tail.replace(old, new),))
        self.tail_size, self.dropped = len(self.tail[0]), omitted

    def whole(self) -> bytes:
        """Everything that is kept, with a line about what is not."""
        head, tail, omitted = self.parts
        return head + (f"\n[… {omitted} bytes left out …]\n".encode() if omitted else b"") + tail


class Store:
    """A file system of bounded size for the rooms of one rollout, in which also files without a name count.

    A process holds it (`launcher.py`), and it is gone when that process ends: when the store is closed or collected, or
    when the process that opened it ends. `places` are directories in it, which belong to the user of rooms.
    """

    def __init__(self, directory: str, size_mb: int, places: Iterable[str]) -> None:
        os.mkdir(directory)
        self.directory = directory
        status, say = os.pipe()
        order = {
            "mode": namespaces()[0],
            "hold": directory,
            "size_mb": size_mb,
            "entries": MOST_ENTRIES,
            "places": list(places),
        }
        try:
            process = subprocess.Popen(
                _launcher_argv(say),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(say,),
                env={},
                start_new_session=True,
            )
        except OSError as error:
            os.close(status)
            raise RoomError(f"the launcher cannot be started: {error}") from error
        finally:
            os.close(say)
        self._end = weakref.finalize(self, end_holder, process, os.getpid())
        with os.fdopen(status, "rb") as file:
            try:
                process.stdin.write(_line(order))
                process.stdin.flush()
            except OSError:
                pass  # It has ended; what it said tells why.
            message = file.readline()
        said = json.loads(message) if message else {"error": "the launcher ended without a word"}
        if "held" not in said:
            self.close()
            raise RoomError(f"the file system of a rollout cannot be made: {said['error']}")
        self.holder: int = said["held"]

    def close(self) -> None:
        """Ends it with all its files; a second call does nothing."""
        self._end()


def end_holder(process: subprocess.Popen[bytes], opener: int) -> None:
    """Ends the process that holds a store. Forks of the process that opened it do not end it."""
    if opener != os.getpid():
        return
    # Its input may be open in a fork, and it has nothing to finish.
    process.kill()
    process.wait()
    try:
        process.stdin.close()
    except OSError:
        pass


def held_path(holder: int, path: str) -> str:
    """A path of a store as other processes of this machine reach it."""
    return f"/proc/{holder}/root{path}"


def is_over(directories: Iterable[str], limit_mb: int) -> bool:
    """Whether the files below directories take more than a limit."""
    total, entries, left = 0, 0, list(directories)
    while left:
        try:
            with os.scandir(left.pop()) as listing:
                for entry in listing:
                    entries += 1
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
        except OSError:
            # It was removed meanwhile, or its owner made it unreadable; the next check will tell.
            continue
        if total > limit_mb * MEBIBYTE or entries > MOST_ENTRIES:
            return True
    return False


def wait_for_lock(path: str) -> None:
    """Waits until all processes of the commands that were started with this lock have ended."""
    deadline = time.monotonic() + LOCK_SECONDS
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise RoomError("a command of the policy does not end") from error
                time.sleep(0.02)
    finally:
        os.close(handle)


def give(path: Path | str) -> None:
    """Gives a directory of this process to the user of rooms."""
    identity = owner()
    if identity is not None:
        os.chown(path, identity, identity)
