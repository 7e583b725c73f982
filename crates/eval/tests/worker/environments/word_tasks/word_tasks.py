"""A v1 taskset: say a word."""

import verifiers.v1 as vf

__all__ = ["WordTaskset"]


class WordData(vf.TaskData):
    answer: str = ""
    info: dict = {}


class WordTask(vf.Task[WordData]):
    @vf.reward(weight=2.0)
    async def said(self, trace: vf.Trace) -> float:
        messages = trace.assistant_messages
        return 1.0 if messages and messages[-1].content == self.data.answer else 0.0

    @vf.metric
    async def length(self, trace: vf.Trace) -> float:
        messages = trace.assistant_messages
        return float(len(messages[-1].content or "")) if messages else 0.0


class WordConfig(vf.TasksetConfig):
    count: int = 3
    image: str | None = None


class WordTaskset(vf.Taskset[WordTask, WordConfig]):
    def load(self):
        for number in range(self.config.count):
            data = WordData(
                prompt=f"Say word {number}.",
                system_prompt="Be short.",
                answer=f"word {number}",
                info={"number": number},
                image=self.config.image,
            )
            yield WordTask(data, self.config.task)
