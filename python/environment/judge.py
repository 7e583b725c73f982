"""Turns what a policy left into a reward: the submission is frozen as a copy, the task's own verifier judges it with
fresh files from the package, and the verifier's output is read strictly. Anything but a clean verdict is a fault of the
verifier or this machine, never a reward.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import shutil
import stat
from dataclasses import dataclass, field
from typing import Any

from . import room, tree
from .core import File, Package, PackageError, Task, Terms, is_blank
from .workspace import Scratch, Workspace, size_of_store

MEBIBYTE = 1024 * 1024
MOST_BYTES_OF_FILE = 64 * MEBIBYTE
MOST_BYTES = 256 * MEBIBYTE
MOST_ENTRIES = 10_000
MOST_DEPTH = 16
MOST_BYTES_OF_REWARD = 4096
# Directories of judging that the room of a verifier can write.
STORED = ("submission", "logs")


# How often references are asked about a verifier that failed on them.
MOST_FAILURES = 3


class VerifierFault(RuntimeError):
    """There is no reward, and the policy is not the cause."""


class VerifierFailed(VerifierFault):
    """The verifier failed on one submission, which may be the cause."""


# Verifiers that gave a reference a reward, and how often others failed on all of theirs. By verifier and terms.
_sound: set[tuple[str, ...]] = set()
_failures: dict[tuple[str, ...], int] = {}


@dataclass
class Verdict:
    """The verdict on a rollout. With a `fault` there is no reward; `problem` says why the policy's result cannot be
    judged, which gives a reward of 0.

    The `source` of the answer is `submission` (submit_answer), `workspace` (the answer's file), `message` or `none`.
    """

    reward: float | None = None
    fault: str | None = None
    source: str = "none"
    problem: str | None = None
    refused: list[str] = field(default_factory=list)
    # How the policy's files made the verifier fail, which gives a reward of 0.
    broke: str | None = None

    def record(self) -> dict[str, Any]:
        """For the record of a rollout."""
        told = {
            "reward": self.reward,
            "fault": self.fault,
            "source": self.source,
            "problem": self.problem,
            "refused": self.refused,
        }
        return told if self.broke is None else {**told, "broke_verifier": self.broke}

    def metrics(self) -> dict[str, float]:
        """The same as numbers: the source of the answer, if there is one, and whether judging failed, and on
        whose side."""
        return {
            "submitted": float(self.source == "submission"),
            "source_workspace": float(self.source == "workspace"),
            "source_message": float(self.source == "message"),
            "verifier_fault": float(self.fault is not None),
            "agent_fault": float(self.problem is not None),
        }


async def judge(package: Package, task: Task, terms: Terms, workspace: Workspace | None, message: str) -> Verdict:
    """Judges a rollout, after all processes of the policy have ended."""
    verdict = Verdict()
    try:
        scratch = await asyncio.to_thread(_scratch, task, terms)
    except (OSError, room.RoomError) as error:
        verdict.fault = f"this machine failed: {error}"
        return verdict
    try:
        frozen = await asyncio.to_thread(_freeze, scratch, package, task, workspace, message, verdict)
        try:
            verdict.reward = 0.0 if frozen is None else await _verify(package, task, terms, scratch, frozen)
        except VerifierFailed as error:
            # Also for what does next to nothing: a policy must not gain by a verifier that cannot read its answer.
            verdict.reward = 0.0
            if await _is_sound(package, task, terms):
                verdict.broke = str(error)
            else:
                verdict.problem = f"the verifier failed, and nothing shows that it works: {error}"
    except (VerifierFault, PackageError, room.RoomError) as error:
        verdict.fault = str(error)
    except Exception as error:
        # Whatever went wrong here must not become a reward of the policy.
        verdict.fault = f"this machine failed: {type(error).__name__}: {error}"
    finally:
        await asyncio.to_thread(scratch.close)
    return verdict


def _scratch(task: Task, terms: Terms) -> Scratch:
    """The directories of judging. Where the task's own verifier runs in a room, what that room can write is bounded, and
    a submission of any size leaves it the space that the task declares."""
    own = terms.isolation == "namespaces" and not task.verifier.standard
    return Scratch(None, STORED if own else (), size_of_store(task.limits) + MOST_BYTES // MEBIBYTE)


# The submission: the counterpart of `settle` in the crate `judge`. The rules are in docs/judge.md.


def choose(order: str, submitted: bool, written: bool, said: bool) -> str:
    """Which answer counts, of those that exist."""
    first = ("workspace", "submission") if order == "file_first" else ("submission", "workspace")
    there = {"submission": submitted, "workspace": written, "message": said}
    return next((source for source in (*first, "message") if there[source]), "none")


def last_word(text: str | None, calls_tools: bool) -> str:
    """The policy's last message, if it may be its answer: a message with a tool call is not."""
    return text if text and not is_blank(text) and not calls_tools else ""


def _freeze(
    scratch: Scratch, package: Package, task: Task, workspace: Workspace | None, message: str, verdict: Verdict
) -> str | None:
    """Copies what is judged into a separate directory and returns the source of the answer; None if it cannot be
    judged."""
    target = scratch.make("submission")
    if workspace is None:
        submitted, written = None, False
        for file in task.workspace:
            if _is_part(file.path, task.outputs):
                tree.write(target, file.path.split("/"), package.content(file), executable=file.executable)
    else:
        workspace.end()
        submitted, written = workspace.submitted, _is_written(task, workspace)
        try:
            _copy(workspace.files, target, task.outputs, verdict.refused)
        except tree.TooLarge as error:
            verdict.problem = f"the workspace is too large: {error}"
            return None
    verdict.source = choose(package.answer_order, submitted is not None, written, not is_blank(message))
    place = task.output_path.split("/")
    if verdict.source == "message":
        _put(target, place, message.encode(errors="replace"))
    elif verdict.source == "submission" and submitted.get("path") != task.output_path:
        content = _submitted(workspace)
        if content is not None:
            _put(target, place, content)
        else:
            _clear(target, place)
            verdict.refused.append(f"{submitted['path']}: it cannot be read")
    # A file that is already at the answer's path was copied with the others, or refused by name.
    return target


def _submitted(workspace: Workspace) -> bytes | None:
    """The submission: the content if the policy passed one, else the current content of the file."""
    content = workspace.submitted.get("content")
    if content is not None:
        return content.encode(errors="replace")
    return _read_whole(workspace, workspace.submitted["path"])


def _put(target: str, place: list[str], content: bytes) -> None:
    """Writes the answer to its path, and replaces anything that is there or blocks it."""
    _clear(target, place)
    tree.write(target, place, content)


def _clear(target: str, place: list[str]) -> None:
    for depth in range(1, len(place) + 1):
        path = os.path.join(target, *place[:depth])
        if os.path.isdir(path) and depth == len(place):
            shutil.rmtree(path)
        elif os.path.isfile(path):
            os.remove(path)


def _read_whole(workspace: Workspace, path: str) -> bytes | None:
    try:
        data, size = tree.read(workspace.files, path.split("/"), MOST_BYTES_OF_FILE)
        return data if size <= len(data) else None
    except (OSError, tree.PathError):
        return None


def _is_written(task: Task, workspace: Workspace) -> bool:
    """Whether the policy left something at the answer's path. If it cannot be read, it is refused by name later."""
    parts = task.output_path.split("/")
    try:
        with tree.directory(workspace.files, parts[:-1]) as parent:
            about = os.stat(parts[-1], dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    given = next((file for file in task.workspace if file.path == task.output_path), None)
    if given is None or not stat.S_ISREG(about.st_mode):
        return True
    return _read_whole(workspace, task.output_path) != workspace.package.content(given)


def _copy(source: str, target: str, outputs: tuple[str, ...] | None, refused: list[str]) -> None:
    left = MOST_BYTES
    for entry in tree.walk(source, [], MOST_ENTRIES, MOST_DEPTH):
        if not _is_part(entry.path, outputs):
            continue
        reason = tree.unfit_name(entry.path)
        if reason is None and entry.kind != "file":
            reason = {"link": "it is a symbolic link", "closed": "it cannot be read"}.get(
                entry.kind, "it is not a regular file"
            )
        if reason is None and entry.names != 1:
            reason = "it has more than one name"
        if reason is None and entry.size > MOST_BYTES_OF_FILE:
            reason = "it is too large"
        if reason is not None:
            if len(refused) < 100:
                refused.append(f"{entry.path.encode(errors='replace').decode()[:300]}: {reason}")
            continue
        if entry.size > left:
            raise tree.TooLarge(f"its files take more than {MOST_BYTES // MEBIBYTE} MiB")
        try:
            left -= _copy_file(source, target, entry.path.split("/"))
        except PermissionError:
            refused.append(f"{entry.path}: it cannot be read")


def _is_part(path: str, outputs: tuple[str, ...] | None) -> bool:
    """Whether a file is part of the submission."""
    named = [output.removeprefix("/workspace/").rstrip("/") for output in outputs or ()]
    return not named or any(path == output or path.startswith(output + "/") for output in named)


def _copy_file(source: str, target: str, parts: list[str]) -> int:
    with tree.directory(source, parts[:-1]) as parent:
        with os.fdopen(os.open(parts[-1], tree.READ_FLAGS, dir_fd=parent), "rb") as file:
            data = file.read(MOST_BYTES_OF_FILE)
            executable = bool(os.fstat(file.fileno()).st_mode & 0o111)
    tree.write(target, parts, data, executable=executable)
    return len(data)


# Who is at fault when a verifier fails: the counterpart of `probe` in the crate `judge`. A package has no golden answers,
# so the verifier is asked about what policies leave that do next to nothing.


def _key(task: Task, terms: Terms) -> tuple[str, ...]:
    files = sorted((file.path, file.sha256) for file in (*task.verifier.files, *task.workspace))
    return task.task_id, terms.isolation, str(task.limits), str(files)


def _references(package: Package, task: Task) -> list[dict[str, bytes]]:
    given = {file.path: package.content(file) for file in task.workspace if _is_part(file.path, task.outputs)}
    return [given, {**given, task.output_path: b"{}\n"}, {**given, task.output_path: b""}]


async def _is_sound(package: Package, task: Task, terms: Terms) -> bool:
    """Whether the task's verifier has shown that it works."""
    key, references = _key(task, terms), _references(package, task)
    if key not in _sound and _failures.get(key, 0) < MOST_FAILURES:
        for files in references:
            scratch = Scratch()
            try:
                place = scratch.make("submission")
                for path, content in files.items():
                    await asyncio.to_thread(tree.write, place, path.split("/"), content)
                await _verify(package, task, terms, scratch, place)
                _sound.add(key)
                break
            except VerifierFailed:
                continue
            finally:
                await asyncio.to_thread(scratch.close)
        else:
            _failures[key] = _failures.get(key, 0) + 1
    return key in _sound


# The verifier.


async def _verify(package: Package, task: Task, terms: Terms, scratch: Scratch, submission: str) -> float:
    tests = scratch.make("tests")
    await asyncio.to_thread(_write_tests, package, task, tests)
    logs = scratch.make("logs")
    os.mkdir(os.path.join(logs, "verifier"))
    if task.verifier.standard:
        exit_code, output = await _run_standard(package, task, tests, submission, logs)
    else:
        exit_code, output = await _run_own(package, task, terms, scratch, submission)
    if exit_code != 0:
        raise VerifierFailed(f"the verifier ended with code {exit_code}: {output.strip()[-300:]}")
    await asyncio.to_thread(_check_tests, package, task, tests, terms)
    return await asyncio.to_thread(read_reward, logs)


def _write_tests(package: Package, task: Task, tests: str) -> None:
    for file in task.verifier.files:
        tree.write(tests, file.path.split("/"), package.content(file), executable=file.executable)


def _check_tests(package: Package, task: Task, tests: str, terms: Terms) -> None:
    for file in task.verifier.files:
        expected = package.content(file)
        if terms.isolation == "none" and not task.verifier.standard:
            expected = _localised(expected, os.path.dirname(tests))
        try:
            data, _ = tree.read(tests, file.path.split("/"), len(expected) + 1)
        except (OSError, tree.PathError) as error:
            raise VerifierFailed(f"/tests/{file.path} is gone after judging: {error}") from error
        if data != expected:
            raise VerifierFailed(f"/tests/{file.path} was changed while it judged")


async def _run_standard(package: Package, task: Task, tests: str, submission: str, logs: str) -> tuple[int, str]:
    """The standard verifier runs no code of the policy and takes its paths as arguments, so it needs no room."""
    answers = next((file for file in task.verifier.files if file.path == "answers.json"), None)
    if answers is None:
        raise VerifierFault("the standard verifier of the task has no answers.json")
    process = await asyncio.create_subprocess_exec(
        room.interpreter()[0],
        "-I",
        "-S",
        "-B",
        os.path.join(tests, "verify.py"),
        "--submission",
        os.path.join(submission, _output_of(package, answers)),
        "--logs",
        os.path.join(logs, "verifier"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env=room.environment(os.path.dirname(room.interpreter()[0]), tests),
        cwd=tests,
        start_new_session=True,
    )
    try:
        _, said = await asyncio.wait_for(process.communicate(), task.limits.verifier_timeout_sec)
    except asyncio.TimeoutError as error:
        raise VerifierFailed(f"the verifier took more than {task.limits.verifier_timeout_sec:g} seconds") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, said.decode(errors="replace")


def _output_of(package: Package, answers: File) -> str:
    """The file that the standard verifier reads; the answers file names it."""
    try:
        output = json.loads(package.content(answers))["output"]
        return "/".join(tree.parts_of(output))
    except (ValueError, KeyError, TypeError) as error:
        raise VerifierFault(f"the task's answers.json does not name its output: {error}") from error


async def _run_own(package: Package, task: Task, terms: Terms, scratch: Scratch, submission: str) -> tuple[int, str]:
    """Any other verifier runs in a separate room, or on the host if the caller asked for that."""
    confined = terms.isolation == "namespaces"
    tests, logs = scratch.place("tests"), scratch.place("logs")
    entry, cwd = task.verifier.entry, "/tests"
    if confined:
        await asyncio.to_thread(_give_all, (submission, logs))
    else:
        await asyncio.to_thread(_localise, package, task, scratch.path)
        os.rename(submission, os.path.join(scratch.path, "workspace"))
        submission = os.path.join(scratch.path, "workspace")
        entry, cwd = tuple(_localised(word.encode(), scratch.path).decode() for word in entry), tests
    outcome = await room.run(
        room.Command(
            entry,
            cwd,
            task.limits.verifier_timeout_sec,
            task.limits,
            (
                (scratch.inside("submission") if confined else submission, "/workspace", "rw"),
                (scratch.inside("logs"), "/logs", "rw"),
                (tests, "/tests", "ro"),
            ),
            scratch.make("room"),
            None if scratch.store is None else scratch.store.holder,
            () if confined else (submission, logs),
            home=scratch.make("home"),
        ),
        confined,
    )
    if outcome.stopped is not None:
        raise VerifierFailed(f"the verifier was stopped: {outcome.stopped}")
    return outcome.exit_code, outcome.output


def _give_all(directories: tuple[str, ...]) -> None:
    for root in directories:
        room.give(root)
        for place, folders, files in os.walk(root):
            for name in folders + files:
                room.give(os.path.join(place, name))


_PLACES = re.compile(rb"(?<![\w./-])/(workspace|tests|logs)(?![\w.-])")


def _localised(data: bytes, root: str) -> bytes:
    """Text with the room's paths replaced by those of a directory of the host; other data is unchanged."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return data
    return _PLACES.sub(lambda found: os.fsencode(root) + found.group(0), data)


def _localise(package: Package, task: Task, root: str) -> None:
    for file in task.verifier.files:
        data = _localised(package.content(file), root)
        tree.write(os.path.join(root, "tests"), file.path.split("/"), data, executable=file.executable)


# The reward.


def read_reward(logs: str) -> float:
    """The reward that a verifier wrote: a number from 0 to 1, or VerifierFailed."""
    found = {}
    for name, reader in (("reward.json", _from_json), ("reward.txt", _from_text)):
        try:
            data, size = tree.read(logs, ["verifier", name], MOST_BYTES_OF_REWARD + 1)
        except FileNotFoundError:
            continue
        except (OSError, tree.PathError) as error:
            raise VerifierFailed(f"{name} cannot be read: {error}") from error
        if size > MOST_BYTES_OF_REWARD or len(data) > MOST_BYTES_OF_REWARD:
            raise VerifierFailed(f"{name} is longer than {MOST_BYTES_OF_REWARD} bytes")
        found[name] = reader, data
    if len(found) != 1:
        raise VerifierFailed(
            "the verifier wrote both reward.json and reward.txt"
            if found
            else "the verifier wrote neither reward.json nor reward.txt"
        )
    [(name, (reader, data))] = found.items()
    try:
        reward = reader(data.decode())
    except (ValueError, RecursionError) as error:
        raise VerifierFailed(f"{name} is not valid: {error}") from error
    # Negative zero is refused, because it would be printed as -0.0.
    if not 0.0 <= reward <= 1.0 or math.copysign(1.0, reward) < 0:
        raise VerifierFailed(f"the reward is {reward}, not a number from 0 to 1")
    return reward


class _Pairs(list):
    """An object as written, including repeated keys."""


def _from_json(text: str) -> float:
    def no_constant(name: str) -> float:
        raise ValueError(f"{name} is not a number")

    value = json.loads(text, object_pairs_hook=_Pairs, parse_constant=no_constant, parse_int=float)
    rewards = [item for key, item in value if key == "reward"] if isinstance(value, _Pairs) else []
    if len(rewards) != 1:
        raise ValueError("`reward` occurs twice" if rewards else "there is no key `reward`")
    if not isinstance(rewards[0], float):
        raise ValueError("`reward` is not a number")
    return rewards[0]


def _from_text(text: str) -> float:
    text = text.removesuffix("\n").removesuffix("\r")
    if not re.fullmatch(r"[0-9.]+", text, re.ASCII):
        raise ValueError("it is not a plain number")
    return float(text)
