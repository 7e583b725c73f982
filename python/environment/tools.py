"""The tools of a policy, which behave as this project's own. Names, descriptions, arguments and limits are data that
the exporter wrote (`tools.json`); results of calls have the same texts as there.

Mistakes of a policy become the result of its call; faults of this machine are raised.
"""

from __future__ import annotations

import errno
import json
import shlex
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from . import room, tree
from .core import DIRECTORY, Task, is_blank
from .workspace import ROOT, Workspace

SUBMIT = "submit_answer"
MOST_QUOTED = 200
MOST_SHOWN = 300
MOST_COUNT = 2**64 - 1
REASONS = {
    errno.ENOENT: "no such file or directory",
    errno.ENOTDIR: "not a directory",
    errno.EISDIR: "it is a directory",
    errno.ELOOP: "it is a link",
    errno.ENAMETOOLONG: "the path is too long",
    errno.ENOSPC: "no space is left",
    errno.EDQUOT: "no space is left",
    errno.EFBIG: "no space is left",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
}


class ToolError(Exception):
    """A mistake of the policy, with the text for the policy."""


@cache
def table() -> dict[str, Any]:
    """`tools.json`."""
    return json.loads((DIRECTORY / "tools.json").read_bytes())


def limit(name: str) -> int:
    """One of the limits that apply to every tool."""
    return table()["limits"][name]


def built_in() -> dict[str, Mapping[str, Any]]:
    """The tools that every task has, by name."""
    return {tool["name"]: tool for tool in table()["tools"]}


def offered(task: Task) -> list[dict[str, Any]]:
    """The tools of a task as a model sees them: name, description, parameters."""
    shared = table()["declared"]
    own = [
        {**shared, "name": tool["name"], "description": f"{tool['description'].rstrip()}\n{shared['description']}"}
        for tool in task.tools
    ]
    return [{key: tool[key] for key in ("name", "description", "parameters")} for tool in (*table()["tools"], *own)]


def are_equal(tasks: Iterable[Task]) -> bool:
    """Whether these tasks offer the same tools, so that one server can serve the rollouts of all of them."""
    return len({json.dumps(offered(task)) for task in tasks}) == 1


async def carry_out(workspace: Workspace, name: str, arguments: str | Mapping[str, Any], number: int) -> str:
    """One call of the policy. `number` makes the names of saved outputs unique."""
    try:
        if not workspace.is_open():
            raise room.WorkEnded
        return await _carry_out(workspace, name, arguments, number) or "(no output)"
    except (ToolError, room.WorkEnded) as error:
        return f"error: {error}"


async def _carry_out(workspace: Workspace, name: str, arguments: str | Mapping[str, Any], number: int) -> str:
    task = workspace.task
    declared = {tool["name"]: tool for tool in task.tools}
    if name in declared:
        line = _Given(name, arguments, table()["declared"]["keys"]).text("command")
        return await _program(workspace, declared[name], line, number)
    if name not in built_in():
        known = ", ".join((*built_in(), *declared))
        raise ToolError(f"there is no tool `{printable(name)}`; the tools are {known}")
    given = _Given(name, arguments, built_in()[name]["keys"])
    text = await ACTIONS[name](workspace, given, number)
    return text if not is_blank(text) or name == "bash" else ""


class _Given:
    """The arguments of one call, read as strictly as the project's own tools read them."""

    def __init__(self, name: str, arguments: str | Mapping[str, Any], keys: list[list[str]]) -> None:
        shapes = ", ".join(f'"{key}": {kind}' for key, kind in keys)
        self.expected = f"`{printable(name)}` takes {{{shapes}}}"
        values = _object(arguments) if isinstance(arguments, str) else dict(arguments)
        if values is None:
            quoted = arguments[:MOST_QUOTED]
            raise ToolError(f"the arguments are not a JSON object; {self.expected}. They were: {quoted}")
        known = {key for key, _ in keys}
        for key in values:
            if key not in known:
                raise ToolError(f"there is no argument `{printable(key)}`; {self.expected}")
        self.values = values

    def complain(self, what: str) -> ToolError:
        return ToolError(f"{what}; {self.expected}")

    def optional_text(self, name: str) -> str | None:
        value = self.values.get(name)
        if value is not None and not isinstance(value, str):
            raise self.complain(f"`{name}` must be a string")
        return value

    def text(self, name: str) -> str:
        value = self.optional_text(name)
        if value is None:
            raise self.complain(f"`{name}` is missing")
        return value

    def optional_count(self, name: str) -> int | None:
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= MOST_COUNT:
            raise self.complain(f"`{name}` must be a whole number above 0")
        return value


