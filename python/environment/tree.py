"""Files below a directory that somebody else may have filled: opened step by step through descriptors, so that no link
leads out, nothing blocks, and nothing is read without a bound.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
MOST_BYTES_OF_PART = 255
MOST_BYTES_OF_PATH = 1024


class PathError(ValueError):
    """A path that is not taken, with the reason."""


def parts_of(path: str, root: str = "/workspace") -> list[str]:
    """The parts of a path below the root as somebody wrote it: relative, or absolute below the root."""
    if not isinstance(path, str) or "\0" in path:
        raise PathError("the path is not a text without NUL")
    below = path
    if path == root or path.startswith(root + "/"):
        below = path[len(root) + 1 :]
    elif path.startswith("/"):
        raise PathError(f"{path} is not below {root}")
    parts = [part for part in below.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise PathError(f"{path} has `..` as a part")
    if any(len(os.fsencode(part)) > MOST_BYTES_OF_PART for part in parts) or len(path) > MOST_BYTES_OF_PATH:
        raise PathError("the path is too long")
    return parts


def unfit_name(path: str) -> str | None:
    """Why a path cannot be part of a submission."""
    try:
        data = path.encode()
    except UnicodeEncodeError:
        return "its name is not text"
    if any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in path):
        return "its name has a control character"
    if "\\" in path:
        return "its name has a backslash"
    return "its name is too long" if len(data) > MOST_BYTES_OF_PATH else None


@contextmanager
def directory(root: str, parts: list[str], owner: int | None = None, create: bool = False) -> Iterator[int]:
    """A descriptor of a directory below the root; with `create`, missing ones are made and given to the owner."""
    flags = READ_FLAGS | os.O_DIRECTORY
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            if create:
                try:
                    os.mkdir(part, 0o755, dir_fd=handle)
                    if owner is not None:
                        os.chown(part, owner, owner, dir_fd=handle, follow_symlinks=False)
                except FileExistsError:
                    pass
            inner = os.open(part, flags, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def read(root: str, parts: list[str], limit: int) -> tuple[bytes, int]:
    """At most `limit` bytes of a regular file, and its size."""
    with directory(root, parts[:-1]) as parent:
        handle = os.open(parts[-1], READ_FLAGS, dir_fd=parent)
        with os.fdopen(handle, "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise PathError("it is not a regular file")
            return file.read(limit), about.st_size


def write(root: str, parts: list[str], data: bytes, owner: int | None = None, executable: bool = False) -> None:
    """Writes a file whole or not at all. What lies at its place is replaced, never written through."""
    with directory(root, parts[:-1], owner, create=True) as parent:
        try:
            if stat.S_ISDIR(os.stat(parts[-1], dir_fd=parent, follow_symlinks=False).st_mode):
                raise PathError("it is a directory")
        except FileNotFoundError:
            pass
        part = f".aec-bench-{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(part, flags, 0o755 if executable else 0o644, dir_fd=parent)
        try:
            with os.fdopen(handle, "wb") as file:
                if owner is not None:
                    os.fchown(file.fileno(), owner, owner)
                file.write(data)
            os.replace(part, parts[-1], src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            os.unlink(part, dir_fd=parent)
            raise


@dataclass(frozen=True)
class Entry:
    """Something below a directory: a `file`, a `link`, something `special`, or a directory that is `closed`."""

    path: str
    kind: str
    size: int
    names: int


class TooLarge(ValueError):
    """More entries or deeper directories than allowed."""


def walk(root: str, parts: list[str], most_entries: int, most_depth: int) -> Iterator[Entry]:
    """Everything below a directory but the directories themselves, by name. Links are listed, never followed."""
    left = [most_entries]
    with directory(root, parts) as handle:
        yield from _walk(handle, "/".join(parts), left, most_depth)


def _walk(handle: int, prefix: str, left: list[int], depth: int) -> Iterator[Entry]:
    names = []
    with os.scandir(handle) as listing:
        for entry in listing:
            left[0] -= 1
            if left[0] < 0:
                raise TooLarge("it has too many files")
            names.append(entry.name)
    for name in sorted(names):
        path = f"{prefix}/{name}" if prefix else name
        about = os.stat(name, dir_fd=handle, follow_symlinks=False)
        if stat.S_ISDIR(about.st_mode):
            if depth == 0:
                raise TooLarge("its directories are too deep")
            try:
                inner = os.open(name, READ_FLAGS | os.O_DIRECTORY, dir_fd=handle)
            except PermissionError:
                yield Entry(path, "closed", 0, 1)
                continue
            try:
                yield from _walk(inner, path, left, depth - 1)
            finally:
                os.close(inner)
        else:
            kind = "file" if stat.S_ISREG(about.st_mode) else "link" if stat.S_ISLNK(about.st_mode) else "special"
            yield Entry(path, kind, about.st_size, about.st_nlink)
