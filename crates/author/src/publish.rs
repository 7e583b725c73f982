//! Publishing whole directories: written in a hidden place beside their own, then renamed in one step.
//!
//! Whoever looks sees nothing or everything, also after a kill.

use std::fs::File;
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use aec_base::staging;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::instance::{Files, is_executable};

/// A directory that is being written.
#[derive(Debug)]
pub(crate) struct Staging {
    hidden: staging::Staging,
    tree: PathBuf,
    target: PathBuf,
}

/// What publishing did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Published {
    /// It was not there.
    Created,
    /// It was there, the same to the byte.
    Unchanged,
    /// It was there, and was replaced or extended.
    Replaced,
}

impl Staging {
    /// Begins a directory that will be `target`.
    pub(crate) fn begin(target: &Path) -> io::Result<Self> {
        let parent =
            target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        let hidden = staging::Staging::begin(parent)?;
        let tree = hidden.path().join("tree");
        fs_err::create_dir(&tree)?;
        Ok(Self { hidden, tree, target: target.to_path_buf() })
    }

    /// Writes the files of one task, or others, below a path.
    pub(crate) fn write(&self, path: &str, files: &Files) -> io::Result<()> {
        let root = self.tree.join(path);
        let mut made: Option<PathBuf> = None;
        for (name, content) in files {
            let file = root.join(name);
            let parent = file.parent().unwrap_or(&root);
            if made.as_deref() != Some(parent) {
                fs_err::create_dir_all(parent)?;
                made = Some(parent.to_path_buf());
            }
            let mode = if is_executable(name) { 0o755 } else { 0o644 };
            let mut options = File::options();
            let mut opened =
                options.write(true).create_new(true).mode(mode).open(&file).map_err(|error| {
                    io::Error::new(error.kind(), format!("cannot write {}: {error}", file.display()))
                })?;
            io::Write::write_all(&mut opened, content.as_bytes())?;
            // The mode above is what the umask left of it; a digest must not depend on that.
            opened.set_permissions(std::fs::Permissions::from_mode(mode))?;
        }
        Ok(())
    }

    /// Makes the directory visible. One that is there already must be the same, unless it may be replaced.
    pub(crate) fn publish(self, replace: bool) -> io::Result<Option<Published>> {
        staging::sync_all(&self.tree)?;
        match self.hidden.publish(&self.tree, &self.target) {
            Ok(()) => return Ok(Some(Published::Created)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        if same_tree(&self.tree, &self.target)? {
            return Ok(Some(Published::Unchanged));
        }
        if !replace {
            return Ok(None);
        }
        renameat_with(CWD, &self.tree, CWD, &self.target, RenameFlags::EXCHANGE)?;
        staging::sync_parent(&self.target)?;
        // What was there is now in the hidden place and goes with it.
        Ok(Some(Published::Replaced))
    }

    /// Takes over what is at the target and not in the new tree, by links, so that publishing extends it.
    /// Paths that are in both and differ are given back.
    pub(crate) fn take_over(&self, skip: &str) -> io::Result<Vec<PathBuf>> {
        let mut different = Vec::new();
        if self.target.is_dir() {
            link_missing(&self.target, &self.tree, Path::new(""), skip, &mut different)?;
        }
        Ok(different)
    }
}

fn link_missing(
    from: &Path,
    to: &Path,
    relative: &Path,
    skip: &str,
    different: &mut Vec<PathBuf>,
) -> io::Result<()> {
    for entry in fs_err::read_dir(from.join(relative))? {
        let entry = entry?;
        let path = relative.join(entry.file_name());
        if path == Path::new(skip) {
            continue;
        }
        let new = to.join(&path);
        let kind = entry.file_type()?;
        if kind.is_dir() {
            fs_err::create_dir_all(&new)?;
            link_missing(from, to, &path, skip, different)?;
        } else if new.symlink_metadata().is_err() {
            fs_err::hard_link(entry.path(), &new)?;
        } else if !kind.is_file() || !same_file(&entry.path(), &new)? {
            different.push(path);
        }
    }
    Ok(())
}

/// Whether two directories have the same files with the same content and modes.
pub(crate) fn same_tree(one: &Path, other: &Path) -> io::Result<bool> {
    let (mine, theirs) = (names(one)?, names(other)?);
    if mine != theirs {
        return Ok(false);
    }
    for (name, is_directory) in mine {
        let (mine, theirs) = (one.join(&name), other.join(&name));
        let same = if is_directory { same_tree(&mine, &theirs)? } else { same_file(&mine, &theirs)? };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

fn names(directory: &Path) -> io::Result<Vec<(std::ffi::OsString, bool)>> {
    let mut names = Vec::new();
    for entry in fs_err::read_dir(directory)? {
        let entry = entry?;
        names.push((entry.file_name(), entry.file_type()?.is_dir()));
    }
    names.sort();
    Ok(names)
}

fn same_file(one: &Path, other: &Path) -> io::Result<bool> {
    let (mine, theirs) = (fs_err::symlink_metadata(one)?, fs_err::symlink_metadata(other)?);
    let executable = |metadata: &std::fs::Metadata| metadata.permissions().mode() & 0o100 != 0;
    if !theirs.is_file() || mine.len() != theirs.len() || executable(&mine) != executable(&theirs) {
        return Ok(false);
    }
    Ok(fs_err::read(one)? == fs_err::read(other)?)
}
