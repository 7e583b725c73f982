"""The workspace of one rollout and what a policy can do in it.

Every result is text for a model; its own mistakes are told to it in one line, faults of this machine are raised as
`RoomError`.
"""

from __future__ import annotations

import asyncio
import errno
import json
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
# Directories of a rollout and their places in its room.
PLACES = {"workspace": ROOT, "tmp": "/tmp", "home": "/home/agent"}
TOOLS = ("read_file", "write_file", "list_files", "run_command", "submit_answer")
MOST_READ = 256 * 1024
MOST_WRITTEN = 8 * 1024 * 1024
MOST_LISTED = 1000
MOST_ENTRIES = 10_000
MOST_DEPTH = 16
# What the kernel takes as one argument of a program.
LONGEST_COMMAND = 128 * 1024 - 1
# The file of a rollout's directory that holds what was handed in.
CONTENT = "submitted"
SUBMITTED = "Submitted. The rollout ends with this turn."


class ToolError(Exception):
    """What the policy did wrong, in one line for it."""


def remove(directory: str, process: int) -> None:
    """Removes a directory, also when those below were closed by their owner. Forks of its process leave it alone."""
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
    """A private directory of this process that is gone when it is closed, forgotten, or the process ends."""

    def __init__(self, parent: str | None = None) -> None:
        self.path = os.path.realpath(tempfile.mkdtemp(prefix="aec-bench-", dir=parent))
        self._remove = weakref.finalize(self, remove, self.path, os.getpid())

    def make(self, name: str, given: bool = False) -> str:
        """A new directory inside; `given` to the user of rooms."""
        path = os.path.join(self.path, name)
        os.mkdir(path)
        if given:
            room.give(path)
        return path

    def close(self) -> None:
        """Removes it now; doing so twice does no harm."""
        self._remove()


