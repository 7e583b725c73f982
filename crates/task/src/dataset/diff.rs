//! What changed from one dataset to another.

use std::collections::BTreeMap;

use aec_base::digest::Digest;
use serde::Serialize;

use super::manifest::{Manifest, ManifestTask};

/// The difference between two datasets; ids are dotted, as in manifests.
#[derive(Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Tasks that only the second has.
    pub added: Vec<String>,
    /// Tasks that only the first has.
    pub removed: Vec<String>,
    /// Tasks that both have, with different content.
    pub changed: Vec<Changed>,
    /// How many tasks are the same in both.
    pub unchanged: usize,
}

/// A task with different content in two datasets.
#[derive(Debug, PartialEq, Serialize)]
pub struct Changed {
    pub task_id: String,
    /// Hash in the first.
    pub before: Digest,
    /// Hash in the second.
    pub after: Digest,
}

pub fn diff(before: &Manifest, after: &Manifest) -> Difference {
    let by_id = |manifest: &Manifest| -> BTreeMap<String, Digest> {
        let pair = |task: &ManifestTask| (task.dotted_id(), task.content_hash);
        manifest.tasks.iter().map(pair).collect()
    };
    let (before, after) = (by_id(before), by_id(after));
    let mut difference =
        Difference { added: Vec::new(), removed: Vec::new(), changed: Vec::new(), unchanged: 0 };
    for (id, old) in &before {
        match after.get(id) {
            None => difference.removed.push(id.clone()),
            Some(new) if new == old => difference.unchanged += 1,
            Some(new) => {
                difference.changed.push(Changed { task_id: id.clone(), before: *old, after: *new });
            }
        }
    }
    difference.added = after.into_keys().filter(|id| !before.contains_key(id)).collect();
    difference
}
