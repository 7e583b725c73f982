//! Freezes the files that an agent left: regular files only, bounded, hashed, stored by content.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt as _;

use aec_base::archive::paths;
use aec_base::content::ContentStore;
use aec_base::digest::{Digest, Hasher};
use aec_sandbox::{Kind, Tree, WalkLimits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::settle::order::{Files, in_the_way};

/// The limits of a submission.
#[derive(Clone, Copy, Debug)]
pub struct SubmissionLimits {
    /// Most files, directories and other entries.
    pub entries: usize,
    /// Deepest nesting of directories.
    pub depth: usize,
    pub file_bytes: u64,
    /// Most bytes of all files together.
    pub total_bytes: u64,
}

/// Files take whole blocks of a disk.
const BLOCK: u64 = 4096;
/// What the name of a file takes, with its directories.
const ENTRY: u64 = 2048;

impl Default for SubmissionLimits {
    fn default() -> Self {
        const MEBIBYTE: u64 = 1024 * 1024;
        Self { entries: 10_000, depth: 16, file_bytes: 64 * MEBIBYTE, total_bytes: 256 * MEBIBYTE }
    }
}

impl SubmissionLimits {
    /// The disk in MiB that a submission within these limits takes at most.
    pub(crate) fn disk_mb(&self) -> u32 {
        let bytes = self.total_bytes + self.entries as u64 * (BLOCK + ENTRY);
        u32::try_from(bytes.div_ceil(1024 * 1024)).unwrap_or(u32::MAX)
    }
}

impl SubmissionLimits {
    /// Refuses files in memory that exceed the limits, as freezing a directory does.
    pub fn check(&self, files: &Files, outputs: &[String]) -> Result<(), FreezeError> {
        let too_large = |what: &str| Err(FreezeError::TooLarge(format!("{what} than allowed")));
        let above =
            |path: &String| path.match_indices('/').map(|(at, _)| path[..at].to_owned()).collect::<Vec<_>>();
        let directories: BTreeSet<String> = files.keys().flat_map(above).collect();
        if files.len() + directories.len() > self.entries {
            return too_large("more entries");
        }
        if files.keys().any(|path| path.matches('/').count() > self.depth) {
            return too_large("deeper directories");
        }
        let taken = files.iter().filter(|(path, _)| is_output(path, outputs));
        if taken.map(|(_, content)| content.len() as u64).sum::<u64>() > self.total_bytes {
            return too_large("more bytes");
        }
        Ok(())
    }
}

/// One file of a submission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubmittedFile {
    /// Digest of its content.
    pub digest: Digest,
    pub size: u64,
    pub executable: bool,
}

/// An entry that was refused, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refused {
    /// Path below the workspace.
    pub path: String,
    pub reason: String,
}

/// The frozen files of an agent.
#[derive(Clone, Debug, Serialize)]
pub struct Submission {
    /// Digest of the list of files: paths, contents and modes.
    pub digest: Digest,
    /// The files, by path below the workspace.
    pub files: BTreeMap<String, SubmittedFile>,
    pub refused: Vec<Refused>,
    #[serde(skip)]
    store: ContentStore,
}

