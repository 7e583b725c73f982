//! Rooms from outside: what commands in them can and cannot do, as root and as an ordinary user.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod bare;
mod gateway;
mod groups;
mod isolation;
mod limits;
mod neighbours;
mod view;
mod work;

use std::time::Duration;

use aec_sandbox::{ExecResult, ExecSpec, Limits, Room, RoomSpec, Sandbox as _};

/// The variable that names the program when these tests run again from a copy.
const SHIM: &str = "AEC_TEST_SHIM";

/// Runs all of the above again without privileges. Only root can do that; other users have none anyway.
#[test]
#[cfg_attr(not(root), ignore = "needs root: it becomes an ordinary user")]
fn everything_holds_for_an_ordinary_user() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    const NOBODY: u32 = 65534;
    let copies = tempfile::tempdir().unwrap();
    std::fs::set_permissions(copies.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let (tests, shim) = (copies.path().join("tests"), copies.path().join("aec-bench"));
    std::fs::copy(std::env::current_exe().unwrap(), &tests).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_aec-bench"), &shim).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_aec-bench-agent"), copies.path().join("aec-bench-agent")).unwrap();
    let output = std::process::Command::new(tests)
        .args(["room::", "--skip", "everything_holds_for_an_ordinary_user", "--skip", "room::groups"])
        .arg("--test-threads=2")
        .env(SHIM, shim)
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// A room like an agent's, small enough to fill.
fn spec() -> RoomSpec {
    let shim = std::env::var_os(SHIM).unwrap_or_else(|| env!("CARGO_BIN_EXE_aec-bench").into());
    aec_sandbox::use_shim(shim.into());
    RoomSpec {
        writable: vec!["/workspace".into(), "/logs".into()],
        sealed: vec!["/tests".into()],
        show: Vec::new(),
        programs: Vec::new(),
        limits: Limits { cpus: 1, memory_mb: 256, storage_mb: 64, pids: 64 },
        network: false,
    }
}

fn open() -> Room {
    Room::open(&spec()).unwrap()
}

/// Runs a shell script in a room.
fn sh(room: &mut Room, script: &str) -> ExecResult {
    let mut command = ExecSpec::new(["sh", "-c", script]);
    command.cwd = "/workspace".into();
    command.deadline = Duration::from_secs(20);
    room.exec(&command, &mut |_, _| {}).unwrap()
}

fn out(room: &mut Room, script: &str) -> String {
    let result = sh(room, script);
    format!("{}{}", result.stdout.text(), result.stderr.text()).trim().to_owned()
}
