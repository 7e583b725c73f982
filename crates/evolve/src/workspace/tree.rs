//! The files of a working tree: read within limits and without following links, written so that no others remain.

use std::io;
use std::path::Path;

use aec_base::file::{Links, open_regular, write_atomic};

use super::candidate::Files;

/// Most files of a workspace, and most bytes of one of them.
const MOST_FILES: usize = 1000;
const FILE_LIMIT: u64 = 1024 * 1024;
/// Deepest nesting of directories.
const DEEPEST: usize = 8;

/// Every file of a directory except git's own.
pub(super) fn read(root: &Path) -> io::Result<Files> {
    let mut files = Files::new();
    if root.symlink_metadata().is_ok() {
        collect(root, "", 0, &mut files)?;
    }
    Ok(files)
}

fn collect(root: &Path, inside: &str, depth: usize, files: &mut Files) -> io::Result<()> {
    if depth > DEEPEST {
        return Err(io::Error::other(format!("{inside} is nested too deeply")));
    }
    for entry in fs_err::read_dir(root.join(inside))? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_str().ok_or_else(|| io::Error::other("the name of a file is not text"))?;
        if inside.is_empty() && name == ".git" {
            continue;
        }
        let path = if inside.is_empty() { name.to_owned() } else { format!("{inside}/{name}") };
        // Git stores such a path and then refuses to read it, so a candidate with one could never be shown again.
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

/// Whether git reserves a name, as it does on every system: in any case, and with endings that Windows ignores.
fn is_for_git(name: &str) -> bool {
    let stem = name.split(':').next().unwrap_or(name).trim_end_matches([' ', '.']);
    [".git", "git~1"].iter().any(|own| stem.eq_ignore_ascii_case(own))
}

/// Writes the wanted files and removes the others, with the directories that become empty.
pub(super) fn write(root: &Path, before: &Files, after: &Files) -> io::Result<()> {
    for path in before.keys().filter(|path| !after.contains_key(*path)) {
        fs_err::remove_file(root.join(path))?;
        let mut directory = Path::new(path).parent();
        while let Some(inside) = directory.filter(|inside| !inside.as_os_str().is_empty()) {
            // A directory that is not empty stays.
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