#[derive(Debug, thiserror::Error)]
pub enum FreezeError {
    #[error("the workspace is too large: {0}")]
    TooLarge(String),
    #[error("the workspace cannot be read: {0}")]
    Unreadable(#[source] io::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Submission {
    /// Copies the files of a workspace into a store. `outputs` selects files; if it is empty, all are copied. The
    /// workspace must be frozen: no process may change it meanwhile.
    pub fn freeze(
        workspace: &Tree,
        outputs: &[String],
        limits: &SubmissionLimits,
        store: &ContentStore,
    ) -> Result<Self, FreezeError> {
        let walk = WalkLimits { entries: limits.entries, depth: limits.depth };
        let listed = workspace.list(walk).map_err(|error| match error.kind() {
            io::ErrorKind::QuotaExceeded => FreezeError::TooLarge(error.to_string()),
            _ => FreezeError::Unreadable(error),
        })?;
        let mut submission = Self {
            digest: Digest::of(b""),
            files: BTreeMap::new(),
            refused: Vec::new(),
            store: store.clone(),
        };
        let mut left = limits.total_bytes;
        for entry in listed {
            let Some(path) = entry.path.to_str().map(str::to_owned) else {
                submission.refuse(entry.path.to_string_lossy(), "its name is not text");
                continue;
            };
            if entry.kind == Kind::Directory || !is_output(&path, outputs) {
                continue;
            }
            if let Err(error) = paths::check(&path) {
                submission.refuse(path, &error.to_string());
                continue;
            }
            let reason = match entry.kind {
                Kind::Link => Some("it is a symbolic link"),
                Kind::Special => Some("it is not a regular file"),
                Kind::Closed => Some("it cannot be read"),
                _ if entry.links != 1 => Some("it has more than one name"),
                _ if entry.size > limits.file_bytes => Some("it is too large"),
                _ => None,
            };
            if let Some(reason) = reason {
                submission.refuse(path, reason);
                continue;
            }
            let opened = match workspace.open_file(&entry.path) {
                // A file that was listed a moment ago, and whose name leads nowhere because it is too long or odd.
                Err(error) if is_about_the_file(&error) => {
                    submission.refuse(path, "it cannot be read");
                    continue;
                }
                Err(error) => return Err(FreezeError::Unreadable(error)),
                Ok(opened) => opened,
            };
            match keep(opened, limits.file_bytes.min(left), store) {
                Ok(file) => {
                    left -= file.size;
                    submission.files.insert(path, file);
                }
                Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                    return Err(FreezeError::TooLarge(format!("{path}: {error}")));
                }
                Err(error) => return Err(error.into()),
            }
        }
        submission.digest = submission.compute_digest();
        Ok(submission)
    }

    /// A submission made of given contents, for `verify --submission`.
    pub fn from_contents(
        contents: impl IntoIterator<Item = (String, Vec<u8>)>,
        store: &ContentStore,
    ) -> Result<Self, FreezeError> {
        Self::from_files(contents.into_iter().map(|(path, bytes)| (path, bytes, false)), store)
    }

    /// A submission made of given contents, each with whether it is executable.
    pub(crate) fn from_files(
        contents: impl IntoIterator<Item = (String, impl AsRef<[u8]>, bool)>,
        store: &ContentStore,
    ) -> Result<Self, FreezeError> {
        let mut files = BTreeMap::new();
        for (path, bytes, executable) in contents {
            let bytes = bytes.as_ref();
            let digest = store.put(bytes)?;
            files.insert(path, SubmittedFile { digest, size: bytes.len() as u64, executable });
        }
        let mut submission =
            Self { digest: Digest::of(b""), files, refused: Vec::new(), store: store.clone() };
        submission.digest = submission.compute_digest();
        Ok(submission)
    }

