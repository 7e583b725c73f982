"""Checks what needs no rooms: `python check_core.py SINGLE MIXED`

SINGLE is a package of five or more standard single-turn tasks, MIXED one with stateful tasks, among them
civil/culvert-survey. Checks which tasks are selected, that broken packages are noticed, and how rewards are read.
"""

import argparse
import copy
import hashlib
import json
import os
import shutil
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import checks
from checks import expect, modules, refuses, rows, section

SURVEY = "civil/culvert-survey"
CASES = Path(__file__).resolve().parents[4] / "judge/src/settle/cases.json"


def check_selection(single, mixed):
    core, loading, *_ = modules(single)
    package = core.load_package()
    ids = sorted(task.task_id for task in package.tasks)

    def chosen(**arguments):
        return [row.task.task_id for row in rows(loading, **arguments)]

    expect("all tasks, by id", chosen(split="all") == ids)
    expect("train and eval are the sides", sorted(chosen() + chosen(split="eval")) == ids and chosen(split="eval"))
    expect("a missing split is train", chosen(split=None) == chosen(split="train") == chosen(split=""))
    by_hash = sorted(ids, key=lambda one: hashlib.sha256(f"aec-bench order\n-7\n{one}".encode()).hexdigest())
    expect("the order of a seed", chosen(split="all", seed=-7) == by_hash == chosen(split="all", seed="-7"))
    expect("first examples", chosen(split="all", seed=-7, num_examples="2") == by_hash[:2])
    expect(
        "no number is all",
        len(chosen(split="all", num_examples=0)) == len(chosen(split="all", num_examples=-3)) == len(ids),
    )
    easy = [task.task_id for task in package.tasks if task.difficulty == "easy"]
    expect("difficulty as text and list", chosen(difficulty="easy") == chosen(difficulty=["easy"]) == sorted(easy))
    indices = {row.task.task_id: row.task.index for row in rows(loading, split="all", seed=3)}
    expect("ids of rows do not depend on the order", all(indices[one] == at for at, one in enumerate(ids)))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        few = loading.load({"difficulty": "easy", "split": "eval"}).rows
    expect(
        "few tasks stay whole, marked and told",
        len(told) == 1
        and "every split" in str(told[0].message)
        and all(row.info["overlap"] for row in few)
        and len(few) == len(easy),
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        expect("many tasks do not overlap", not any(row.info["overlap"] for row in loading.load({}).rows) and not told)
    many = replace(package, tasks=tuple(replace(task, side="train") for task in package.tasks))
    whole = core.select(many, core.read_options({"split": "eval"}))
    expect("tasks on one side stay whole", whole.overlap and len(whole.tasks) == len(many.tasks), whole)
    plain = replace(package, tasks=tuple(replace(task, difficulty=None) for task in package.tasks))
    refuses("no task of a difficulty", lambda: core.select(plain, core.read_options({"difficulty": "hard"})), "hard")
    for name, value, word in [
        ("split", "test", "train, eval, all"),
        ("difficulty", "simple", "easy, medium, hard"),
        ("difficulty", 3, "text"),
        ("num_examples", True, "whole"),
        ("num_examples", 1.5, "whole"),
        ("num_examples", "many", "whole"),
        ("seed", "1.0", "whole"),
        ("harness", "bash", "auto, single-turn, stateful"),
        ("max_turns", 0, "from 1 up"),
        ("max_turns", "x", "whole"),
        ("max_total_tokens", -1, "from 1"),
        ("command_timeout_sec", "nan", "above 0"),
        ("command_timeout_sec", False, "above 0"),
        ("confinement", "maybe", "auto, required, none"),
        ("depth", 1, "the arguments are split"),
    ]:
        refuses(f"{name}={value!r} is refused", lambda: loading.load({name: value}), word, f"`{name}`")
    held = rows(
        loading, split="all", harness="stateful", max_turns="7", max_total_tokens=99, command_timeout_sec="1.5"
    )[0].terms
    expect(
        "arguments win over limits",
        (held.max_turns, held.max_total_tokens, held.command_timeout_sec) == (7, 99, 1.5),
        held,
    )
    mixed_loading = modules(mixed)[1]
    refuses(
        "single-turn names the task that cannot",
        lambda: mixed_loading.load({"harness": "single-turn", "split": "all"}),
        SURVEY,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expect("auto is stateful if any task is", mixed_loading.load({"split": "all"}).harness == "stateful")
        expect("auto is single-turn if none is", loading.load({"split": "all"}).harness == "single-turn")


def check_manifest(single, temp):
    core = modules(single)[0]
    source = core.DIRECTORY
    broken = Path(temp, "broken")
    shutil.copytree(source, broken)
    manifest = json.loads((source / "tasks.json").read_text(encoding="utf-8"))
    file = core.load_package().tasks[0].verifier.files[0]
    (broken / "files" / file.sha256).write_bytes(b"raise SystemExit(0)")
    package = core.load_package(broken)
    refuses("a changed file is noticed", lambda: package.content(file), file.sha256, "install the package again")
    for what, change, word in [
        ("another schema", lambda m: m.update(schema_version=2), "schema_version is 2"),
        ("a missing key", lambda m: m["tasks"][0].pop("limits"), "'limits'"),
        ("a wrong type", lambda m: m.update(tasks=[7]), "type"),
        ("an unknown order", lambda m: m.update(answer_order="newest_first"), "answer_order"),
    ]:
        changed = copy.deepcopy(manifest)
        change(changed)
        (broken / "tasks.json").write_text(json.dumps(changed))
        core.load_package.cache_clear()
        refuses(what, lambda: core.load_package(broken), word, "tasks.json")
    del manifest["answer_order"]
    (broken / "tasks.json").write_text(json.dumps(manifest))
    core.load_package.cache_clear()
    expect("a package of before has its order", core.load_package(broken).answer_order == "submitted_first")
    (broken / "tasks.json").write_bytes(b'{"schema_version": 1, \xff')
    core.load_package.cache_clear()
    refuses("a broken manifest", lambda: core.load_package(broken), "tasks.json", "JSON")
    (broken / "tasks.json").unlink()
    refuses("no manifest", lambda: core.load_package(broken), "tasks.json")
    shutil.rmtree(broken)
    core.load_package.cache_clear()


def check_rewards(single, temp):
    judge = modules(single)[3]
    logs = Path(temp, "logs")

    def read(files):
        shutil.rmtree(logs, ignore_errors=True)
        (logs / "verifier").mkdir(parents=True)
        for name, content in files.items():
            if callable(content):
                content(logs / "verifier" / name)
            else:
                (logs / "verifier" / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return judge.read_reward(str(logs))

    for text, reward in [
        ('{"reward": 1}', 1.0),
        ('{"reward": 0.25, "note": [1, {"reward": 2, "reward": 3}]}', 0.25),
        ('{"reward":0}\n', 0.0),
        ('{"reward": 1e-3}', 0.001),
    ]:
        expect(f"reward.json {text[:40]}", read({"reward.json": text}) == reward)
    for text, reward in [("1", 1.0), ("0.5\n", 0.5), ("1.0\r\n", 1.0), ("0", 0.0)]:
        expect(f"reward.txt {text!r}", read({"reward.txt": text}) == reward)
    for text in [
        "",
        "1",
        "null",
        "[1]",
        "{}",
        '{"reward": NaN}',
        '{"reward": Infinity}',
        '{"reward": -1}',
        '{"reward": -0.0}',
        '{"reward": -0}',
        '{"reward": 2}',
        '{"reward": 1.0000001}',
        '{"reward": 1e309}',
        '{"reward": true}',
        '{"reward": "1"}',
        '{"reward": [1]}',
        '{"reward": null}',
        '{"reward": 0, "reward": 1}',
        '{"reward": 1} {"reward": 1}',
        "\ufeff" + '{"reward": 1}',
        '{"x": ' + "[" * 3000 + ', "reward": 1}',
        '{"reward": ' + "9" * 4000 + "}",
        '{"reward": 0.' + "3" * 10000 + "}",
        b'{"reward": 1\xff}',
    ]:
        refuses(f"reward.json {text[:30]!r} is refused", lambda: read({"reward.json": text}), "re")
    for text in ["", "x", "1 ", " 1", "+1", "-0", "1\n\n", "nan", "inf", "1e0", "2", "0x1", "1,0", "１"]:
        refuses(f"reward.txt {text!r} is refused", lambda: read({"reward.txt": text}), "re")
    refuses("two rewards", lambda: read({"reward.txt": "1", "reward.json": '{"reward": 1}'}), "both")
    refuses("no reward", lambda: read({}), "neither")
    refuses("a link", lambda: read({"x": "1", "reward.txt": lambda path: path.symlink_to("x")}), "cannot be read")
    refuses("a pipe", lambda: read({"reward.txt": lambda path: os.mkfifo(path)}), "regular")
    refuses("a directory", lambda: read({"reward.txt": lambda path: path.mkdir()}), "")


def check_answers(single, temp):
    """The same table that the tests of the crate `judge` use."""
    core, judge = modules(single)[0], modules(single)[3]
    cases = json.loads(CASES.read_text(encoding="utf-8"))
    for number, case in enumerate(cases):
        directory = Path(temp, f"case-{number}")
        files = directory / "workspace"
        files.mkdir(parents=True)
        for path, text in (case["files"] or {}).items():
            (files / path).parent.mkdir(parents=True, exist_ok=True)
            (files / path).write_bytes(text.encode())
        for path, target in case["links"].items():
            (files / path).symlink_to(target)
        given = {path: text.encode() for path, text in case["given"].items()}
        package = SimpleNamespace(answer_order=case["order"], content=lambda file: given[file.path])
        task = SimpleNamespace(
            workspace=[core.File(path, "", False) for path in given],
            output_path=case["place"],
            outputs=tuple(case["outputs"]) or None,
        )
        workspace = SimpleNamespace(
            files=str(files), submitted=case["submitted"], package=package, end=lambda: None
        )
        scratch = judge.Scratch(str(directory))
        verdict = judge.Verdict()
        said = judge.last_word(case["said"], case["calls_tools"])
        held = None if case["files"] is None else workspace
        target = judge._freeze(scratch, package, task, held, said, verdict)
        output = Path(target, case["place"])
        answer = output.read_bytes().decode() if output.is_file() else None
        expect(
            f"answer: {case['name']}",
            (verdict.source, answer) == (case["source"], case["answer"]),
            (verdict.source, answer),
        )
        scratch.close()
        shutil.rmtree(directory)
    expect("the table has cases", len(cases) > 50)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("packages", nargs=2)
    temp = checks.own_temp()
    try:
        single, mixed = map(checks.load, parser.parse_args().packages)
        with section("selection"):
            check_selection(single, mixed)
        with section("manifest"):
            check_manifest(single, temp)
        with section("rewards"):
            check_rewards(single, temp)
        with section("answers"):
            check_answers(single, temp)
    finally:
        shutil.rmtree(temp, ignore_errors=True)
    checks.finish()


if __name__ == "__main__":
    main()
