"""Turns the arguments of a load into tasks with their terms, for both generations of `verifiers`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import core, room


@dataclass(frozen=True)
class Row:
    """A task with its terms in one environment."""

    task: core.Task
    terms: core.Terms
    info: dict[str, Any]

    @property
    def system_prompt(self) -> str:
        """The instructions to the policy about how it works."""
        return self.task.prompts[self.terms.harness]


@dataclass(frozen=True)
class Load:
    """A checked load: the package, the harness of the whole environment, and its rows in order."""

    package: core.Package
    harness: str
    rows: tuple[Row, ...]


def load(arguments: Mapping[str, Any]) -> Load:
    """Selects tasks and determines their terms; raises PackageError for anything that would fail later."""
    package = core.load_package()
    options = core.read_options(arguments)
    selection = core.select(package, options)
    harness = core.choose_harness(package, options, selection)
    core.warn_of_overlap(package, selection)
    rows = []
    for task in selection.tasks:
        isolation = room.isolation(options.confinement, _need(task, harness))
        held = core.terms(task, options, harness, isolation)
        rows.append(Row(task, held, core.task_info(package, task, options, selection, held)))
    return Load(package, harness, tuple(rows))


def _need(task: core.Task, harness: str) -> str | None:
    """Which part of a task must be confined, if any."""
    if harness == "stateful":
        return f"harness `stateful` lets the policy run commands (task {task.task_id})"
    if not task.verifier.standard:
        return f"the task {task.task_id} is judged by a program of its own"
    return None
