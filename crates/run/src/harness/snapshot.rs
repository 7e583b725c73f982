//! Snapshots of a workspace, stored by content: each file, and the list of files, under its digest.

use std::io;
use std::sync::Arc;

use aec_base::content::ContentStore;
use aec_base::digest::Digest;
use aec_base::secret::Redactor;
use aec_sandbox::{Kind, WalkLimits};
use serde::{Deserialize, Serialize};

use crate::workspace::Workspace;

/// Bytes of one snapshot.
const LARGEST: u64 = 64 * 1024 * 1024;
const WALK: WalkLimits = WalkLimits { entries: 20_000, depth: 32 };

/// The list of files of a snapshot, sorted by path.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    files: Vec<Kept>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    path: String,
    hash: Digest,
    size: u64,
}

/// Takes a snapshot; returns the digest of its list of files.
pub(crate) async fn take(
    workspace: &Workspace,
    store: &ContentStore,
    redactor: &Arc<Redactor>,
) -> io::Result<Digest> {
    let (store, redactor) = (store.clone(), Arc::clone(redactor));
    workspace
        .with_tree(move |tree| {
            let mut left = LARGEST;
            let mut files = Vec::new();
            for entry in tree.list(WALK)?.into_iter().filter(|entry| entry.kind == Kind::File) {
                let bytes = tree.read(&entry.path, left)?;
                let size = bytes.len() as u64;
                left -= size;
                let mut search = redactor.search();
                search.feed(&bytes);
                if search.found() {
                    // A file with a secret of this machine is not stored; the end of the trial reports it.
                    continue;
                }
                let path = entry.path.to_string_lossy().into_owned();
                files.push(Kept { path, hash: store.put(&bytes)?, size });
            }
            let manifest = serde_json::to_vec(&Manifest { files }).map_err(io::Error::other)?;
            store.put(&manifest)
        })
        .await
}

/// Every content of some snapshots: their lists and the files in them, each once.
pub(crate) fn contents(
    states: impl IntoIterator<Item = Digest>,
    store: &ContentStore,
) -> io::Result<Vec<Digest>> {
    let mut all = std::collections::BTreeSet::new();
    for state in states {
        if all.insert(state) {
            let manifest: Manifest = match store.read(state, LARGEST) {
                Ok(bytes) => aec_base::json::from_slice(&bytes)?,
                // The contents that a killed attempt had stored may have been removed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    all.remove(&state);
                    continue;
                }
                Err(error) => return Err(error),
            };
            all.extend(manifest.files.iter().map(|file| file.hash).filter(|hash| store.has(*hash)));
        }
    }
    Ok(all.into_iter().collect())
}
