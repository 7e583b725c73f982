//! The files of a task's verifier, read once, hashed, and put into a room as they were read.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use aec_base::digest::{Digest, Hasher};
use aec_sandbox::{Kind, Tree, WalkLimits};

/// A verifier is code and a few data files.
const LIMITS: WalkLimits = WalkLimits { entries: 5_000, depth: 16 };
const FILE_LIMIT: u64 = 256 * 1024 * 1024;

/// The content of a task's `tests` directory.
#[derive(Clone, Debug)]
pub struct VerifierFiles {
    files: BTreeMap<String, (Vec<u8>, bool)>,
    /// Digest of paths, contents and modes.
    pub digest: Digest,
}

impl VerifierFiles {
    /// Reads the verifier of a task. Golden answers are left out: a verifier has no use for them, and nothing that
    /// it runs should find them.
    pub fn read(task: &Path) -> io::Result<Self> {
        Self::from_tree(&Tree::open(&task.join("tests"))?)
    }

    /// Reads a verifier from a directory.
    pub fn from_tree(tree: &Tree) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        for entry in tree.list(LIMITS)? {
            let path = entry.path.to_str().ok_or_else(|| io::Error::other("a file name is not text"))?;
            match entry.kind {
                Kind::Directory => continue,
                Kind::File if path.starts_with("fixtures/golden_") => continue,
                Kind::File => {}
                Kind::Link | Kind::Special => {
                    return Err(io::Error::other(format!("tests/{path} is not a regular file")));
                }
            }
            let executable = tree.open_file(&entry.path)?.metadata()?.permissions().mode() & 0o111 != 0;
            files.insert(path.to_owned(), (tree.read(&entry.path, FILE_LIMIT)?, executable));
        }
        let mut hasher = Hasher::default();
        for (path, (bytes, executable)) in &files {
            hasher.part(path.as_bytes());
            hasher.part(bytes);
            hasher.part(&[u8::from(*executable)]);
        }
        Ok(Self { digest: hasher.finish(), files })
    }

    /// The content of one file.
    pub fn get(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(|(bytes, _)| bytes.as_slice())
    }

    /// The command that runs the verifier: `test.sh`, or `verify.py` where that is all there is.
    pub fn entry(&self) -> Option<Vec<String>> {
        let command: &[&str] = if self.files.contains_key("test.sh") {
            &["bash", "/tests/test.sh"]
        } else if self.files.contains_key("verify.py") {
            &["python3", "-I", "/tests/verify.py"]
        } else {
            return None;
        };
        Some(command.iter().map(|word| (*word).to_owned()).collect())
    }

    /// Writes the files into a room's directory.
    pub fn write(&self, tests: &Tree) -> io::Result<()> {
        self.files
            .iter()
            .try_for_each(|(path, (bytes, executable))| tests.write(Path::new(path), bytes, *executable))
    }
}
