"""The environment for `verifiers` 0.1.14 to 0.3: its rows and its reward, and the kind without a workspace."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import verifiers as vf
from datasets import Dataset
from datasets.table import InMemoryTable

from .judge import Verdict, judge, last_word
from .loading import Load, Row, load

WORKSPACE = "aec_bench_workspace"
VERDICT = "aec_bench_verdict"


def load_environment(arguments: Mapping[str, Any]) -> vf.Environment:
    """The environment that these arguments describe."""
    loaded = load(arguments)
    rows = dataset(loaded)
    shared = {
        "dataset": rows,
        "eval_dataset": rows,
        "rubric": TaskRubric(loaded),
        "timeout_seconds": max(row.task.limits.agent_timeout_sec for row in loaded.rows),
    }
    if loaded.harness == "single-turn":
        return vf.SingleTurnEnv(**shared)
    # Not at the top: the library's classes with tools take seconds to import.
    from .v0_workspace import WorkspaceEnv

    return WorkspaceEnv(loaded, **shared)


def dataset(loaded: Load) -> Dataset:
    """One row per task. The id of a row is the task's position in the package, so it is the same in every load."""
    rows = loaded.rows
    columns = {
        "example_id": [row.task.index for row in rows],
        "prompt": [
            [{"role": "system", "content": row.system_prompt}, {"role": "user", "content": row.task.instruction}]
            for row in rows
        ],
        "answer": [row.task.task_id for row in rows],
        "info": [json.dumps(row.info, ensure_ascii=False) for row in rows],
    }
    # Without a fingerprint the library makes one by pickling the table, which takes longer than everything else.
    fingerprint = hashlib.sha256(json.dumps(columns).encode()).hexdigest()[:16]
    return Dataset(InMemoryTable.from_pydict(columns), fingerprint=fingerprint)


def last_text(state: vf.State) -> str:
    """The policy's last message, if it may be its answer."""
    for message in reversed(state.get("completion") or []):
        if message["role"] == "assistant":
            content = message.get("content")
            if isinstance(content, list):
                content = "".join(part["text"] for part in content if part.get("type") == "text")
            return last_word(content, bool(message.get("tool_calls")))
    return ""


def is_lost(state: vf.State) -> bool:
    """Whether a failure prevented the policy from answering, so that there is nothing to judge. An empty answer or a
    conversation that is too long for the model is no such failure."""
    own = (vf.EmptyModelResponseError, vf.OverlongPromptError)
    return state.get("error") is not None and not isinstance(state["error"], own)


def metric(name: str) -> Callable[..., Any]:
    """A metric that returns a value from the verdict of the rollout."""

    async def read(state: vf.State) -> float:
        return state[VERDICT]["metrics"][name]

    read.__name__ = name
    return read


class TaskRubric(vf.Rubric):
    """The reward of a rollout, from the task's own verifier."""

    def __init__(self, loaded: Load) -> None:
        super().__init__()
        self.package = loaded.package
        self.rows: dict[str, Row] = {row.task.task_id: row for row in loaded.rows}
        self.add_reward_func(self.aec_bench_reward)
        for name in Verdict().metrics():
            self.add_metric(metric(name))

    async def aec_bench_reward(self, state: vf.State) -> float:
        """Judges the rollout."""
        row, workspace = self.rows[state["answer"]], state.get(WORKSPACE)
        if is_lost(state):
            verdict = Verdict()
        else:
            verdict = await judge(self.package, row.task, row.terms, workspace, last_text(state))
        state[VERDICT] = {**verdict.record(), "metrics": verdict.metrics()}
        if verdict.fault is not None and state.get("error") is None:
            state["error"] = vf.InfraError(f"no verdict on {row.task.task_id}: {verdict.fault}")
        return verdict.reward or 0.0

    @vf.cleanup
    async def remove_workspace(self, state: vf.State) -> None:
        """Removes the files of the rollout, scored or not. If this is never called, they are removed with its state."""
        workspace = state.pop(WORKSPACE, None)
        if workspace is not None:
            workspace.close()
