//! What this host can isolate: opens a real room, and reads the rest from the kernel.

use serde::Serialize;

use crate::room::{ExecSpec, Exit, Room, Sandbox as _};
use crate::spec::{Held, Limits, RoomSpec};

#[derive(Clone, Debug, Serialize)]
pub struct Isolation {
    /// Whether this process is root.
    pub root: bool,
    /// Whether a room could be opened and a command run in it.
    pub room: Trial,
    /// Which limits hold in it.
    pub held: Option<Held>,
    /// Whether Landlock is enabled; absent if the kernel does not tell.
    pub landlock: Option<bool>,
    /// Whether the kernel filters system calls.
    pub seccomp: bool,
    /// Control groups: `v1`, `v2`, `hybrid` or `none`.
    pub cgroups: &'static str,
}

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "result", content = "reason")]
pub enum Trial {
    Works,
    /// It failed, for this reason.
    Fails(String),
}

/// Examines the host.
pub fn isolation() -> Isolation {
    let read = |path: &str| fs_err::read_to_string(path).unwrap_or_default();
    let (room, held) = try_room();
    let lsm = read("/sys/kernel/security/lsm");
    Isolation {
        root: rustix::process::geteuid().is_root(),
        room,
        held,
        landlock: (!lsm.is_empty()).then(|| lsm.split(',').any(|name| name.trim() == "landlock")),
        seccomp: read("/proc/sys/kernel/seccomp/actions_avail").contains("errno"),
        cgroups: cgroups(&read("/proc/self/mountinfo")),
    }
}

/// Opens a small room and runs `true` in it.
fn try_room() -> (Trial, Option<Held>) {
    let spec = RoomSpec {
        writable: vec!["/workspace".into()],
        sealed: Vec::new(),
        show: Vec::new(),
        programs: Vec::new(),
        limits: Limits { cpus: 1, memory_mb: 64, storage_mb: 16, pids: 16 },
        network: false,
    };
    let tried = Room::open(&spec).and_then(|mut room| {
        let result = room.exec(&ExecSpec::new(["true"]), &mut |_, _| {})?;
        Ok((result.exit, room.held()))
    });
    match tried {
        Ok((Exit::Code(0), held)) => (Trial::Works, Some(held)),
        Ok((exit, held)) => (Trial::Fails(format!("`true` ended with {exit:?}")), Some(held)),
        Err(error) => (Trial::Fails(error.to_string()), None),
    }
}

fn cgroups(mountinfo: &str) -> &'static str {
    let has = |kind: &str| {
        mountinfo.lines().any(|line| line.split(" - ").nth(1).is_some_and(|rest| rest.starts_with(kind)))
    };
    match (has("cgroup "), has("cgroup2 ")) {
        (true, true) => "hybrid",
        (true, false) => "v1",
        (false, true) => "v2",
        (false, false) => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_groups_are_read_from_the_mounts() {
        let v1 = "30 25 0:26 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n";
        let v2 = "31 25 0:27 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n";
        assert_eq!(cgroups(v1), "v1");
        assert_eq!(cgroups(v2), "v2");
        assert_eq!(cgroups(&format!("{v1}{v2}")), "hybrid");
        assert_eq!(cgroups(""), "none");
    }
}
