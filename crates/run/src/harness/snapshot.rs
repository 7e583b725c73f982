//! The state of a workspace, kept by content: each file under its digest, and a list of them under the list's own.

use std::io;
use std::sync::Arc;

use aec_base::content::ContentStore;
use aec_base::digest::Digest;
use aec_base::secret::Redactor;
use aec_sandbox::{Kind, WalkLimits};
use serde::{Deserialize, Serialize};

use crate::workspace::Workspace;

/// Bytes of one state.
const LARGEST: u64 = 64 * 1024 * 1024;
const WALK: WalkLimits = WalkLimits { entries: 20_000, depth: 32 };

/// The list of files of a state, sorted by path.
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

/// Keeps the state of a workspace; the digest of its list of files.
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
                    // A file with a secret of this machine is not kept; the end of the trial will tell of it.
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

/// Every content of some states: their lists and the files on them, each once.
pub(crate) fn contents(
    states: impl IntoIterator<Item = Digest>,
    store: &ContentStore,
) -> io::Result<Vec<Digest>> {
    let mut all = std::collections::BTreeSet::new();
    for state in states {
        if all.insert(state) {
            let manifest: Manifest = match store.read(state, LARGEST) {
                Ok(bytes) => serde_json::from_slice(&bytes)?,
                // What an attempt that was killed had kept may have been cleaned away.
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
