//! The content hashes of tasks and datasets. `docs/datasets.md` describes how to compute them elsewhere; a test runs
//! the program printed there.

use aec_base::digest::{Digest, Hasher};

/// Begins every hash of a task, so that it never equals a hash of something else.
const TASK: &[u8] = b"aec-bench task 1";
/// Begins every hash of a dataset.
const DATASET: &[u8] = b"aec-bench dataset 1";

/// A file's part in a task's hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashedFile {
    /// Path below the task's directory, with slashes.
    pub path: String,
    /// Whether its owner may execute it.
    pub executable: bool,
    pub content: Digest,
}

/// The hash of a task with these files, in any order. Every part is preceded by its length, so tasks have the same
/// hash only if they have the same files.
pub fn task_hash(files: &mut [HashedFile]) -> Digest {
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let mut hasher = Hasher::default();
    hasher.part(TASK);
    for file in files {
        hasher.part(file.path.as_bytes());
        hasher.part(if file.executable { b"x" } else { b"-" });
        hasher.part(file.content.bytes());
    }
    hasher.finish()
}

/// The hash of a dataset: over its dotted task ids and the hashes of the tasks, in any order.
pub fn dataset_hash<'a>(tasks: impl IntoIterator<Item = (&'a str, &'a Digest)>) -> Digest {
    let mut tasks: Vec<_> = tasks.into_iter().collect();
    tasks.sort_unstable();
    let mut hasher = Hasher::default();
    hasher.part(DATASET);
    for (id, hash) in tasks {
        hasher.part(id.as_bytes());
        hasher.part(hash.bytes());
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// The files of a task by path.
    type Files = BTreeMap<String, (bool, Vec<u8>)>;

    fn hash(files: &Files) -> Digest {
        let mut files: Vec<HashedFile> = files
            .iter()
            .rev()
            .map(|(path, (executable, content))| HashedFile {
                path: path.clone(),
                executable: *executable,
                content: Digest::of(content),
            })
            .collect();
        task_hash(&mut files)
    }

    fn some_files() -> impl Strategy<Value = Files> {
        // Few letters, so that parts of one file often look like parts of another.
        let path = "[ab]{1,3}(/[ab]{1,2})?";
        let content =
            proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'b'), Just(b'/'), Just(0)], 0..6);
        proptest::collection::btree_map(path, (any::<bool>(), content), 0..4)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn different_tasks_have_different_hashes(one in some_files(), other in some_files()) {
            prop_assert_eq!(hash(&one) == hash(&other), one == other);
        }
    }

    #[test]
    fn what_fooled_a_concatenation_does_not_fool_this() {
        let files = |files: &[(&str, bool, &[u8])]| -> Files {
            files.iter().map(|(p, x, c)| ((*p).to_owned(), (*x, c.to_vec()))).collect()
        };
        let all = [
            files(&[]),
            files(&[("a", false, b"bc")]),
            files(&[("ab", false, b"c")]),
            files(&[("a", true, b"bc")]),
            files(&[("a", false, b""), ("b", false, b"c")]),
            files(&[("a/b", false, b"c")]),
        ];
        for (index, one) in all.iter().enumerate() {
            for other in &all[index + 1..] {
                assert_ne!(hash(one), hash(other));
            }
        }
    }

    #[test]
    fn the_order_of_tasks_does_not_matter() {
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        assert_eq!(dataset_hash([("x.a", &a), ("x.b", &b)]), dataset_hash([("x.b", &b), ("x.a", &a)]));
        assert_ne!(dataset_hash([("x.a", &a), ("x.b", &b)]), dataset_hash([("x.a", &b), ("x.b", &a)]));
        assert_ne!(dataset_hash([("x.a", &a)]), dataset_hash([("x.a", &a), ("x.a", &a)]));
    }
}
