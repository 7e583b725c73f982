//! The room's file system: the host's programs read-only, everything else new, empty and bounded.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, mount_change,
    mount_remount, unmount,
};

use crate::spec::{ROOM_UID, RoomSpec};

/// The mount point of the new root: a directory that every host has and no room shows.
const NEW_ROOT: &str = "/sys";
/// The old root, until it is unmounted.
const OLD_ROOT: &str = ".old";
/// The file system of all writable directories, so that they share one limit.
const WRITABLE: &str = "/.writable";
/// Directory for programs that are offered by name.
pub const PROGRAMS: &str = "/run/aec-bench/bin";
/// Writable directories that every room has besides the requested ones.
const ALWAYS_WRITABLE: [&str; 3] = ["/tmp", "/home/agent", "/dev/shm"];
/// System directories of the host, shown if they exist. On a merged system most are links into `/usr`.
const SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// Files of the host's configuration that programs need.
const CONFIGURATION: [&str; 4] = ["/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl", "/etc/mime.types"];
/// Files needed only to reach other machines.
const NETWORK_CONFIGURATION: [&str; 3] = ["/etc/resolv.conf", "/etc/hosts", "/etc/ca-certificates"];
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
/// Most files, directories and links in a room, however small they are.
const MAX_INODES: u32 = 200_000;
/// Size limit of verifier files in MiB; the opener has already bounded them.
const SEALED_MB: u32 = 2048;
/// How long sealing waits for a busy directory.
const LONGEST_BUSY: Duration = Duration::from_secs(10);
const BUSY_WAIT: Duration = Duration::from_millis(2);

/// A step that failed.
pub(crate) struct StepError {
    pub(crate) step: String,
    pub(crate) error: io::Error,
}

fn step<T>(step: impl Into<String>, result: Result<T, impl Into<io::Error>>) -> Result<T, StepError> {
    result.map_err(|error| StepError { step: step.into(), error: error.into() })
}

/// Builds the file system and makes it the root. Runs in the room's first process, in its own mount namespace.
pub(crate) fn build(spec: &RoomSpec, privileged: bool) -> Result<(), StepError> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    step("make mounts private", mount_change("/", private))?;
    let plain = MountFlags::NOSUID | MountFlags::NODEV;
    step("mount the root", mount("tmpfs", NEW_ROOT, "tmpfs", plain, c"size=16m,mode=755"))?;
    let root = Path::new(NEW_ROOT);
    show_system(root)?;
    for path in CONFIGURATION.iter().chain(NETWORK_CONFIGURATION.iter().filter(|_| spec.network)) {
        show(root, Path::new(path))?;
    }
    for path in &spec.show {
        show(root, path)?;
    }
    write_configuration(root)?;
    link_programs(root, spec)?;
    devices(root)?;
    for directory in ["/proc", WRITABLE].into_iter().chain(mount_points(spec)) {
        step(format!("make {directory}"), fs_err::create_dir_all(inside(root, directory)))?;
    }
    step("mount /proc", mount("proc", inside(root, "/proc"), "proc", plain | MountFlags::NOEXEC, None))?;
    step("make a directory for the old root", fs_err::create_dir(root.join(OLD_ROOT)))?;
    step("enter the new root", std::env::set_current_dir(root))?;
    step("change the root", rustix::process::pivot_root(".", OLD_ROOT))?;
    step("go to the new root", std::env::set_current_dir("/"))?;
    step("unmount the old root", unmount(format!("/{OLD_ROOT}"), UnmountFlags::DETACH))?;
    step("remove its place", fs_err::remove_dir(format!("/{OLD_ROOT}")))?;
    mount_writable(spec, privileged)?;
    step("make the root read-only", mount_remount("/", plain | MountFlags::BIND | MountFlags::RDONLY, c""))
}

