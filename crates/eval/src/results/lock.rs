//! The lock that lets only one process write to a run.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use aec_base::problem::Problem;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use crate::results::problems;

/// The locked file. It stays when the run ends: removing it would let two processes lock two different files.
const LOCK_FILE: &str = ".lock";

/// A lock on a run, held until it is dropped or the process ends.
#[derive(Debug)]
pub struct RunLock {
    file: File,
}

impl RunLock {
    /// Takes the lock of a run, or reports that another process holds it.
    pub fn take(run: &Path) -> Result<Self, Problem> {
        let path = run.join(LOCK_FILE);
        let refused = |error: &io::Error| problems::refused(28, "lock the run", &path, error);
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o644)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
            .open(&path)
            .map_err(|error| refused(&error))?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { file }),
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => {
                    return Err(problems::error(29, "another process is writing to this run")
                        .in_file(run)
                        .fix("wait until it has ended, or start a new run"));
                }
                Err(error) => return Err(refused(&error.into())),
            }
        }
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child forked a moment ago keeps it open until it calls exec.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}
