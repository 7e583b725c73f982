"""Writes the native judge's verdicts: `python make_cases.py AEC_BENCH PROJECT OUTPUT TASK...`

For every task: its right answer, its wrong one, one with half of the values wrong, one that is not JSON, and none.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path


def native(program, project, task_id, submission):
    done = subprocess.run(
        [program, "--json", "--project", project, "verify", task_id, "--submission", submission],
        capture_output=True,
        check=False,
    )
    return next(find(json.loads(done.stdout), "reward"))


def find(value, key):
    if isinstance(value, dict):
        if key in value:
            yield value[key]
        for item in value.values():
            yield from find(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from find(item, key)


def main():
    program, project, output, *tasks = sys.argv[1:]
    cases = []
    for task_id in tasks:
        fixtures = Path(project, "tasks", task_id, "tests/fixtures")
        right = json.loads((fixtures / "golden_pass.json").read_text())
        partial = {key: value if at % 2 else -12345.678 for at, (key, value) in enumerate(right.items())}
        answers = {
            "right": json.dumps(right),
            "wrong": (fixtures / "golden_fail.json").read_text(),
            "partial": json.dumps(partial),
            "no JSON": "I do not know.",
            "nothing": None,
        }
        with tempfile.TemporaryDirectory() as scratch:
            for name, text in answers.items():
                target = Path(scratch, name.replace(" ", "-"))
                if text is None:
                    target.mkdir()
                else:
                    target.write_text(text)
                reward = native(program, project, task_id, target)
                cases.append({"task_id": task_id, "name": name, "answer": text, "reward": reward})
    Path(output).write_text(json.dumps(cases, indent=1))
    for case in cases:
        print(case["task_id"], case["name"], case["reward"])


if __name__ == "__main__":
    main()
