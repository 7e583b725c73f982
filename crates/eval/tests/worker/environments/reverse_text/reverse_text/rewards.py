"""The rewards."""


def reversed_word(completion, answer):
    return 1.0 if completion and completion[-1]["content"] == answer else 0.0


def best_of_group(completions) -> list[float]:
    lengths = [len(one[-1]["content"]) if one else 0 for one in completions]
    return [1.0 if length == max(lengths) else 0.0 for length in lengths]
