//! Locks for what several tests must not use at the same time. They are files, so they also hold between processes.

use std::fs::File;
use std::path::PathBuf;

/// A judge without a room works in fixed directories of this host, which two tests cannot share.
pub const HOST_PLACES: &str = "host-places";

/// A lock, held until this is dropped or the process ends.
#[must_use = "a lock that is dropped at once guards nothing"]
pub struct Lock {
    _file: File,
}

/// Waits for the lock with this name and takes it.
pub fn hold(name: &str) -> Lock {
    let directory = target().join("test-locks");
    fs_err::create_dir_all(&directory).expect("a directory of locks");
    let file = File::create(directory.join(name)).expect("a lock file");
    file.lock().expect("a lock");
    Lock { _file: file }
}

/// The target directory: the one with the directory of the build profile of the tests.
pub(crate) fn target() -> PathBuf {
    let program = std::env::current_exe().expect("the path of the tests");
    program.ancestors().nth(3).expect("tests lie in the target directory").to_owned()
}