    /// The disk that it takes in a room: whole blocks, and something for each name.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.files.values().map(|file| file.size.div_ceil(BLOCK) * BLOCK + ENTRY).sum()
    }

    /// The content of one file, checked against its digest.
    pub fn read(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = self.files.get(path) else { return Ok(None) };
        self.store.read(file.digest, file.size).map(Some)
    }

    /// Adds a file that the agent delivered another way, in place of whatever is at its path or in its way.
    pub(crate) fn put(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let digest = self.store.put(bytes)?;
        let file = SubmittedFile { digest, size: bytes.len() as u64, executable: false };
        self.files.retain(|other, _| !in_the_way(other, path));
        self.files.insert(path.to_owned(), file);
        self.refused.retain(|refused| refused.path != path);
        self.digest = self.compute_digest();
        Ok(())
    }

    /// Removes the file at `path`, because the content meant for it could not be read at `from`.
    pub(crate) fn withhold(&mut self, path: &str, from: &str, reason: &str) {
        self.files.remove(path);
        self.refuse(from, reason);
        self.digest = self.compute_digest();
    }

    /// Removes files that are not the agent's.
    pub(crate) fn leave_out(&mut self, paths: &[&str]) {
        self.files.retain(|path, _| !paths.contains(&path.as_str()));
        self.digest = self.compute_digest();
    }

    /// Records a refused entry. The list and the names are bounded, because the agent chooses them.
    fn refuse(&mut self, path: impl Into<String>, reason: &str) {
        const MOST: usize = 500;
        const LONGEST: usize = 300;
        if self.refused.len() < MOST {
            let path: String = path.into();
            let shown: String = aec_base::text::printable(&path).chars().take(LONGEST).collect();
            self.refused.push(Refused { path: shown, reason: reason.to_owned() });
        } else if self.refused.len() == MOST {
            self.refused
                .push(Refused { path: "…".to_owned(), reason: "there are more of these".to_owned() });
        }
    }

    fn compute_digest(&self) -> Digest {
        let mut hasher = Hasher::default();
        for (path, file) in &self.files {
            hasher.part(path.as_bytes());
            hasher.part(file.digest.hex().as_bytes());
            hasher.part(&[u8::from(file.executable)]);
        }
        hasher.finish()
    }
}

/// Whether a path is among the outputs of a task; all paths are if the task names none.
pub fn is_output(path: &str, outputs: &[String]) -> bool {
    let below = |output: &str| {
        let output = output.strip_prefix("/workspace/").unwrap_or(output).trim_end_matches('/');
        path == output || path.strip_prefix(output).is_some_and(|rest| rest.starts_with('/'))
    };
    outputs.is_empty() || outputs.iter().any(|output| below(output))
}

