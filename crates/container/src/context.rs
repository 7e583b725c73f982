//! The input of a build: files of a task as an archive, with a digest that changes if any of them does.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use aec_base::digest::{Digest, Hasher};
use aec_sandbox::{Kind, Listed, Tree, WalkLimits};

/// Files that tell engines what to leave out of builds.
const IGNORE_FILES: [&str; 2] = [".dockerignore", ".containerignore"];
/// Limits for the files of a build.
const CONTEXT_LIMITS: WalkLimits = WalkLimits { entries: 50_000, depth: 32 };
const CONTEXT_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// The files of a build.
#[derive(Debug)]
pub(crate) struct BuildContext {
    tree: Tree,
    listed: Vec<Listed>,
    /// Changes with any file.
    pub(crate) digest: Digest,
}

impl BuildContext {
    /// Reads a directory of a task. Links are left out, because their targets are not part of the task.
    pub(crate) fn read(directory: &Path) -> io::Result<Self> {
        Self::read_without(directory, &BTreeSet::new())
    }

    /// Like [`Self::read`], without some paths.
    pub(crate) fn read_without(directory: &Path, left_out: &BTreeSet<PathBuf>) -> io::Result<Self> {
        let tree = Tree::open(directory)?;
        let mut listed = tree.list(CONTEXT_LIMITS)?;
        // Some engines would obey this file and others would not.
        listed.retain(|file| !IGNORE_FILES.iter().any(|name| file.path == Path::new(name)));
        listed.retain(|file| !left_out.iter().any(|path| file.path.starts_with(path)));
        Self::of(tree, listed)
    }

    /// Reads one file of a task.
    pub(crate) fn of_file(path: &Path) -> io::Result<Self> {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        };
        let tree = Tree::open(directory)?;
        let facts = tree.open_file(Path::new(name))?.metadata()?;
        let listed = Listed {
            path: name.into(),
            kind: Kind::File,
            size: facts.len(),
            links: std::os::unix::fs::MetadataExt::nlink(&facts),
        };
        Self::of(tree, vec![listed])
    }

    fn of(tree: Tree, listed: Vec<Listed>) -> io::Result<Self> {
        if let Some(closed) = listed.iter().find(|file| file.kind == Kind::Closed) {
            let what = format!("{} cannot be read", closed.path.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        }
        let total: u64 = listed.iter().map(|file| file.size).sum();
        if total > CONTEXT_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::QuotaExceeded,
                format!("the files have {total} bytes; a build takes at most {CONTEXT_BYTES}"),
            ));
        }
        let digest = digest(&tree, &listed)?;
        Ok(Self { tree, listed, digest })
    }

    /// Whether the files are unchanged since they were read.
    pub(crate) fn is_as_read(&self) -> bool {
        digest(&self.tree, &self.listed).is_ok_and(|now| now == self.digest)
    }

    pub(crate) fn has(&self, path: &Path) -> bool {
        self.listed.iter().any(|file| file.kind == Kind::File && file.path == path)
    }

    /// Adds the files to an archive, below a directory, without times or owners.
    pub(crate) fn archive(&self, below: &Path, archive: &mut tar::Builder<impl Write>) -> io::Result<()> {
        for file in &self.listed {
            let place = below.join(&file.path);
            match file.kind {
                Kind::Directory => directory(archive, &place)?,
                Kind::File => {
                    let opened = self.tree.open_file(&file.path)?;
                    let mode = mode(&self.tree, &file.path)?;
                    self::file(archive, &place, opened, mode)?;
                }
                Kind::Link | Kind::Special | Kind::Closed => {}
            }
        }
        Ok(())
    }
}

fn digest(tree: &Tree, listed: &[Listed]) -> io::Result<Digest> {
    let mut hasher = Hasher::default();
    for file in listed {
        hasher.part(std::os::unix::ffi::OsStrExt::as_bytes(file.path.as_os_str()));
        if file.kind == Kind::File {
            hasher.part(&mode(tree, &file.path)?.to_le_bytes());
            let (digest, _) = aec_base::digest::copy(tree.open_file(&file.path)?, CONTEXT_BYTES, |_| Ok(()))?;
            hasher.part(digest.bytes());
        }
    }
    Ok(hasher.finish())
}

fn mode(tree: &Tree, path: &Path) -> io::Result<u32> {
    let mode = std::os::unix::fs::PermissionsExt::mode(&tree.open_file(path)?.metadata()?.permissions());
    Ok(if mode & 0o100 != 0 { 0o755 } else { 0o644 })
}

/// Adds an empty directory to an archive.
pub(crate) fn directory(archive: &mut tar::Builder<impl Write>, place: &Path) -> io::Result<()> {
    let mut header = header(0, 0o755);
    header.set_entry_type(tar::EntryType::Directory);
    archive.append_data(&mut header, place, io::empty())
}

/// Adds a file to an archive.
pub(crate) fn file(
    archive: &mut tar::Builder<impl Write>,
    place: &Path,
    file: std::fs::File,
    mode: u32,
) -> io::Result<()> {
    let size = file.metadata()?.len();
    archive.append_data(&mut header(size, mode), place, io::Read::take(file, size))
}

/// Adds a text to an archive.
pub(crate) fn text(archive: &mut tar::Builder<impl Write>, place: &str, text: &str) -> io::Result<()> {
    archive.append_data(&mut header(text.len() as u64, 0o644), place, text.as_bytes())
}

fn header(size: u64, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(mode);
    header.set_mtime(0);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_hold_files_and_nothing_that_links_lead_to() {
        let directory = tempfile::tempdir().unwrap();
        fs_err::write(directory.path().join("Dockerfile"), "FROM python:3.12-slim\n").unwrap();
        fs_err::create_dir(directory.path().join("workspace")).unwrap();
        fs_err::write(directory.path().join("workspace/data.csv"), "a,b\n").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", directory.path().join("workspace/link")).unwrap();
        let context = BuildContext::read(directory.path()).unwrap();
        assert!(context.has(Path::new("workspace/data.csv")) && !context.has(Path::new("workspace/link")));
        let mut archive = tar::Builder::new(Vec::new());
        context.archive(Path::new(""), &mut archive).unwrap();
        let bytes = archive.into_inner().unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let names: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["Dockerfile", "workspace", "workspace/data.csv"]);
    }
}
