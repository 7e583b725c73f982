"""Words to reverse; one reward looks at all rollouts of a word."""

from .rewards import best_of_group, reversed_word

__all__ = ["best_of_group", "load_environment", "reversed_word"]


def load_environment(words: list[str] | None = None):
    import verifiers as vf
    from datasets import Dataset

    rows = [{"question": f"Reverse: {word}", "answer": word[::-1]} for word in words or ["abc", "stone", "ünï"]]
    rubric = vf.Rubric(funcs=[reversed_word, best_of_group], weights=[1.0, 0.5])
    return vf.SingleTurnEnv(dataset=Dataset.from_list(rows), rubric=rubric)
