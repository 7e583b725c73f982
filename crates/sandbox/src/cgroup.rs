//! Control groups: limits for a whole tree of processes, if this machine lets this process set them.
//!
//! A group is named after the process that made it and the time when that process started, so no later process takes
//! it for its own. A killed process leaves its groups; the next process that opens a room removes them.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::process::{ProcessName, is_running};
use crate::spec::Limits;

/// The directory below which all groups of this program are.
const OWN: &str = "aec-bench";
/// The beginning of the name of a room's group.
const ROOM: &str = "room";
/// The beginning of the name of a group that only shows that groups can be made.
const PROBE: &str = "probe";
/// How often a group is made before the room is refused. Another process may remove a group that is still empty.
const TRIES: usize = 3;
const MEMORY: &str = "memory";
const PIDS: &str = "pids";
const CPU: &str = "cpu";

/// The control groups of one room, removed when dropped.
#[derive(Debug, Default)]
pub(crate) struct Cgroup {
    directories: Vec<PathBuf>,
    pub(crate) memory: bool,
    pub(crate) pids: bool,
    pub(crate) cpus: bool,
    /// Why limits that this machine can enforce are not enforced.
    pub(crate) missing: Vec<String>,
    oom_file: Option<PathBuf>,
}

/// Whether groups can be made for a controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Offer {
    /// The machine has no such controller, or does not let this user make groups.
    #[default]
    None,
    /// In this directory.
    Here(PathBuf),
    /// They can usually be made, but making one failed for this reason.
    Broken(String),
}

/// Where this process can make control groups.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hierarchies {
    /// Version 2, if its controllers are usable.
    unified: Offer,
    /// Version 1, by controller.
    memory: Offer,
    pids: Offer,
    cpu: Offer,
}

impl Hierarchies {
    /// Those of this machine. The first call also removes the groups of processes that have ended.
    pub(crate) fn get() -> &'static Self {
        static FOUND: OnceLock<Hierarchies> = OnceLock::new();
        FOUND.get_or_init(|| {
            let found = Self::find();
            found.sweep(false);
            found
        })
    }

    /// Reads the mounts and keeps those that this process may write to.
    pub(crate) fn find() -> Self {
        let mounts = fs_err::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mut found = Self::default();
        for line in mounts.lines() {
            let Some((left, right)) = line.split_once(" - ") else { continue };
            let (Some(point), Some(kind)) = (left.split(' ').nth(4), right.split(' ').next()) else {
                continue;
            };
            let options = right.rsplit(' ').next().unwrap_or_default();
            let point = Path::new(point);
            match kind {
                "cgroup2" => found.unified = unified(point),
                "cgroup" => {
                    let has = |name: &str| options.split(',').any(|option| option == name);
                    let slot = if has(MEMORY) {
                        &mut found.memory
                    } else if has(PIDS) {
                        &mut found.pids
                    } else if has(CPU) {
                        &mut found.cpu
                    } else {
                        continue;
                    };
                    *slot = own_directory(point);
                }
                _ => {}
            }
        }
        found
    }

    /// Makes a group with these limits around a process and its future children.
    pub(crate) fn enclose(&self, limits: &Limits, pid: u32) -> Cgroup {
        let mut group = Cgroup::default();
        for _ in 0..TRIES {
            // The process may already be in a part of the earlier group, which can be removed once it has left.
            group = self.create(limits, pid);
            if group.missing.is_empty() {
                break;
            }
        }
        group
    }

    fn create(&self, limits: &Limits, pid: u32) -> Cgroup {
        let mut group = Cgroup::default();
        let name = new_name(ROOM);
        let memory = (u64::from(limits.memory_mb) * 1024 * 1024).to_string();
        let pids = limits.pids.to_string();
        let quota = u64::from(limits.cpus) * 100_000;
        if self.unified != Offer::None {
            let settings =
                [("memory.max", memory), ("pids.max", pids), ("cpu.max", format!("{quota} 100000"))];
            if let Some(directory) = group.join("limits", &self.unified, &name, &settings, pid) {
                // Without this, processes would go on in swap after they reach the limit.
                set(&directory, "memory.swap.max", "0").ok();
                group.oom_file = Some(directory.join("memory.events"));
                (group.memory, group.pids, group.cpus) = (true, true, true);
            }
            return group;
        }
        let settings = [("memory.limit_in_bytes", memory.clone())];
        if let Some(directory) = group.join(MEMORY, &self.memory, &name, &settings, pid) {
            set(&directory, "memory.memsw.limit_in_bytes", &memory).ok();
            // Buffers of connections count separately here.
            set(&directory, "memory.kmem.tcp.limit_in_bytes", &memory).ok();
            group.oom_file = Some(directory.join("memory.oom_control"));
            group.memory = true;
        }
        group.pids = group.join(PIDS, &self.pids, &name, &[("pids.max", pids)], pid).is_some();
        let settings = [("cpu.cfs_period_us", "100000".to_owned()), ("cpu.cfs_quota_us", quota.to_string())];
        group.cpus = group.join(CPU, &self.cpu, &name, &settings, pid).is_some();
        group
    }

    /// The directories with groups of this program.
    fn roots(&self) -> impl Iterator<Item = &Path> {
        [&self.unified, &self.memory, &self.pids, &self.cpu].into_iter().filter_map(|offer| match offer {
            Offer::Here(root) => Some(root.as_path()),
            Offer::None | Offer::Broken(_) => None,
        })
    }

    /// Removes the groups of processes that have ended, and returns the number of rooms that they were made for. Groups
    /// with processes stay.
    pub(crate) fn sweep(&self, dry_run: bool) -> usize {
        let mut rooms = BTreeSet::new();
        for root in self.roots() {
            for entry in fs_err::read_dir(root).into_iter().flatten().flatten() {
                let Ok(name) = entry.file_name().into_string() else { continue };
                if is_abandoned(&name) && (dry_run || remove(&entry.path())) {
                    rooms.insert(name);
                }
            }
        }
        rooms.len()
    }
}

