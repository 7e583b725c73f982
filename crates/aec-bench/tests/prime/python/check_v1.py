"""Checks packages with `verifiers` 0.3.1 and later (`verifiers.v1`): `python check_v1.py --cases CASES SINGLE SURVEYS MIXED`

SINGLE has five single-turn tasks, SURVEYS copies of civil/culvert-survey, civil/survey-000 and so on, each of which names
itself in its instruction, and MIXED tasks with different tools. Every scenario has its own task, so that one run of the library's command line plays them
all, against a model on loopback that plays scripts. Needs `uv`, with which the library prepares its chat program.
With --short, only what every version must get right.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import checks
from checks import expect, section
from model_server import serve

SURVEY = "civil/culvert-survey"
SHORT = ("submit: right", "submit: partial", "nothing", "a submission to another path")
SHORT_ANSWERS = ("right", "partial", "nothing")


def survey(number):
    """The copy of the survey for a scenario."""
    return f"civil/survey-{number:03}"


def call(name, **arguments):
    return [name, arguments]


class Library:
    """The command line of the installed version."""

    def __init__(self, directories, temp):
        self.directories, self.temp = directories, temp
        name = "eval" if version("verifiers").startswith("0.3.") else "vf-eval"
        self.program = Path(sysconfig.get_path("scripts"), name)
        self.limit = "--num-tasks" if name == "eval" else "--select.limit"

    def run(self, package, address, *options, **variables):
        """(exit code, traces by task id, output)"""
        output = Path(self.temp, "out")
        shutil.rmtree(output, ignore_errors=True)
        path = os.pathsep.join((sysconfig.get_path("scripts"), os.environ["PATH"]))
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, self.directories)),
            "PATH": path,
            "SCRIPTED_KEY": "API_KEY_OF_THE_HOST",
            "SECRET": "API_KEY_OF_THE_HOST",
            **variables,
        }
        done = subprocess.run(
            [
                self.program,
                package,
                "-m",
                "scripted",
                "--client.base-url",
                address,
                "--client.api-key-var",
                "SCRIPTED_KEY",
                "--no-push",
                "--no-rich",
                "-c",
                "4",
                "-o",
                output,
                "--env.taskset.split",
                "all",
                *options,
            ],
            env=environment,
            cwd=self.temp,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        traces = {}
        for file in output.rglob("traces.jsonl"):
            for line in file.read_text().splitlines():
                trace = json.loads(line)
                trace = trace["traces"][0] if "traces" in trace else trace
                traces[trace["task"]["key"]] = trace
        return done.returncode, traces, done.stdout[-500:] + done.stderr[-2500:]


def reward(trace):
    given = trace["rewards"].get("aec_bench_reward")
    return given["score"] if isinstance(given, dict) else given


def tool_results(trace):
    messages = [node["message"] for node in trace["nodes"] if node["message"]["role"] == "tool"]
    return [
        one["content"] if isinstance(one["content"], str) else "".join(part.get("text", "") for part in one["content"])
        for one in messages
    ]


def scenarios(directory, cases):
    """The scenarios, with (reward, stop condition or None, source) and a further check."""
    answers = {case["name"]: case["answer"] for case in cases if case["task_id"] == SURVEY}
    rewards = {case["name"]: case["reward"] for case in cases if case["task_id"] == SURVEY}
    right = answers["right"]
    look, submit = call("list_files"), call("submit_answer", content=right)
    played = [
        *(
            (
                f"submit: {name}",
                [[call("submit_answer", content=answers[name])]],
                rewards[name],
                "answer_submitted",
                "submission",
                None,
            )
            for name in ("right", "wrong", "partial", "no JSON")
        ),
        ("nothing", [" "], rewards["nothing"], None, "none", None),
        ("submit on the last turn", [[look], [look], [look], [submit]], 1.0, "answer_submitted", "submission", None),
        ("no submission on the last turn", [[look]] * 9, 0.0, "max_turns_reached", "none", lambda told: len(told) >= 3),
        (
            "a submission to another path",
            [[call("submit_answer", content=right, path="elsewhere.json")]],
            1.0,
            "answer_submitted",
            "submission",
            None,
        ),
        (
            "a file",
            [[call("write_file", path="report/answer.json", content=right)], "Done."],
            1.0,
            None,
            "workspace",
            None,
        ),
        ("a message", [[look], right], 1.0, None, "message", None),
        (
            "mistakes",
            [
                [call("read_file", path="../x"), call("list_files", path="nowhere")],
                [
                    call("bash", command="mkdir empty; pwd"),
                    call("list_files", path="empty"),
                    call("bash", command="exit 2"),
                ],
                "no",
            ],
            0.0,
            None,
            "message",
            lambda told: (
                [
                    word in one
                    for word, one in zip(
                        ("not a path below", "no such file", "/workspace", "no files", "[exit code: 2]"), told
                    )
                ]
                == [True] * 5
            ),
        ),
    ]
    for what, (command, forbidden) in checks.cheats(directory, checks.verifier_secrets(directory)).items():
        played.append(
            (
                f"cheat: {what}",
                [
                    [call("bash", command=command)],
                    [call("bash", command="sleep 0.2; cat alive | wc -l")],
                    "I did nothing.",
                ],
                0.0,
                None,
                None,
                lambda told, forbidden=forbidden: told and not any(word in one for word in forbidden for one in told),
            )
        )
    return played


def check_surveys(library, directory, cases, short):
    played = scenarios(directory, cases)
    if short:
        played = [one for one in played if one[0] in SHORT or one[0].startswith("cheat: P")]
        expect("the short list", len(played) == len(SHORT) + 4, played)
    scripts = {f"{survey(number)}.": one[1] for number, one in enumerate(played)}
    with serve({"scripted": scripts}) as (address, seen):
        code, traces, said = library.run("aec_surveys", address, library.limit, str(len(played)))
    expect("the command line ends well", code == 0 and len(traces) == len(played), (code, len(traces), said))
    names = {tool["function"]["name"] for tool in seen[0].get("tools", [])}
    expect("the tools", names == {"bash", "read_file", "write_file", "edit_file", "list_files", "submit_answer"} | {"grade"}, names)
    for number, (what, _, earned, stop, source, look) in enumerate(played):
        trace = traces.get(survey(number))
        if trace is None:
            expect(what, False, "no trace")
            continue
        verdict = trace["info"].get("aec_bench", {})
        good = (
            reward(trace) == earned
            and not trace["errors"]
            and (stop is None or trace["stop_condition"] == stop)
            and (source is None or verdict["source"] == source)
            and (look is None or look(tool_results(trace)))
        )
        expect(
            f"{what}: {earned}",
            good,
            (reward(trace), trace["stop_condition"], trace["errors"], verdict, tool_results(trace)),
        )
        if number == 0:
            expect(
                "metrics",
                trace["metrics"]["submitted"] == 1.0
                and trace["metrics"]["source_message"] == 0.0
                and trace["metrics"]["verifier_fault"] == 0.0,
            )
            expect(
                "info is recorded",
                trace["task"]["data"]["info"]["isolation"] == "namespaces"
                and trace["task"]["data"]["info"]["overlap"] is False,
            )


def check_single(library, directory, cases, short):
    manifest = json.loads(Path(directory, directory.name, "tasks.json").read_text(encoding="utf-8"))
    tasks = [(task["task_id"], task["instruction"]) for task in manifest["tasks"]]
    # Each task gets a different one of the five answers.
    names = [case["name"] for case in cases if case["task_id"] == tasks[0][0]]
    expect("single turn: a task for every kind of answer", len(tasks) == len(names) == 5, (tasks, names))
    if short:
        names = SHORT_ANSWERS
        tasks = tasks[: len(names)]
    kinds = {task_id: name for (task_id, _), name in zip(tasks, names)}
    own = [case for case in cases if kinds.get(case["task_id"]) == case["name"]]
    answers = {case["task_id"]: case["answer"] or " " for case in own}
    scripts = {instruction: [answers[task_id]] for task_id, instruction in tasks}
    with serve({"scripted": scripts}) as (address, seen):
        code, traces, said = library.run(directory.name, address, library.limit, str(len(tasks)))
    good = code == 0 and len(traces) == len(tasks)
    expect("single turn: the command line ends well", good, (code, len(traces), said))
    expect("single turn: no tools", seen and all(not body.get("tools") for body in seen))
    for case in own:
        trace = traces.get(case["task_id"], {"rewards": {}, "errors": ["none"]})
        expect(
            f"single turn: {case['name']}: {case['reward']}",
            reward(trace) == case["reward"] and not trace["errors"],
            trace["rewards"],
        )


def check_servers(library, surveys, mixed):
    """One server serves all rollouts if it can."""
    sys.path[:0] = [str(surveys), str(mixed)]
    for package, expected in (("aec_surveys", (1, 0)), ("aec_mixed", (0, 1))):
        v1 = import_module(f"{package}.v1")
        config = v1.AecBenchTasksetConfig(split="all")
        found = (len(v1.AecBenchTaskset.toolsets(config)), len(v1.AecBenchTask.toolsets(config.task)))
        expect(f"servers of {package} for all rollouts, and for each", found == expected, found)
    with serve({"scripted": [[call("bash", command="pwd")], [call("submit_answer", content="{}")]]}) as (address, _):
        code, traces, said = library.run("aec_mixed", address)
    told = [(tool_results(trace), trace["stop_condition"], trace["errors"]) for trace in traces.values()]
    right = [(["/workspace\n"], "answer_submitted", [])] * len(traces)
    expect("servers for each rollout", code == 0 and len(traces) > 1 and told == right, (code, told, said))


def check_arguments(library, temp, surveys):
    look = [[call("list_files")]] * 9
    with serve({"scripted": look}) as (address, _):
        code, traces, said = library.run(
            "aec_surveys",
            address,
            "--env.taskset.max-total-tokens",
            "200",
            "--env.taskset.num-examples",
            "1",
            "--env.taskset.seed",
            "7",
        )
        stops = [trace["stop_condition"] for trace in traces.values()]
        expect("the token budget stops", code == 0 and stops == ["token_budget_reached"], (code, stops, said))
        code, traces, said = library.run("aec_surveys", address, AEC_BENCH_TEST_NO_NAMESPACES="1")
        expect("without namespaces loading says what to do", code != 0 and 'confinement="none"' in said, (code, said))
        code, traces, said = library.run("aec_surveys", address, "--env.taskset.difficulty", "simple")
        expect("a wrong argument is an error", code != 0 and "easy, medium, hard" in said, (code, said))
    broken = Path(temp, "broken", "aec_surveys")
    shutil.copytree(Path(surveys, "aec_surveys"), broken)
    manifest = json.loads((broken / "tasks.json").read_text(encoding="utf-8"))
    file = next(file for file in manifest["tasks"][0]["verifier"]["files"] if file["path"] == "test.sh")
    (broken / "files" / file["sha256"]).write_text("exit 0")
    with serve({"scripted": [[call("submit_answer", content="{}")]]}) as (address, _):
        directories, library.directories = library.directories, [broken.parent]
        code, traces, said = library.run("aec_surveys", address, "--env.taskset.num-examples", "1")
        library.directories = directories
        found = [
            (reward(trace), [error["type"] for error in trace["errors"]], trace["metrics"].get("verifier_fault"))
            for trace in traces.values()
        ]
        expect(
            "a verifier's fault is an error of the rollout, no reward",
            found == [(0.0, ["SandboxError"], 1.0)],
            (code, found, said),
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", required=True)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("packages", nargs=3, type=Path)
    arguments = parser.parse_args()
    single, surveys, mixed = (path.resolve() for path in arguments.packages)
    temp = checks.own_temp()
    checks.plant_key()
    cases = json.loads(Path(arguments.cases).read_text())
    print("verifiers", version("verifiers"), "python", sys.version.split()[0])
    try:
        library = Library([single, surveys, mixed], temp)
        with section("surveys"):
            check_surveys(library, surveys, cases, arguments.short)
        with section("single turn"):
            check_single(library, single, cases, arguments.short)
        with section("servers"):
            check_servers(library, surveys, mixed)
        if not arguments.short:
            with section("arguments"):
                check_arguments(library, temp, surveys)
        left = [*checks.left(temp), *(path.name for path in Path.home().rglob("aec-bench-*") if path.is_dir())]
        expect("no temporary files are left", left == [], left)
    finally:
        shutil.rmtree(temp, ignore_errors=True)
    checks.finish()


if __name__ == "__main__":
    main()
