"""Files below a directory whose content is not trusted: opened step by step through descriptors, so that no link
leads outside, nothing blocks, and nothing is read without a limit.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
MOST_BYTES_OF_PART = 255
MOST_BYTES_OF_PATH = 1024


class PathError(ValueError):
    """A path that is refused, with the reason."""


def parts_of(path: str, root: str = "/workspace") -> list[str]:
    """The parts of a path that the policy wrote: relative to the root, or absolute below the root."""
    below = path
    if path == root or path.startswith(root + "/"):
        below = path[len(root) + 1 :]
    parts = [part for part in below.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in path or (below is path and path.startswith("/")):
        raise PathError(f"it is not a path below {root}")
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
    """A descriptor of a directory below the root; with `create`, missing ones are created for the owner."""
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
            inner = _enter(handle, part, flags)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _enter(handle: int, part: str, flags: int) -> int:
    try:
        return os.open(part, flags, dir_fd=handle)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(part, dir_fd=handle, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        raise


def _open_regular(parent: int, name: str, flags: int, mode: int = 0) -> int:
    """Opens a file without following a link and without waiting for the other end of a pipe."""
    try:
        handle = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode, dir_fd=parent)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise PathError("not a regular file") from error
        raise
    kind = os.fstat(handle).st_mode
    if not stat.S_ISREG(kind):
        os.close(handle)
        if stat.S_ISDIR(kind):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        raise PathError("not a regular file")
    return handle


def read(root: str, parts: list[str], limit: int) -> tuple[bytes, int]:
    """At most `limit` bytes of a regular file, and its size."""
    with directory(root, parts[:-1]) as parent:
        with os.fdopen(_open_regular(parent, parts[-1], os.O_RDONLY), "rb") as file:
            return file.read(limit), os.fstat(file.fileno()).st_size


def write(root: str, parts: list[str], data: bytes, owner: int | None = None, executable: bool = False) -> None:
    """Writes a file. A link in its place is refused, never written through."""
    with directory(root, parts[:-1], owner, create=True) as parent:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        handle = _open_regular(parent, parts[-1], flags, 0o755 if executable else 0o644)
        with os.fdopen(handle, "wb") as file:
            if owner is not None:
                os.fchown(file.fileno(), owner, owner)
            file.write(data)


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
    """Everything below a directory except the directories themselves, by name. Links are listed, never followed."""
    left = [most_entries]
    _reopen(root)
    with directory(root, parts) as handle:
        yield from _walk(handle, _list(handle, left), "/".join(parts), left, most_depth)


def _reopen(root: str) -> None:
    """Makes a directory readable again that its owner has closed, which a policy may have done with its own."""
    if not os.access(root, os.R_OK | os.X_OK):
        os.chmod(root, 0o700)


def _list(handle: int, left: list[int]) -> list[tuple[str, os.stat_result]]:
    """What is in a directory, by name. PermissionError if its owner has closed it, wholly or in part."""
    names = []
    with os.scandir(handle) as listing:
        for entry in listing:
            left[0] -= 1
            if left[0] < 0:
                raise TooLarge("it has too many files")
            names.append(entry.name)
    return [(name, os.stat(name, dir_fd=handle, follow_symlinks=False)) for name in sorted(names)]


def _walk(
    handle: int, listed: list[tuple[str, os.stat_result]], prefix: str, left: list[int], depth: int
) -> Iterator[Entry]:
    for name, about in listed:
        path = f"{prefix}/{name}" if prefix else name
        if stat.S_ISDIR(about.st_mode):
            if depth == 0:
                raise TooLarge("its directories are too deep")
            try:
                inner = os.open(name, READ_FLAGS | os.O_DIRECTORY, dir_fd=handle)
            except PermissionError:
                yield Entry(path, "closed", 0, 1)
                continue
            try:
                try:
                    listed_inside = _list(inner, left)
                except PermissionError:
                    yield Entry(path, "closed", 0, 1)
                    continue
                yield from _walk(inner, listed_inside, path, left, depth - 1)
            finally:
                os.close(inner)
        else:
            kind = "file" if stat.S_ISREG(about.st_mode) else "link" if stat.S_ISLNK(about.st_mode) else "special"
            yield Entry(path, kind, about.st_size, about.st_nlink)
