//! What lies in directories, as tests compare it.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

/// Names of what is in a directory, sorted; of one that is not there, none.
pub fn names_in(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs_err::read_dir(directory) else { return Vec::new() };
    let name = |entry: std::io::Result<fs_err::DirEntry>| {
        entry.expect("an entry").file_name().into_string().expect("a name that is text")
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// Every file below a directory with its content, by its path; of a link, where it leads. What a program that is under
/// way takes away meanwhile is left out.
pub fn files_below(root: &Path) -> BTreeMap<String, Vec<u8>> {
    assert!(root.is_dir(), "{} is no directory", root.display());
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

/// Copies a directory with everything in it, also into one that is there.
pub fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-aT").arg(from).arg(to).status().expect("cp");
    assert!(status.success(), "{} cannot be copied", from.display());
}
