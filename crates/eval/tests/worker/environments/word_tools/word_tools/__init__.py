"""A v1 taskset with a tool: look a word up and say it."""

import verifiers.v1 as vf

__all__ = ["WordTaskset"]


class WordTask(vf.Task[vf.TaskData]):
    @classmethod
    def toolsets(cls, config):
        from .tools import WordToolset

        return [WordToolset(vf.ToolsetConfig())]

    @vf.reward(weight=1.0)
    async def said(self, trace: vf.Trace) -> float:
        messages = trace.assistant_messages
        return 1.0 if messages and messages[-1].content == "the word is stone" else 0.0


class WordTaskset(vf.Taskset[WordTask, vf.TasksetConfig]):
    def load(self):
        for number in range(2):
            yield WordTask(vf.TaskData(prompt=f"Look word {number} up and say it."), self.config.task)
