"""Checks rooms, workspaces and judging: `python check_rooms.py --cases CASES SINGLE MIXED`

SINGLE is a package of five or more standard single-turn tasks, MIXED one with stateful tasks, among them
civil/culvert-survey; make_cases.py wrote CASES. Checks that may depend on it are repeated as if the machine permitted
no namespaces. With --short, fewer answers are judged.
"""

import argparse
import asyncio
import gc
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import checks
from checks import expect, modules, read_cmdline, refuses, rows, section, use

SURVEY = "civil/culvert-survey"


async def check_judge(packages, cases):
    for package in packages:
        core, loading, _room, judge, workspace, _ = modules(package)
        for confinement in ("auto", "none"):
            offered = {row.task.task_id: row for row in rows(loading, split="all", confinement=confinement)}
            for case in cases:
                row = offered.get(case["task_id"])
                if row is None:
                    continue
                what = f"{case['task_id']}, {case['name']}, confinement {confinement}"
                verdict = await judge.judge(core.load_package(), row.task, row.terms, None, case["answer"] or "")
                expect(
                    f"as a message: {what}",
                    verdict.reward == case["reward"] and verdict.fault is None,
                    (verdict, case["reward"]),
                )
                if row.terms.harness == "stateful":
                    place = await workspace.Workspace.open(core.load_package(), row.task, row.terms)
                    if case["answer"] is not None:
                        await use(place, "submit_answer", case["answer"])
                    verdict = await judge.judge(core.load_package(), row.task, row.terms, place, "")
                    expect(
                        f"as a submission: {what}",
                        verdict.reward == case["reward"]
                        and verdict.source == ("submission" if case["answer"] else "none"),
                        verdict,
                    )
                    place.close()


async def check_sources(mixed, cases):
    core, loading, _room, judge, workspace, _ = modules(mixed)
    package, row = core.load_package(), next(row for row in rows(loading, split="all") if row.task.task_id == SURVEY)
    row = replace(row, task=replace(row.task, limits=replace(row.task.limits, storage_mb=200)))
    right = next(case["answer"] for case in cases if case["task_id"] == SURVEY and case["name"] == "right")

    async def judged(what, reward, source, message="", *steps):
        place = await workspace.Workspace.open(package, row.task, row.terms)
        try:
            for name, *arguments in steps:
                await use(place, name, *arguments)
            verdict = await judge.judge(package, row.task, row.terms, place, message)
            expect(what, (verdict.reward, verdict.source) == (reward, source) and not verdict.fault, verdict)
            return verdict
        finally:
            place.close()

    output = row.task.output_path
    await judged("a file counts", 1.0, "workspace", "no", ("write_file", output, right))
    await judged("a message counts if there is no file", 1.0, "message", right)
    await judged("an empty message is nothing", 0.0, "none", " \n")
    await judged("a submission wins over a message", 1.0, "submission", "x", ("submit_answer", right))
    await judged("the last submission counts", 1.0, "submission", "", ("submit_answer", "{}"), ("submit_answer", right))
    await judged(
        "P4 a submission to another path is what is judged",
        1.0,
        "submission",
        "no",
        ("write_file", output, "{}"),
        ("submit_answer", right, "other/place.json"),
    )
    await judged(
        "P4 also when it is wrong",
        0.0,
        "submission",
        right,
        ("write_file", output, right),
        ("submit_answer", "{}", "a.json"),
    )
    await judged("an object is no text", 0.0, "none", "", ("submit_answer", json.loads(right)))
    await judged(
        "a file that is handed in",
        1.0,
        "submission",
        "no",
        ("write_file", "b.json", right),
        ("write_file", output, "{}"),
        ("submit_answer", None, "b.json"),
    )
    await judged(
        "a link in the answer's place is nothing",
        0.0,
        "workspace",
        right,
        ("bash", f"mkdir -p report; echo '{right}' > real.json; ln -s ../real.json report/answer.json"),
    )
    await judged(
        "a second name is nothing",
        0.0,
        "workspace",
        right,
        ("bash", f"mkdir -p report; echo '{right}' > real.json; ln real.json report/answer.json"),
    )
    await judged(
        "a linked directory is nothing",
        0.0,
        "workspace",
        right,
        ("bash", f"mkdir real; echo '{right}' > real/answer.json; ln -s real report"),
    )
    for what, command in [
        ("too many files", "for i in $(seq 10050); do : > f$i; done"),
        ("too deep", "d=.; for i in $(seq 18); do d=$d/d; mkdir $d; done"),
    ]:
        verdict = await judged(
            f"{what}: judged as nothing", 0.0, "none", "", ("bash", command), ("write_file", output, right)
        )
        expect(f"{what}: told", verdict.problem is not None and "too" in verdict.problem, verdict)
    large = await judged(
        "a large file is left out",
        1.0,
        "workspace",
        "",
        ("bash", "truncate -s 70M big; chmod 000 big"),
        ("write_file", output, right),
    )
    expect("what is left out is told", large.refused == ["big: it is too large"], large.refused)
    closed = await judged(
        "closed directories do no harm",
        1.0,
        "submission",
        "",
        ("bash", "mkdir shut; touch shut/x; chmod 000 shut"),
        ("submit_answer", right),
    )
    expect("closed directories are told or read", closed.refused in ([], ["shut: it cannot be read"]), closed.refused)
    narrowed = replace(row, task=replace(row.task, outputs=("report",)))
    place = await workspace.Workspace.open(package, row.task, row.terms)
    await use(place, "write_file", "report/answer.json", right)
    await use(place, "bash", "mkfifo notes")
    verdict = await judge.judge(package, narrowed.task, row.terms, place, "")
    expect("`outputs` narrows what is taken", verdict.reward == 1.0 and verdict.refused == [], verdict)
    place.close()


