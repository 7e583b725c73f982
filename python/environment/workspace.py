"""The workspace of one rollout: a directory with the task's files, and commands that run there."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Collection
from typing import Any

from . import room, tree
from .core import Limits, Package, Task, Terms

ROOT = "/workspace"
LOGS = "/logs"
# Directories of a rollout and their paths in its room.
PLACES = {"workspace": ROOT, "tmp": "/tmp", "home": "/home/agent", "logs": LOGS}
MOST_ENTRIES = 10_000
MOST_DEPTH = 16


def remove(directory: str, process: int) -> None:
    """Removes a directory, even with subdirectories that their owner closed. Forks of its process do not remove it."""
    if process != os.getpid():
        return
    shutil.rmtree(directory, ignore_errors=True)
    if not os.path.exists(directory):
        return
    for place, folders, _ in os.walk(directory):
        for name in folders:
            if not os.path.islink(os.path.join(place, name)):
                os.chmod(os.path.join(place, name), 0o700)
    shutil.rmtree(directory, ignore_errors=True)


STORE = "store"
# A file with the process that holds the store, for other processes that work with the directory.
HOLDER = "holder"


class Scratch:
    """A private directory of this process, removed when it is closed or collected, or when the process ends.

    With `stored`, directories of these names are in a store of `size_mb`, whose files count even without a name.
    """

    def __init__(self, parent: str | None = None, stored: Collection[str] = (), size_mb: int = 0) -> None:
        self.path = os.path.realpath(tempfile.mkdtemp(prefix="aec-bench-", dir=parent))
        self._remove = weakref.finalize(self, remove, self.path, os.getpid())
        self.stored = frozenset(stored)
        self.store = room.Store(os.path.join(self.path, STORE), size_mb, stored) if stored else None
        if self.store is not None:
            with open(os.path.join(self.path, HOLDER), "w", encoding="utf-8") as file:
                file.write(str(self.store.holder))

    def inside(self, name: str) -> str:
        """The path of a directory as rooms of this scratch are given it."""
        return os.path.join(self.path, STORE, name) if name in self.stored else os.path.join(self.path, name)

    def place(self, name: str) -> str:
        """The path of a directory for this process."""
        path = self.inside(name)
        return room.held_path(self.store.holder, path) if name in self.stored else path

    def make(self, name: str, given: bool = False) -> str:
        """A directory inside, new or of the store; with `given`, the user of rooms owns it."""
        path = self.place(name)
        if name not in self.stored:
            os.mkdir(path)
        if given:
            room.give(path)
        return path

    def close(self) -> None:
        """Removes it now; a second call does nothing."""
        if self.store is not None:
            self.store.close()
        self._remove()


def size_of_store(limits: Limits) -> int:
    """MiB of the files of a rollout. They are in memory, of which a task says how much it needs."""
    return max(min(limits.storage_mb, limits.memory_mb), 1)


def _holder(directory: str) -> int:
    with open(os.path.join(directory, HOLDER), encoding="utf-8") as file:
        return int(file.read())


class Workspace:
    """The files of one rollout, in a directory that `Workspace.open` has made."""

    def __init__(self, package: Package, task: Task, terms: Terms, directory: str) -> None:
        self.package, self.task, self.terms, self.directory = package, task, terms, directory
        self.confined = terms.isolation == "namespaces"
        self.owner = room.owner() if self.confined else None
        # The latest submission: its `content`, or the `path` of the file with the answer.
        self.submitted: dict[str, str] | None = None
        self.scratch: Scratch | None = None
        inside = os.path.join(directory, STORE) if self.confined else directory
        self._inside = {place: os.path.join(inside, name) for name, place in PLACES.items()}
        self.holder = _holder(directory) if self.confined else None
        # The same for this process.
        self._directories = self._inside
        if self.holder is not None:
            self._directories = {place: room.held_path(self.holder, path) for place, path in self._inside.items()}
        self.files = self._directories[ROOT]
        self._binds = tuple((path, place, "rw") for place, path in self._inside.items())
        # Calls hold the lock, and begin only while the other file exists: a server of several rollouts can be told by
        # neither the end of its process nor a cancelled task that one of them is over.
        self._lock = os.path.join(directory, "lock")
        self._open_mark = os.path.join(directory, "open")

    @classmethod
    async def open(cls, package: Package, task: Task, terms: Terms, parent: str | None = None) -> Workspace:
        """A new workspace with the task's files in it."""
        return await asyncio.to_thread(cls._open, package, task, terms, parent)

    @classmethod
    def _open(cls, package: Package, task: Task, terms: Terms, parent: str | None) -> Workspace:
        confined = terms.isolation == "namespaces"
        scratch = Scratch(parent, tuple(PLACES) if confined else (), size_of_store(task.limits))
        try:
            for name in PLACES:
                scratch.make(name)
            scratch.make("room")
            workspace = cls(package, task, terms, scratch.path)
        except BaseException:
            scratch.close()
            raise
        workspace.scratch = scratch
        with open(workspace._open_mark, "w"):
            pass
        for file in task.workspace:
            tree.write(workspace.files, file.path.split("/"), package.content(file), workspace.owner, file.executable)
        return workspace

    def close(self) -> None:
        """Removes everything that belongs to the rollout."""
        if self.scratch is not None:
            self.scratch.close()

    def is_open(self) -> bool:
        """Whether the policy may still make calls."""
        return os.path.exists(self._open_mark)

    def end(self) -> None:
        """Ends the policy's work: later calls are refused, commands are killed, and all its processes have ended."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._open_mark)
        room.wait_for_lock(self._lock)

    async def read(self, path: str, limit: int) -> bytes:
        """A file of at most `limit` bytes."""

        def read(parts: list[str]) -> bytes:
            data, _ = tree.read(self.files, parts, limit + 1)
            if len(data) > limit:
                raise tree.PathError(f"larger than {limit} bytes")
            return data

        return await self._on_file(path, read)

    async def write(self, path: str, data: bytes) -> None:
        """Writes a file, with the directories above it."""

        def write(parts: list[str]) -> None:
            # A store refuses by itself what it has no space for.
            if not self.confined and room.is_over((self.files,), self.task.limits.storage_mb):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            tree.write(self.files, parts, data, self.owner)

        await self._on_file(path, write)

    async def check(self, path: str) -> None:
        """Refuses anything that is not the path of a file in the workspace."""
        await self._on_file(path, lambda parts: None)

    async def find(self, path: str) -> str:
        """The path, relative to the workspace, of an existing regular file."""
        return await self._on_file(path, lambda parts: tree.read(self.files, parts, 0) and "/".join(parts))

    async def list(self, path: str) -> list[tree.Entry]:
        """Everything below a directory except the directories themselves."""
        parts = tree.parts_of(path)
        return await asyncio.to_thread(lambda: list(tree.walk(self.files, parts, MOST_ENTRIES, MOST_DEPTH)))

    async def run(self, line: str, kept: int) -> room.Outcome:
        """Runs a line with bash."""
        outcome = await room.run(
            room.Command(
                ("bash", "-c", line if self.confined else self._here(line)),
                ROOT if self.confined else self.files,
                self.terms.command_timeout_sec,
                self.task.limits,
                self._binds,
                os.path.join(self.directory, "room"),
                self.holder,
                () if self.confined else tuple(bind[0] for bind in self._binds),
                self._lock,
                self._open_mark,
                os.path.join(self.directory, "home"),
                kept,
                policy=True,
            ),
            self.confined,
        )
        if not self.confined:
            for stream in (outcome.stdout, outcome.stderr):
                stream.replace(os.fsencode(self.files), ROOT.encode())
        return outcome

    def _here(self, line: str) -> str:
        """A command line for this machine itself, with the room's paths replaced by directories of the rollout."""
        places = re.compile(r"(?<![\w./-])/(?:workspace|logs)(?![\w.-])")
        return places.sub(lambda found: self._directories[found.group(0)], line)

    async def keep_output(self, number: int, data: bytes) -> str | None:
        """Writes a command's output to a file that other commands can read. Returns its path, or None on failure."""
        parts = ["tool-output", f"{number}.txt"]
        try:
            await asyncio.to_thread(tree.write, self._directories[LOGS], parts, data, self.owner)
        except (OSError, tree.PathError):
            return None
        return "/".join((LOGS, *parts))

    async def _on_file(self, path: str, work: Callable[[list[str]], Any]) -> Any:
        """Does something with the path of a file, off the event loop."""
        parts = tree.parts_of(path)
        if not parts:
            raise tree.PathError(f"it is not a path below {ROOT}")
        return await asyncio.to_thread(self._while_open, work, parts)

    def _while_open(self, work: Callable[[list[str]], Any], parts: list[str]) -> Any:
        """Does something unless the policy's work has ended, which waits for it."""
        with open(self._lock, "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            if not self.is_open():
                raise room.WorkEnded
            return work(parts)
