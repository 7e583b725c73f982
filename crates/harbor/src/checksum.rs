//! The two digests by which Harbor identifies a task: one of the whole directory, one of the files of the contract.
//!
//! Both were derived from Harbor's results, not from its source; `tests/harbor` compares them with a real job.

use std::collections::BTreeMap;

use aec_base::digest::Digest;

/// Files at the top of a task that are part of the contract.
const CONTRACT_FILES: [&str; 4] = ["task.toml", "instruction.md", "README.md", "trajectory.json"];
const CONTRACT_DIRECTORIES: [&str; 4] = ["environment/", "tests/", "solution/", "steps/"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checksums {
    /// Of every file; `task_checksum` in results: 64 digits.
    pub whole: String,
    /// Of the files of the contract; `digest` in locks: `sha256:` and 64 digits.
    pub contract: String,
}

/// The digests of some files, by their paths below the task.
pub fn of(files: &BTreeMap<String, Digest>) -> Checksums {
    let mut root = Directory::default();
    for (path, digest) in files {
        root.put(path, *digest);
    }
    let mut lines = Vec::new();
    for (path, digest) in files.iter().filter(|(path, _)| is_of_contract(path)) {
        lines.extend_from_slice(format!("{path}\0{}\n", digest.hex()).as_bytes());
    }
    Checksums {
        whole: root.hash().unwrap_or_else(|| Digest::of(b"").hex()),
        contract: Digest::of(&lines).to_string(),
    }
}

fn is_of_contract(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let rubbish = path.split('/').any(|part| part == "__pycache__")
        || name == ".DS_Store"
        || [".pyc", ".swp", ".swo", "~"].iter().any(|end| name.ends_with(end));
    let inside =
        CONTRACT_FILES.contains(&path) || CONTRACT_DIRECTORIES.iter().any(|top| path.starts_with(top));
    inside && !rubbish
}

#[derive(Default)]
struct Directory {
    files: BTreeMap<String, Digest>,
    directories: BTreeMap<String, Self>,
}

impl Directory {
    fn put(&mut self, path: &str, digest: Digest) {
        match path.split_once('/') {
            Some((directory, rest)) => {
                self.directories.entry(directory.to_owned()).or_default().put(rest, digest);
            }
            None => drop(self.files.insert(path.to_owned(), digest)),
        }
    }

    /// A directory without files has no hash.
    fn hash(&self) -> Option<String> {
        let files = self
            .files
            .iter()
            .filter(|(name, _)| *name != ".harborignore")
            .map(|(name, digest)| format!("data:{}\0name:{name}", digest.hex()));
        let directories = self
            .directories
            .iter()
            .filter_map(|(name, directory)| Some(format!("dirhash:{}\0name:{name}", directory.hash()?)));
        let mut entries: Vec<String> = files.chain(directories).collect();
        entries.sort();
        (!entries.is_empty()).then(|| Digest::of(entries.join("\0\0").as_bytes()).hex())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_count_for_one_and_not_for_the_other() {
        let file = |text: &str| Digest::of(text.as_bytes());
        let mut files =
            BTreeMap::from([("task.toml".to_owned(), file("")), ("tests/test.sh".to_owned(), file("x"))]);
        let before = of(&files);
        files.insert("tests/__pycache__/a.pyc".to_owned(), file("y"));
        assert_eq!(of(&files).contract, before.contract);
        files.insert("tools/a.py".to_owned(), file("y"));
        let after = of(&files);
        assert_eq!(after.contract, before.contract);
        assert_ne!(after.whole, before.whole);
        assert!(after.contract.starts_with("sha256:") && after.whole.len() == 64);
    }
}
