//! The files of a task's verifier, read once, hashed, and written into rooms unchanged.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::scorer;
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
    /// Reads the verifier of a task. Golden answers are left out: a verifier does not need them, and no program that
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
                Kind::Closed => return Err(io::Error::other(format!("tests/{path} cannot be read"))),
            }
            let executable = tree.open_file(&entry.path)?.metadata()?.permissions().mode() & 0o111 != 0;
            files.insert(path.to_owned(), (tree.read(&entry.path, FILE_LIMIT)?, executable));
        }
        Ok(Self::from_files(files))
    }

    /// A verifier with given contents: by path, with whether the file is executable.
    pub fn from_files(files: BTreeMap<String, (Vec<u8>, bool)>) -> Self {
        let mut hasher = Hasher::default();
        for (path, (bytes, executable)) in &files {
            hasher.part(path.as_bytes());
            hasher.part(bytes);
            hasher.part(&[u8::from(*executable)]);
        }
        Self { digest: hasher.finish(), files }
    }

    /// Their size in memory.
    pub fn bytes(&self) -> usize {
        self.files.values().map(|(bytes, _)| bytes.len()).sum()
    }

    /// Every file: path, content, whether it is executable.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8], bool)> {
        self.files.iter().map(|(path, (bytes, executable))| (path.as_str(), bytes.as_slice(), *executable))
    }

    pub fn get(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(|(bytes, _)| bytes.as_slice())
    }

    /// The command that runs the verifier: `test.sh`, or else `verify.py`.
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

    /// Whether this is exactly the standard verifier of this version, run the standard way: its native twin may replace
    /// it.
    pub fn is_standard(&self) -> bool {
        self.standard_revision() == Some(scorer::REVISION)
    }

    /// The revision of the standard verifier, run the standard way. All revisions read the output file and nothing else;
    /// an earlier one has no native twin here.
    pub fn standard_revision(&self) -> Option<u32> {
        let script = self.get("verify.py").filter(|_| self.get("answers.json").is_some())?;
        scorer::revision_of(script).filter(|_| self.plain_python().is_some())
    }

    /// Whether a verdict needs a room, if the native twin may replace the standard verifier. A verifier without an
    /// entry point is a fault, which needs no room either.
    pub fn needs_room(&self) -> bool {
        self.entry().is_some() && !self.is_standard()
    }

    /// Whether the verifier is only `verify.py` run by Python, so that a waiting interpreter can run it; and if so,
    /// whether Python would look for modules beside the script.
    pub(crate) fn plain_python(&self) -> Option<PlainPython> {
        self.files.get("verify.py")?;
        let Some((script, _)) = self.files.get("test.sh") else {
            return Some(PlainPython { script_directory_first: false, under_shell: false });
        };
        plain_python(std::str::from_utf8(script).ok()?)
    }

    pub fn write(&self, tests: &Tree) -> io::Result<()> {
        self.files
            .iter()
            .try_for_each(|(path, (bytes, executable))| tests.write(Path::new(path), bytes, *executable))
    }
}

/// How Python would run the verifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlainPython {
    pub(crate) script_directory_first: bool,
    /// Whether a shell waits for Python and turns a signal into an exit code.
    pub(crate) under_shell: bool,
}

/// Parses a `test.sh` that only runs `verify.py`. Anything that might make a difference is not plain.
fn plain_python(script: &str) -> Option<PlainPython> {
    const PREPARATIONS: [&str; 5] =
        ["set -e", "set -eu", "set -euo pipefail", "mkdir -p /logs/verifier", "cd /tests"];
    const SCRIPTS: [&str; 6] = [
        "/tests/verify.py",
        "\"/tests/verify.py\"",
        "\"$(dirname \"$0\")/verify.py\"",
        "$(dirname $0)/verify.py",
        "\"$(dirname \"${BASH_SOURCE[0]}\")/verify.py\"",
        "verify.py",
    ];
    let mut found = None;
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if found.is_some() {
            return None;
        }
        if PREPARATIONS.contains(&line) {
            continue;
        }
        let command = line.strip_prefix("exec ").unwrap_or(line);
        let mut rest = command.strip_prefix("python3 ")?.trim();
        let mut isolated = false;
        while let Some(after) = ["-I ", "-B ", "-s "].iter().find_map(|flag| {
            isolated |= *flag == "-I " && rest.starts_with(flag);
            rest.strip_prefix(flag)
        }) {
            rest = after.trim();
        }
        if !SCRIPTS.contains(&rest) {
            return None;
        }
        let under_shell = command.len() == line.len();
        found = Some(PlainPython { script_directory_first: !isolated, under_shell });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_scripts_are_plain() {
        let first = |script: &str| plain_python(script).map(|plain| plain.script_directory_first);
        assert_eq!(
            first("#!/bin/bash\n# x\nset -euo pipefail\nexec python3 -I \"$(dirname \"$0\")/verify.py\"\n"),
            Some(false)
        );
        assert_eq!(first("#!/bin/sh\nmkdir -p /logs/verifier\npython3 /tests/verify.py\n"), Some(true));
        assert_eq!(first("python3 -B -I /tests/verify.py"), Some(false));
        for script in [
            "",
            "python3 /tests/other.py",
            "python3 /tests/verify.py --strict",
            "python3 /tests/verify.py || true",
            "python3 /tests/verify.py\necho 1 > /logs/verifier/reward.txt",
            "FOO=1 python3 /tests/verify.py",
            "pip install x\npython3 /tests/verify.py",
            "python3 -c 'print()'",
            "python3 -O /tests/verify.py",
        ] {
            assert_eq!(first(script), None, "{script}");
        }
    }
}
