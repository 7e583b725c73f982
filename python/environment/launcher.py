"""Runs one command in a room and ends with it. A separate program, started by `room.py`.

Reads its order from one line of JSON on standard input and then watches that input: when it closes, everything is
killed. Reports the result in one line on the descriptor that its first argument names: `{"exit": 3}` or
`{"error": "..."}`.
Descriptors named by further arguments are held until everything has ended, so that locks on them show when that is.

A room has its own namespaces and a root that is built here: what the order shows of the host, read-only, everything
else new. Its first process is a fork of this one; the kernel ends all others with it, and only then does this process
return.

With the order `hold` it runs no command: it keeps the file system of a rollout, which its rooms have in common.
"""

import ctypes
import errno
import json
import os
import resource
import select
import signal
import sys
import warnings  # noqa: F401  os.execvpe imports it, and by then the library may be out of sight

ROOM_ID = 64999
NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, REC, PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
# Flags that statvfs reports for a mount, and the mount flags that keep them.
KEPT_FLAGS = ((8, NOEXEC), (1024, 1024), (2048, 2048), (4096, 1 << 21))
DETACH = 2
SET_PDEATHSIG, SET_DUMPABLE, SET_SECCOMP, CAPBSET_DROP, SET_CHILD_SUBREAPER, SET_NO_NEW_PRIVS, CAP_AMBIENT = 1, 4, 22, 24, 36, 38, 47
SECCOMP_MODE_FILTER, JOIN_SESSION_KEYRING = 2, 1
KEYCTL = {"x86_64": 250, "aarch64": 219}
CAP_AMBIENT_CLEAR_ALL = 4
CAPABILITY_VERSION = 0x20080522
DEVICES = ("null", "zero", "full", "random", "urandom")
DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}

# An empty file, which is put over what a room must not see.
EMPTY = "/run/aec-bench/empty"

libc = ctypes.CDLL(None, use_errno=True)


class StepError(Exception):
    """A step of building the room failed."""


def call(step, function, *arguments):
    """Calls a function of the C library; raises StepError if it fails."""
    if getattr(libc, function)(*arguments) < 0:
        raise StepError(f"{step}: {os.strerror(ctypes.get_errno())}")


def mount(source, target, kind, flags, options=""):
    words = [os.fsencode(word) if word else None for word in (source, target, kind)]
    call(f"mount {target}", "mount", *words, ctypes.c_ulong(flags), os.fsencode(options))


def prctl(option, value):
    call(f"prctl {option}", "prctl", option, *map(ctypes.c_ulong, (value, 0, 0, 0)))


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


# The file system of a room.


def show(root, path):
    """Shows a file or directory of the host, read-only, at the same path. Missing ones are left out."""
    target = root + path
    if not os.path.exists(path) or os.path.lexists(target) and not os.path.isdir(target):
        return
    if os.path.islink(path):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.symlink(os.readlink(path), target)
        return
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        write(target, "")
    mount(path, target, None, BIND | REC)
    for place in mounts_at(target):
        restrict(place, RDONLY)


def cover(root, path):
    """Puts an empty directory or file over something that has been shown. Returns its place, if there is something."""
    target = root + path
    if os.path.islink(target) or not os.path.exists(target):
        return None
    if os.path.isdir(target):
        mount("tmpfs", target, "tmpfs", NOSUID | NODEV, "size=64k,mode=755")
    else:
        mount(root + EMPTY, target, None, BIND)
    return target


def mounts_at(target):
    """A mount and the mounts inside it. Mounts with blanks in their names keep the host's own restrictions."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
        places = [line.split(" ")[4] for line in table]
    return [target] + [place for place in places if place.startswith(target + "/")]


def restrict(place, flags):
    """Restricts a mount. Restrictions of the host's mount must be kept."""
    has = os.statvfs(place).f_flag
    kept = sum(flag for bit, flag in KEPT_FLAGS if has & bit)
    mount(None, place, None, REMOUNT | BIND | NOSUID | NODEV | flags | kept)


def make_scratch(place, spec):
    os.makedirs(place)
    mount("tmpfs", place, "tmpfs", NOSUID | NODEV, f"size={spec['scratch_mb']}m,mode=1777")


