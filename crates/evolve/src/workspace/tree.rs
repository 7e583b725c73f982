//! The files of a working tree: read with bounds and without links, written so that exactly the wanted ones are there.

use std::io;
use std::path::Path;

use aec_base::file::{Links, open_regular, write_atomic};

use super::candidate::Files;

/// Files of a workspace, and bytes of one of them.
const MOST_FILES: usize = 1000;
const FILE_LIMIT: u64 = 1024 * 1024;
/// Directories inside directories.
const DEEPEST: usize = 8;

/// Every file of a directory, but for git's own.
pub(super) fn read(root: &Path) -> io::Result<Files> {
    let mut files = Files::new();
    if root.symlink_metadata().is_ok() {
        collect(root, "", 0, &mut files)?;
    }
    Ok(files)
}

fn collect(root: &Path, inside: &str, depth: usize, files: &mut Files) -> io::Result<()> {
    if depth > DEEPEST {
        return Err(io::Error::other(format!("{inside} lies too deep")));
    }
    for entry in fs_err::read_dir(root.join(inside))? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_str().ok_or_else(|| io::Error::other("the name of a file is not text"))?;
        if inside.is_empty() && name == ".git" {
            continue;
        }
        let path = if inside.is_empty() { name.to_owned() } else { format!("{inside}/{name}") };
        // Git keeps such a path and then refuses to read it, so a candidate with one could never be shown again.
        if is_for_git(name) {
            return Err(io::Error::other(format!("{path} is a repository or settings of git; take it out")));
        }
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(root, &path, depth + 1, files)?;
            continue;
        }
        if files.len() >= MOST_FILES {
            return Err(io::Error::other(format!("a workspace may have {MOST_FILES} files")));
        }
        let (mut file, _) = open_regular(&root.join(&path), FILE_LIMIT, Links::Refuse)
            .map_err(|error| io::Error::other(format!("{path}: {error}")))?;
        let mut content = Vec::new();
        io::Read::read_to_end(&mut file, &mut content)?;
        files.insert(path, content);
    }
    Ok(())
}

/// Whether git takes a name for its own, as it does on every system: whatever the case, and whatever Windows ignores
/// at its end.
fn is_for_git(name: &str) -> bool {
    let stem = name.split(':').next().unwrap_or(name).trim_end_matches([' ', '.']);
    [".git", "git~1"].iter().any(|own| stem.eq_ignore_ascii_case(own))
}

/// Puts files in their places and takes those away that are not wanted, with the directories that they leave empty.
pub(super) fn write(root: &Path, before: &Files, after: &Files) -> io::Result<()> {
    for path in before.keys().filter(|path| !after.contains_key(*path)) {
        fs_err::remove_file(root.join(path))?;
        let mut directory = Path::new(path).parent();
        while let Some(inside) = directory.filter(|inside| !inside.as_os_str().is_empty()) {
            // One that is not empty stays.
            if std::fs::remove_dir(root.join(inside)).is_err() {
                break;
            }
            directory = inside.parent();
        }
    }
    for (path, content) in after {
        if before.get(path) != Some(content) {
            let place = root.join(path);
            if let Some(directory) = place.parent() {
                fs_err::create_dir_all(directory)?;
            }
            write_atomic(&place, content)?;
        }
    }
    Ok(())
}