impl Cgroup {
    /// Makes the group of one controller around a process, with settings by file. If that fails although the machine
    /// offers it, it is noted, except for cores, to which commands are bound without a group too.
    fn join(
        &mut self,
        what: &'static str,
        offer: &Offer,
        name: &str,
        settings: &[(&str, String)],
        pid: u32,
    ) -> Option<PathBuf> {
        let failed = match offer {
            Offer::None => return None,
            Offer::Broken(why) => why.clone(),
            Offer::Here(root) => {
                let directory = root.join(name);
                match make(&directory, settings, pid) {
                    Ok(()) => {
                        self.directories.push(directory.clone());
                        return Some(directory);
                    }
                    Err(error) => {
                        remove(&directory);
                        error.to_string()
                    }
                }
            }
        };
        if what != CPU {
            self.missing.push(format!("{what}: {failed}"));
        }
        None
    }

    /// Whether the kernel killed a process of this group because its memory ran out.
    pub(crate) fn out_of_memory(&self) -> bool {
        let text =
            self.oom_file.as_ref().and_then(|file| fs_err::read_to_string(file).ok()).unwrap_or_default();
        text.lines()
            .filter_map(|line| line.strip_prefix("oom_kill "))
            .any(|count| count.trim().parse::<u64>().is_ok_and(|count| count > 0))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for directory in &self.directories {
            remove(directory);
        }
    }
}

/// A group must not exist yet, must have every limit, and must contain the process.
fn make(directory: &Path, settings: &[(&str, String)], pid: u32) -> io::Result<()> {
    fs_err::create_dir(directory)?;
    for (file, value) in settings {
        set(directory, file, value)?;
    }
    set(directory, "cgroup.procs", &pid.to_string())
}

/// Writes to a file of the kernel's. A file that the kernel does not have must not be created.
fn set(directory: &Path, file: &str, value: &str) -> io::Result<()> {
    use std::io::Write as _;
    fs_err::OpenOptions::new().write(true).open(directory.join(file))?.write_all(value.as_bytes())
}

