//! Evidence of a trial: the files that Harbor wrote about it, stored by content, limited in size, without secrets.

use std::io;
use std::path::{Path, PathBuf};

use aec_base::archive::paths;
use aec_base::content::ContentStore;
use aec_base::secret::Redactor;
use aec_ledger::record::Artefact;
use aec_sandbox::{Kind, Tree, WalkLimits};

/// The directory of these files in a trial's directory of `jobs`.
const PLACE: &str = "harbor";
/// Files at the top of a trial.
const TOP: [&str; 5] = ["result.json", "config.json", "lock.json", "trial.log", "exception.txt"];
const LOGS: [&str; 2] = ["agent", "verifier"];
/// Most bytes of one file, and of all of them.
const FILE_BYTES: u64 = 16 * 1024 * 1024;
const ALL_BYTES: u64 = 64 * 1024 * 1024;
const WALK: WalkLimits = WalkLimits { entries: 2000, depth: 8 };

/// Stores the files that Harbor wrote about a trial, except those that are too large or binary with a secret.
pub(crate) fn evidence(
    trial: &Path,
    contents: &ContentStore,
    redactor: &Redactor,
) -> io::Result<Vec<Artefact>> {
    let tree = Tree::open(trial)?;
    let mut wanted: Vec<PathBuf> = TOP.iter().map(PathBuf::from).collect();
    for directory in LOGS {
        let place = trial.join(directory);
        if !place.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            continue;
        }
        // A directory with more files than that is not worth reading.
        let Ok(listed) = Tree::open(&place).and_then(|logs| logs.list(WALK)) else { continue };
        let files = listed.into_iter().filter(|entry| entry.kind == Kind::File);
        wanted.extend(files.map(|entry| Path::new(directory).join(entry.path)));
    }
    let mut left = ALL_BYTES;
    let mut kept = Vec::new();
    for path in wanted {
        let Some(name) = path.to_str().filter(|name| paths::check(name).is_ok()) else { continue };
        let Ok(bytes) = tree.read(&path, FILE_BYTES.min(left)) else { continue };
        let bytes = match String::from_utf8(bytes) {
            Ok(text) => redactor.scrub(text).into_bytes(),
            Err(error) => {
                let mut search = redactor.search();
                search.feed(error.as_bytes());
                if search.found() {
                    continue;
                }
                error.into_bytes()
            }
        };
        left = left.saturating_sub(bytes.len() as u64);
        let digest = contents.put(&bytes)?;
        kept.push(Artefact { path: format!("{PLACE}/{name}"), digest, size: bytes.len() as u64 });
    }
    Ok(kept)
}