class Workspace:
    """The files of one rollout, in a directory that `Workspace.open` has made."""

    def __init__(self, package: Package, task: Task, terms: Terms, directory: str) -> None:
        self.package, self.task, self.terms, self.directory = package, task, terms, directory
        self.confined = terms.isolation == "namespaces"
        self.owner = room.owner() if self.confined else None
        # The path of what was handed in.
        self.submitted: str | None = None
        self.scratch: Scratch | None = None
        self.files, *others = (os.path.join(directory, name) for name in PLACES)
        self._binds = tuple((path, place, "rw") for path, place in zip((self.files, *others), PLACES.values()))
        self._lock = os.path.join(directory, "lock")

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
        for file in task.workspace:
            tree.write(workspace.files, file.path.split("/"), package.content(file), workspace.owner, file.executable)
        return workspace

    def close(self) -> None:
        """Removes everything that belongs to the rollout."""
        if self.scratch is not None:
            self.scratch.close()

    def settle(self) -> None:
        """Waits until no process of the policy is left."""
        room.wait_for_lock(self._lock)

    async def read_file(self, path: str) -> str:
        """Read a text file of the workspace.

        Args:
            path: Path below /workspace.
        """
        data, size = await self._on_files(path, lambda parts: tree.read(self.files, parts, MOST_READ))
        if b"\0" in data:
            return f"{path} is not text: {size} bytes."
        text = data.decode(errors="replace")
        return text + f"\n[the first {MOST_READ} of {size} bytes]" if size > len(data) else text or f"{path} is empty."

    async def write_file(self, path: str, content: str) -> str:
        """Write a text file into the workspace, replacing what is there.

        Args:
            path: Path below /workspace.
            content: The whole content of the file.
        """
        data = _bytes(content)
        await self._on_files(path, lambda parts: self._write(parts, data))
        return f"Wrote {len(data)} bytes to {path}."

    async def list_files(self, path: str | None = None) -> str:
        """List the files below a directory of the workspace.

        Args:
            path: Directory below /workspace; all of it when absent.
        """
        path = path or "."

        def listed(parts: list[str]) -> tuple[list[str], bool]:
            lines = []
            for entry in tree.walk(self.files, parts, MOST_ENTRIES, MOST_DEPTH):
                if len(lines) == MOST_LISTED:
                    return lines, True
                about = f"{entry.size} bytes" if entry.kind == "file" else entry.kind
                lines.append(f"{_printable(entry.path)} ({about})")
            return lines, False

        lines, more = await self._on_files(path, listed, whole=True)
        return "\n".join(lines) + ("\n[there are more]" if more else "") if lines else f"No files in {path}."

    async def run_command(self, command: str) -> str:
        """Run a bash command in /workspace. It has no network and ends after a while, with everything it started.

        Args:
            command: The command line.
        """
        if not isinstance(command, str) or not command.strip():
            raise ToolError("`command` must be a text that is not empty")
        if "\0" in command or len(command.encode(errors="replace")) > LONGEST_COMMAND:
            raise ToolError("the command has a NUL or is too long; write it to a file and run that")
        command = command.encode(errors="replace").decode()
        if not self.confined:
            command = re.sub(r"(?<![\w./-])/workspace(?![\w.-])", lambda _: self.files, command)
        outcome = await room.run(
            room.Command(
                ("bash", "-c", command),
                ROOT if self.confined else self.files,
                self.terms.command_timeout_sec,
                self.task.limits,
                self._binds,
                os.path.join(self.directory, "room"),
                tuple(bind[0] for bind in self._binds),
                self._lock,
                os.path.join(self.directory, "home"),
            ),
            self.confined,
        )
        output = outcome.output if self.confined else outcome.output.replace(self.files, ROOT)
        lines = [output.rstrip("\n")] if output.strip() else []
        if outcome.stopped is not None:
            lines.append(f"[stopped: {outcome.stopped}]")
        elif outcome.exit_code != 0 or not lines:
            lines.append(f"[exit code {outcome.exit_code}{'' if lines else ', no output'}]")
        return "\n".join(lines)

    async def submit_answer(self, content: str, path: str | None = None) -> str:
        """Hand in the answer. The last answer handed in is what is judged; the work ends with this turn.

        Args:
            content: The whole content of the answer file.
            path: Path below /workspace; the answer file that the task names when absent.
        """
        target = path or self.task.output_path
        data = _bytes(content)
        place = await self._on_files(target, "/".join)
        try:
            await self._on_files(target, lambda parts: self._write(parts, data))
        except ToolError:
            # The content is the answer, also when something lies in its file's way.
            pass
        self.hand_in(place, data)
        return SUBMITTED

    def hand_in(self, path: str, content: bytes | None) -> None:
        """Notes what is judged: this content, or without one the file at the path when the rollout has ended."""
        self.submitted = path
        # Beside the workspace: another process judges, and files of the workspace may still be changed.
        if content is not None:
            tree.write(self.directory, [CONTENT], content)
        elif self.content is not None:
            os.remove(os.path.join(self.directory, CONTENT))

    @property
    def content(self) -> bytes | None:
        """What was handed in as a content."""
        try:
            return tree.read(self.directory, [CONTENT], MOST_WRITTEN)[0]
        except FileNotFoundError:
            return None

    def _write(self, parts: list[str], data: bytes) -> None:
        if room.is_over((self.files,), self.task.limits.storage_mb):
            raise ToolError(f"the workspace is full: the task allows {self.task.limits.storage_mb} MiB")
        tree.write(self.files, parts, data, self.owner)

    async def _on_files(self, path: str, work: Callable[[list[str]], Any], whole: bool = False) -> Any:
        """Does something with a path, off the event loop; what the system says no to becomes one line."""

        def guarded() -> Any:
            parts = tree.parts_of(path)
            if not parts and not whole:
                raise tree.PathError(f"{path or 'the path'} is the workspace itself, not a file")
            return work(parts)

        try:
            return await asyncio.to_thread(guarded)
        except (tree.PathError, tree.TooLarge) as error:
            raise ToolError(f"{_printable(str(path))}: {error}") from error
        except OSError as error:
            reason = "it is a link" if error.errno == errno.ELOOP else error.strerror.lower()
            raise ToolError(f"{_printable(str(path))}: {reason}") from error


def _bytes(content: Any) -> bytes:
    """The bytes of what a model calls content; an object instead of its text is taken as its JSON."""
    if not isinstance(content, str):
        content = json.dumps(content, ensure_ascii=False, indent=2)
    data = content.encode(errors="replace")
    if len(data) > MOST_WRITTEN:
        raise ToolError(f"the content is longer than {MOST_WRITTEN} bytes")
    return data


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)[:300]
