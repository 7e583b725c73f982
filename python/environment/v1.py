"""The taskset for `verifiers` 0.3.1 and later (`verifiers.v1`): the same tasks, tools, confinement and reward.

A separate process (`v1_tools.py`) serves the policies' tools. It finds a rollout's directory in the state that the two
share; this side creates the directory, judges its content, and removes it.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import verifiers.v1 as vf
from pydantic import model_validator
from typing_extensions import Self
from verifiers.v1.harnesses.null import NullHarnessConfig

from . import core, tools
from .judge import Verdict, judge, last_word
from .loading import load
from .workspace import Workspace

VERDICT = "aec_bench"


class RolloutState(vf.State):
    """The state that this side shares with the tools."""

    directory: str = ""
    task_id: str = ""
    terms: dict[str, Any] = {}
    submitted: dict[str, str] | None = None
    calls: int = 0
    fault: str | None = None


class AecBenchData(vf.TaskData):
    """A task as recorded; `info` is the same as in the environments for older versions."""

    info: dict[str, Any] = {}


class AecBenchTaskConfig(vf.TaskConfig):
    """What a task needs when it is created again from its data."""

    workspace: bool = False
    """Whether the policy has a workspace; decided by the taskset's `harness`."""
    shared_tools: bool = False
    """Whether one tool server serves all rollouts; decided by the selected tasks."""


