//! Publishes whole directories: they are written in a hidden directory beside their target, then renamed in one step.
//!
//! Readers see nothing or everything, even if this process is killed.

use std::fs::File;
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use aec_base::staging;

use crate::instance::{Files, is_executable};

/// A directory that is being written.
#[derive(Debug)]
pub(crate) struct Staging {
    hidden: staging::Staging,
    tree: PathBuf,
    target: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Published {
    /// It did not exist.
    Created,
    /// It existed and is identical.
    Unchanged,
    /// It existed and was replaced or extended.
    Replaced,
}

impl Staging {
    /// Starts a directory that will become `target`.
    pub(crate) fn begin(target: &Path) -> io::Result<Self> {
        let parent =
            target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        let hidden = staging::Staging::begin(parent)?;
        let tree = hidden.path().join("tree");
        fs_err::create_dir(&tree)?;
        Ok(Self { hidden, tree, target: target.to_path_buf() })
    }

    /// Writes files, usually those of one task, below a path.
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
            // The umask may have reduced the mode above; a digest must not depend on that.
            opened.set_permissions(std::fs::Permissions::from_mode(mode))?;
        }
        Ok(())
    }

    /// Makes the directory visible. An existing one must be identical, unless `replace` is set.
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
        self.hidden.replace(&self.tree, &self.target)?;
        // The old directory is now the hidden one and is removed with it.
        Ok(Some(Published::Replaced))
    }

    /// Links existing files of the target that the new tree does not have into the new tree, so that publishing
    /// extends it. Returns paths that exist in both and differ.
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
