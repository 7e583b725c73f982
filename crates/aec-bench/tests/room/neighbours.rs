//! What a command cannot do to the room's first process, to other processes of its user and to other rooms.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use aec_sandbox::{ExecSpec, KEEPER_LOST, OutputLimits, Sandbox as _};
use aec_xtest::wait::{until, until_some};

use crate::room::{open, out, sh};

/// Everything that a process can do to another one of its user, tried on the process in the first argument. The second
/// argument says whether to include what would reach all processes of this user.
const ACT: &str = r#"
import ctypes, os, platform, resource, signal, sys
pid, everyone = int(sys.argv[1]), len(sys.argv) > 2
libc = ctypes.CDLL(None, use_errno=True)
numbers = {"x86_64": {"ioprio_set": 251, "tgkill": 234, "queue": 129}, "aarch64": {"ioprio_set": 30, "tgkill": 131, "queue": 138}}[platform.machine()]

def attempt(name, act):
    try:
        act()
        print(name, "worked")
    except OSError as error:
        print(name, "refused")

def call(name, *arguments):
    if libc.syscall(numbers[name], *arguments) < 0:
        raise OSError(ctypes.get_errno(), name)

def write(name, text):
    with open(f"/proc/{pid}/{name}", "w") as file:
        file.write(text)

attempt("files", lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (5, 5)))
attempt("time", lambda: resource.prlimit(pid, resource.RLIMIT_CPU, (1000, 1000)))
attempt("priority", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
attempt("scheduler", lambda: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)))
attempt("cores", lambda: os.sched_setaffinity(pid, os.sched_getaffinity(0)))
attempt("disk", lambda: call("ioprio_set", 1, pid, 3 << 13))
attempt("killed-first", lambda: write("oom_score_adj", "1000"))
attempt("dumps", lambda: write("coredump_filter", "0x7f"))
attempt("stop", lambda: os.kill(pid, signal.SIGSTOP))
attempt("fault", lambda: os.kill(pid, signal.SIGCONT))
attempt("thread", lambda: call("tgkill", pid, pid, signal.SIGSTOP))
attempt("handle", lambda: signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGSTOP))
if everyone:
    attempt("fault", lambda: os.kill(pid, signal.SIGSEGV))
    attempt("kill", lambda: os.kill(pid, signal.SIGKILL))
    attempt("all-priorities", lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19))
    attempt("group-priority", lambda: os.setpriority(os.PRIO_PGRP, pid, 19))
    attempt("group-priority", lambda: os.setpriority(os.PRIO_PGRP, 0, 19))
    attempt("disk", lambda: call("ioprio_set", 3, os.getuid(), 3 << 13))
    attempt("memory", lambda: open(f"/proc/{pid}/mem", "r+b").close())
    attempt("environment", lambda: open(f"/proc/{pid}/environ").read())
    attempt("descriptors", lambda: os.listdir(f"/proc/{pid}/fd"))
    attempt("root", lambda: os.listdir(f"/proc/{pid}/root/"))
"#;

/// Calls that take from a pool which all rooms of a user, or of the machine, share.
const POOLS: &str = r#"
import ctypes, fcntl, os, platform, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
io_setup = {"x86_64": 206, "aarch64": 0}[platform.machine()]

def attempt(name, act):
    try:
        act()
        print(name, "worked")
    except OSError as error:
        print(name, "refused")

def call(function, *arguments):
    if function(*arguments) < 0:
        raise OSError(ctypes.get_errno(), "")

context = ctypes.c_ulong(0)
own = os.open(sys.argv[1], os.O_RDONLY | os.O_CREAT, 0o600)
signal.signal(signal.SIGIO, signal.SIG_IGN)
attempt("asynchronous-io", lambda: call(libc.syscall, io_setup, 1, ctypes.byref(context)))
attempt("notification", lambda: call(libc.inotify_init1, 0))
attempt("notification", lambda: call(libc.inotify_init))
attempt("lease", lambda: fcntl.fcntl(own, fcntl.F_SETLEASE, fcntl.F_RDLCK))
attempt("directory-notification", lambda: fcntl.fcntl(os.open("/usr", os.O_RDONLY), fcntl.F_NOTIFY, fcntl.DN_CREATE))
"#;

/// A process of this user, or of a user that nothing else has if this is root.
fn as_one_user(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0) {
        command.uid(64_123).gid(64_123);
    }
    command
}