class AecBenchTask(vf.Task[AecBenchData, RolloutState, AecBenchTaskConfig]):
    """One task: its workspace, its ends, and its reward."""

    @property
    def key(self) -> str:
        return self.data.info["task_id"]

    @classmethod
    def toolsets(cls, config: AecBenchTaskConfig) -> list[vf.Toolset]:
        if not config.workspace or config.shared_tools:
            return []
        from .v1_tools import RolloutToolset

        return [RolloutToolset(vf.ToolsetConfig())]

    async def setup(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        if not self.config.workspace:
            return
        package, terms = core.load_package(), core.Terms.of_info(self.data.info)
        # Files in the directory of a local runtime are removed with it, however the rollout ends.
        parent = runtime.info.id if runtime.type == "subprocess" else None
        workspace = await Workspace.open(package, package.task(self.key), terms, parent)
        workspaces[trace.id] = workspace
        # A rollout that fails is never finalized.
        weakref.finalize(trace, workspaces.pop, trace.id, None)
        trace.state.directory = workspace.directory
        trace.state.task_id, trace.state.terms = self.key, asdict(terms)

    @vf.stop
    async def answer_submitted(self, trace: vf.Trace) -> bool:
        return trace.state.submitted is not None

    @vf.stop
    async def tools_failed(self, trace: vf.Trace) -> bool:
        return trace.state.fault is not None

    @vf.stop
    async def max_turns_reached(self, trace: vf.Trace) -> bool:
        return trace.num_turns >= self.data.info["max_turns"]

    @vf.stop
    async def token_budget_reached(self, trace: vf.Trace) -> bool:
        budget, usage = self.data.info["max_total_tokens"], trace.usage
        return budget is not None and usage is not None and usage.prompt_tokens + usage.completion_tokens >= budget

    async def finalize(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        """Judges the rollout. A server of several rollouts may still carry out its calls; judging ends them first."""
        workspace = workspaces.pop(trace.id, None)
        if trace.state.fault is not None:
            verdict = Verdict(fault=trace.state.fault)
        else:
            package = core.load_package()
            if workspace is not None:
                workspace.submitted = trace.state.submitted
            said = trace.assistant_messages
            message = last_word(said[-1].content, bool(said[-1].tool_calls)) if said else ""
            terms = core.Terms.of_info(self.data.info)
            verdict = await judge(package, package.task(self.key), terms, workspace, message)
        if workspace is not None:
            workspace.close()
        trace.info[VERDICT] = {**verdict.record(), "metrics": verdict.metrics()}

    @vf.metric
    async def verdict_metrics(self, trace: vf.Trace) -> dict[str, float]:
        return trace.info[VERDICT]["metrics"]

    @vf.reward(weight=1.0)
    async def aec_bench_reward(self, trace: vf.Trace) -> float:
        verdict = trace.info[VERDICT]
        if verdict["fault"] is not None:
            # An error of the rollout instead of a reward: neither the policy nor the model is the cause.
            trace.record_reward("aec_bench_reward", 0.0)
            raise vf.SandboxError(f"no verdict on {self.key}: {verdict['fault']}")
        return verdict["reward"]


# Open workspaces by the id of their trace: the state that is shared with the tools is replaced whenever they write it.
workspaces: dict[str, Workspace] = {}


class AecBenchTasksetConfig(vf.TasksetConfig):
    """The arguments of a load, the same as those of `load_environment`."""

    task: AecBenchTaskConfig = AecBenchTaskConfig()
    split: str = "train"
    """`train`, `eval` or `all`."""
    difficulty: str | list[str] | None = None
    """`easy`, `medium`, `hard`, or several of them."""
    num_examples: int | None = None
    """Number of tasks to take, from the first; all if absent."""
    seed: int | None = None
    """Seed of the tasks' order; sorted by id if absent."""
    harness: str | None = None
    """`auto`, `single-turn` or `stateful`; the package's default when absent."""
    max_turns: int | None = None
    """Turns of the policy; each task's own limit when absent."""
    max_total_tokens: int | None = None
    """Tokens read and written by the policy; each task's own limit when absent."""
    command_timeout_sec: float | None = None
    """Seconds that a command may take; each task's own limit when absent."""
    confinement: str = "auto"
    """`auto`, `required` or `none`: how commands and verifiers are isolated from this machine."""

    def arguments(self) -> dict[str, Any]:
        """The arguments as `load_environment` has them."""
        return {name: getattr(self, name) for name in core.Options.__dataclass_fields__}

    @model_validator(mode="after")
    def settle_workspace(self) -> Self:
        """Tasks have a workspace if the harness is stateful, which may depend on the selected tasks."""
        package, options = core.load_package(), core.read_options(self.arguments())
        selected = core.select(package, options)
        harness = core.choose_harness(package, options, selected)
        workspace = harness == "stateful"
        shared = workspace and tools.are_equal(selected.tasks)
        self.task = self.task.model_copy(update={"workspace": workspace, "shared_tools": shared})
        return self


class AecBenchTaskset(vf.Taskset[AecBenchTask, AecBenchTasksetConfig]):
    """The package's tasks."""

    @classmethod
    def toolsets(cls, config: AecBenchTasksetConfig) -> list[vf.Toolset]:
        if not config.task.shared_tools:
            return []
        from .v1_tools import SharedConfig, SharedToolset

        first = core.select(core.load_package(), core.read_options(config.arguments())).tasks[0]
        return [SharedToolset(SharedConfig(tools_of=first.task_id))]

    def load(self) -> Iterator[AecBenchTask]:
        for index, row in enumerate(load(self.config.arguments()).rows):
            limits = row.task.limits
            yield AecBenchTask(
                AecBenchData(
                    idx=index,
                    name=row.task.task_id,
                    prompt=row.task.instruction,
                    system_prompt=row.system_prompt,
                    timeout=vf.TaskTimeout(agent=limits.agent_timeout_sec),
                    info=row.info,
                ),
                self.config.task,
            )


class AecBenchEnvConfig(vf.SingleAgentEnvConfig):
    """A chat loop on this machine unless the user asks for something else; the tools are those of the tasks."""

    agent: vf.AgentConfig = vf.AgentConfig(harness=NullHarnessConfig(id="null"), runtime=vf.SubprocessConfig())


class AecBenchEnv(vf.SingleAgentEnv, vf.Env[AecBenchEnvConfig]):
    """One agent on one task."""
