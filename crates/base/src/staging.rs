//! Directories that appear whole or not at all: they are made in a hidden directory beside their target, synced, then
//! renamed without replacing anything.
//!
//! A killed process leaves its hidden directory behind. Each process holds a lock on its directory while it lives, so
//! the next process that stages here recognises abandoned directories and removes them. The same holds for single files
//! that take long to write, and for directories of files that nobody needs when the process has ended.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, OFlags, RenameFlags, flock, renameat_with};
use rustix::io::Errno;
use tempfile::NamedTempFile;

/// The prefix of hidden directories' names.
const PREFIX: &str = ".aec-bench-staging-";
/// The prefix of the names of files that are being written.
const PARTIAL: &str = ".aec-bench-partial-";

/// A hidden directory that only this process writes to; removed with everything in it when dropped.
#[derive(Debug)]
pub struct Staging {
    path: PathBuf,
    /// Held while this process lives.
    _lock: File,
}

impl Staging {
    /// Makes a hidden directory in `parent`, which is created if necessary, and removes directories that killed
    /// processes left there.
    pub fn begin(parent: &Path) -> io::Result<Self> {
        fs_err::create_dir_all(parent)?;
        sweep(parent, false)?;
        loop {
            let directory =
                tempfile::Builder::new().prefix(PREFIX).permissions(private()).tempdir_in(parent)?;
            // Before we lock it, another process may have taken the directory for an abandoned one.
            if let Some(lock) = lock(directory.path())? {
                return Ok(Self { path: directory.keep(), _lock: lock });
            }
        }
    }

    /// Makes a directory for files that nobody needs when this process has ended, where the system keeps such files.
    pub fn scratch() -> io::Result<Self> {
        Self::begin(&std::env::temp_dir())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves something made here to its place. It must have been synced. The error is
    /// [`io::ErrorKind::AlreadyExists`] if the place is taken.
    pub fn publish(&self, made: &Path, place: &Path) -> io::Result<()> {
        rename_new(made, place)?;
        sync_parent(place)
    }
}

impl Staging {
    /// Moves a directory made here to a place that is taken. What was there is removed with this directory.
    pub fn replace(&self, made: &Path, place: &Path) -> io::Result<()> {
        match renameat_with(CWD, made, CWD, place, RenameFlags::EXCHANGE) {
            // An overlay file system, as in containers, cannot rename a directory of a lower layer. Between these two steps
            // there is no directory: a kill leaves nothing there, and the same command makes it again.
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS) => {
                fs_err::remove_dir_all(place)?;
                rename_new(made, place)?;
            }
            exchanged => exchanged?,
        }
        sync_parent(place)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // The next process that stages here removes what is left.
        let _unused = std::fs::remove_dir_all(&self.path);
    }
}

fn private() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o700)
}

/// Makes a file in `parent` that this process writes and then renames, and removes files that killed processes left
/// there.
pub fn partial_file(parent: &Path) -> io::Result<NamedTempFile> {
    sweep(parent, false)?;
    loop {
        let file = tempfile::Builder::new().prefix(PARTIAL).tempfile_in(parent)?;
        match is_ours(file.as_file(), file.path()) {
            // Before we lock it, another process may have taken the file for an abandoned one.
            Ok(false) => {}
            // Where files cannot be locked, nobody takes this one for abandoned.
            Ok(true) | Err(_) => return Ok(file),
        }
    }
}

/// Locks a directory or a regular file; `None` if another process has locked or removed it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    // A pipe must not make this process wait.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(is_ours(&file, path)?.then_some(file))
}

/// Locks an open file or directory; false if another process has locked it, or removed it from this path.
fn is_ours(file: &File, path: &Path) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    let same = |there: std::fs::Metadata, here: std::fs::Metadata| there.ino() == here.ino();
    Ok(path.symlink_metadata().is_ok_and(|there| file.metadata().is_ok_and(|h| same(there, h))))
}