def build_root(spec):
    """Builds the room's file system and makes it the root."""
    root = spec["root"]
    mount(None, "/", None, REC | PRIVATE)
    mount("tmpfs", root, "tmpfs", NOSUID | NODEV, "size=16m,mode=755")
    # Before anything is shown, because it may be inside one of them, such as an interpreter in /tmp.
    for place in ("/tmp", "/home/agent"):
        make_scratch(root + place, spec)
    os.makedirs(os.path.dirname(root + EMPTY))
    write(root + EMPTY, "")
    made = [show(root, path) if what == "show" else cover(root, path) for what, path in spec["view"]]
    # Only now, because something may be shown inside of what is covered.
    for covered in filter(None, made):
        restrict(covered, RDONLY)
    make_configuration(root)
    make_devices(root)
    os.makedirs(root + "/run/aec-bench/bin")
    for name, path in spec["programs"].items():
        os.symlink(path, f"{root}/run/aec-bench/bin/{name}")
    os.mkdir(root + "/proc")
    mount("proc", root + "/proc", "proc", NOSUID | NODEV | NOEXEC)
    # The names of all keys of this user, also of those that nobody here can read.
    keys = cover(root, "/proc/keys")
    if keys is not None:
        restrict(keys, RDONLY)
    make_scratch(root + "/dev/shm", spec)
    for source, place, access in spec["binds"]:
        os.makedirs(root + place, exist_ok=True)
        mount(source, root + place, None, BIND)
        restrict(root + place, RDONLY if access == "ro" else 0)
    os.chdir(root)
    call("change the root", "pivot_root", b".", b".")
    call("let the old root go", "umount2", b".", DETACH)
    os.chdir("/")
    restrict("/", RDONLY)


def make_configuration(root):
    os.makedirs(root + "/etc", exist_ok=True)
    user = f"agent:x:{ROOM_ID}:{ROOM_ID}:agent:/home/agent:/bin/bash\n"
    write(root + "/etc/passwd", "root:x:0:0:root:/:/bin/sh\n" + user)
    write(root + "/etc/group", f"root:x:0:\nagent:x:{ROOM_ID}:\n")
    write(root + "/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n")
    write(root + "/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n")


def make_devices(root):
    os.mkdir(root + "/dev")
    for name in DEVICES:
        write(f"{root}/dev/{name}", "")
        mount("/dev/" + name, f"{root}/dev/{name}", None, BIND)
    for name, target in DEVICE_LINKS.items():
        os.symlink(target, f"{root}/dev/{name}")


# The processes of a room.


def map_user(process, user, group):
    """Maps the only user of a user namespace to this user outside."""
    write(f"/proc/{process}/uid_map", f"{ROOM_ID} {user} 1\n")
    write(f"/proc/{process}/gid_map", f"{ROOM_ID} {group} 1\n")


def first_process(spec, status):
    """Builds the room and runs the command in it; returns when the command has ended."""
    prctl(SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    os.umask(0o022)
    prctl(SET_DUMPABLE, 0)
    call("name the room", "sethostname", b"room", 4)
    build_root(spec)
    asked, ask = os.pipe()
    mapped, say_mapped = os.pipe()
    command = os.fork()
    if command == 0:
        try:
            os.close(asked)
            os.close(say_mapped)
            apart = spec["mode"] == "user" or own_user_namespace(ask, mapped)
            if apart:
                # No namespaces inside namespaces. The limit applies only to the room's user namespace.
                write("/proc/sys/user/max_user_namespaces", "0")
            become_agent(spec)
        except Exception as error:
            report(status, {"error": f"{type(error).__name__}: {error}"})
        finally:
            os._exit(126)
    os.close(ask)
    if os.read(asked, 1):
        map_user(command, ROOM_ID, ROOM_ID)
        os.write(say_mapped, b"1")
    os.close(say_mapped)
    while True:
        ended, how = os.wait()
        if ended == command:
            report(status, {"exit": exit_code(how)})
            return


def own_user_namespace(ask, mapped):
    """Gives the command a user namespace, in which its processes are counted separately from those of other rooms.

    If the host allows none, the command runs without one, still as an ordinary user. Returns whether it has one.
    """
    os.setgroups([])
    if libc.unshare(NEWUSER) < 0:
        os.close(ask)
        return False
    os.write(ask, b"1")
    os.read(mapped, 1)
    return True


def become_agent(spec):
    """Gives up every privilege and becomes the command."""
    for capability in range(64):
        if libc.prctl(CAPBSET_DROP, *map(ctypes.c_ulong, (capability, 0, 0, 0))) < 0:
            break
    if spec["mode"] == "root":
        os.setgid(ROOM_ID)
        os.setuid(ROOM_ID)
    libc.prctl(CAP_AMBIENT, *map(ctypes.c_ulong, (CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)))
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    call("drop capabilities", "capset", header, (ctypes.c_uint32 * 6)())
    become_command(spec)


def become_command(spec):
    """Sets the limits of each process and starts the command."""
    prctl(SET_NO_NEW_PRIVS, 1)
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    for name, limit in spec["limits"].items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (limit, limit))
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.chdir(spec["cwd"])
        for program in spec["filter"]:
            install(program)
        os.execvpe(spec["argv"][0], spec["argv"], spec["env"])
    except OSError as error:
        os.write(2, f"{spec['argv'][0]}: {error.strerror}\n".encode())
        os._exit(127)