/// Mounts new, empty writable directories.
pub(crate) fn mount_writable(spec: &RoomSpec, privileged: bool) -> Result<(), StepError> {
    let plain = MountFlags::NOSUID | MountFlags::NODEV;
    let options = |megabytes: u32| format!("size={megabytes}m,nr_inodes={MAX_INODES},mode=755\0");
    let mount_tmpfs = |place: &str, megabytes: u32| {
        let options = options(megabytes);
        let options = std::ffi::CStr::from_bytes_with_nul(options.as_bytes()).ok();
        step(format!("mount {place}"), mount("tmpfs", place, "tmpfs", plain, options))
    };
    mount_tmpfs(WRITABLE, spec.limits.storage_mb)?;
    for (index, place) in writable(spec).enumerate() {
        let behind = format!("{WRITABLE}/{index}");
        step(format!("make {place}"), fs_err::create_dir(&behind))?;
        if privileged {
            let owner = Some(ROOM_UID);
            step(format!("give away {place}"), std::os::unix::fs::chown(&behind, owner, owner))?;
        }
        step(format!("mount {place}"), mount_bind(behind.as_str(), place))?;
    }
    for place in &spec.sealed {
        mount_tmpfs(place, SEALED_MB)?;
    }
    // From here on the room sees the directories only at their mount points, with only their own limits.
    step("hide the shared file system", unmount(WRITABLE, UnmountFlags::DETACH))
}

/// Unmounts the writable directories with everything in them.
pub(crate) fn unmount_writable(spec: &RoomSpec) -> Result<(), StepError> {
    for place in writable(spec).chain(spec.sealed.iter().map(String::as_str)) {
        step(format!("unmount {place}"), unmount(place, UnmountFlags::DETACH))?;
    }
    Ok(())
}

/// Makes the sealed directories read-only.
pub(crate) fn seal(spec: &RoomSpec) -> Result<(), StepError> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::RDONLY | MountFlags::BIND;
    let remount = |place: &String| {
        // The process that filled the directory may just have forked: until the child executes its program, it holds
        // the descriptors through which files were written, and the directory is busy.
        let until = Instant::now() + LONGEST_BUSY;
        loop {
            match mount_remount(place.as_str(), flags, c"") {
                Err(Errno::BUSY) if Instant::now() < until => std::thread::sleep(BUSY_WAIT),
                done => return step(format!("seal {place}"), done),
            }
        }
    };
    spec.sealed.iter().try_for_each(remount)
}

/// Descriptors of the requested directories: first the writable ones, then the sealed ones.
pub(crate) fn open_directories(spec: &RoomSpec) -> Result<Vec<OwnedFd>, StepError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    spec.writable
        .iter()
        .chain(&spec.sealed)
        .map(|place| step(format!("open {place}"), rustix::fs::open(place.as_str(), flags, Mode::empty())))
        .collect()
}

fn writable(spec: &RoomSpec) -> impl Iterator<Item = &str> {
    spec.writable.iter().map(String::as_str).chain(ALWAYS_WRITABLE)
}

fn mount_points(spec: &RoomSpec) -> impl Iterator<Item = &str> {
    writable(spec).chain(spec.sealed.iter().map(String::as_str))
}

