"""Scores /workspace/output.json: the share of expected values that are met."""

import json
import math
import pathlib

# key: (expected value, relative tolerance)
EXPECTED = {
    "cable_size_mm2": (25, 0.0),
    "voltage_drop_v": (8.1396, 0.005),
    "voltage_drop_percent": (2.0349, 0.005),
}

SUBMISSION = pathlib.Path("/workspace/output.json")
LOGS = pathlib.Path("/logs/verifier")


def read_answer():
    try:
        answer = json.loads(SUBMISSION.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return {}, f"cannot read {SUBMISSION}: {error}"
    if not isinstance(answer, dict):
        return {}, "the answer is not a JSON object"
    return answer, None


def is_met(value, expected, tolerance):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return False
    return math.isclose(value, expected, rel_tol=tolerance)


answer, problem = read_answer()
fields = {
    key: {"value": answer.get(key), "met": is_met(answer.get(key), expected, tolerance)}
    for key, (expected, tolerance) in EXPECTED.items()
}
reward = sum(field["met"] for field in fields.values()) / len(fields)
LOGS.mkdir(parents=True, exist_ok=True)
(LOGS / "details.json").write_text(json.dumps({"problem": problem, "fields": fields}), encoding="utf-8")
(LOGS / "reward.json").write_text(json.dumps({"reward": reward}), encoding="utf-8")