/// Removes the hidden directories and files of this user's dead processes, and returns how many there were.
pub fn sweep(parent: &Path, dry_run: bool) -> io::Result<usize> {
    let user = rustix::process::geteuid().as_raw();
    let mut swept = 0;
    for entry in fs_err::read_dir(parent)? {
        let entry = entry?;
        let name = entry.file_name();
        let begins = |prefix| name.to_str().is_some_and(|name| name.starts_with(prefix));
        if !begins(PREFIX) && !begins(PARTIAL) {
            continue;
        }
        // Another process may have removed it by now.
        let Ok(found) = entry.metadata() else { continue };
        let ours = if begins(PREFIX) { found.is_dir() } else { found.is_file() && found.nlink() == 1 };
        if !ours || found.uid() != user {
            continue;
        }
        if let Ok(Some(_lock)) = lock(&entry.path()) {
            let path = entry.path();
            let removed = match () {
                () if dry_run => Ok(()),
                () if found.is_dir() => std::fs::remove_dir_all(path),
                () => std::fs::remove_file(path),
            };
            // Failing to clean up must not stop the work.
            swept += usize::from(removed.is_ok());
        }
    }
    Ok(swept)
}

/// Renames without replacing anything. Creates the parent of the target.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    let name_path = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", to.display()));
    let rename = || renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE);
    let renamed = match rename() {
        Err(Errno::NOENT) => {
            to.parent().map_or(Ok(()), fs_err::create_dir_all)?;
            rename()
        }
        renamed => renamed,
    };
    match renamed {
        Ok(()) => Ok(()),
        // Some file systems do not support the flag. On these a directory still replaces only an empty one.
        Err(Errno::INVAL | Errno::NOSYS) if from.is_dir() => match std::fs::rename(from, to) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                Err(name_path(io::ErrorKind::AlreadyExists.into()))
            }
            other => other.map_err(name_path),
        },
        Err(error) => Err(name_path(error.into())),
    }
}

/// Makes a rename durable.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// Writes the whole file system of `path` to disk: one call instead of one per file.
pub fn sync_all(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(path)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs_err::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn publishing_never_replaces() {
        let root = tempfile::tempdir().unwrap();
        let parent = root.path().join("deep/er");
        for (round, content) in ["one", "two"].into_iter().enumerate() {
            let staging = Staging::begin(&parent).unwrap();
            let made = staging.path().join("made");
            fs_err::create_dir(&made).unwrap();
            fs_err::write(made.join("file"), content).unwrap();
            let published = staging.publish(&made, &parent.join("x/place"));
            assert_eq!(published.is_ok(), round == 0);
            if let Err(error) = published {
                assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            }
        }
        assert_eq!(fs_err::read(parent.join("x/place/file")).unwrap(), b"one");
        assert_eq!(names(&parent), ["x"], "nothing hidden stays");
    }

    #[test]
    fn abandoned_directories_are_removed_and_living_ones_stay() {
        let root = tempfile::tempdir().unwrap();
        let abandoned = root.path().join(format!("{PREFIX}abandoned"));
        fs_err::create_dir_all(abandoned.join("deep")).unwrap();
        let living = Staging::begin(root.path()).unwrap();
        assert!(!abandoned.exists());
        let second = Staging::begin(root.path()).unwrap();
        assert!(living.path().is_dir() && second.path().is_dir());
        drop((living, second));
        assert!(names(root.path()).is_empty());
    }

    /// A killed export left its half-written file for ever.
    #[test]
    fn abandoned_files_are_removed_and_those_being_written_stay() {
        let root = tempfile::tempdir().unwrap();
        let abandoned = root.path().join(format!("{PARTIAL}abandoned"));
        fs_err::write(&abandoned, "half").unwrap();
        fs_err::write(root.path().join("other"), "").unwrap();
        assert_eq!(sweep(root.path(), true).unwrap(), 1);
        assert!(abandoned.exists(), "a dry run removes nothing");
        let living = partial_file(root.path()).unwrap();
        assert!(!abandoned.exists());
        let second = partial_file(root.path()).unwrap();
        assert_eq!(sweep(root.path(), false).unwrap(), 0);
        assert!(living.path().is_file() && second.path().is_file());
        living.persist(root.path().join("done")).unwrap();
        drop(second);
        assert_eq!(names(root.path()), ["done", "other"]);
    }
}