async def check_faults(mixed, cases):
    core, loading, _room, judge, _, _ = modules(mixed)
    package, row = core.load_package(), next(row for row in rows(loading, split="all") if row.task.task_id == SURVEY)
    with tempfile.TemporaryDirectory() as directory:
        os.mkdir(f"{directory}/files")

        async def with_script(script, confined=True, seconds=30):
            data = script.encode()
            digest = hashlib.sha256(data).hexdigest()
            Path(directory, "files", digest).write_bytes(data)
            verifier = replace(row.task.verifier, files=(core.File("test.sh", digest, False),))
            task = replace(
                row.task, verifier=verifier, workspace=(), limits=replace(row.task.limits, verifier_timeout_sec=seconds)
            )
            terms = row.terms if confined else replace(row.terms, isolation="none")
            return await judge.judge(replace(package, directory=Path(directory)), task, terms, None, "x")

        for what, script, word in [
            ("a bad exit code", "echo 1 > /logs/verifier/reward.txt; exit 3", "code 3"),
            ("no reward", "true", "neither"),
            (
                "two rewards",
                "echo 1 > /logs/verifier/reward.txt; echo '{\"reward\": 1}' > /logs/verifier/reward.json",
                "both",
            ),
            ("too much", "echo 2 > /logs/verifier/reward.txt", "0 to 1"),
            ("a link", "echo 1 > /tmp/x; ln -s /tmp/x /logs/verifier/reward.txt", "cannot be read"),
            (
                "a linked directory",
                "rmdir /logs/verifier; mkdir /tmp/x; echo 1 > /tmp/x/reward.txt; ln -s /tmp/x /logs/verifier",
                "cannot be read",
            ),
            ("too slow", "sleep 20; echo 1 > /logs/verifier/reward.txt", "3 seconds"),
        ]:
            verdict = await with_script(script, seconds=3 if what == "too slow" else 30)
            # Nothing shows that such a verifier ever works, so the policy gains nothing by breaking it.
            expect(
                f"a verifier with {what} earns nothing",
                verdict.reward == 0.0 and word in str(verdict.problem) and verdict.fault is None,
                verdict,
            )
        answer = f"/workspace/{row.task.output_path}"
        verdict = await with_script(f"grep -q x {answer} && exit 3; echo 1 > /logs/verifier/reward.txt")
        broke = verdict.reward == 0.0 and "code 3" in str(verdict.broke) and not verdict.fault and not verdict.problem
        expect("an answer that breaks a sound verifier earns nothing", broke, verdict)
        verdict = await with_script("echo 1 > /tests/test.sh; echo 1 > /logs/verifier/reward.txt")
        expect("/tests cannot be written", verdict.reward == 1.0 and not verdict.fault, verdict)
        verdict = await with_script("echo 1 > /logs/verifier/reward.txt; echo '# x' >> /tests/test.sh", confined=False)
        expect("without a room, changed tests are noticed", "changed" in str(verdict.problem), verdict)
        verdict = await with_script("env | cut -d= -f1 | sort | tr '\\n' ' '; exit 1")
        found = verdict.problem.split(": ", 2)[2].split()
        wanted = [
            "HOME",
            "LANG",
            "LC_ALL",
            "PATH",
            "PWD",
            "PYTHONDONTWRITEBYTECODE",
            "PYTHONHASHSEED",
            "PYTHONNOUSERSITE",
            "SHLVL",
            "TZ",
            "_",
        ]
        expect("the environment of verifiers", found == wanted, found)


