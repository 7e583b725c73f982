"""Scores /workspace/output.json: the share of expected values that are met."""

import json
import math
import os
import pathlib
import stat

# key: (expected value, relative tolerance)
EXPECTED = {"result": (12.5, 0.01)}

SUBMISSION = "/workspace/output.json"
LOGS = pathlib.Path("/logs/verifier")
LARGEST = 1 << 20  # bytes of an answer


def read_bytes():
    """The answer, if it is a regular file of a reasonable size. No link is followed and nothing blocks."""
    handle = os.open(SUBMISSION, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError("it is not a regular file")
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise ValueError(f"it is larger than {LARGEST} bytes")
    return data


def read_answer():
    """The answer and what is wrong with it. Whatever an agent left, it must not make this program fail."""
    try:
        answer = json.loads(read_bytes().decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        return {}, f"cannot read {SUBMISSION}: {type(error).__name__}: {error}"[:500]
    if not isinstance(answer, dict):
        return {}, "the answer is not a JSON object"
    return answer, None


def number(value):
    """A finite number, or None. Integers may have any number of digits, also too many for a float."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        value = float(value)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def is_met(value, expected, tolerance):
    value = number(value)
    return value is not None and math.isclose(value, expected, rel_tol=tolerance)


def shown(value):
    """A value for the details. Lists and objects may be too deep to write, integers too long."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value[:200]
    if isinstance(value, (int, float)):
        return number(value)
    return f"a {type(value).__name__}"


answer, problem = read_answer()
fields = {
    key: {"value": shown(answer.get(key)), "met": is_met(answer.get(key), expected, tolerance)}
    for key, (expected, tolerance) in EXPECTED.items()
}
reward = sum(field["met"] for field in fields.values()) / len(fields)
LOGS.mkdir(parents=True, exist_ok=True)
(LOGS / "details.json").write_text(json.dumps({"problem": problem, "fields": fields}), encoding="utf-8")
(LOGS / "reward.json").write_text(json.dumps({"reward": reward}), encoding="utf-8")
