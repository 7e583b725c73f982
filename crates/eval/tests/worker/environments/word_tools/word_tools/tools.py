"""The tool, served by a process of its own."""

from typing import ClassVar

import verifiers.v1 as vf


class WordToolset(vf.Toolset[vf.ToolsetConfig]):
    TOOL_PREFIX: ClassVar[str | None] = None

    @vf.tool
    async def look_up(self, number: int) -> str:
        """Looks a word up."""
        return f"stone {number}"


if __name__ == "__main__":
    WordToolset.run()