/// Whether a file cannot be opened because of what it is.
fn is_about_the_file(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let about = [Errno::ACCESS, Errno::PERM, Errno::NAMETOOLONG, Errno::LOOP, Errno::NOENT, Errno::INVAL];
    error.kind() == io::ErrorKind::InvalidInput
        || about.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Copies one file into the store through one descriptor, so that the hashed bytes are the stored ones.
fn keep(file: File, limit: u64, store: &ContentStore) -> io::Result<SubmittedFile> {
    let executable = file.metadata()?.permissions().mode() & 0o111 != 0;
    let (digest, size) = store.put_from(file, limit)?;
    Ok(SubmittedFile { digest, size, executable })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn freeze(dir: &Path, outputs: &[&str], limits: SubmissionLimits) -> Result<Submission, FreezeError> {
        let outputs: Vec<String> = outputs.iter().map(|output| (*output).to_owned()).collect();
        Submission::freeze(
            &Tree::open(&dir.join("w")).unwrap(),
            &outputs,
            &limits,
            &ContentStore::new(dir.join("store")),
        )
    }

    #[test]
    fn only_regular_single_files_are_taken() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join("w").join(name);
        fs_err::create_dir_all(at("sub")).unwrap();
        fs_err::write(at("answer.json"), "{}").unwrap();
        fs_err::write(at("sub/notes.md"), "n").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", at("link")).unwrap();
        std::os::unix::fs::symlink("/etc", at("linked")).unwrap();
        fs_err::write(at("one"), "x").unwrap();
        fs_err::hard_link(at("one"), at("two")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        let taken = freeze(dir.path(), &[], SubmissionLimits::default()).unwrap();
        assert_eq!(taken.files.keys().collect::<Vec<_>>(), ["answer.json", "sub/notes.md"]);
        let refused: Vec<_> = taken.refused.iter().map(|refused| refused.path.as_str()).collect();
        assert_eq!(refused, ["link", "linked", "one", "socket", "two"]);
        assert_eq!(taken.read("answer.json").unwrap().unwrap(), b"{}");
        assert_eq!(taken.read("link").unwrap(), None);

        let narrowed = freeze(dir.path(), &["sub"], SubmissionLimits::default()).unwrap();
        assert_eq!(narrowed.files.keys().collect::<Vec<_>>(), ["sub/notes.md"]);
        let narrowed = freeze(dir.path(), &["/workspace/answer.json"], SubmissionLimits::default()).unwrap();
        assert_eq!(narrowed.files.keys().collect::<Vec<_>>(), ["answer.json"]);
    }

    #[test]
    fn limits_hold_and_digests_tell_contents_apart() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join("w").join(name);
        fs_err::create_dir_all(at("a/b/c")).unwrap();
        fs_err::write(at("x"), "123").unwrap();
        let first = freeze(dir.path(), &[], SubmissionLimits::default()).unwrap();
        fs_err::write(at("x"), "124").unwrap();
        let second = freeze(dir.path(), &[], SubmissionLimits::default()).unwrap();
        assert_ne!(first.digest, second.digest);
        let small = |limits| freeze(dir.path(), &[], limits);
        let base = SubmissionLimits::default();
        assert!(matches!(small(SubmissionLimits { depth: 1, ..base }), Err(FreezeError::TooLarge(_))));
        assert!(matches!(small(SubmissionLimits { entries: 2, ..base }), Err(FreezeError::TooLarge(_))));
        assert!(matches!(small(SubmissionLimits { total_bytes: 2, ..base }), Err(FreezeError::TooLarge(_))));
        let refused = small(SubmissionLimits { file_bytes: 2, ..base }).unwrap().refused;
        assert_eq!(refused[0].reason, "it is too large");
        let sparse = File::create(at("sparse")).unwrap();
        sparse.set_len(10 << 30).unwrap();
        assert_eq!(small(base).unwrap().refused[0].path, "sparse");
    }

    /// A directory without permissions made freezing fail for everybody but root, and the attempt was repeated.
    #[test]
    fn what_cannot_be_read_is_refused_whoever_asks() {
        use std::fs::{Permissions, set_permissions};
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join("w").join(name);
        fs_err::create_dir_all(at("shut/in")).unwrap();
        fs_err::write(at("shut/in/x"), "x").unwrap();
        fs_err::write(at("mine"), "x").unwrap();
        fs_err::write(at("answer"), "x").unwrap();
        for name in ["shut", "mine"] {
            set_permissions(at(name), Permissions::from_mode(0o0)).unwrap();
        }
        let taken = freeze(dir.path(), &[], SubmissionLimits::default());
        set_permissions(at("shut"), Permissions::from_mode(0o700)).unwrap();
        let taken = taken.unwrap();
        assert_eq!(taken.files.keys().collect::<Vec<_>>(), ["answer"]);
        let refused: Vec<_> =
            taken.refused.iter().map(|refused| (refused.path.as_str(), refused.reason.as_str())).collect();
        assert_eq!(refused, [("mine", "it cannot be read"), ("shut", "it cannot be read")]);
    }

    #[test]
    fn any_submission_fits_on_the_disk_that_is_reserved_for_it() {
        let limits = SubmissionLimits::default();
        let digest = Digest::of(b"");
        let file = |size| SubmittedFile { digest, size, executable: false };
        let store = ContentStore::new(std::env::temp_dir());
        for (count, size) in
            [(4, limits.file_bytes), (10_000, 1), (10_000, limits.total_bytes / 10_000), (0, 0)]
        {
            let files = (0..count).map(|number: u64| (number.to_string(), file(size))).collect();
            let submission = Submission { digest, files, refused: Vec::new(), store: store.clone() };
            assert!(submission.disk_bytes() <= u64::from(limits.disk_mb()) << 20, "{count} of {size}");
        }
    }

    #[test]
    fn a_changed_store_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let store = ContentStore::new(dir.path());
        let taken = Submission::from_contents([("a".to_owned(), b"x".to_vec())], &store).unwrap();
        fs_err::remove_file(store.path(taken.files["a"].digest)).unwrap();
        fs_err::write(store.path(taken.files["a"].digest), "y").unwrap();
        assert!(taken.read("a").is_err());
    }
}
