//! The lock of a book's directory, which a process holds while it reads, decides and writes.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Holders need microseconds. A holder that was stopped in between must not block the others forever.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// How many times to retry before sleeping between retries.
const EAGER_LOOKS: u32 = 200;

#[derive(Debug)]
pub(super) struct DirectoryLock {
    path: PathBuf,
    file: fs_err::File,
}

impl DirectoryLock {
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        fs_err::create_dir_all(directory)?;
        let path = directory.join("lock");
        Ok(Self { file: open_file(&path)?, path })
    }

    /// Takes the lock. If this fails, the lock is not held.
    pub(super) fn lock(&mut self) -> io::Result<()> {
        let begin = Instant::now();
        let mut looks = 0;
        loop {
            match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if is_at(&self.file, &self.path) => return Ok(()),
                // The file was removed, so other processes lock a new one.
                Ok(()) => {
                    if let Some(parent) = self.path.parent() {
                        fs_err::create_dir_all(parent)?;
                    }
                    self.file = open_file(&self.path)?;
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if begin.elapsed() > LONGEST_WAIT {
                let message = format!(
                    "{} is held by another process for more than {} seconds; look for a stopped aec-bench",
                    self.path.display(),
                    LONGEST_WAIT.as_secs()
                );
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            looks += 1;
            if looks < EAGER_LOOKS {
                std::thread::yield_now();
            } else {
                std::thread::sleep(Duration::from_micros(500));
            }
        }
    }

    pub(super) fn unlock(&self) {
        // Unlocking an open descriptor cannot fail, and closing it would release the lock as well.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

fn open_file(path: &Path) -> io::Result<fs_err::File> {
    fs_err::OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Whether the path leads to this open file.
pub(super) fn is_at(file: &fs_err::File, path: &Path) -> bool {
    match (file.metadata(), path.metadata()) {
        (Ok(open), Ok(there)) => (open.dev(), open.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}
