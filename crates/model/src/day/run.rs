//! Whether the process that set money aside still lives: each holds a lock on a file of its own, which the kernel
//! releases when the process ends, however it ends. Process ids come again; locks do not.

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

/// This process, as far as one book goes. Its lock file goes with it.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) id: String,
    path: PathBuf,
    /// Holds the lock. It is closed on `exec`, so no child keeps it.
    _lock: fs_err::File,
}

impl Run {
    /// Enters a run. The caller holds the lock of the book, so nobody can take the new file for an abandoned one
    /// before it is locked.
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
        // What is left behind is swept away by the next run.
        std::fs::remove_file(&self.path).ok();
    }
}

/// Whether the run is still there. A run whose file is gone or not locked has ended.
pub(super) fn is_alive(book: &Path, id: &str) -> bool {
    // Ids come from a file; one that is a path would ask about another file.
    if id.is_empty() || id.contains(['/', '\0']) || id == "." || id == ".." {
        return false;
    }
    is_locked(&book.join(DIRECTORY).join(id))
}

fn is_locked(path: &Path) -> bool {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    // Whatever is not clearly an end is taken for life: the file of a run that lives must not be swept away.
    match File::options().read(true).custom_flags(flags).open(path) {
        // The lock that is got here goes when the file is closed.
        Ok(file) => flock(&file, FlockOperation::NonBlockingLockShared).is_err(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Removes the files of runs that ended without doing so.
fn sweep(directory: &Path) -> io::Result<()> {
    for entry in fs_err::read_dir(directory)? {
        let path = entry?.path();
        if !is_locked(&path) {
            std::fs::remove_file(path).ok();
        }
    }
    Ok(())
}