async def check_tools(mixed, directory):
    core, loading, _room, judge, workspace, _ = modules(mixed)
    package, row = core.load_package(), next(row for row in rows(loading, split="all") if row.task.task_id == SURVEY)
    place = await workspace.Workspace.open(package, row.task, row.terms)

    async def fails(what, word, name, *arguments):
        said = await use(place, name, *arguments)
        expect(what, said.startswith("error: ") and word in said and "\n" not in said, said)

    try:
        expect("files are staged", "data/survey.csv" in await use(place, "list_files"), await use(place, "list_files"))
        expect("read", (await use(place, "read_file", "/workspace/data/survey.csv")).startswith("chainage_m"))
        expect("write", "6 bytes" in await use(place, "write_file", "./a/b.txt", "hällo"))
        expect("what was written is read", await use(place, "read_file", "a/b.txt") == "hällo")
        expect(
            "commands see files", await use(place, "bash", "cat a/b.txt; python3 tools/grade.py 2 1 50") == "hällo2.0\n"
        )
        expect(
            "files see commands",
            await use(place, "bash", "echo hi > c") == "(no output)"
            and await use(place, "read_file", "c") == "hi\n",
        )
        expect("exit codes", await use(place, "bash", "echo out; echo err >&2; exit 3") == "out\n\nSTDERR: err\n\n[exit code: 3]")
        await use(place, "bash", "mkdir empty; : > nothing; head -c 100 /dev/zero > zeros")
        expect("an empty directory", await use(place, "list_files", "empty") == "no files\n")
        expect("an empty file", await use(place, "read_file", "nothing") == "(no output)")
        expect("no text", await use(place, "read_file", "zeros") == "\0" * 100)
        expect(
            "/tmp and home stay between commands",
            "(no output)" == await use(place, "bash", "echo 1 > /tmp/x; echo 2 > ~/y")
            and await use(place, "bash", "cat /tmp/x ~/y") == "1\n2\n",
        )
        long = await use(place, "bash", "seq 100000")
        expect(
            "long output keeps both ends",
            long.startswith("1\n2\n")
            and long.endswith("99999\n100000\n")
            and "bytes left out; the whole output is in /logs/tool-output/" in long
            and len(long) < 51000,
            long,
        )
        for path, word in [
            ("../x", "is not a path below /workspace"),
            ("/etc/passwd", "is not a path below /workspace"),
            ("/workspace/../etc/passwd", "is not a path below /workspace"),
            ("a\0b", "is not a path below /workspace"),
            ("", "is not a path below /workspace"),
            ("/workspace", "is not a path below /workspace"),
            ("/workspaces/x", "is not a path below /workspace"),
            ("x" * 300, "too long"),
            (7, "must be a string"),
            ("none", "no such file"),
            ("data", "is a directory"),
        ]:
            await fails(f"read_file({str(path)[:30]!r})", word, "read_file", path)
        for path, word in [
            ("../x", "is not a path below"),
            ("/etc/passwd", "is not a path below"),
            ("data", "is a directory"),
            ("c/d", "not a directory"),
        ]:
            await fails(f"write_file({path!r})", word, "write_file", path, "x")
        await use(place, "bash", "ln -s /etc etc; ln -s /etc/passwd link; ln -s ../../.. up; mkfifo pipe; ln -s . loop")
        for path, word in [
            ("link", "is a link"),
            ("etc/passwd", "is a link"),
            ("up/etc/passwd", "is a link"),
            ("loop/c", "is a link"),
            ("pipe", "regular"),
        ]:
            await fails(f"links lead nowhere: read {path}", word, "read_file", path)
        await fails("links lead nowhere: write below", "", "write_file", "etc/x", "x")
        await fails("links are not written through", "is a link", "write_file", "link", "mine")
        await fails("nor pipes", "regular", "write_file", "pipe", "mine")
        expect("what a link leads to is as it was", "mine" not in Path("/etc/passwd").read_text())
        listed = await use(place, "list_files")
        expect("links are listed, not followed", "      link etc\n" in listed and "passwd" not in listed, listed)
        await fails("an empty command", "is empty", "bash", " ")
        await fails("a command with NUL", "NUL", "bash", "echo \0")
        await fails("an enormous command", "at most 120000 bytes", "bash", "#" * 200000)
        await fails("an enormous file", "larger", "write_file", "big", "x" * (11 << 20))
        expect("an unknown program", "[exit code: 127]" in await use(place, "bash", "no-such-program"))
        slow = replace(row.terms, command_timeout_sec=5)
        place.terms = slow
        expect(
            "a slow command is stopped",
            (await use(place, "bash", "echo a; sleep 60")) == "a\n\n[timed out after 5 s]",
        )
        place.terms = replace(row.terms, command_timeout_sec=30)
        full = await use(place, "bash", 
            "for i in $(seq 40); do head -c 10000000 /dev/zero > fill$i || exit 1; done"
        )
        expect("a full workspace takes no more", "No space left" in full and "exit code: 1" in full, full)
        await fails("and is told by the file tools", "no space", "write_file", "more", "x")
        await use(place, "bash", "rm fill*")
        expect("memory is bounded", "MemoryError" in await use(place, "bash", "python3 -c 'bytearray(3 << 30)'"))
        expect("file size is bounded", "exit code" in await use(place, "bash", "head -c 80000000 /dev/zero > fill"))
        await use(place, "bash", "rm -f fill")
        processes = await use(place, "bash", "for i in $(seq 800); do sleep 5 & done 2>&1 | tail -1; echo done")
        expect("processes are bounded", "fork" in processes or "Resource" in processes, processes[-200:])
        secrets = checks.verifier_secrets(directory)
        expect("there are secrets to look for", len(secrets) > 1)
        os.environ["SECRET"] = "API_KEY_OF_THE_HOST"
        for what, (command, forbidden) in checks.cheats(directory, secrets).items():
            output = await use(place, "bash", command)
            expect(f"cheat: {what}", not any(text in output for text in forbidden), output)
        before = await use(place, "bash", "cat alive | wc -l; ps -e | grep -c sleep")
        after = await use(place, "bash", "cat alive | wc -l; ps -e | grep -c sleep")
        expect(
            "nothing outlives its command", before == after and before.splitlines()[1] == "0", (before, after)
        )
        verdict = await judge.judge(package, row.task, row.terms, place, "")
        expect("all cheats together earn nothing", verdict.reward == 0.0 and verdict.fault is None, verdict)
    finally:
        place.close()


