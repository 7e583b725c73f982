"""The tools of a rollout for `verifiers.v1`: a separate server, started as `python -m PACKAGE.v1_tools`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

import verifiers.v1 as vf

from . import core, tools
from .room import RoomError
from .v1 import AecBenchData, RolloutState
from .workspace import Workspace


class WorkspaceToolset(vf.Toolset[vf.ToolsetConfig, RolloutState]):
    """The workspace of one rollout, for its policy."""

    # Without a prefix, so that tools have the names that prompts use.
    TOOL_PREFIX: ClassVar[str | None] = None

    async def setup_task(self, task: AecBenchData) -> None:
        self.info = task.info

    def register(self, mcp: Any) -> None:
        """Offers the tools of the task as the package describes them; only this module checks their arguments."""
        for offered in tools.offered(core.load_package().task(self.info["task_id"])):
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
            terms = core.Terms.of_info(self.info)
            workspace = Workspace(package, package.task(self.info["task_id"]), terms, state.directory)
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


def unchecked(metadata: Any) -> Any:
    """A server's metadata of a function, without its checks: they would parse arguments that are JSON texts."""

    class Unchecked(type(metadata)):
        async def call_fn_with_arg_validation(self, fn: Any, is_async: bool, given: dict, *rest: Any, **more: Any) -> Any:
            return await fn(given)

    return Unchecked(**{name: getattr(metadata, name) for name in type(metadata).model_fields})


if __name__ == "__main__":
    WorkspaceToolset.run()
