//! Control groups: limits for a whole tree of processes, if this process may set them.

use std::io;
use std::path::{Path, PathBuf};

use crate::spec::Limits;

/// The control groups of one room, removed when dropped.
#[derive(Debug, Default)]
pub(crate) struct Cgroup {
    directories: Vec<PathBuf>,
    pub(crate) memory: bool,
    pub(crate) pids: bool,
    pub(crate) cpus: bool,
    oom_file: Option<PathBuf>,
}

/// Directories in which this process can make control groups.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hierarchies {
    /// Version 2, if its controllers are usable.
    unified: Option<PathBuf>,
    /// Version 1, by controller.
    memory: Option<PathBuf>,
    pids: Option<PathBuf>,
    cpu: Option<PathBuf>,
}

impl Hierarchies {
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
                "cgroup2" => found.unified = usable_unified(point),
                "cgroup" => {
                    let has = |name: &str| options.split(',').any(|option| option == name);
                    let slot = if has("memory") {
                        &mut found.memory
                    } else if has("pids") {
                        &mut found.pids
                    } else if has("cpu") {
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

    /// Makes a group with these limits; limits that cannot be set are left out.
    pub(crate) fn create(&self, name: &str, limits: &Limits) -> Cgroup {
        let mut group = Cgroup::default();
        let memory = u64::from(limits.memory_mb) * 1024 * 1024;
        let quota = u64::from(limits.cpus) * 100_000;
        if let Some(root) = &self.unified {
            let directory = root.join(name);
            if fs_err::create_dir(&directory).is_ok() {
                group.memory = write(&directory, "memory.max", memory).is_ok();
                if group.memory {
                    // Without this, processes would go on in swap after they reach the limit.
                    write(&directory, "memory.swap.max", 0).ok();
                    group.oom_file = Some(directory.join("memory.events"));
                }
                group.pids = write(&directory, "pids.max", u64::from(limits.pids)).is_ok();
                group.cpus = fs_err::write(directory.join("cpu.max"), format!("{quota} 100000")).is_ok();
                group.directories.push(directory);
            }
        }
        if let Some(directory) =
            self.memory.as_ref().filter(|_| !group.memory).and_then(|root| make(root, name))
        {
            group.memory = write(&directory, "memory.limit_in_bytes", memory).is_ok();
            write(&directory, "memory.memsw.limit_in_bytes", memory).ok();
            group.oom_file = Some(directory.join("memory.oom_control"));
            group.directories.push(directory);
        }
        if let Some(directory) = self.pids.as_ref().filter(|_| !group.pids).and_then(|root| make(root, name))
        {
            group.pids = write(&directory, "pids.max", u64::from(limits.pids)).is_ok();
            group.directories.push(directory);
        }
        if let Some(directory) = self.cpu.as_ref().filter(|_| !group.cpus).and_then(|root| make(root, name)) {
            group.cpus = write(&directory, "cpu.cfs_period_us", 100_000).is_ok()
                && write(&directory, "cpu.cfs_quota_us", quota).is_ok();
            group.directories.push(directory);
        }
        group
    }
}

impl Cgroup {
    /// Moves a process into the group; its later children are in the group too.
    pub(crate) fn add(&mut self, pid: u32) {
        for directory in &self.directories {
            if write(directory, "cgroup.procs", u64::from(pid)).is_err() {
                // A group that does not contain the process limits nothing.
                (self.memory, self.pids, self.cpus) = (false, false, false);
            }
        }
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
            // The kernel may not have removed the last process from the group yet.
            for _ in 0..50 {
                match std::fs::remove_dir(directory) {
                    Err(error) if error.kind() == io::ErrorKind::ResourceBusy => std::thread::yield_now(),
                    _ => break,
                }
            }
        }
    }
}

/// The directory under which version 2 groups get all controllers, if there is one.
fn usable_unified(point: &Path) -> Option<PathBuf> {
    let available = fs_err::read_to_string(point.join("cgroup.controllers")).ok()?;
    let wanted = ["memory", "pids", "cpu"];
    if !wanted.iter().all(|name| available.split_whitespace().any(|found| found == *name)) {
        return None;
    }
    let enable = wanted.map(|name| format!("+{name}")).join(" ");
    fs_err::write(point.join("cgroup.subtree_control"), &enable).ok()?;
    let own = own_directory(point)?;
    fs_err::write(own.join("cgroup.subtree_control"), &enable).ok()?;
    Some(own)
}

fn own_directory(point: &Path) -> Option<PathBuf> {
    let own = point.join("aec-bench");
    if !own.is_dir() {
        fs_err::create_dir(&own).ok()?;
    }
    // A process that may read a directory may still be unable to make groups in it.
    let probe = own.join(format!("probe-{}", std::process::id()));
    fs_err::create_dir(&probe).ok()?;
    fs_err::remove_dir(&probe).ok()?;
    Some(own)
}

fn make(root: &Path, name: &str) -> Option<PathBuf> {
    let directory = root.join(name);
    fs_err::create_dir(&directory).ok().map(|()| directory)
}

fn write(directory: &Path, file: &str, value: u64) -> io::Result<()> {
    std::fs::write(directory.join(file), value.to_string())
}
