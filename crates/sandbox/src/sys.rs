//! The system calls that Rust cannot make safe, such as `fork` and `exec`. Nothing else in the workspace is unsafe.

#![expect(unsafe_code, reason = "fork and exec have no safe form; the calls are single and explained")]

use std::convert::Infallible;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::process::Pid;
use rustix::thread::UnshareFlags;

pub(crate) enum Forked {
    Parent(Pid),
    Child,
}

/// Forks this process. It must have only one thread, because a lock held by another would stay locked in the child.
pub(crate) fn fork() -> io::Result<Forked> {
    // SAFETY: only the shim calls this, and the shim never starts a thread, so parent and child both own everything
    // they see and may continue as ordinary Rust programs.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Forked::Child),
        pid => Pid::from_raw(pid).map(Forked::Parent).ok_or_else(|| io::Error::other("fork gave no pid")),
    }
}

/// Moves this process into new namespaces.
pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    debug_assert!(!flags.contains(UnshareFlags::FILES));
    // SAFETY: only unsharing the table of descriptors is dangerous, and no caller asks for that.
    unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(io::Error::from)
}

/// Makes a mount and all mounts inside of it read-only, without set-user-id programs and devices. Other restrictions
/// that they have stay.
pub(crate) fn restrict_mounts(root: &Path) -> io::Result<()> {
    let path = CString::new(root.as_os_str().as_bytes())?;
    let wanted = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: the kernel reads the path, which ends with a zero, and as many bytes of the structure as the last argument
    // says; both live until the call returns.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const wanted,
            size_of::<libc::mount_attr>(),
        )
    };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Closes every descriptor of this process from `first` on, as `close_range` does. `mark_only`: other programs that this
/// process starts do not inherit them, but they stay open.
pub(crate) fn close_from(first: u32, mark_only: bool) -> io::Result<()> {
    let flags = if mark_only { libc::CLOSE_RANGE_CLOEXEC } else { 0 };
    // SAFETY: numbers only. Callers that close own no descriptor from `first` on.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, flags) };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Executes another program. Returns only if that fails.
pub(crate) fn exec(program: &CString, argv: &[CString], env: &[CString]) -> io::Result<Infallible> {
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: the arrays end with null and their strings live until the call returns, if it does.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    Err(io::Error::last_os_error())
}

/// Ends the process at once, without running any handlers or destructors copied from the parent.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` takes any code and does not return.
    unsafe { libc::_exit(code) }
}

/// Takes over a descriptor that this process inherited.
pub(crate) fn inherited(descriptor: i32) -> std::os::fd::OwnedFd {
    // SAFETY: the shim calls this once, at its start, for the descriptor that its parent made for it.
    unsafe { std::os::fd::FromRawFd::from_raw_fd(descriptor) }
}

/// Makes a descriptor number refer to another open file.
pub(crate) fn duplicate_onto(from: std::os::fd::BorrowedFd<'_>, to: i32) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    // SAFETY: called between fork and exec in the child, where no other code holds the target number.
    if unsafe { libc::dup2(from.as_raw_fd(), to) } == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Restores the default action of the signals that the standard library handles. The kernel ignores a signal to the
/// first process of a room if its action is the default, but not if it is a handler.
pub(crate) fn stop_handling_faults() {
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: the default needs no handler, and this process has one thread.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Leaves the opener's keys behind: this process and its future children get an empty keyring of their own.
pub(crate) fn leave_keyrings() {
    const JOIN_SESSION_KEYRING: libc::c_long = 1;
    const NO_NAME: libc::c_long = 0;
    // SAFETY: only numbers are passed; they ask for a new keyring. A kernel without keys has none to leave.
    unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, NO_NAME) };
}

/// Restores the default action of SIGPIPE: this program ignores it, but the programs that it starts must not.
pub(crate) fn stop_ignoring_broken_pipes() {
    // SAFETY: called between fork and exec in the child; the default needs no handler.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Kills every process that this one may signal, except itself: called by the first process of a room, whose
/// namespace holds nothing but the room. The kernel does this in one step, so a process cannot outrun it by forking.
pub(crate) fn kill_everyone() {
    debug_assert!(rustix::process::getpid() == Pid::INIT);
    // SAFETY: only numbers are passed; the only failure is that no other process is left.
    unsafe { libc::kill(-1, libc::SIGKILL) };
}
