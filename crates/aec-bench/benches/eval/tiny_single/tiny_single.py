"""One question, one answer: the smallest possible environment."""

import verifiers as vf
from datasets import Dataset


def exact(completion, answer):
    return 1.0 if completion[-1]["content"].strip() == answer else 0.0


def load_environment():
    rows = [{"question": f"Example {n}: compute the bending moment.", "answer": str(n)} for n in range(20)]
    return vf.SingleTurnEnv(dataset=Dataset.from_list(rows), rubric=vf.Rubric(funcs=[exact]))