/// Removes a group that has no processes; returns whether it did.
fn remove(directory: &Path) -> bool {
    // The kernel may not have removed the last process from the group yet.
    for _ in 0..50 {
        match std::fs::remove_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => std::thread::yield_now(),
            removed => return removed.is_ok(),
        }
    }
    false
}

/// The directory under which version 2 groups get all controllers, if there is one.
fn unified(point: &Path) -> Offer {
    let wanted = [MEMORY, PIDS, CPU];
    let enable = wanted.map(|name| format!("+{name}")).join(" ");
    let usable = |directory: &Path| {
        let available = fs_err::read_to_string(directory.join("cgroup.controllers")).unwrap_or_default();
        wanted.iter().all(|name| available.split_whitespace().any(|found| found == *name))
            && set(directory, "cgroup.subtree_control", &enable).is_ok()
    };
    if !usable(point) {
        return Offer::None;
    }
    match own_directory(point) {
        Offer::Here(own) if !usable(&own) => Offer::None,
        offer => offer,
    }
}

fn own_directory(point: &Path) -> Offer {
    let own = point.join(OWN);
    if !own.is_dir() {
        match fs_err::create_dir(&own) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return refused(&error),
        }
    }
    // A process that may read a directory may still be unable to make groups in it.
    let probe = own.join(new_name(PROBE));
    match fs_err::create_dir(&probe) {
        Ok(()) => {
            remove(&probe);
            Offer::Here(own)
        }
        Err(error) => refused(&error),
    }
}

fn refused(error: &io::Error) -> Offer {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::NotFound => {
            Offer::None
        }
        _ => Offer::Broken(error.to_string()),
    }
}

/// A name that no other group has.
fn new_name(kind: &str) -> String {
    static OURS: OnceLock<ProcessName> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let ProcessName { pid, start } = *OURS.get_or_init(ProcessName::ours);
    format!("{kind}.{pid}.{start}.{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Whether the process that made a group has ended. Earlier versions named groups after the number of the process
/// alone: `<pid>-<count>` and `probe-<pid>`.
fn is_abandoned(name: &str) -> bool {
    let parts: Vec<&str> = name.split('.').collect();
    if let [ROOM | PROBE, pid, start, _] = parts.as_slice() {
        let (Ok(pid), Ok(start)) = (pid.parse(), start.parse()) else { return false };
        return !ProcessName { pid, start }.is_running();
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match name.split_once('-') {
        Some((PROBE, pid)) if is_number(pid) => !is_running(pid),
        Some((pid, count)) if is_number(pid) && is_number(count) => !is_running(pid),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_groups_of_ended_processes_are_abandoned() {
        let (ours, other) = (new_name(ROOM), new_name(ROOM));
        assert_ne!(ours, other);
        let ProcessName { pid, start } = ProcessName::ours();
        for living in [ours, new_name(PROBE), format!("{pid}-0"), format!("probe-{pid}")] {
            assert!(!is_abandoned(&living), "{living}");
        }
        // The same number at another time is another process.
        for dead in [
            format!("room.{pid}.{}.0", start - 1),
            "room.4194305.7.0".into(),
            "4194305-3".into(),
            "probe-4194305".into(),
        ] {
            assert!(is_abandoned(&dead), "{dead}");
        }
        for foreign in ["", "x", "room.1", "room.x.y.0", "a-b", "-", "4194305-", "user.slice"] {
            assert!(!is_abandoned(foreign), "{foreign}");
        }
    }

    #[test]
    fn a_user_without_groups_is_offered_none_and_a_fault_is_told() {
        assert_eq!(refused(&io::ErrorKind::PermissionDenied.into()), Offer::None);
        assert_eq!(refused(&io::ErrorKind::ReadOnlyFilesystem.into()), Offer::None);
        assert!(matches!(refused(&io::ErrorKind::StorageFull.into()), Offer::Broken(_)));
    }
}
