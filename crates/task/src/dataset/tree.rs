//! The files of a task directory that make up its content.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use aec_base::digest::{self, Digest};
use aec_base::file::{Links, ReadError, kind_of, open_regular};
use aec_base::problem::Problem;
use aec_base::text::printable;

use super::finding;
use super::hash::{HashedFile, task_hash};
use super::paths::{self, PathSet};

pub const FILE_LIMIT: u64 = 256 * 1024 * 1024;
pub const MOST_FILES: usize = 10_000;
/// The deepest nesting of directories in a task.
const MAX_DEPTH: usize = 32;
/// Files up to this size are read whole; larger ones in pieces.
const SMALL: u64 = 1024 * 1024;

#[derive(Debug)]
pub struct TreeFile {
    /// Path below the task's directory, with slashes.
    pub path: String,
    /// Where it is on disk.
    pub place: PathBuf,
}

/// The files below a task's directory, sorted, without those that do not belong to a task. Links, special files and
/// names that are not valid on every machine are problems.
pub fn files(directory: &Path) -> Result<Vec<TreeFile>, Vec<Problem>> {
    let mut walk = Walk { files: Vec::new(), problems: Vec::new() };
    walk.enter(directory, "", 0);
    let Walk { mut files, mut problems } = walk;
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    if files.len() > MOST_FILES {
        problems.push(
            finding(30, format!("a task of a dataset has at most {MOST_FILES} files, not {}", files.len()))
                .fix("put the material into an archive file, or leave it out")
                .in_file(directory),
        );
    }
    let mut set = PathSet::default();
    for file in &files {
        if let Err(error) = paths::check(&file.path).and_then(|()| set.add_file(&file.path)) {
            problems.push(
                finding(30, format!("`{}` cannot be frozen: {error}", printable(&file.path)))
                    .why("a dataset must mean the same on every machine")
                    .fix("rename the file")
                    .in_file(&file.place),
            );
        }
    }
    if problems.is_empty() { Ok(files) } else { Err(problems) }
}

struct Walk {
    files: Vec<TreeFile>,
    problems: Vec<Problem>,
}

impl Walk {
    fn enter(&mut self, directory: &Path, prefix: &str, depth: usize) {
        let entries = match std::fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>) {
            Ok(entries) => entries,
            Err(error) => {
                self.problems.push(
                    finding(1, format!("cannot look into this directory: {}", error.kind()))
                        .fix("check its permissions")
                        .in_file(directory),
                );
                return;
            }
        };
        for entry in entries {
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                self.refuse(&entry.path(), "its name is not UTF-8 text", "rename it");
                continue;
            };
            if paths::is_left_out(name) {
                continue;
            }
            let place = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth == MAX_DEPTH => {
                    self.refuse(&place, &format!("it is more than {MAX_DEPTH} levels deep"), "move it up");
                }
                Ok(kind) if kind.is_dir() => self.enter(&place, &format!("{prefix}{name}/"), depth + 1),
                Ok(kind) if kind.is_file() => {
                    self.files.push(TreeFile { path: format!("{prefix}{name}"), place });
                }
                Ok(kind) => {
                    let why = format!("it is a {}", kind_of(kind));
                    self.refuse(&place, &why, "put a regular file there, or remove it");
                }
                Err(error) => self.refuse(&place, &error.to_string(), "check its permissions"),
            }
        }
    }

    fn refuse(&mut self, place: &Path, why: &str, fix: &str) {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let what = format!("`{}` cannot be frozen: {why}", printable(&name));
        self.problems.push(
            finding(30, what).why("the hash of a task is a hash of its own files").fix(fix).in_file(place),
        );
    }
}

/// Reads one file for its entry in the task's hash; `buffer` is scratch space, which saves an allocation per file.
fn read_file(file: &TreeFile, buffer: &mut Vec<u8>, memory: &Memory) -> Result<HashedFile, Problem> {
    let (opened, executable, size) = open(file)?;
    let content = if size <= SMALL {
        read_whole(opened, size, buffer).map(|bytes| memory.digest(&file.path, bytes))
    } else {
        digest::copy(opened, FILE_LIMIT, |_| Ok(())).map(|(digest, _)| digest)
    };
    let content = content.map_err(|error| unreadable(file, &error.into()))?;
    Ok(HashedFile { path: file.path.clone(), executable, content })
}

