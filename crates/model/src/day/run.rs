//! Whether the process that reserved money is still running: each process holds a lock on its own file, which the
//! kernel releases when the process ends, however it ends. Process ids are reused; locks are not.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::{FlockOperation, OFlags, flock};

/// Lock files of runs, below the directory of the book.
const DIRECTORY: &str = "runs";

/// This process, for one book. Dropping it removes its lock file.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) id: String,
    path: PathBuf,
    /// The lock. It is closed on `exec`, so no child process keeps it.
    _lock: fs_err::File,
}

impl Run {
    /// Creates a run. The caller holds the lock of the book, so no other process can take the new file for an abandoned
    /// one before it is locked.
    pub(super) fn enter(book: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let directory = book.join(DIRECTORY);
        fs_err::create_dir_all(&directory)?;
        sweep(&directory)?;
        loop {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let id = format!("{}-{now:x}-{count}", std::process::id());
            let path = directory.join(&id);
            match fs_err::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(lock) => {
                    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
                    return Ok(Self { id, path, _lock: lock });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // The next run removes a file that is left behind.
        std::fs::remove_file(&self.path).ok();
    }
}

/// Whether the run is still active. A run whose file is missing or not locked has ended.
pub(super) fn is_alive(book: &Path, id: &str) -> bool {
    // Ids come from a file; an id that is a path would check another file.
    if id.is_empty() || id.contains(['/', '\0']) || id == "." || id == ".." {
        return false;
    }
    is_locked(&book.join(DIRECTORY).join(id))
}

fn is_locked(path: &Path) -> bool {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    // In doubt the run counts as active: its file must not be removed while it is.
    match File::options().read(true).custom_flags(flags).open(path) {
        // Closing the file releases the lock taken here.
        Ok(file) => flock(&file, FlockOperation::NonBlockingLockShared).is_err(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Removes the files of runs that could not remove them.
fn sweep(directory: &Path) -> io::Result<()> {
    for entry in fs_err::read_dir(directory)? {
        let path = entry?.path();
        if !is_locked(&path) {
            std::fs::remove_file(path).ok();
        }
    }
    Ok(())
}
