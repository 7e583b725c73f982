"""Sums with two tools."""

import verifiers as vf
from datasets import Dataset


def add(a: int, b: int) -> int:
    """Adds two whole numbers.

    Args:
        a: The first number.
        b: The second number.
    """
    return a + b


def half(value: int) -> float:
    """Halves a number; refuses odd ones."""
    if value % 2:
        raise ValueError(f"{value} is odd")
    return value / 2


def said(completion, answer):
    return 1.0 if completion and answer in str(completion[-1]["content"]) else 0.0


def load_environment(difficulty: str = "easy", split: str = "test", max_turns: int = 5):
    rows = [
        {"question": f"Add {n} and {n + 1} ({difficulty}).", "answer": str(2 * n + 1), "info": {"split": split}}
        for n in range(3)
    ]
    return vf.ToolEnv(
        dataset=Dataset.from_list(rows), tools=[add, half], max_turns=max_turns, rubric=vf.Rubric(funcs=[said])
    )
