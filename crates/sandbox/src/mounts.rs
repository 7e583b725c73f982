//! The room's file system: the host's programs read-only, everything else new, empty and bounded.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, mount_change,
    mount_remount, unmount,
};

use crate::spec::{ROOM_UID, RoomSpec};
use crate::sys;
use crate::view::{Part, View, mounts};

/// The mount point of the new root: a directory that every host has and no room shows.
const NEW_ROOT: &str = "/sys";
/// The file system of all writable directories, so that they share one limit.
const WRITABLE: &str = "/.writable";
/// Directory for programs that are offered by name.
pub const PROGRAMS: &str = "/run/aec-bench/bin";
/// An empty directory and an empty file, which are put over what a room must not show.
const NO_DIRECTORY: &str = "/run/aec-bench/nothing";
const NO_FILE: &str = "/run/aec-bench/empty";
/// Files of the host up to this size are copied: that takes less time than a mount, which also has to be undone.
const SMALL_FILE: u64 = 1024 * 1024;
/// Writable directories that every room has besides the requested ones.
const ALWAYS_WRITABLE: [&str; 3] = ["/tmp", "/home/agent", "/dev/shm"];
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
pub(crate) fn build(spec: &RoomSpec, view: &View, owner: Option<u32>) -> Result<(), StepError> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    step("make mounts private", mount_change("/", private))?;
    let plain = MountFlags::NOSUID | MountFlags::NODEV;
    step("mount the root", mount("tmpfs", NEW_ROOT, "tmpfs", plain, c"size=16m,mode=755"))?;
    let root = Path::new(NEW_ROOT);
    for directory in ["/dev", "/proc", PROGRAMS, NO_DIRECTORY, WRITABLE].into_iter().chain(mount_points(spec))
    {
        step(format!("make {directory}"), fs_err::create_dir_all(inside(root, directory)))?;
    }
    step("make an empty file", fs_err::write(inside(root, NO_FILE), ""))?;
    let readable = std::fs::Permissions::from_mode(0o444);
    step("close the empty file", fs_err::set_permissions(inside(root, NO_FILE), readable))?;
    for part in &view.parts {
        match part {
            Part::Show(path) => show(root, path)?,
            Part::Link(path, target) => link(root, path, target)?,
            Part::Cover(path) => cover(root, path, view.shows_within(path))?,
        }
    }
    write_configuration(root)?;
    offer_programs(root, spec, view)?;
    place_devices(root)?;
    make_read_only(root)?;
    // What is mounted from here on is not read-only. Its mount points exist.
    for name in DEVICES {
        let target = inside(root, format!("/dev/{name}"));
        step(format!("show /dev/{name}"), mount_bind(format!("/dev/{name}"), target))?;
    }
    step("mount /proc", mount("proc", inside(root, "/proc"), "proc", plain | MountFlags::NOEXEC, None))?;
    if !rustix::process::geteuid().is_root() {
        // The names of all keys of this user, also of those that nobody here can read.
        cover(root, Path::new("/proc/keys"), false)?;
    }
    step("enter the new root", std::env::set_current_dir(root))?;
    // The old root is put on top of the new one, and taken away.
    step("change the root", rustix::process::pivot_root(".", "."))?;
    step("unmount the old root", unmount(".", UnmountFlags::DETACH))?;
    step("go to the new root", std::env::set_current_dir("/"))?;
    mount_writable(spec, owner)
}

/// Mounts new, empty writable directories. They belong to `owner`, if it is another user than this process's.
pub(crate) fn mount_writable(spec: &RoomSpec, owner: Option<u32>) -> Result<(), StepError> {
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
        if owner.is_some() {
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

/// Shows a file or directory of the host at the same path. What is missing, or not readable by this user, is left out.
fn show(root: &Path, path: &Path) -> Result<(), StepError> {
    show_at(path, &inside(root, path))
}

/// Like [`show`], at another path.
fn show_at(path: &Path, target: &Path) -> Result<(), StepError> {
    let Ok(metadata) = path.metadata() else { return Ok(()) };
    let shown = path.display();
    if metadata.is_dir() {
        step(format!("make {shown}"), fs_err::create_dir_all(target))?;
    } else {
        if let Some(parent) = target.parent() {
            step(format!("make the parent of {shown}"), fs_err::create_dir_all(parent))?;
        }
        if is_configuration(path) && metadata.len() <= SMALL_FILE {
            let Ok(content) = fs_err::read(path) else { return Ok(()) };
            return step(format!("copy {shown}"), fs_err::write(target, content));
        }
        step(format!("make {shown}"), fs_err::write(target, ""))?;
    }
    step(format!("show {shown}"), mount_bind_recursive(path, target))
}

fn is_configuration(path: &Path) -> bool {
    path.starts_with("/etc")
}

fn link(root: &Path, path: &Path, target: &Path) -> Result<(), StepError> {
    let place = inside(root, path);
    if let Some(parent) = place.parent() {
        step(format!("make the parent of {}", path.display()), fs_err::create_dir_all(parent))?;
    }
    step(format!("link {}", path.display()), std::os::unix::fs::symlink(target, place))
}

/// Puts nothing over what has been shown. `holds_more`: something inside of it will be shown.
fn cover(root: &Path, path: &Path, holds_more: bool) -> Result<(), StepError> {
    let place = inside(root, path);
    // It may have vanished, or not exist yet.
    let Ok(metadata) = place.symlink_metadata() else { return Ok(()) };
    let covered = format!("cover {}", path.display());
    if !metadata.is_dir() {
        return step(covered, mount_bind(inside(root, NO_FILE), place));
    }
    if holds_more {
        let plain = MountFlags::NOSUID | MountFlags::NODEV;
        return step(covered, mount("tmpfs", place, "tmpfs", plain, c"size=64k,mode=755"));
    }
    step(covered, mount_bind(inside(root, NO_DIRECTORY), place))
}

/// Makes the root and everything mounted in it read-only, without set-user-id programs and devices.
fn make_read_only(root: &Path) -> Result<(), StepError> {
    match sys::restrict_mounts(root) {
        // Kernels before 5.12 have no call for all mounts at once.
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {}
        done => return step("make the view read-only", done),
    }
    let table = step("read the mounts", fs_err::read_to_string("/proc/self/mountinfo"))?;
    for mount in mounts(&table).iter().filter(|mount| mount.place.starts_with(root)) {
        // The kernel does not allow removing flags that the host's mount has.
        let flags = MountFlags::BIND
            | MountFlags::RDONLY
            | MountFlags::NOSUID
            | MountFlags::NODEV
            | kept_flags(&mount.place);
        step(format!("make {} read-only", mount.place.display()), mount_remount(&mount.place, flags, c""))?;
    }
    Ok(())
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

fn offer_programs(root: &Path, spec: &RoomSpec, view: &View) -> Result<(), StepError> {
    let directory = inside(root, PROGRAMS);
    for (name, target) in &spec.programs {
        let place = directory.join(name);
        // An empty directory of the room hides what the host has at its path.
        if view.shows(target) && !mount_points(spec).any(|hidden| target.starts_with(hidden)) {
            step(format!("link {name}"), std::os::unix::fs::symlink(target, place))?;
        } else {
            show_at(target, &place)?;
        }
    }
    Ok(())
}

/// The places of devices, on which they are mounted later.
fn place_devices(root: &Path) -> Result<(), StepError> {
    let directory = root.join("dev");
    for name in DEVICES {
        step(format!("make /dev/{name}"), fs_err::write(directory.join(name), ""))?;
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
