//! What this host can isolate: opens a real room, and reads the rest from the kernel.

use serde::Serialize;

use crate::error::SandboxError;
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
    /// Limits that hold less than they usually do on this machine, each with the reason.
    pub weaker: Vec<String>,
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
    let (room, held, weaker) = try_room();
    let lsm = read("/sys/kernel/security/lsm");
    Isolation {
        root: rustix::process::geteuid().is_root(),
        room,
        held,
        weaker,
        landlock: (!lsm.is_empty()).then(|| lsm.split(',').any(|name| name.trim() == "landlock")),
        seccomp: read("/proc/sys/kernel/seccomp/actions_avail").contains("errno"),
        cgroups: cgroups(&read("/proc/self/mountinfo")),
    }
}

/// Which limits hold in a room, and those that hold less than they usually do on this machine, each with the reason;
/// absent if no room can be opened.
pub fn limits() -> Option<(Held, Vec<String>)> {
    let (_, held, weaker) = try_room();
    held.map(|held| (held, weaker))
}

/// Opens a small room and runs `true` in it, even if its limits are weaker than they should be.
fn try_room() -> (Trial, Option<Held>, Vec<String>) {
    let spec = RoomSpec {
        writable: vec!["/workspace".into()],
        sealed: Vec::new(),
        show: Vec::new(),
        programs: Vec::new(),
        limits: Limits { cpus: 1, memory_mb: 64, storage_mb: 16, pids: 16 },
        network: false,
    };
    let (opened, weaker) = match Room::open_with(&spec, false) {
        Err(SandboxError::WeakerLimits { missing }) => (Room::open_with(&spec, true), missing),
        opened => (opened, Vec::new()),
    };
    let tried = opened.and_then(|mut room| {
        let result = room.exec(&ExecSpec::new(["true"]), &mut |_, _| {})?;
        Ok((result.exit, room.held()))
    });
    match tried {
        Ok((Exit::Code(0), held)) => (Trial::Works, Some(held), weaker),
        Ok((exit, held)) => (Trial::Fails(format!("`true` ended with {exit:?}")), Some(held), weaker),
        Err(error) => (Trial::Fails(error.to_string()), None, weaker),
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
