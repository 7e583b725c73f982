"""Checks packages with `verifiers` 0.1.14 to 0.3.1: `python check_v0.py --cases CASES SINGLE MIXED`

Both kinds of environment are run by the library's own `evaluate` and by its command line, against a model on loopback
that plays scripts. Arguments as for check_rooms.py. With --short, only what every version must get right.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import warnings
from pathlib import Path

import checks
from checks import expect, section
from model_server import serve

SURVEY = "civil/culvert-survey"
os.environ["SCRIPTED_KEY"] = "API_KEY_OF_THE_HOST"


def call(name, **arguments):
    return [name, arguments]


async def evaluate(env, address, model, **options):
    from verifiers.types import ClientConfig

    client = ClientConfig(api_base_url=address, api_key_var="SCRIPTED_KEY", max_retries=0)
    done = await env.evaluate(
        client=client,
        model=model,
        num_examples=-1,
        rollouts_per_example=1,
        state_columns=["aec_bench_verdict", "stop_condition"],
        **options,
    )
    return done["outputs"]


def tool_results(output):
    return [message["content"] for message in output["completion"] if message["role"] == "tool"]


def environment(name, **arguments):
    import verifiers as vf

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return vf.load_environment(name, **arguments)


def check_rows(single):
    env = environment(single, split="all", seed=5)
    row = env.get_dataset()[0]
    info = json.loads(row["info"])
    wanted = {
        "task_id",
        "task_revision",
        "family",
        "difficulty",
        "discipline",
        "visibility",
        "instruction",
        "split",
        "overlap",
        "seed",
        "harness",
        "lane",
        "max_turns",
        "max_total_tokens",
        "isolation",
        "verifier_digest",
        "package",
        "package_version",
        "tool_version",
    }
    expect("info has what importers need", wanted <= set(info), wanted - set(info))
    expect(
        "a row is system, user, answer",
        [one["role"] for one in row["prompt"]] == ["system", "user"]
        and row["answer"] == info["task_id"]
        and row["prompt"][1]["content"] == info["instruction"],
    )
    expect("both datasets are given", len(env.get_dataset()) == len(env.get_eval_dataset()) == 5)
    again = {one["answer"]: one["example_id"] for one in environment(single, split="all").get_dataset()}
    expect("ids of rows are stable", all(again[one["answer"]] == one["example_id"] for one in env.get_dataset()))


async def check_cases(packages, cases):
    """Every answer earns the reward of the native judge, however it is submitted."""
    _single, mixed = packages
    scripts = {}
    for at, case in enumerate(cases):
        scripts[f"say-{at}"] = [case["answer"] or " "]
        scripts[f"submit-{at}"] = [[call("submit_answer", content=case["answer"])] if case["answer"] else " "]
    with serve(scripts) as (address, _):
        for at, case in enumerate(cases):
            for package in packages:
                env = environment(package, split="all")
                rows = [index for index, row in enumerate(env.get_dataset()) if row["answer"] == case["task_id"]]
                if not rows:
                    continue
                env.dataset = env.eval_dataset = env.get_dataset().select(rows)
                for way in ("say", "submit") if package == mixed else ("say",):
                    [output] = await evaluate(env, address, f"{way}-{at}")
                    good = (output["reward"], output["metrics"]["aec_bench_reward"], output["error"]) == (
                        case["reward"],
                        case["reward"],
                        None,
                    )
                    expect(
                        f"{package}, {way}: {case['task_id']}, {case['name']}: {case['reward']}",
                        good,
                        (output["reward"], output["metrics"], output["error"], output.get("aec_bench_verdict")),
                    )


def few(cases):
    """The right answer, half of it and none."""
    return [case for case in cases if case["name"] in ("right", "partial", "nothing")]


async def check_loop(mixed, cases, temp):
    """Turns, budgets, sources and errors of the loop with tools."""
    right = next(case["answer"] for case in cases if case["task_id"] == SURVEY and case["name"] == "right")
    look, submit = call("list_files"), call("submit_answer", content=right)
    scripts = {
        "last turn": [[look], [look], [look], [submit]],
        "last turn without": [[look]] * 9,
        "budget": [[look], [look], [submit]],
        "two submissions": [[call("submit_answer", content="{}"), submit]],
        "P4 a submission to another path": [[call("submit_answer", content=right, path="elsewhere.json")]],
        "file": [[call("write_file", path="report/answer.json", content=right)], "Done."],
        "message": [[look], right],
        "mistakes": [
            [
                call("read_file"),
                call("read_file", path="x", mode="r"),
                call("fly", to="x"),
                ["read_file", "[1]"],
                ["read_file", "{"],
                ["read_file", '{"path": ' + "[" * 100_000],
                call("list_files", path="nowhere"),
                call("list_files", path=None),
                call("read_file", path="../x"),
            ],
            [
                call("bash", command="echo hi | tr a-z A-Z && pwd"),
                call("bash", command="mkdir empty"),
                call("list_files", path="empty"),
                call("bash", command="exit 2"),
            ],
            "no",
        ],
        "slow": [[call("bash", command="sleep 30")], "no"],
    }
    with serve(scripts) as (address, seen):
        env = environment(mixed, split="all", harness="stateful")
        only = [index for index, row in enumerate(env.get_dataset()) if row["answer"] == SURVEY]

        async def play(model, **arguments):
            env = environment(mixed, split="all", **arguments)
            env.dataset = env.eval_dataset = env.get_dataset().select(only)
            [output] = await evaluate(env, address, model)
            return output

        output = await play("last turn")
        expect(
            "calls of the last turn are carried out",
            output["reward"] == 1.0
            and output["stop_condition"] == "has_final_env_response"
            and len(tool_results(output)) == 4,
            (output["reward"], output["stop_condition"]),
        )
        expect(
            "metrics tell where the answer came from",
            output["metrics"]["submitted"] == 1.0
            and output["metrics"]["source_message"] == 0.0
            and output["metrics"]["verifier_fault"] == 0.0
            and output["aec_bench_verdict"]["source"] == "submission",
            output["metrics"],
        )
        output = await play("last turn without")
        expect(
            "the turn limit stops",
            output["stop_condition"] == "max_turns_reached"
            and len(tool_results(output)) == 4
            and output["reward"] == 0.0,
        )
        output = await play("last turn without", max_turns=2)
        expect(
            "the turn limit can be set",
            output["stop_condition"] == "max_turns_reached" and len(tool_results(output)) == 2,
        )
        output = await play("budget", max_total_tokens=200)
        expect(
            "the token budget stops",
            output["stop_condition"] == "token_budget_reached" and len(tool_results(output)) == 2,
            output["stop_condition"],
        )
        output = await play("budget", max_total_tokens="350")
        expect(
            "a submission in the turn that breaks the budget counts", output["reward"] == 1.0, output["stop_condition"]
        )
        for model, source in [
            ("two submissions", "submission"),
            ("P4 a submission to another path", "submission"),
            ("file", "workspace"),
            ("message", "message"),
        ]:
            output = await play(model)
            expect(
                f"{model} counts",
                output["reward"] == 1.0 and output["aec_bench_verdict"]["source"] == source,
                output["aec_bench_verdict"],
            )
        output = await play("mistakes")
        told = tool_results(output)
        words = [
            "`path` is missing",
            "no argument `mode`",
            "no tool `fly`",
            "not a JSON object",
            "not a JSON object",
            "not a JSON object",
            "no such file",
            "data/survey.csv",
            "not a path below /workspace",
            "HI\n/workspace",
            "(no output)",
            "no files",
            "[exit code: 2]",
        ]
        expect(
            "the model is told its mistakes",
            len(told) == len(words) and all(isinstance(one, str) and word in one for word, one in zip(words, told)),
            told,
        )
        expect("in one line", all("\n" not in one for one in told if one.startswith("error")), told)
        output = await play("slow", command_timeout_sec=0.5)
        expect(
            "the time of commands can be set",
            tool_results(output) == ["\n[timed out after 1 s]"],
            tool_results(output),
        )
        names = {tool["function"]["name"] for tool in seen[0]["tools"]}
        expect("the tools", names == {"bash", "read_file", "write_file", "edit_file", "list_files", "submit_answer"} | {"grade"}, names)
    expect("no temporary files are left by rollouts", checks.left(temp) == [], checks.left(temp))


async def check_cheats(mixed, directory, temp, short):
    secrets = checks.verifier_secrets(directory)
    tricks = checks.cheats(directory, secrets)
    if short:
        tricks = {what: trick for what, trick in tricks.items() if what.startswith("P")}
        expect("the short list of cheats", len(tricks) == 4, list(tricks))
    scripts = {
        what: [
            [call("bash", command=command)],
            [call("bash", command="sleep 0.2; cat alive | wc -l")],
            "I did nothing.",
        ]
        for what, (command, _) in tricks.items()
    }
    with serve(scripts) as (address, _):
        for what, (_, forbidden) in tricks.items():
            outputs = await evaluate(environment(mixed, split="all"), address, what)
            for output in outputs:
                said = "\n".join(tool_results(output))
                expect(
                    f"cheat on {output['answer'] if 'answer' in output else output['example_id']}: {what}",
                    output["reward"] == 0.0 and output["error"] is None and not any(word in said for word in forbidden),
                    (output["reward"], output["error"], said),
                )
    expect("no temporary files are left by cheats", checks.left(temp) == [], checks.left(temp))


async def check_faults(mixed, module, temp):
    """A broken verifier is an infrastructure error, retried if requested, and never a reward."""
    import importlib

    core = importlib.import_module(f"{module.__name__}.core")
    broken = Path(temp, "broken-package")
    shutil.copytree(core.DIRECTORY, broken)
    package = core.load_package()
    file = next(file for file in package.task(SURVEY).verifier.files if file.path == "test.sh")
    (broken / "files" / file.sha256).write_text("exit 0")
    with serve({"x": [[call("submit_answer", content="{}")]]}) as (address, seen):
        env = environment(mixed, split="all")
        env.dataset = env.eval_dataset = env.get_dataset().filter(lambda row: row["answer"] == SURVEY)
        for rubric in [env.rubric, *getattr(env.rubric, "rubrics", [])]:
            if hasattr(rubric, "package"):
                rubric.package = core.load_package(broken)
        [output] = await evaluate(env, address, "x", max_retries=1)
        error = output["error"] or {}
        expect(
            "a verifier's fault is an error of the infrastructure",
            output["reward"] == 0.0
            and error.get("error") == "InfraError"
            and "install the package again" in str(error),
            (output["reward"], error),
        )
        expect("and is recorded", output["metrics"]["verifier_fault"] == 1.0, output["metrics"])
        expect("and is tried again", len(seen) == 2, len(seen))
    shutil.rmtree(broken)
    core.load_package.cache_clear()
    with serve({"x": [[call("bash", command="touch began; sleep 60")]]}) as (address, seen):
        env = environment(mixed, split="all")
        running = asyncio.ensure_future(evaluate(env, address, "x"))
        while not any(Path(temp).glob("aec-bench-*/workspace/began")):
            await asyncio.sleep(0.05)
        running.cancel()
        await asyncio.wait({running})
        del running, env
        import gc

        gc.collect()
        expect("a cancelled evaluation leaves nothing", checks.left(temp) == [], checks.left(temp))
    with serve({"x": [[call("submit_answer", content="{}")]]}) as (address, seen):
        env = environment(mixed, split="all")
        env.set_score_rollouts(False)
        outputs = await evaluate(env, address, "x")
        expect(
            "rollouts that are never scored leave nothing",
            len(outputs) == 3 and checks.left(temp) == [],
            checks.left(temp),
        )
    expect("an unknown argument is an error", refused(lambda: environment(mixed, depth=3), "depth"))


def refused(function, word):
    try:
        function()
    except Exception as error:
        return word in str(error)
    return False


def check_command_line(packages, directories, cases, temp):
    single, mixed = packages
    right = {case["task_id"]: case["answer"] for case in cases if case["name"] == "right"}
    program = Path(sysconfig.get_path("scripts"), "vf-eval")
    environment_ = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, directories)), "HOME": temp}
    with serve({"say": [right[SURVEY]], "submit": [[call("submit_answer", content=right[SURVEY])]]}) as (address, _):
        for package, model, arguments, reward in [
            (mixed, "submit", {"split": "all"}, 1 / 3),
            (single, "say", {"split": "eval"}, 0.0),
        ]:
            output = Path(temp, "out")
            done = subprocess.run(
                [
                    program,
                    package,
                    "-m",
                    model,
                    "-b",
                    address,
                    "-k",
                    "SCRIPTED_KEY",
                    "-n",
                    "-1",
                    "-r",
                    "1",
                    "-s",
                    "-d",
                    "-a",
                    json.dumps(arguments),
                    "-o",
                    output,
                ],
                env=environment_,
                cwd=temp,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            rows = [
                json.loads(line) for path in Path(temp).rglob("results.jsonl") for line in path.read_text().splitlines()
            ]
            mean = sum(row["reward"] for row in rows) / len(rows) if rows else None
            expect(
                f"vf-eval {package}",
                done.returncode == 0 and mean is not None and abs(mean - reward) < 1e-9,
                (done.returncode, mean, done.stderr[-1500:]),
            )
            for path in list(Path(temp).rglob("results.jsonl")):
                path.unlink()
    expect("the command line leaves no temporary files", checks.left(temp) == [], checks.left(temp))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", required=True)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("packages", nargs=2, type=Path)
    arguments = parser.parse_args()
    temp = checks.own_temp()
    checks.plant_key()
    cases = json.loads(Path(arguments.cases).read_text())
    try:
        single, mixed = map(checks.load, arguments.packages)
        expect(
            "importing the package imports nothing of verifiers",
            not any(name.split(".")[0] in ("verifiers", "datasets") for name in sys.modules),
        )
        import verifiers

        names = [single.__name__, mixed.__name__]
        print("verifiers", verifiers.__version__, "python", sys.version.split()[0])
        with section("rows"):
            check_rows(names[0])
        with section("cases"):
            asyncio.run(check_cases(names, few(cases) if arguments.short else cases))
        with section("loop"):
            asyncio.run(check_loop(names[1], cases, temp))
        with section("cheats"):
            asyncio.run(check_cheats(names[1], arguments.packages[1], temp, arguments.short))
        if not arguments.short:
            with section("faults"):
                asyncio.run(check_faults(names[1], mixed, temp))
            with section("command line"):
                check_command_line(names, [path.resolve() for path in arguments.packages], cases, temp)
    finally:
        shutil.rmtree(temp, ignore_errors=True)
    checks.finish()


if __name__ == "__main__":
    main()