async def check_beside(mixed):
    """What a policy could do beside its files: keys, hidden files, odd system calls. Each works without a room."""
    core, loading, _room, judge, workspace, _ = modules(mixed)
    package, row = core.load_package(), next(row for row in rows(loading, split="all") if row.task.task_id == SURVEY)

    def here(program):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd="/tmp")
        return done.stdout + done.stderr

    async def there(place, program):
        await use(place, "write_file", "probe.py", program)
        return await use(place, "bash", "python3 probe.py")

    checks.plant_key()
    expect("keys: without a room the trainer's is read", checks.CANARY in here(checks.KEYS))
    expect("keys: without a room one is left", here(checks.KEYS.replace("READ", "x")).count("kept") == 1)
    checks.plant_key()
    first = await workspace.Workspace.open(package, row.task, row.terms)
    second = await workspace.Workspace.open(package, row.task, row.terms)
    try:
        said = await there(first, checks.KEYS)
        expect("keys: in a room it is not", "canary" not in said and "aec_bench_test" not in said, said)
        said = await there(first, checks.KEYS.replace("READ", "message-of-a-rollout"))
        expect("keys: a rollout cannot leave one", "kept" not in said and "not permitted" in said, said)
        said = await there(second, checks.KEYS)
        expect("keys: and none arrives", "message" not in said, said)
        # System calls that this project's own rooms refuse.
        free, bound = here(checks.CALLS), await there(first, checks.CALLS)
        expect("calls: without a room they work", "clone_newuser ok" in free and "shmget ok" in free, free)
        expect("calls: in a room none does", " ok" not in bound and bound.count("\n") >= 8, bound)
        filters = [line for line in (await use(first, "bash", "cat /proc/self/status")).splitlines() if "Seccomp" in line]
        expect("calls: there is a filter", filters[0].split()[1] == "2", filters)
        # Files without a name, held open, mapped, and on their way through a socket.
        limit = row.task.limits.storage_mb
        free = here(checks.HIDDEN_FILES.replace("WHERE", tempfile.mkdtemp()).replace("LIMIT", str(limit)))
        expect("hidden files: without a room they pass the limit", int(free.split()[0]) > 2 * limit, free)
        for where in ("/workspace", "/logs"):
            bound = await there(first, checks.HIDDEN_FILES.replace("WHERE", where).replace("LIMIT", str(limit)))
            expect(f"hidden files: in {where} they count", int(bound.split()[0]) <= limit, bound)
        bound = await use(first, "bash", "head -c 1000000 /dev/zero > after; stat -c %s after")
        expect("hidden files: they are gone with their command", bound.strip() == "1000000", bound)
    finally:
        first.close()
        second.close()