/// Reads one file with its whole content.
pub fn read_content(file: &TreeFile) -> Result<(HashedFile, Vec<u8>), Problem> {
    let (opened, executable, size) = open(file)?;
    let mut bytes = Vec::new();
    let length = read_whole(opened, size, &mut bytes).map_err(|error| unreadable(file, &error.into()))?.len();
    bytes.truncate(length);
    Ok((HashedFile { path: file.path.clone(), executable, content: Digest::of(&bytes) }, bytes))
}

fn open(file: &TreeFile) -> Result<(File, bool, u64), Problem> {
    let (opened, metadata) =
        open_regular(&file.place, FILE_LIMIT, Links::Refuse).map_err(|error| unreadable(file, &error))?;
    Ok((opened, metadata.mode() & 0o100 != 0, metadata.len()))
}

/// Reads a file of a known size, usually with one call; the buffer only grows. If the file shrinks meanwhile, only
/// the rest of it is read.
fn read_whole(mut file: File, size: u64, buffer: &mut Vec<u8>) -> io::Result<&[u8]> {
    let size = usize::try_from(size).map_err(|_| io::ErrorKind::FileTooLarge)?;
    if buffer.len() < size {
        buffer.resize(size, 0);
    }
    let mut filled = 0;
    while filled < size {
        match file.read(&mut buffer[filled..size]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(&buffer[..filled])
}

/// A content with its digest.
type Remembered = (Vec<u8>, Digest);

/// Larger files of which all tasks of a suite have the same copy, such as the verifier. Comparing a file with a
/// remembered one is much faster than hashing it.
#[derive(Debug, Default)]
pub struct Memory {
    /// The first content that was found at each path of a task.
    seen: Mutex<HashMap<String, Arc<Remembered>>>,
}

impl Memory {
    /// Hashing smaller files is faster than looking them up.
    const LEAST: usize = 8 * 1024;
    /// Most remembered paths, each with at most [`SMALL`] bytes.
    const MOST: usize = 32;

    fn digest(&self, path: &str, content: &[u8]) -> Digest {
        if content.len() < Self::LEAST {
            return Digest::of(content);
        }
        let known = self.seen.lock().ok().and_then(|seen| seen.get(path).cloned());
        match known {
            Some(known) if known.0 == content => known.1,
            Some(_) => Digest::of(content),
            None => {
                let digest = Digest::of(content);
                if let Ok(mut seen) = self.seen.lock()
                    && seen.len() < Self::MOST
                {
                    seen.entry(path.to_owned()).or_insert_with(|| Arc::new((content.to_vec(), digest)));
                }
                digest
            }
        }
    }
}

fn unreadable(file: &TreeFile, error: &ReadError) -> Problem {
    let what = format!("`{}` cannot be frozen: {error}", printable(&file.path));
    finding(30, what).fix(error.fix()).in_file(&file.place)
}

pub fn hash(directory: &Path, memory: &Memory) -> Result<Digest, Vec<Problem>> {
    hash_files(&files(directory)?, memory)
}

pub(super) fn hash_files(files: &[TreeFile], memory: &Memory) -> Result<Digest, Vec<Problem>> {
    let mut hashed = Vec::with_capacity(files.len());
    let mut problems = Vec::new();
    let mut buffer = Vec::new();
    for file in files {
        match read_file(file, &mut buffer, memory) {
            Ok(file) => hashed.push(file),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(task_hash(&mut hashed)) } else { Err(problems) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn hash(directory: &Path) -> Result<Digest, Vec<Problem>> {
        super::hash(directory, &Memory::default())
    }

    fn task() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs_err::create_dir(directory.path().join("tests")).unwrap();
        fs_err::write(directory.path().join("task.toml"), "").unwrap();
        fs_err::write(directory.path().join("tests/verify.py"), "print()\n").unwrap();
        directory
    }

    #[test]
    fn content_names_and_the_executable_bit_count_and_nothing_else() {
        let directory = task();
        let at = |name: &str| directory.path().join(name);
        let before = hash(directory.path()).unwrap();
        fs_err::create_dir(at("tests/__pycache__")).unwrap();
        fs_err::write(at("tests/__pycache__/x"), "x").unwrap();
        fs_err::write(at("tests/.verify.py.swp"), "x").unwrap();
        symlink("nowhere", at(".#task.toml")).unwrap();
        fs_err::create_dir(at("empty")).unwrap();
        fs_err::set_permissions(at("task.toml"), PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(hash(directory.path()).unwrap(), before);
        fs_err::set_permissions(at("task.toml"), PermissionsExt::from_mode(0o755)).unwrap();
        let executable = hash(directory.path()).unwrap();
        assert_ne!(executable, before);
        fs_err::write(at("tests/verify.py"), "print(1)\n").unwrap();
        assert_ne!(hash(directory.path()).unwrap(), executable);
    }

    #[test]
    fn large_and_small_files_are_hashed_alike() {
        let directory = tempfile::tempdir().unwrap();
        let content = vec![7_u8; usize::try_from(SMALL).unwrap() + 1];
        let place = directory.path().join("large");
        fs_err::write(&place, &content).unwrap();
        let file = TreeFile { path: "large".into(), place };
        assert_eq!(
            read_file(&file, &mut Vec::new(), &Memory::default()).unwrap(),
            read_content(&file).unwrap().0
        );
    }

    #[test]
    fn what_is_remembered_is_never_mistaken() {
        let memory = Memory::default();
        let content = |last: u8| [vec![7; Memory::LEAST], vec![last]].concat();
        for last in [1, 2, 1, 3, 1] {
            for path in ["a", "b"] {
                assert_eq!(memory.digest(path, &content(last)), Digest::of(&content(last)));
            }
        }
        for number in 0..2 * Memory::MOST {
            assert_eq!(memory.digest(&number.to_string(), &content(9)), Digest::of(&content(9)));
        }
        assert_eq!(memory.seen.lock().unwrap().len(), Memory::MOST);
    }

    #[test]
    fn a_buffer_that_was_used_before_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let mut buffer = Vec::new();
        for content in ["a long content", "short", ""] {
            let place = directory.path().join("file");
            fs_err::write(&place, content).unwrap();
            let read = read_whole(File::open(&place).unwrap(), content.len() as u64, &mut buffer).unwrap();
            assert_eq!(read, content.as_bytes());
        }
    }

    #[test]
    fn what_is_not_a_plain_file_is_refused_by_name() {
        let refused = |arrange: &dyn Fn(&Path)| {
            let directory = task();
            arrange(directory.path());
            let problems = hash(directory.path()).unwrap_err();
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert_eq!(problems[0].id.as_deref(), Some("D030"));
            problems[0].what.clone()
        };
        assert_eq!(
            refused(&|at| symlink("task.toml", at.join("link")).unwrap()),
            "`link` cannot be frozen: it is a symbolic link"
        );
        assert_eq!(
            refused(&|at| symlink("tests", at.join("dir")).unwrap()),
            "`dir` cannot be frozen: it is a symbolic link"
        );
        let socket = refused(&|at| {
            drop(std::os::unix::net::UnixListener::bind(at.join("s")).unwrap());
        });
        assert_eq!(socket, "`s` cannot be frozen: it is a socket");
        assert!(refused(&|at| fs_err::write(at.join("a\\b"), "").unwrap()).contains("backslash"));
        assert!(refused(&|at| fs_err::write(at.join("a\x1b"), "").unwrap()).contains("U+001B"));
        assert!(refused(&|at| fs_err::write(at.join("TASK.toml"), "").unwrap()).contains("only in case"));
        let bad_name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff");
        assert!(refused(&|at| fs_err::write(at.join(bad_name), "").unwrap()).contains("not UTF-8"));
        let huge = |at: &Path| File::create(at.join("huge")).unwrap().set_len(FILE_LIMIT + 1).unwrap();
        assert!(refused(&huge).contains("more than"));
    }
}
