"""What the check scripts share: reporting checks, loading packages, cheats and what they must not obtain."""

import ctypes
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

# A secret in the session keyring of a trainer.
CANARY = "canary-of-the-trainer"
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


def plant_key():
    """Gives this process and its children a session keyring with a secret, as a trainer may have one."""
    add, control = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(ctypes.c_long(control), ctypes.c_long(1), None)
    secret = CANARY.encode()
    libc.syscall(ctypes.c_long(add), b"user", b"aec_bench_test", secret, ctypes.c_long(len(secret)), ctypes.c_long(-3))


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
        "P5 use what is beside the files": (
            "\n".join(
                f"python3 - <<'END'\n{program.strip()}\nEND"
                for program in (KEYS, CALLS, SPACE)
            ),
            [*secret, CANARY, " ok\n", "unbounded"],
        ),
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


# Reads what the session keyring holds, or keeps something there: the word READ is replaced by it.
KEYS = '''
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
add, control = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
session, word = ctypes.c_long(-3), b"READ"
call = lambda *given: libc.syscall(*(ctypes.c_long(one) if isinstance(one, int) else one for one in given))
if word != b"RE" b"AD":
    kept = call(add, b"user", b"aec_bench_test", word, len(word), session)
    print("kept" if kept > 0 else os.strerror(ctypes.get_errno()))
else:
    key = call(control, 10, session, b"user", b"aec_bench_test", 0)
    buffer = ctypes.create_string_buffer(100)
    size = call(control, 11, key, buffer, 100)
    print(key, buffer.raw[:size] if size > 0 else os.strerror(ctypes.get_errno()))
print(open("/proc/keys").read() if os.path.exists("/proc/keys") else "")
'''

# System calls that no command needs: each line says whether one worked.
CALLS = '''
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
numbers = {
    "x86_64": {"keyctl": 250, "bpf": 321, "io_uring": 425, "userfaultfd": 323, "shmget": 29, "clone": 56, "msgget": 68},
    "aarch64": {"keyctl": 219, "bpf": 280, "io_uring": 425, "userfaultfd": 282, "shmget": 194, "clone": 220, "msgget": 186},
}[os.uname().machine]
def call(name, *given):
    number = ctypes.c_long(numbers[name])
    done = libc.syscall(number, *map(ctypes.c_long, given))
    if name == "clone" and done == 0:
        os._exit(0)
    return "ok" if done >= 0 else os.strerror(ctypes.get_errno())
print("keyctl", call("keyctl", 0, -3, 1))
print("bpf", call("bpf", 0, 0, 0))
print("io_uring", call("io_uring", 1, 0))
print("userfaultfd", call("userfaultfd", 0))
print("shmget", call("shmget", 0, 4096, 0o1600))
print("msgget", call("msgget", 0, 0o1600))
print("clone_newuser", call("clone", 0x10000000 | 17, 0, 0, 0, 0))
for family in (socket.AF_NETLINK, socket.AF_PACKET, 38):
    try:
        socket.socket(family, socket.SOCK_RAW if family != 38 else socket.SOCK_SEQPACKET)
        print(family, "ok")
    except OSError as error:
        print(family, error.strerror)
'''

# Says whether the file system of the workspace is as large as a disk. What is written there counts, whatever its name.
SPACE = '''
import os
space = os.statvfs("/workspace")
print("unbounded" if space.f_frsize * space.f_blocks > 1 << 34 else "bounded")
'''

# Writes files without a name until there is no space, up to three times LIMIT MiB; says how many MiB it wrote.
HIDDEN_FILES = '''
import array, mmap, os, socket
held, written, piece = [], 0, bytes(1 << 20)
ours, theirs = socket.socketpair()
try:
    for number in range(3 * LIMIT // 4):
        path = "WHERE/hidden%d" % number
        if number % 2:
            handle = os.open(path, os.O_RDWR | os.O_CREAT)
            os.unlink(path)
        else:
            handle = os.open("WHERE", os.O_RDWR | os.O_TMPFILE)
        for _ in range(4):
            written += os.write(handle, piece) >> 20
        if number % 3 == 0:
            held.append(mmap.mmap(handle, 4096))
            os.close(handle)
        elif number % 3 == 1:
            ours.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [handle]))])
            os.close(handle)
except OSError as error:
    print(written, error)
else:
    print(written, "without an end")
'''


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
