"""Sums of small numbers, one turn each; a model may be the judge."""

import os

import verifiers as vf
from datasets import Dataset


def exact(completion, answer):
    said = completion[-1]["content"] if completion else ""
    return 1.0 if said.strip() == answer else 0.0


def judged_by(model):
    async def judged(completion, answer):
        from openai import AsyncOpenAI

        said = completion[-1]["content"] if completion else ""
        question = f"JUDGE: is {said} the same as {answer}? Say yes or no."
        async with AsyncOpenAI(base_url=os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"]) as client:
            reply = await client.chat.completions.create(model=model, messages=[{"role": "user", "content": question}])
        return 1.0 if reply.choices[0].message.content == "yes" else 0.0

    return judged


def load_environment(count: int = 4, system_prompt: str | None = None, judge_model: str | None = None):
    rows = [{"question": f"What is {n} + {n}?", "answer": str(2 * n), "info": {"n": n}} for n in range(1, count + 1)]
    return vf.SingleTurnEnv(
        dataset=Dataset.from_list(rows),
        system_prompt=system_prompt,
        rubric=vf.Rubric(funcs=[judged_by(judge_model) if judge_model else exact]),
    )