class Program(ctypes.Structure):
    """A filter of system calls, as the kernel takes it."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def install(text):
    """Installs a filter for this process and all its future children."""
    code = bytes.fromhex(text)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    nothing = ctypes.c_ulong(0)
    call("filter system calls", "prctl", SET_SECCOMP, ctypes.c_ulong(SECCOMP_MODE_FILTER), ctypes.byref(program), nothing, nothing)


def leave_keyring():
    """Takes a new session keyring: the keys of the process that started this one, and of other rooms, are not ours."""
    number = KEYCTL.get(os.uname().machine)
    if number is None or libc.syscall(ctypes.c_long(number), ctypes.c_long(JOIN_SESSION_KEYRING), None) >= 0:
        return
    # Where the kernel or a container has no such call, there are no keyrings either.
    if ctypes.get_errno() not in (errno.ENOSYS, errno.EPERM):
        raise StepError(f"take a new keyring: {os.strerror(ctypes.get_errno())}")


def exit_code(how):
    """The exit code as a shell would report it."""
    return os.waitstatus_to_exitcode(how) if os.WIFEXITED(how) else 128 + os.WTERMSIG(how)


def report(status, message):
    os.write(status, json.dumps(message).encode() + b"\n")


def become_root_of_own(mode):
    """Makes a user namespace, in which an ordinary user may make all the others."""
    if mode == "user":
        user, group = os.geteuid(), os.getegid()
        call("make a user namespace", "unshare", NEWUSER)
        # Without this the kernel refuses a group map from an ordinary user.
        write("/proc/self/setgroups", "deny")
        map_user("self", user, group)


def hold(spec, status):
    """Keeps a new file system of bounded size, in which also files without a name count, for rooms that join this
    process. It ends with the input."""
    become_root_of_own(spec["mode"])
    call("make a mount namespace", "unshare", NEWNS)
    mount(None, "/", None, REC | PRIVATE)
    options = f"size={spec['size_mb']}m,nr_inodes={spec['entries']},mode=755"
    mount("tmpfs", spec["hold"], "tmpfs", NOSUID | NODEV, options)
    for name in spec["places"]:
        place = os.path.join(spec["hold"], name)
        os.mkdir(place)
        if spec["mode"] == "root":
            os.chown(place, ROOM_ID, ROOM_ID)
    report(status, {"held": os.getpid()})
    os.close(status)
    # There is one such process for every open rollout, so it should be a small one. It reads until its input ends.
    os.execve("/bin/cat", ["cat"], {})


def join(holder, mode):
    """Enters the namespaces of a process that holds a file system."""
    kinds = (("user", NEWUSER), ("mnt", NEWNS)) if mode == "user" else (("mnt", NEWNS),)
    opened = [(os.open(f"/proc/{holder}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC), flag) for kind, flag in kinds]
    for handle, flag in opened:
        call("enter the rollout's file system", "setns", handle, flag)
        os.close(handle)


def in_room(spec, status):
    """Runs the command in a new room."""
    if spec["holder"] is not None:
        join(spec["holder"], spec["mode"])
    else:
        become_root_of_own(spec["mode"])
    call("make namespaces", "unshare", NEWNS | NEWPID | NEWNET | NEWIPC | NEWUTS)
    alive, hold = os.pipe()
    first = os.fork()
    if first == 0:
        os.close(alive)
        try:
            first_process(spec, status)
        except Exception as error:
            report(status, {"error": f"{type(error).__name__}: {error}"})
        finally:
            os._exit(0)
    os.close(hold)
    select.select([0, alive], [], [])
    os.kill(first, signal.SIGKILL)
    # Waiting for the first process returns only after all others of the room have ended.
    os.waitpid(first, 0)


def on_host(spec, status):
    """Runs the command without a room and kills everything that it started, even detached processes."""
    prctl(SET_CHILD_SUBREAPER, 1)
    alive, hold = os.pipe()
    command = os.fork()
    if command == 0:
        os.close(alive)
        try:
            os.setsid()
            if os.fork() == 0:
                become_command(spec)
            report(status, {"exit": exit_code(os.wait()[1])})
        except Exception as error:
            report(status, {"error": f"{type(error).__name__}: {error}"})
        finally:
            os._exit(126)
    os.close(hold)
    select.select([0, alive], [], [])
    while True:
        for child in children():
            os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def children():
    """Processes whose parent is this one; it also adopts orphans among its descendants."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            found.append(int(name))
    return found


def main():
    status, *held = map(int, sys.argv[1:])
    for descriptor in (status, *held):
        os.set_inheritable(descriptor, False)
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(0, 65536)
        if not piece:
            return
        line += piece
    spec = json.loads(line)
    try:
        leave_keyring()
        if "hold" in spec:
            hold(spec, status)
        else:
            (on_host if spec["mode"] == "host" else in_room)(spec, status)
    except (StepError, OSError) as error:
        report(status, {"error": str(error)})


if __name__ == "__main__":
    main()