def _object(text: str) -> dict[str, Any] | None:
    def no_constant(name: str) -> float:
        raise ValueError(f"{name} is not JSON")

    if is_blank(text):
        return {}
    try:
        value = json.loads(text, parse_constant=no_constant)
        # Half of a surrogate pair is not text.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


async def _bash(workspace: Workspace, given: _Given, number: int) -> str:
    return await _run(workspace, given.text("command"), number)


async def _read_file(workspace: Workspace, given: _Given, number: int) -> str:
    path, offset, lines = given.text("path"), given.optional_count("offset"), given.optional_count("limit")
    text = await _read_text(workspace, path)
    if offset is not None or lines is not None:
        pieces = _lines(text)
        first = (offset or 1) - 1
        if first >= len(pieces):
            raise ToolError(f"`{_shown(path)}` has {_count(len(pieces), 'line')}")
        text = "".join(pieces[first:][:lines])
    return cut(text.encode(), b"", 0, limit("output"))


async def _write_file(workspace: Workspace, given: _Given, number: int) -> str:
    path, data = given.text("path"), _bytes(given.text("content"))
    await _store(workspace, path, data)
    return f"wrote {_count(len(data), 'byte')} to {_shown(path)}"


async def _edit_file(workspace: Workspace, given: _Given, number: int) -> str:
    path, old, new = given.text("path"), given.text("old"), given.text("new")
    if not old:
        raise ToolError("`old` is empty; write the text to be replaced, exactly as it stands in the file")
    text = await _read_text(workspace, path)
    found = text.count(old)
    if found == 0:
        raise ToolError(f"`old` does not occur in `{_shown(path)}`; it must match exactly")
    if found > 1:
        raise ToolError(
            f"`old` occurs {found} times in `{_shown(path)}`; take more of the text around it, so that it occurs once"
        )
    await _store(workspace, path, _bytes(text.replace(old, new)))
    return f"edited {_shown(path)}"


async def _list_files(workspace: Workspace, given: _Given, number: int) -> str:
    path = given.optional_text("path") or "."
    entries = await _told("list", path, workspace.list(path))
    lines = (f"{entry.size if entry.kind == 'file' else entry.kind:>10} {printable(entry.path)}\n" for entry in entries)
    text = "".join(lines)
    return cut(text.encode(errors="replace"), b"", 0, limit("output")) if text else "no files\n"


async def _submit_answer(workspace: Workspace, given: _Given, number: int) -> str:
    content, path = given.optional_text("content"), given.optional_text("path")
    if content is not None:
        if len(_bytes(content)) > limit("file"):
            raise ToolError(f"cannot hand in the answer: it is larger than {limit('file')} bytes")
        if path is not None:
            await _told("write", path, workspace.check(path))
            try:
                await _store(workspace, path, _bytes(content))
            except ToolError:
                # The answer counts even if it cannot be written, for example because a directory has its path.
                pass
        workspace.submitted = {"content": content}
    elif path is not None:
        workspace.submitted = {"path": await _told("hand in", path, workspace.find(path))}
    else:
        raise given.complain("`content` and `path` are both missing")
    return "the answer is handed in"


ACTIONS = {
    "bash": _bash,
    "read_file": _read_file,
    "write_file": _write_file,
    "edit_file": _edit_file,
    "list_files": _list_files,
    SUBMIT: _submit_answer,
}


async def _program(workspace: Workspace, tool: Mapping[str, Any], arguments: str, number: int) -> str:
    """The task's own program. Pictures that it names are not shown, because results are text here."""
    program = "bash" if tool["path"].endswith(".sh") else "python3"
    return await _run(workspace, f"{program} {_quoted(ROOT + '/' + tool['path'])} {arguments}", number)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", r"'\''") + "'" if shlex.quote(text) != text else text


