"""The tools of rollouts for `verifiers.v1`: a separate server, started as `python -m PACKAGE.v1_tools`.

One server serves all rollouts of an evaluation if their tasks offer the same tools; the state of the rollout that makes a
call says where its workspace is. Otherwise each rollout has a server of its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from typing import Any

import verifiers.v1 as vf

from . import core, tools
from .room import RoomError
from .v1 import AecBenchData, RolloutState
from .workspace import Workspace


class SharedConfig(vf.SharedToolsetConfig):
    """What a server for all rollouts of an evaluation is started with."""

    tools_of: str
    """A task; all tasks of the evaluation offer the same tools."""


class Workspaces:
    """Offers the tools of a task, and carries out calls in the workspace of the rollout that makes them."""

    # Without a prefix, so that tools have the names that prompts use.
    TOOL_PREFIX = None

    def offer(self, mcp: Any, task: core.Task) -> None:
        """Offers the tools of the task as the package describes them; only this module checks their arguments."""
        for offered in tools.offered(task):
            name = offered["name"]
            mcp.add_tool(self._with_state(self.caller(name)), name=name, description=offered["description"])
            # The server would derive a schema from a function's signature; ours is data.
            tool = mcp._tool_manager.get_tool(name)
            tool.parameters = offered["parameters"]
            tool.fn_metadata = unchecked(tool.fn_metadata)

    def caller(self, name: str) -> Callable[[dict], Awaitable[str]]:
        """The function that carries out calls of this tool."""

        async def call(given: dict) -> str:
            package, state = core.load_package(), self.state
            terms = core.Terms.of_info(state.terms)
            workspace = Workspace(package, package.task(state.task_id), terms, state.directory)
            state.calls += 1
            try:
                text = await tools.carry_out(workspace, name, given, state.calls)
            except (OSError, RoomError) as error:
                state.fault = f"{name}: {error}"
                return "error: the machine failed; the rollout ends."
            if workspace.submitted is not None:
                state.submitted = workspace.submitted
            return text

        return call


class SharedToolset(Workspaces, vf.Toolset[SharedConfig, RolloutState]):
    """The tools of all rollouts of an evaluation."""

    def register(self, mcp: Any) -> None:
        self.offer(mcp, core.load_package().task(self.config.tools_of))


class RolloutToolset(Workspaces, vf.Toolset[vf.ToolsetConfig, RolloutState]):
    """The tools of one rollout."""

    async def setup_task(self, task: AecBenchData) -> None:
        self.task_id = task.info["task_id"]

    def register(self, mcp: Any) -> None:
        self.offer(mcp, core.load_package().task(self.task_id))


def unchecked(metadata: Any) -> Any:
    """A server's metadata of a function, without its checks: they would parse arguments that are JSON texts."""

    class Unchecked(type(metadata)):
        async def call_fn_with_arg_validation(self, fn: Any, is_async: bool, given: dict, *rest: Any, **more: Any) -> Any:
            return await fn(given)

    return Unchecked(**{name: getattr(metadata, name) for name in type(metadata).model_fields})


if __name__ == "__main__":
    # The library starts this module for both kinds of server.
    (SharedToolset if "tools_of" in json.loads(os.environ["VF_CONFIG"]) else RolloutToolset).run()
