//! Contents of directories, as tests compare them.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

/// Sorted names of a directory's entries; empty if there is no such directory.
pub fn names_in(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs_err::read_dir(directory) else { return Vec::new() };
    let name = |entry: std::io::Result<fs_err::DirEntry>| {
        entry.expect("an entry").file_name().into_string().expect("a name that is text")
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// Every file below a directory, as a map from path to content; for a link, its target. Files that a running program
/// removes meanwhile are left out.
pub fn files_below(root: &Path) -> BTreeMap<String, Vec<u8>> {
    assert!(root.is_dir(), "{} is not a directory", root.display());
    let mut files = BTreeMap::new();
    let mut waiting = vec![root.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        for name in names_in(&directory) {
            let path = directory.join(name);
            let content = match fs_err::symlink_metadata(&path) {
                Ok(found) if found.is_dir() => {
                    waiting.push(path);
                    continue;
                }
                Ok(found) if found.is_symlink() => {
                    fs_err::read_link(&path).map(|target| target.into_os_string().into_encoded_bytes())
                }
                Ok(_) => fs_err::read(&path),
                Err(error) => Err(error),
            };
            match content {
                Ok(content) => {
                    let name =
                        path.strip_prefix(root).expect("a path below it").to_string_lossy().into_owned();
                    files.insert(name, content);
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
    files
}

/// Copies a directory with its contents, also into an existing directory.
pub fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-aT").arg(from).arg(to).status().expect("cp");
    assert!(status.success(), "{} cannot be copied", from.display());
}