/// Runs a Python program without a room.
fn unconfined(program: &str, arguments: &[&str]) -> String {
    let mut child = as_one_user("/usr/bin/python3").args(["-I", "-"]).args(arguments).spawn().unwrap();
    child.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn write_program(room: &aec_sandbox::Room, program: &str) {
    room.directory("/workspace").unwrap().write(Path::new("program.py"), program.as_bytes(), false).unwrap();
}

fn all_are(result: &str, word: &str) -> bool {
    result.lines().count() >= 5 && result.lines().all(|line| line.ends_with(word))
}

/// `prlimit` on the first process took an ordinary user's room down, and the trial was repeated.
#[test]
fn a_command_cannot_act_on_the_first_process() {
    let mut victim: Child = as_one_user("sleep").arg("1000").spawn().unwrap();
    let result = unconfined(ACT, &[&victim.id().to_string()]);
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert!(all_are(&result, "worked"), "all of it works on a process of the same user: {result}");
    let mut room = open();
    write_program(&room, ACT);
    let result = out(&mut room, "/usr/bin/python3 -I program.py 1 everyone");
    assert!(all_are(&result, "refused"), "{result}");
    assert!(room.lost().is_none());
    for _ in 0..20 {
        assert_eq!(out(&mut room, "echo still here"), "still here");
    }
}

#[test]
fn a_command_cannot_act_on_another_one_beyond_signals() {
    let mut room = open();
    write_program(&room, ACT);
    let script =
        "sleep 1000 & /usr/bin/python3 -I program.py $! | grep -v 'stop\\|fault\\|thread\\|dumps\\|killed'";
    let result = out(&mut room, script);
    assert!(all_are(&result, "refused"), "{result}");
    // What programs do to themselves works.
    let own = "import os, resource; os.nice(3); os.setpriority(os.PRIO_PROCESS, 0, 5); \
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)); \
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)); print(resource.prlimit(0, resource.RLIMIT_NOFILE))";
    assert_eq!(out(&mut room, &format!("/usr/bin/python3 -I -c '{own}'")), "(100, 100)");
    assert_eq!(
        out(&mut room, "nice -n 5 sh -c 'ulimit -n 50; ulimit -n; trap \"echo caught\" TERM; kill $$'"),
        "50\ncaught"
    );
}

/// One room could take all contexts of asynchronous input and output of the machine.
#[test]
fn shared_pools_are_out_of_reach() {
    let place = tempfile::tempdir().unwrap();
    std::fs::set_permissions(place.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let file = place.path().join("own");
    let result = unconfined(POOLS, &[file.to_str().unwrap()]);
    assert!(all_are(&result, "worked"), "{result}");
    let mut room = open();
    write_program(&room, POOLS);
    let result = out(&mut room, "/usr/bin/python3 -I program.py /workspace/own");
    assert!(all_are(&result, "refused"), "{result}");
    assert_eq!(out(&mut room, "grep -vc _ses /proc/keys"), "0", "no key of the opener is listed");
}

/// A command with input waited for ever, because the kernel gives small pipes to a user with many.
#[test]
fn pipes_of_a_room_do_not_stop_its_opener() {
    let mut room = open();
    write_program(
        &room,
        "import os, time\nfor _ in range(3):\n    if os.fork() == 0: break\n\
         kept = [os.pipe() for _ in range(480)]\nopen(f'/workspace/ready{os.getpid()}', 'w')\ntime.sleep(1000)\n",
    );
    sh(&mut room, "setsid /usr/bin/python3 -I program.py > /dev/null 2>&1 &");
    until("all pipes", || out(&mut room, "ls ready* 2> /dev/null | wc -l") == "4");
    let mut command = ExecSpec::new(["wc", "-c"]);
    command.stdin = vec![b'x'; 50_000];
    command.deadline = Duration::from_mins(1);
    command.stdout = OutputLimits::default();
    assert_eq!(room.exec(&command, &mut |_, _| {}).unwrap().stdout.text().trim(), "50000");
}

#[test]
fn the_loss_of_the_first_process_has_a_kind() {
    let mut room = open();
    assert!(room.lost().is_none());
    let stopper = room.stopper().unwrap();
    kill_first_process_of(&mut room);
    let lost = until_some("the loss is seen", || room.lost());
    assert_eq!(lost.kind(), Some(KEEPER_LOST));
    let error = room.exec(&ExecSpec::new(["true"]), &mut |_, _| {}).unwrap_err();
    assert_eq!(error.kind(), Some(KEEPER_LOST), "{error}");
    room.freeze().unwrap();
    assert!(room.lost().is_none(), "a room that its opener ended is not lost");
    drop(stopper);
    let room = open();
    room.stopper().unwrap().stop();
    assert!(room.lost().is_none());
}

/// Kills the parent of a command, as the host sees it.
fn kill_first_process_of(room: &mut aec_sandbox::Room) {
    let marker = format!("{}", 200_000 + std::process::id());
    sh(room, &format!("setsid sleep {marker} &"));
    let first = until_some("the process is seen", || {
        std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).find_map(|entry| {
            let read = |name: &str| std::fs::read_to_string(entry.path().join(name)).unwrap_or_default();
            let is_it = read("cmdline") == format!("sleep\0{marker}\0");
            let parent = || read("stat").rsplit(") ").next()?.split(' ').nth(1)?.parse::<i32>().ok();
            is_it.then(parent).flatten()
        })
    });
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(first).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
}
