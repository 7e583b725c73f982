"""The environment with a workspace for `verifiers` 0.1.14 to 0.3: a `StatefulToolEnv` and its tools."""

from __future__ import annotations

from typing import Any

import verifiers as vf
from verifiers.types import Tool, ToolMessage

from . import tools
from .core import PackageError
from .loading import Load, Row
from .room import RoomError
from .v0 import WORKSPACE
from .workspace import Workspace

CALLS = "aec_bench_tool_calls"


class WorkspaceEnv(vf.StatefulToolEnv):
    """A policy with a workspace, files, commands and a way to submit."""

    def __init__(self, loaded: Load, **kwargs: Any) -> None:
        super().__init__(max_turns=max(row.terms.max_turns for row in loaded.rows), **kwargs)
        self.package = loaded.package
        self.rows: dict[str, Row] = {row.task.task_id: row for row in loaded.rows}
        self.offers = {row.task.task_id: [Tool(**tool) for tool in tools.offered(row.task)] for row in loaded.rows}
        # Every rollout counts calls of all tools of the environment, even those that its task does not have.
        for offered in self.offers.values():
            for tool in offered:
                self.tool_monitor_rubric.add_tool_metric(tool.name)

    async def setup_state(self, state: vf.State) -> vf.State:
        row = self.rows[state["answer"]]
        try:
            state[WORKSPACE] = await Workspace.open(self.package, row.task, row.terms)
        except (OSError, PackageError, RoomError) as error:
            raise vf.SandboxError(f"the workspace of {row.task.task_id} cannot be made: {error}") from error
        state["tool_defs"] = self.offers[row.task.task_id]
        state[CALLS] = 0
        return state

    def update_tool_args(self, tool_name: str, tool_args: dict, *rest: Any, **kwargs: Any) -> dict:
        """`env_response` carries out calls, and adds nothing to their arguments."""
        return tool_args

    # When a limit is reached, the rollout stops only after the calls of that turn have been carried out, because they
    # were made in time. `env_response` then leaves the results as the final response, which these conditions see.

    @vf.stop
    async def has_final_env_response(self, state: vf.State) -> bool:
        """After submit_answer."""
        return state.get("final_env_response") is not None and state[WORKSPACE].submitted is not None

    @vf.stop
    async def max_turns_reached(self, state: vf.State) -> bool:
        return not calls_waiting(state) and self.is_last_turn(state)

    @vf.stop
    async def token_budget_reached(self, state: vf.State) -> bool:
        return not calls_waiting(state) and self.is_out_of_tokens(state)

    def is_last_turn(self, state: vf.State) -> bool:
        """Whether the policy has used all its turns."""
        return len(state["trajectory"]) >= self.rows[state["answer"]].terms.max_turns

    def is_out_of_tokens(self, state: vf.State) -> bool:
        """Whether the policy has used up its tokens, both read and written."""
        budget, usage = self.rows[state["answer"]].terms.max_total_tokens, self.get_state_usage(state)
        return budget is not None and usage is not None and usage["input_tokens"] + usage["output_tokens"] >= budget

    async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: Any) -> vf.Messages:
        responses = []
        for call in messages[-1].tool_calls or []:
            state[CALLS] += 1
            try:
                text = await tools.carry_out(state[WORKSPACE], call.name, call.arguments or "", state[CALLS])
            except (OSError, RoomError) as error:
                raise vf.SandboxError(f"{call.name}: {error}") from error
            responses.append(ToolMessage(role="tool", content=text, tool_call_id=call.id))
        if state[WORKSPACE].submitted is not None or self.is_last_turn(state) or self.is_out_of_tokens(state):
            state["final_env_response"] = responses
        return responses


def calls_waiting(state: vf.State) -> bool:
    """Whether the last turn has calls that were not carried out yet."""
    if not state["trajectory"] or state.get("final_env_response") is not None:
        return False
    return bool(getattr(state["trajectory"][-1]["completion"][-1], "tool_calls", None))
