"""The package itself: its manifest, its files, and which tasks a caller gets.

Everything here is a pure function of the manifest and the arguments; nothing of `verifiers` is imported.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

SCHEMA_VERSION = 1
DIRECTORY = Path(__file__).resolve().parent
SPLITS = ("train", "eval", "all")
DIFFICULTIES = ("easy", "medium", "hard")
HARNESSES = ("auto", "single-turn", "stateful")
CONFINEMENTS = ("auto", "required", "none")
# Which of several answers counts; in packages without this key, the submission takes precedence.
ANSWER_ORDERS = ("submitted_first", "file_first")
# With fewer tasks than this, a split would leave a side empty or nearly empty.
SMALLEST_SPLIT = 5


# White space as Unicode defines it. `str.strip` also strips four control characters.
WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


def is_blank(text: str) -> bool:
    """Whether a text has no visible content."""
    return not text.strip(WHITE_SPACE)


class PackageError(ValueError):
    """The package or an argument cannot be used; the message says what to do."""


@dataclass(frozen=True)
class File:
    """A file of the package, by its content."""

    path: str
    sha256: str
    executable: bool


@dataclass(frozen=True)
class Verifier:
    """The verifier of a task."""

    digest: str
    standard: bool
    entry: tuple[str, ...]
    files: tuple[File, ...]


@dataclass(frozen=True)
class Limits:
    """The limits of a rollout of a task."""

    max_turns: int
    max_total_tokens: int | None
    command_timeout_sec: float
    verifier_timeout_sec: float
    agent_timeout_sec: float
    cpus: int
    memory_mb: int
    storage_mb: int


@dataclass(frozen=True)
class Task:
    """One task of the manifest. `index` is its position there, whatever the filters are."""

    index: int
    task_id: str
    task_revision: str
    family: str
    side: str
    discipline: str
    difficulty: str | None
    visibility: str
    tags: tuple[str, ...]
    lane: str
    lane_reason: str
    instruction: str
    output_path: str
    outputs: tuple[str, ...] | None
    prompts: Mapping[str, str]
    limits: Limits
    tools: tuple[Mapping[str, str], ...]
    workspace: tuple[File, ...]
    verifier: Verifier


@dataclass(frozen=True)
class Package:
    """The manifest, read and checked."""

    directory: Path
    name: str
    version: str
    tool_version: str
    harness: str
    dataset: str | None
    answer_order: str
    tasks: tuple[Task, ...]

    def content(self, file: File) -> bytes:
        """The bytes of a file, checked to be unchanged since the package was written."""
        path = self.directory / "files" / file.sha256
        try:
            data = path.read_bytes()
        except OSError as error:
            raise PackageError(f"{path}: {error.strerror}; install the package again") from error
        if hashlib.sha256(data).hexdigest() != file.sha256:
            raise PackageError(f"{path}: its content is not what its name says; install the package again")
        return data

    def task(self, task_id: str) -> Task:
        """The task with this id."""
        for task in self.tasks:
            if task.task_id == task_id:
                return task
        raise PackageError(f"the package {self.name} has no task `{task_id}`")


@cache
def load_package(directory: Path = DIRECTORY) -> Package:
    """Reads `tasks.json`."""
    path = directory / "tasks.json"
    try:
        manifest = json.loads(path.read_bytes())
        if manifest["schema_version"] != SCHEMA_VERSION:
            raise PackageError(
                f"{path}: schema_version is {manifest['schema_version']}, this runtime reads {SCHEMA_VERSION}; "
                "export the package again"
            )
        return Package(
            directory=directory,
            name=manifest["name"],
            version=manifest["version"],
            tool_version=manifest["tool_version"],
            harness=manifest["harness"],
            dataset=manifest["dataset"],
            answer_order=_answer_order(path, manifest),
            tasks=tuple(_task(index, record) for index, record in enumerate(manifest["tasks"])),
        )
    except OSError as error:
        raise PackageError(f"{path}: {error.strerror}; install the package again") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise PackageError(f"{path}: not valid JSON: {error}; install the package again") from error
    except KeyError as error:
        raise PackageError(f"{path}: the key {error} is missing; export the package again") from error
    except (TypeError, AttributeError) as error:
        raise PackageError(f"{path}: a value has the wrong type: {error}; export the package again") from error


def _answer_order(path: Path, manifest: Mapping[str, Any]) -> str:
    order = manifest.get("answer_order", ANSWER_ORDERS[0])
    if order not in ANSWER_ORDERS:
        raise PackageError(f"{path}: answer_order is {order!r}, not one of {', '.join(ANSWER_ORDERS)}")
    return order


def _task(index: int, record: Mapping[str, Any]) -> Task:
    limits, verifier, outputs = record["limits"], record["verifier"], record["outputs"]
    return Task(
        index=index,
        **{
            key: record[key]
            for key in (
                "task_id",
                "task_revision",
                "family",
                "side",
                "discipline",
                "difficulty",
                "visibility",
                "lane",
                "lane_reason",
                "instruction",
                "output_path",
                "prompts",
            )
        },
        tags=tuple(record["tags"]),
        outputs=None if outputs is None else tuple(outputs),
        limits=Limits(**{key: limits[key] for key in Limits.__dataclass_fields__}),
        tools=tuple(record["tools"]),
        workspace=_files(record["workspace"]),
        verifier=Verifier(
            verifier["digest"], verifier["standard"], tuple(verifier["entry"]), _files(verifier["files"])
        ),
    )


def _files(records: list[Mapping[str, Any]]) -> tuple[File, ...]:
    return tuple(File(record["path"], record["sha256"], record["executable"]) for record in records)


@dataclass(frozen=True)
class Options:
    """The arguments of a load, checked."""

    split: str = "train"
    difficulty: tuple[str, ...] | None = None
    num_examples: int | None = None
    seed: int | None = None
    harness: str | None = None
    max_turns: int | None = None
    max_total_tokens: int | None = None
    command_timeout_sec: float | None = None
    confinement: str = "auto"


def read_options(arguments: Mapping[str, Any]) -> Options:
    """Checks arguments. Numbers may be written as text, as command lines send them; None and "" mean "not given"."""
    unknown = sorted(set(arguments) - set(Options.__dataclass_fields__))
    if unknown:
        known = ", ".join(Options.__dataclass_fields__)
        raise PackageError(f"unknown argument `{unknown[0]}`; the arguments are {known}")
    given = {name: value for name, value in arguments.items() if value is not None and value != ""}
    checked: dict[str, Any] = {}
    for name, value in given.items():
        if name == "difficulty":
            checked[name] = _difficulties(value)
        elif name == "split":
            checked[name] = _one_of(name, value, SPLITS)
        elif name == "harness":
            checked[name] = _one_of(name, value, HARNESSES)
        elif name == "confinement":
            checked[name] = _one_of(name, value, CONFINEMENTS)
        elif name == "command_timeout_sec":
            checked[name] = _positive_number(name, value)
        else:
            checked[name] = _whole_number(name, value)
    for name in ("max_turns", "max_total_tokens"):
        if checked.get(name, 1) < 1:
            raise PackageError(f"`{name}` is {checked[name]}, not a number from 1 up")
    return Options(**checked)


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise PackageError(f"`{name}` is {value!r}, not one of {', '.join(allowed)}")
    return value


def _difficulties(value: Any) -> tuple[str, ...] | None:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, (list, tuple)):
        raise PackageError(f"`difficulty` is {value!r}, not a text or a list of texts")
    return tuple(_one_of("difficulty", item, DIFFICULTIES) for item in values) or None


def _whole_number(name: str, value: Any) -> int:
    if isinstance(value, str):
        digits = value.removeprefix("-")
        if digits.isascii() and digits.isdigit():
            return int(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        return value
    raise PackageError(f"`{name}` is {value!r}, not a whole number")


def _positive_number(name: str, value: Any) -> float:
    try:
        number = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else 0.0
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        raise PackageError(f"`{name}` is {value!r}, not a number above 0")
    return number


@dataclass(frozen=True)
class Selection:
    """The tasks of a load, in order. With `overlap` every split has them all."""

    tasks: tuple[Task, ...]
    overlap: bool


def select(package: Package, options: Options) -> Selection:
    """Difficulty, then split, then order, then the first `num_examples`."""
    tasks = list(package.tasks)
    if not tasks:
        raise PackageError(f"the package {package.name} has no tasks")
    if options.difficulty is not None:
        tasks = [task for task in tasks if task.difficulty in options.difficulty]
        if not tasks:
            raise PackageError(f"no task of {package.name} has the difficulty {' or '.join(options.difficulty)}")
    overlap = len(tasks) < SMALLEST_SPLIT or len({task.side for task in tasks}) < 2
    if not overlap and options.split != "all":
        tasks = [task for task in tasks if task.side == options.split]
    if options.seed is None:
        tasks.sort(key=lambda task: task.task_id)
    else:
        tasks.sort(key=lambda task: order_key(options.seed, task.task_id))
    if options.num_examples is not None and options.num_examples > 0:
        tasks = tasks[: options.num_examples]
    return Selection(tuple(tasks), overlap)


def order_key(seed: int, task_id: str) -> str:
    """The sort key of a task for a seed."""
    return hashlib.sha256(f"aec-bench order\n{seed}\n{task_id}".encode()).hexdigest()


def warn_of_overlap(package: Package, selection: Selection) -> None:
    """Warns the caller if training and evaluation would use the same tasks."""
    if selection.overlap:
        warnings.warn(
            f"{package.name}: the tasks that the filters leave are fewer than {SMALLEST_SPLIT} or all on one side, so "
            "every split has all of them; do not train on one split and report another",
            stacklevel=3,
        )


def choose_harness(package: Package, options: Options, selection: Selection) -> str:
    """`single-turn` or `stateful` for the whole environment."""
    harness = options.harness or package.harness
    workspace_tasks = [task for task in selection.tasks if task.lane == "stateful"]
    if harness == "auto":
        return "stateful" if workspace_tasks else "single-turn"
    if harness == "single-turn" and workspace_tasks:
        task = workspace_tasks[0]
        raise PackageError(
            f"harness `single-turn` cannot do the task {task.task_id}, which needs a workspace ({task.lane_reason}); "
            "use harness `auto` or `stateful`, or filter the task out"
        )
    return harness


@dataclass(frozen=True)
class Terms:
    """The limits of one task in one environment, after the arguments are applied, and its confinement."""

    harness: str
    isolation: str
    max_turns: int
    max_total_tokens: int | None
    command_timeout_sec: float

    @classmethod
    def of_info(cls, info: Mapping[str, Any]) -> Terms:
        """The terms that `task_info` recorded."""
        return cls(**{key: info[key] for key in cls.__dataclass_fields__})


def terms(task: Task, options: Options, harness: str, isolation: str) -> Terms:
    """The terms of a task. Arguments override the task's own limits."""
    limits = task.limits
    max_turns = options.max_turns or limits.max_turns
    return Terms(
        harness=harness,
        isolation=isolation,
        max_turns=1 if harness == "single-turn" else max_turns,
        max_total_tokens=options.max_total_tokens or limits.max_total_tokens,
        command_timeout_sec=options.command_timeout_sec or limits.command_timeout_sec,
    )


def task_info(package: Package, task: Task, options: Options, selection: Selection, held: Terms) -> dict[str, Any]:
    """What is recorded with every rollout. It contains nothing that helps to find the answer."""
    return {
        "task_id": task.task_id,
        "task_revision": task.task_revision,
        "family": task.family,
        "difficulty": task.difficulty,
        "discipline": task.discipline,
        "visibility": task.visibility,
        "instruction": task.instruction,
        "split": options.split,
        "overlap": selection.overlap,
        "seed": options.seed,
        "harness": held.harness,
        "lane": task.lane,
        "max_turns": held.max_turns,
        "max_total_tokens": held.max_total_tokens,
        "command_timeout_sec": held.command_timeout_sec,
        "isolation": held.isolation,
        "verifier_digest": task.verifier.digest,
        "dataset": package.dataset,
        "package": package.name,
        "package_version": package.version,
        "tool_version": package.tool_version,
    }
