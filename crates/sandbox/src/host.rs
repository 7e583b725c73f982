//! What this host can isolate: namespaces are tried for real, the rest is read from the kernel.

use std::process::{Command, Stdio};

use serde::Serialize;

/// The means of isolation that were found.
#[derive(Clone, Debug, Serialize)]
pub struct Isolation {
    /// Whether this process is root.
    pub root: bool,
    /// Whether a process could be started in its own user, mount, pid, network, ipc and uts namespaces.
    pub namespaces: Trial,
    /// Whether the kernel has Landlock switched on; absent when it does not say.
    pub landlock: Option<bool>,
    /// Whether the kernel filters system calls.
    pub seccomp: bool,
    /// Control groups: `v1`, `v2`, `hybrid` or `none`.
    pub cgroups: &'static str,
}

/// What happened when something was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "result", content = "reason")]
pub enum Trial {
    /// It worked.
    Works,
    /// It did not, for this reason.
    Fails(String),
    /// It could not be tried.
    Untried(String),
}

/// Looks at the host.
pub fn isolation() -> Isolation {
    let read = |path: &str| fs_err::read_to_string(path).unwrap_or_default();
    let lsm = read("/sys/kernel/security/lsm");
    Isolation {
        root: rustix::process::geteuid().is_root(),
        namespaces: try_namespaces(),
        landlock: (!lsm.is_empty()).then(|| lsm.split(',').any(|name| name.trim() == "landlock")),
        seccomp: read("/proc/sys/kernel/seccomp/actions_avail").contains("errno"),
        cgroups: cgroups(&read("/proc/self/mountinfo")),
    }
}

fn try_namespaces() -> Trial {
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "true"])
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => Trial::Works,
        Ok(output) => Trial::Fails(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Trial::Untried(format!("cannot start `unshare`: {}", error.kind())),
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
