"""The tools of a rollout for `verifiers.v1`: a server of its own, started as `python -m PACKAGE.v1_tools`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import verifiers.v1 as vf

from . import core
from .room import RoomError
from .v1 import AecBenchData, RolloutState
from .workspace import ToolError, Workspace


def tool(method: Callable[..., Any]) -> Callable[..., Any]:
    """Offers a method under the description of its namesake."""
    method.__doc__ = getattr(Workspace, method.__name__).__doc__
    return vf.tool(method)


class WorkspaceToolset(vf.Toolset[vf.ToolsetConfig, RolloutState]):
    """The workspace of one rollout, for its policy."""

    # Tools have the names that prompts know them by.
    TOOL_PREFIX: ClassVar[str | None] = None

    async def setup_task(self, task: AecBenchData) -> None:
        self.info = task.info

    async def carry_out(self, name: str, *arguments: Any) -> str:
        """One call of the policy."""
        package, state = core.load_package(), self.state
        terms = core.Terms.of_info(self.info)
        workspace = Workspace(package, package.task(self.info["task_id"]), terms, state.directory)
        try:
            text = await getattr(workspace, name)(*arguments)
        except ToolError as error:
            return f"Error: {error}"
        except (OSError, RoomError) as error:
            state.fault = f"{name}: {error}"
            return "Error: the machine failed; the rollout ends."
        if workspace.submitted is not None:
            state.submitted = workspace.submitted
        return text

    @tool
    async def read_file(self, path: str) -> str:
        return await self.carry_out("read_file", path)

    @tool
    async def write_file(self, path: str, content: str) -> str:
        return await self.carry_out("write_file", path, content)

    @tool
    async def list_files(self, path: str | None = None) -> str:
        return await self.carry_out("list_files", path)

    @tool
    async def run_command(self, command: str) -> str:
        return await self.carry_out("run_command", command)

    @tool
    async def submit_answer(self, content: str, path: str | None = None) -> str:
        return await self.carry_out("submit_answer", content, path)


if __name__ == "__main__":
    WorkspaceToolset.run()