async def _run(workspace: Workspace, line: str, number: int) -> str:
    if is_blank(line):
        raise ToolError("`command` is empty")
    if "\0" in line or len(_bytes(line)) > limit("command"):
        raise ToolError(
            f"`command` must have at most {limit('command')} bytes and no NUL; write a file and run it"
        )
    ended = await workspace.run(_bytes(line).decode(), limit("kept_output"))
    out, err = await _show(workspace, number, ended.stdout, ended.stderr)
    text = "" if is_blank(out) else out
    if not is_blank(err):
        text += f"\nSTDERR: {err}"
    if ended.exit_code:
        text += f"\n[exit code: {ended.exit_code}]"
    if ended.timed_out is not None:
        text += f"\n[timed out after {max(int(ended.timed_out), 1)} s]"
    if ended.stopped is not None and ended.timed_out is None:
        text += f"\n[stopped: {ended.stopped}]"
    return "" if is_blank(text) else text


async def _show(workspace: Workspace, number: int, out: room.Captured, err: room.Captured) -> tuple[str, str]:
    """Both streams, cut to what a policy sees. If they are cut, a file in the room gets the whole, if possible."""
    budget = limit("output")
    if out.size + err.size <= budget:
        return (cut(*out.parts, budget), cut(*err.parts, budget))
    # Error output is usually short and important, so it gets what it needs, at least up to a quarter.
    for_err = min(err.size, max(budget // 4, budget - out.size))
    whole = out.whole() + (b"\nSTDERR: " + err.whole() if err.size else b"")
    place = await workspace.keep_output(number, whole)
    return cut(*out.parts, budget - for_err, place), cut(*err.parts, for_err, place)


def cut(head: bytes, tail: bytes, omitted: int, budget: int, place: str | None = None) -> str:
    """Beginning and end of a text, cut between characters, with a line about what is missing and where to find it."""
    if not omitted:
        head = tail = head + tail
        if len(head) <= budget:
            return head.decode(errors="replace")
    size = len(head) + (len(tail) + omitted if omitted else 0)
    front = head[: _before(head, budget // 2)]
    back = tail[_after(tail, max(len(tail) - (budget - budget // 2), 0)) :]
    whole = ""
    if place is not None:
        kept = f"its first and last {limit('kept_output')} bytes are" if omitted else "the whole output is"
        whole = f"; {kept} in {place}"
    left_out = size - len(front) - len(back)
    return (
        f"{front.decode(errors='replace')}\n[… {left_out} bytes left out{whole} …]\n{back.decode(errors='replace')}"
    )


def _inside_character(data: bytes, at: int) -> bool:
    return at < len(data) and data[at] & 0xC0 == 0x80


def _before(data: bytes, at: int) -> int:
    at = min(at, len(data))
    return next((i for i in range(at, max(at - 3, 0) - 1, -1) if not _inside_character(data, i)), at)


def _after(data: bytes, at: int) -> int:
    return next((i for i in range(at, min(at + 3, len(data)) + 1) if not _inside_character(data, i)), at)


async def _read_text(workspace: Workspace, path: str) -> str:
    data = await _told("read", path, workspace.read(path, limit("file")))
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        size = _count(len(data), "byte")
        raise ToolError(f"`{_shown(path)}` is not UTF-8 text ({size}); look at it with bash") from error


async def _store(workspace: Workspace, path: str, data: bytes) -> None:
    if len(data) > limit("file"):
        raise ToolError(f"cannot write `{_shown(path)}`: the content is larger than {limit('file')} bytes")
    await _told("write", path, workspace.write(path, data))


async def _told(what: str, path: str, doing: Any) -> Any:
    """Does something with a file. If the system refuses, the policy is told."""
    try:
        return await doing
    except tree.TooLarge as error:
        reason, cause = "there are more files or deeper directories than a listing has", error
    except tree.PathError as error:
        reason, cause = str(error), error
    except OSError as error:
        reason, cause = REASONS.get(error.errno) or str(error.strerror).lower(), error
    raise ToolError(f"cannot {what} `{_shown(path)}`: {reason}") from cause


def _lines(text: str) -> list[str]:
    pieces = text.split("\n")
    return [piece + "\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


def _bytes(text: str) -> bytes:
    return text.encode(errors="replace")


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"


def _shown(path: str) -> str:
    return printable(path)[:MOST_SHOWN]


def printable(text: str) -> str:
    """A text without characters that a terminal would interpret or that change the writing direction."""

    def harmful(c: str) -> bool:
        code = ord(c)
        control = (code < 0x20 and c not in "\n\t") or 0x7F <= code < 0xA0
        return control or code in (0x200E, 0x200F) or 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069

    return "".join(f"\\u{{{ord(c):x}}}" if harmful(c) else c for c in text)
