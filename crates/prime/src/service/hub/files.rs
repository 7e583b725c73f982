//! Selects the files of a package that are published as its source, and computes their hash.
//!
//! Prime's program publishes `README.md`, `pyproject.toml` and `*.py` at the top and everything below the directories
//! there, except hidden files, links, build products and files that `.gitignore` names. The content hash covers exactly
//! these files, and the hub identifies versions by it.

use std::io;
use std::path::{Path, PathBuf};

use aec_base::digest::Digest;
use sha2::{Digest as _, Sha256};

use super::ignore::IgnoreRules;
use super::package::PackageError;

/// Most bytes of a package, because it is packed in memory.
const LARGEST_PACKAGE: u64 = 1024 * 1024 * 1024;

#[derive(Clone, Debug)]
pub(crate) struct PackageFile {
    /// Path below the top of the package, separated by `/`.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) executable: bool,
}

/// Reads files and counts their bytes.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    total: u64,
}

impl Reader {
    pub(crate) fn read(&mut self, top: &Path, name: String) -> Result<PackageFile, PackageError> {
        let path = top.join(&name);
        let unreadable = |source| PackageError::Unreadable { path: path.clone(), source };
        let metadata = std::fs::symlink_metadata(&path).map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(PackageError::NotAFile { path });
        }
        self.total += metadata.len();
        if self.total > LARGEST_PACKAGE {
            return Err(PackageError::TooLarge { limit: LARGEST_PACKAGE });
        }
        let bytes = std::fs::read(&path).map_err(unreadable)?;
        Ok(PackageFile { name, bytes, executable: is_executable(&metadata) })
    }
}

#[cfg(unix)]
fn is_executable(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_metadata: &std::fs::Metadata) -> bool {
    false
}

/// Names of the source files, sorted.
pub(crate) fn source_files(top: &Path) -> Result<Vec<String>, PackageError> {
    let rules = ignore_rules(top)?;
    let mut names = Vec::new();
    for entry in entries(top)? {
        let published_here =
            entry.name == "README.md" || entry.name == "pyproject.toml" || entry.name.ends_with(".py");
        if entry.kind.is_file() && published_here && is_source_file(&entry.name, &rules) {
            names.push(entry.name);
        } else if is_source_directory(&entry.name, &rules) {
            if entry.kind.is_symlink() && entry.path.is_dir() {
                return Err(PackageError::Link { path: entry.path });
            }
            if entry.kind.is_dir() {
                collect(&entry.path, &entry.name, &rules, &mut names)?;
            }
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// SHA-256 over the name and content of each file.
pub(crate) fn content_hash(files: &[PackageFile]) -> String {
    let mut hash = Sha256::new();
    for file in files {
        hash.update(format!("file:{}", file.name));
        hash.update(&file.bytes);
    }
    Digest::from_bytes(hash.finalize().into()).hex()
}

pub(crate) fn ignore_rules(top: &Path) -> Result<IgnoreRules, PackageError> {
    let path = top.join(".gitignore");
    match std::fs::read(&path) {
        Ok(bytes) => Ok(IgnoreRules::parse(&String::from_utf8_lossy(&bytes))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(IgnoreRules::default()),
        Err(source) => Err(PackageError::Unreadable { path, source }),
    }
}

fn collect(
    directory: &Path,
    below: &str,
    rules: &IgnoreRules,
    names: &mut Vec<String>,
) -> Result<(), PackageError> {
    for entry in entries(directory)? {
        let name = format!("{below}/{}", entry.name);
        if entry.kind.is_dir() && is_source_directory(&name, rules) {
            collect(&entry.path, &name, rules, names)?;
        } else if entry.kind.is_file() && is_source_file(&name, rules) {
            names.push(name);
        }
    }
    Ok(())
}

fn is_source_file(name: &str, rules: &IgnoreRules) -> bool {
    !last_part(name).starts_with('.') && !rules.ignores(name)
}

fn is_source_directory(name: &str, rules: &IgnoreRules) -> bool {
    let last = last_part(name);
    let product = matches!(last, "dist" | "__pycache__" | "build" | "outputs") || last.ends_with(".egg-info");
    !last.starts_with('.') && !product && !rules.ignores(name)
}

fn last_part(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) kind: std::fs::FileType,
}

/// Entries of a directory by name.
pub(crate) fn entries(directory: &Path) -> Result<Vec<Entry>, PackageError> {
    let unreadable = |source| PackageError::Unreadable { path: directory.to_owned(), source };
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let path = entry.path();
        let kind = entry.file_type().map_err(unreadable)?;
        let Ok(name) = entry.file_name().into_string() else {
            return Err(PackageError::Name { path });
        };
        entries.push(Entry { name, path, kind });
    }
    entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}