async def check_cancel(mixed, temp):
    core, loading, _room, _judge, workspace, _ = modules(mixed)
    package, row = core.load_package(), next(row for row in rows(loading, split="all") if row.task.task_id == SURVEY)
    place = await workspace.Workspace.open(package, row.task, row.terms)
    running = asyncio.ensure_future(use(place, "bash", "touch began; exec sleep 987654"))
    while not os.path.exists(place.files + "/began"):
        await asyncio.sleep(0.02)
    running.cancel()
    await asyncio.wait({running})
    found = [name for name in filter(str.isdigit, os.listdir("/proc")) if b"987654" in read_cmdline(name)]
    expect("a cancelled command is gone", running.cancelled() and not found, found)
    expect("its files are there until then", checks.left(temp) != [])
    holder = place.holder
    expect("a process holds them", os.path.exists(f"/proc/{holder}"))
    del place, running
    gc.collect()
    expect("a forgotten workspace is removed", checks.left(temp) == [], checks.left(temp))
    expect("and what held its files", not os.path.exists(f"/proc/{holder}"))
    killed = await asyncio.create_subprocess_exec(
        *(sys.executable, "-B", __file__, "--cases", "-", "--inner", "killed", package.directory.parent, "-"),
        stdout=asyncio.subprocess.PIPE,
    )
    told, _ = await killed.communicate()
    holder = int(told.split()[-1])
    while os.path.exists(f"/proc/{holder}"):
        await asyncio.sleep(0.02)
    expect("a killed trainer leaves no holder", killed.returncode == -9)
    shutil.rmtree(temp, ignore_errors=True)
    os.makedirs(temp)


