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
from collections.abc import Callable
from typing import Any

from . import room, tree
from .core import Package, Task, Terms

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


class Scratch:
    """A private directory of this process, removed when it is closed or collected, or when the process ends."""

    def __init__(self, parent: str | None = None) -> None:
        self.path = os.path.realpath(tempfile.mkdtemp(prefix="aec-bench-", dir=parent))
        self._remove = weakref.finalize(self, remove, self.path, os.getpid())

    def make(self, name: str, given: bool = False) -> str:
        """A new directory inside; with `given`, the user of rooms owns it."""
        path = os.path.join(self.path, name)
        os.mkdir(path)
        if given:
            room.give(path)
        return path

    def close(self) -> None:
        """Removes it now; a second call does nothing."""
        self._remove()


class Workspace:
    """The files of one rollout, in a directory that `Workspace.open` has made."""

    def __init__(self, package: Package, task: Task, terms: Terms, directory: str) -> None:
        self.package, self.task, self.terms, self.directory = package, task, terms, directory
        self.confined = terms.isolation == "namespaces"
        self.owner = room.owner() if self.confined else None
        # The latest submission: its `content`, or the `path` of the file with the answer.
        self.submitted: dict[str, str] | None = None
        self.scratch: Scratch | None = None
        self._directories = {place: os.path.join(directory, name) for name, place in PLACES.items()}
        self.files = self._directories[ROOT]
        self._binds = tuple((path, place, "rw") for place, path in self._directories.items())
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
        scratch = Scratch(parent)
        workspace = cls(package, task, terms, scratch.path)
        workspace.scratch = scratch
        for name in PLACES:
            scratch.make(name, workspace.confined)
        scratch.make("room")
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
            if room.is_over((self.files,), self.task.limits.storage_mb):
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
                tuple(bind[0] for bind in self._binds),
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
