"""Three turns: a file is read twice, then there is an answer."""

from pathlib import Path

import verifiers as vf
from datasets import Dataset


def read_file(path: str) -> str:
    """Read a file.

    Args:
        path: Its path.
    """
    return (Path(__file__).parent / path).read_text()


def exact(completion, answer):
    return 1.0 if completion[-1]["content"].strip() == answer else 0.0


def load_environment():
    rows = [{"question": f"Example {n}: read data.csv, then answer.", "answer": str(n)} for n in range(20)]
    return vf.ToolEnv(dataset=Dataset.from_list(rows), tools=[read_file], rubric=vf.Rubric(funcs=[exact]))