async def be_killed(mixed):
    """Opens a workspace, says what holds it, and is killed."""
    core, loading, _room, _judge, workspace, _ = modules(mixed)
    row = next(row for row in rows(loading, split="all") if row.task.task_id == SURVEY)
    place = await workspace.Workspace.open(core.load_package(), row.task, row.terms)
    print(place.holder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def check_masks(single, temp):
    """A package inside a prefix that rooms can see must be hidden."""
    core, _, room, *_ = modules(single)
    original, prefix = room.library, str(room.DIRECTORY.parent)
    room.library = lambda: (*original(), prefix)
    room._view.cache_clear()
    try:
        view = room._view()
        expect(
            "a package below something shown is covered",
            ("show", prefix) in view and ("cover", str(room.DIRECTORY)) in view,
            view,
        )
        expect("of /usr no more than needed is shown", not {"/usr", "/usr/local", "/usr/src"} & {path for _, path in view})
        limits = core.Limits(1, None, 9.0, 9.0, 9.0, 1, 1024, 64)

        async def look():
            with tempfile.TemporaryDirectory() as root:
                script = f"ls {prefix}; ls -A {room.DIRECTORY}; find / -name tasks.json 2>/dev/null"
                return await room.run(room.Command(("bash", "-c", script), "/", 9.0, limits, root=root), True)

        seen = asyncio.run(look())
        expect(
            "nothing of it is seen in a room",
            "tasks.json" not in seen.output and "core.py" not in seen.output and "pyproject.toml" in seen.output,
            seen,
        )
    finally:
        room.library = original
        room._view.cache_clear()
    packages = [path for what, path in room._view() if what == "cover" and path.endswith("-packages")]
    expect("installed packages are covered", packages != [], room._view())

    async def installed():
        with tempfile.TemporaryDirectory() as root:
            script = f"ls -A {' '.join(packages)} /usr/local /usr/src 2>&1; python3 -c 'import pip'"
            return await room.run(room.Command(("bash", "-c", script), "/", 9.0, limits, root=root), True)

    seen = asyncio.run(installed())
    expect("and not seen", "dist-info" not in seen.output and "No module named 'pip'" in seen.output, seen.output)


def check_without_namespaces(arguments):
    """The same checks as if the machine permitted no namespaces."""
    program = Path(__file__).resolve()
    environment = {**os.environ, "AEC_BENCH_TEST_NO_NAMESPACES": "1"}
    done = subprocess.run(
        [sys.executable, "-B", str(program), "--inner", "bare", *arguments], env=environment, check=False
    )
    expect("without namespaces", done.returncode == 0)


async def bare(single, mixed, cases):
    core, loading, _room, judge, _workspace, _ = modules(single)
    mixed_core, mixed_loading, _, mixed_judge, mixed_workspace, _ = modules(mixed)
    offered = {row.task.task_id: row for row in rows(loading, split="all")}
    case = next(case for case in cases if case["task_id"] in offered and case["name"] == "partial")
    row = offered[case["task_id"]]
    expect("bare: what needs no room says so", row.info["isolation"] == "unneeded")
    verdict = await judge.judge(core.load_package(), row.task, row.terms, None, case["answer"])
    expect("bare: the standard verifier works", verdict.reward == case["reward"], verdict)
    for what, load in [
        ("stateful", lambda: loading.load({"split": "all", "harness": "stateful"})),
        ("own verifiers", lambda: mixed_loading.load({"split": "all"})),
        ("required", lambda: loading.load({"split": "all", "confinement": "required"})),
    ]:
        refuses(f"bare: {what} is an error when loaded", load, "namespaces", 'confinement="none"')
    offered = {row.task.task_id: row for row in rows(mixed_loading, split="all", confinement="none")}
    row = offered[SURVEY]
    expect("bare: `none` is recorded", row.info["isolation"] == "none")
    place = await mixed_workspace.Workspace.open(mixed_core.load_package(), row.task, row.terms)
    os.environ["SECRET"] = "API_KEY_OF_THE_HOST"
    output = await use(place, "bash", 
        "pwd; cat /workspace/data/survey.csv | head -1; env; python3 /workspace/tools/grade.py 2 1 50"
    )
    expect(
        "bare: commands run in the workspace",
        output.startswith("/workspace\nchainage_m") and "API_KEY" not in output and output.endswith("2.0\n"),
        output,
    )
    output = await use(place, "bash", "(setsid sleep 876543 &) ; sleep 876543 & echo started")
    found = [name for name in filter(str.isdigit, os.listdir("/proc")) if b"876543" in read_cmdline(name)]
    expect("bare: nothing outlives its command", output == "started\n" and not found, (output, found))
    for case in cases:
        if case["task_id"] == SURVEY:
            verdict = await mixed_judge.judge(
                mixed_core.load_package(), row.task, row.terms, None, case["answer"] or ""
            )
            expect(f"bare: {case['name']}", verdict.reward == case["reward"], verdict)
    place.close()


def everything(arguments, temp):
    if arguments.inner == "killed":
        asyncio.run(be_killed(checks.load(arguments.packages[0])))
        return
    single, mixed = map(checks.load, arguments.packages)
    cases = json.loads(Path(arguments.cases).read_text())
    judged = [case for case in cases if not arguments.short or case["name"] in ("right", "partial", "nothing")]
    expect(
        "nothing of verifiers is imported",
        not any(name.split(".")[0] in ("verifiers", "datasets") for name in sys.modules),
    )
    print("rooms:", modules(single)[2].namespaces(), "python:", modules(single)[2].interpreter()[0])
    if arguments.inner == "bare":
        asyncio.run(bare(single, mixed, cases))
        return
    with section("judge"):
        asyncio.run(check_judge([single, mixed], judged))
    with section("sources"):
        asyncio.run(check_sources(mixed, cases))
    with section("faults"):
        asyncio.run(check_faults(mixed, cases))
    with section("tools"):
        asyncio.run(check_tools(mixed, arguments.packages[1]))
    with section("beside its files"):
        asyncio.run(check_beside(mixed))
    with section("cancelling"):
        asyncio.run(check_cancel(mixed, temp))
    with section("masks"):
        check_masks(single, temp)
    expect("no temporary files are left", checks.left(temp) == [], checks.left(temp))
    with section("a machine without namespaces"):
        check_without_namespaces(["--cases", arguments.cases, *arguments.packages])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", required=True)
    parser.add_argument("--inner", default="")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("packages", nargs=2)
    arguments = parser.parse_args()
    temp = checks.own_temp()
    try:
        everything(arguments, temp)
    finally:
        shutil.rmtree(temp, ignore_errors=True)
    checks.finish()


if __name__ == "__main__":
    main()
