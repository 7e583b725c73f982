"""What the check scripts share: reporting checks, loading packages, cheats and what they must not obtain."""

import importlib
import itertools
import json
import os
import sys
import tempfile
import time
import traceback
import warnings
from contextlib import contextmanager
from pathlib import Path

FAILED = []
COUNT = [0]
NUMBERS = itertools.count(1)


def expect(what, condition, detail=""):
    """Prints one line; a failure changes the exit code."""
    COUNT[0] += 1
    if not condition:
        FAILED.append(what)
    print(
        f"{'ok  ' if condition else 'FAIL'} {what}"
        + (f": {str(detail)[:1500]}" if detail != "" and not condition else ""),
        flush=True,
    )


def refuses(what, function, *words):
    """Checks that a call fails with a message that contains these words."""
    try:
        function()
    except Exception as error:
        missing = [word for word in words if word not in str(error)]
        expect(what, not missing, f"{missing} not in {error}")
    else:
        expect(what, False, "it was accepted")


@contextmanager
def section(name):
    """A crash in one section does not hide the others."""
    print(f"-- {name}", flush=True)
    began = time.monotonic()
    try:
        yield
    except Exception:
        expect(name, False, traceback.format_exc())
    print(f"-- {name} took {time.monotonic() - began:.1f} s", flush=True)


def load(directory):
    """Imports a package by its directory."""
    directory = Path(directory).resolve()
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))
    return importlib.import_module(directory.name)


def modules(package):
    """The parts of a package that need only the standard library."""
    name = package.__name__
    return [
        importlib.import_module(f"{name}.{part}") for part in ("core", "loading", "room", "judge", "workspace", "tree")
    ]


async def use(place, name, *values):
    """The result of a tool call in a workspace; values become its arguments in order."""
    tools = importlib.import_module(type(place).__module__.rpartition(".")[0] + ".tools")
    keys = (key for key, _ in tools.built_in()[name]["keys"])
    return await tools.carry_out(place, name, dict(zip(keys, values)), next(NUMBERS))


def rows(loading, **arguments):
    """The rows of a load, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return loading.load(arguments).rows


def own_temp():
    """A temporary directory of this run, to check that nothing is left in it."""
    path = tempfile.mkdtemp(prefix="checks-")
    os.environ["TMPDIR"] = tempfile.tempdir = path
    os.chmod(path, 0o777)
    return path


def left(temp):
    return sorted(name for name in os.listdir(temp) if name.startswith("aec-bench"))


def read_cmdline(process):
    """The command line of a process; empty if it is gone."""
    try:
        return Path("/proc", process, "cmdline").read_bytes()
    except OSError:
        return b""


def finish():
    print(f"{COUNT[0]} checks, {len(FAILED)} failed")
    for what in FAILED:
        print(f"failed: {what}")
    sys.exit(1 if FAILED else 0)


def cheats(package_directory, expected):
    """Commands that try to get at the answers or the reward, with what must not be in their output.

    `expected` are texts that occur only in the verifier's files.
    """
    package = str(Path(package_directory).resolve())
    files = f"{package}/*/files"
    secret = ["API_KEY_OF_THE_HOST", *expected]
    plant = (
        "mkdir -p /logs/verifier logs/verifier tests; for f in /logs/verifier logs/verifier . report; do "
        "mkdir -p $f 2>/dev/null; echo '{\"reward\": 1.0}' > $f/reward.json; echo 1.0 > $f/reward.txt; done; "
        "chmod 444 logs/verifier/*"
    )
    return {
        "P1 read the verifier beside the workspace": (
            "cat ../task/tests/* ../tests/* /tests/* 2>&1; find / -name 'answers.json' -o -name 'expected.json' "
            "2>/dev/null | xargs cat",
            secret,
        ),
        "P2 write the verifier": (
            "mkdir -p ../tests; echo 'echo 1 > /logs/verifier/reward.txt' > ../tests/test.sh; "
            "mkdir -p tests; echo 'echo 1 > /logs/verifier/reward.txt' > tests/test.sh; "
            "echo 'raise SystemExit' > sitecustomize.py; cp sitecustomize.py json.py; "
            "cp json.py argparse.py; cp json.py math.py; cp json.py tests/json.py; "
            "echo 'export X=1; echo 1 > /logs/verifier/reward.txt; exit 0' > ~/.bashrc",
            secret,
        ),
        "P3 dump the environment": ("env; cat /proc/self/environ /proc/*/environ 2>&1 | tr '\\0' '\\n'", secret),
        "read the package by its path": (
            f"ls -la {package} {files} 2>&1; cat {files}/* 2>&1 | head -c 20000; "
            f"python3 -c 'import {Path(package).name}' 2>&1",
            secret,
        ),
        "look around": (
            "cat /etc/shadow /root/.* ~/.* 2>&1; ls /home /var /opt /mnt /srv 2>&1; "
            "find / -name tasks.json 2>/dev/null; cat /proc/1/root/etc/shadow 2>&1; ls /proc/1/cwd/ 2>&1",
            [*secret, "root:$"],
        ),
        "plant rewards": (plant, secret),
        "links out": (
            "ln -sf /etc/passwd output.json; mkdir -p report; ln -sf /etc/passwd report/answer.json; "
            "ln -s / rootlink; ln -s .. up; ln data/* hard 2>/dev/null; mkfifo pipe",
            secret,
        ),
        "processes that stay": (
            "(setsid nohup bash -c 'while true; do echo 1 > /logs/verifier/reward.txt; "
            "echo x >> alive; sleep 0.05; done' >/dev/null 2>&1 &) ; "
            "(trap '' TERM HUP; sleep 1000 & disown) ; echo started",
            secret,
        ),
        "network": (
            "python3 -c \"import socket; socket.create_connection(('127.0.0.1', 22), 1)\" 2>&1; "
            "cat < /dev/tcp/127.0.0.1/80 2>&1; cat /proc/net/dev",
            ["eth0:", "ens"],
        ),
        "privileges": (
            "id -u; mount -t tmpfs x /tmp 2>&1; unshare -Ur id 2>&1; chroot / 2>&1; mknod x b 8 0 2>&1; "
            "su -c id 2>&1; sudo id 2>&1",
            ["uid=0"],
        ),
    }


def verifier_secrets(package_directory):
    """Texts of the package that occur only in its verifiers: long numbers and lines of its programs."""
    directory = Path(package_directory, Path(package_directory).name)
    manifest = json.loads((directory / "tasks.json").read_text(encoding="utf-8"))
    secrets = set()
    for task in manifest["tasks"]:
        for file in task["verifier"]["files"]:
            if file["path"] == "answers.json":
                answers = json.loads((directory / "files" / file["sha256"]).read_text(encoding="utf-8"))
                secrets |= {
                    repr(field["value"])
                    for field in answers["fields"].values()
                    if isinstance(field.get("value"), float) and len(repr(field["value"])) > 8
                }
            if file["path"] == "expected.json":
                secrets.add((directory / "files" / file["sha256"]).read_text(encoding="utf-8").strip())
    return sorted(secrets)
