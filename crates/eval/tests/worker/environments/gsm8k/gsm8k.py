"""Sums of small numbers, one turn each."""

import verifiers as vf
from datasets import Dataset


def exact(completion, answer):
    said = completion[-1]["content"] if completion else ""
    return 1.0 if said.strip() == answer else 0.0


def load_environment(count: int = 4, system_prompt: str | None = None):
    rows = [{"question": f"What is {n} + {n}?", "answer": str(2 * n), "info": {"n": n}} for n in range(1, count + 1)]
    return vf.SingleTurnEnv(
        dataset=Dataset.from_list(rows), system_prompt=system_prompt, rubric=vf.Rubric(funcs=[exact])
    )