fn inside(root: &Path, path: impl AsRef<Path>) -> PathBuf {
    let path = path.as_ref();
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn show_system(root: &Path) -> Result<(), StepError> {
    for name in SYSTEM {
        match fs_err::read_link(name) {
            Ok(target) => {
                step(format!("link {name}"), std::os::unix::fs::symlink(target, inside(root, name)))?;
            }
            Err(_) => show(root, Path::new(name))?,
        }
    }
    Ok(())
}

/// Shows a file or directory of the host, read-only, at the same path. Missing ones are left out.
fn show(root: &Path, path: &Path) -> Result<(), StepError> {
    show_at(path, inside(root, path))
}

/// Like [`show`], at another path.
fn show_at(path: &Path, target: PathBuf) -> Result<(), StepError> {
    let Ok(metadata) = path.metadata() else { return Ok(()) };
    let shown = path.display();
    if metadata.is_dir() {
        step(format!("make {shown}"), fs_err::create_dir_all(&target))?;
    } else {
        if let Some(parent) = target.parent() {
            step(format!("make the parent of {shown}"), fs_err::create_dir_all(parent))?;
        }
        step(format!("make {shown}"), fs_err::write(&target, ""))?;
    }
    step(format!("show {shown}"), mount_bind_recursive(path, &target))?;
    // Only a directory can have other mounts inside.
    let places = if metadata.is_dir() { mounts_at(&target) } else { vec![target] };
    for place in places {
        // The kernel does not allow removing flags that the host's mount has.
        let flags = MountFlags::BIND
            | MountFlags::RDONLY
            | MountFlags::NOSUID
            | MountFlags::NODEV
            | kept_flags(&place);
        step(format!("make {} read-only", place.display()), mount_remount(&place, flags, c""))?;
    }
    Ok(())
}

/// A mount point and all mount points below it.
fn mounts_at(target: &Path) -> Vec<PathBuf> {
    let table = fs_err::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let inside = table
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        // Blanks in names are escaped here; such a mount just keeps the host's flags.
        .map(PathBuf::from)
        .filter(|place| place.starts_with(target) && place != target);
    std::iter::once(target.to_path_buf()).chain(inside).collect()
}

fn kept_flags(path: &Path) -> MountFlags {
    use rustix::fs::StatVfsMountFlags as Has;
    let Ok(status) = rustix::fs::statvfs(path) else { return MountFlags::empty() };
    [
        (Has::NOEXEC, MountFlags::NOEXEC),
        (Has::NOATIME, MountFlags::NOATIME),
        (Has::NODIRATIME, MountFlags::NODIRATIME),
        (Has::RELATIME, MountFlags::RELATIME),
    ]
    .into_iter()
    .filter(|(has, _)| status.f_flag.contains(*has))
    .fold(MountFlags::empty(), |flags, (_, keep)| flags | keep)
}

/// Writes files without which the C library and Python look for a network or fail.
fn write_configuration(root: &Path) -> Result<(), StepError> {
    let user = format!("agent:x:{ROOM_UID}:{ROOM_UID}:agent:/home/agent:/bin/sh\n");
    for (path, text) in [
        ("/etc/passwd", format!("root:x:0:0:root:/:/bin/sh\n{user}")),
        ("/etc/group", format!("root:x:0:\nagent:x:{ROOM_UID}:\n")),
        ("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n".to_owned()),
        ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n".to_owned()),
    ] {
        let path = inside(root, path);
        if !path.exists() {
            step("make /etc", fs_err::create_dir_all(root.join("etc")))?;
            step(format!("write {}", path.display()), fs_err::write(&path, text))?;
        }
    }
    Ok(())
}

fn link_programs(root: &Path, spec: &RoomSpec) -> Result<(), StepError> {
    let directory = inside(root, PROGRAMS);
    step("make a place for programs", fs_err::create_dir_all(&directory))?;
    for (name, target) in &spec.programs {
        if mount_points(spec).any(|place| target.starts_with(place)) {
            // An empty directory of the room hides the program's own path.
            show_at(target, directory.join(name))?;
        } else {
            step(format!("link {name}"), std::os::unix::fs::symlink(target, directory.join(name)))?;
        }
    }
    Ok(())
}

fn devices(root: &Path) -> Result<(), StepError> {
    let directory = root.join("dev");
    step("make /dev", fs_err::create_dir(&directory))?;
    for name in DEVICES {
        let target = directory.join(name);
        step(format!("make /dev/{name}"), fs_err::write(&target, ""))?;
        step(format!("show /dev/{name}"), mount_bind(format!("/dev/{name}"), &target))?;
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        step(format!("link /dev/{name}"), rustix::fs::symlinkat(target, CWD, directory.join(name)))?;
    }
    Ok(())
}
