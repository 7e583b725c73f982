"""The environment with a workspace for `verifiers` 0.1.14 to 0.3: a `StatefulToolEnv` and its tools."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any

import verifiers as vf
from verifiers.types import ToolMessage

from .core import PackageError
from .loading import Load, Row
from .room import RoomError
from .v0 import WORKSPACE
from .workspace import TOOLS, ToolError, Workspace


class WorkspaceEnv(vf.StatefulToolEnv):
    """A policy with a workspace, files, commands and a way to hand in."""

    def __init__(self, loaded: Load, **kwargs: Any) -> None:
        super().__init__(max_turns=max(row.terms.max_turns for row in loaded.rows), **kwargs)
        self.package = loaded.package
        self.rows: dict[str, Row] = {row.task.task_id: row for row in loaded.rows}
        for name in TOOLS:
            self.add_tool(getattr(Workspace, name), args_to_skip=["self"])

    async def setup_state(self, state: vf.State) -> vf.State:
        row = self.rows[state["answer"]]
        try:
            state[WORKSPACE] = await Workspace.open(self.package, row.task, row.terms)
        except (OSError, PackageError) as error:
            raise vf.SandboxError(f"the workspace of {row.task.task_id} cannot be made: {error}") from error
        return state

    def update_tool_args(
        self, tool_name: str, tool_args: dict, messages: vf.Messages, state: vf.State, **kwargs: Any
    ) -> dict:
        return {**tool_args, "self": state[WORKSPACE]}

    # A limit that is reached stops the rollout only after the calls of that turn have been carried out: they were
    # made in time. `env_response` then leaves the results as the final response, and these conditions see it.

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
        """Whether the policy has had all its turns."""
        return len(state["trajectory"]) >= self.rows[state["answer"]].terms.max_turns

    def is_out_of_tokens(self, state: vf.State) -> bool:
        """Whether the policy has used up its tokens, read and written."""
        budget, usage = self.rows[state["answer"]].terms.max_total_tokens, self.get_state_usage(state)
        return budget is not None and usage is not None and usage["input_tokens"] + usage["output_tokens"] >= budget

    async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: Any) -> vf.Messages:
        responses = []
        for call in messages[-1].tool_calls or []:
            try:
                text = await self.carry_out(call.name, call.arguments, messages, state)
            except ToolError as error:
                text = f"Error: {error}"
            except (OSError, RoomError) as error:
                raise vf.SandboxError(f"{call.name}: {error}") from error
            responses.append(ToolMessage(role="tool", content=text, tool_call_id=call.id))
        if state[WORKSPACE].submitted is not None or self.is_last_turn(state) or self.is_out_of_tokens(state):
            state["final_env_response"] = responses
        return responses

    async def carry_out(self, name: str, arguments: str, messages: vf.Messages, state: vf.State) -> str:
        """One call of the policy."""
        tool = self.tool_map.get(name)
        if tool is None:
            raise ToolError(f"there is no tool `{name}`; the tools are {', '.join(self.tool_map)}")
        try:
            given = json.loads(arguments or "{}")
        except (ValueError, RecursionError) as error:
            raise ToolError(f"the arguments of {name} are not valid JSON: {error}") from error
        check_arguments(tool, given)
        return await tool(**self.update_tool_args(name, given, messages, state))


def check_arguments(tool: Callable[..., Any], given: Any) -> None:
    """Refuses a call without the arguments that its tool takes."""
    name, parameters = tool.__name__, dict(inspect.signature(tool).parameters)
    del parameters["self"]
    if not isinstance(given, dict):
        raise ToolError(f"the arguments of {name} are not a JSON object")
    unknown = [key for key in given if key not in parameters]
    missing = [key for key, about in parameters.items() if about.default is about.empty and key not in given]
    if unknown or missing:
        what = f"has no argument `{unknown[0]}`" if unknown else f"needs the argument `{missing[0]}`"
        raise ToolError(f"{name} {what}; its arguments are {', '.join(parameters)}")


def calls_waiting(state: vf.State) -> bool:
    """Whether the last turn has calls that were not carried out yet."""
    if not state["trajectory"] or state.get("final_env_response") is not None:
        return False
    return bool(getattr(state["trajectory"][-1]["completion"][-1], "tool_calls", None))
