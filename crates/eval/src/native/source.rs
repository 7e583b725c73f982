//! The tasks of a native environment: from a package on disk, or from tasks already in memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aec_base::digest::Digest;
use aec_base::file::{Links, open_regular};
use aec_base::json::Limits;
use aec_base::problem::Problem;
use aec_package::Assembled;
use aec_package::manifest::{PackageManifest, PackagedFile, SCHEMA_VERSION};
use aec_task::task::Task;
use std::io::Read as _;

use crate::FAMILY;

const MANIFEST: &str = "tasks.json";
const LARGEST_MANIFEST: u64 = 1024 * 1024 * 1024;
const LARGEST_FILE: u64 = 256 * 1024 * 1024;

#[derive(Debug)]
pub struct PackageSource {
    pub manifest: PackageManifest,
    contents: Contents,
    /// The task directories that are at hand, by id.
    pub(super) tasks: BTreeMap<String, Task>,
}

#[derive(Debug)]
enum Contents {
    Memory(BTreeMap<Digest, Arc<[u8]>>),
    Directory(PathBuf),
}

impl From<Assembled> for PackageSource {
    fn from(assembled: Assembled) -> Self {
        let contents = Contents::Memory(assembled.contents);
        Self { manifest: assembled.manifest, contents, tasks: BTreeMap::new() }
    }
}

impl PackageSource {
    /// Adds the tasks that the package was made from.
    #[must_use]
    pub fn with_tasks(mut self, tasks: impl IntoIterator<Item = Task>) -> Self {
        self.tasks = tasks.into_iter().map(|task| (task.id.as_str().to_owned(), task)).collect();
        self
    }

    /// The directory at or below `directory` that contains the manifest of a package of ours.
    pub fn find(directory: &Path, module: &str) -> Option<PathBuf> {
        [directory.join(module), directory.to_path_buf()]
            .into_iter()
            .find(|place| place.join(MANIFEST).is_file())
    }

    /// Reads the manifest of a package. Its contents are read when a task needs them.
    pub fn read(directory: &Path) -> Result<Self, Problem> {
        let path = directory.join(MANIFEST);
        let unreadable = |what: String| {
            Problem::error(format!("the package cannot be read: {what}"))
                .id(FAMILY.number(61))
                .in_file(&path)
                .fix("export it again")
        };
        let text = read(&path, LARGEST_MANIFEST).map_err(|error| unreadable(error.to_string()))?;
        let manifest: PackageManifest = aec_base::json::from_slice_within(&text, Limits::TYPED)
            .map_err(|error| unreadable(error.to_string()))?;
        if manifest.schema_version != SCHEMA_VERSION {
            let what =
                format!("its format is {}, this program reads {SCHEMA_VERSION}", manifest.schema_version);
            return Err(unreadable(what));
        }
        let contents = Contents::Directory(directory.join("files"));
        Ok(Self { manifest, contents, tasks: BTreeMap::new() })
    }

    /// The content of a file, verified against the digest in the manifest.
    pub fn content(&self, file: &PackagedFile) -> std::io::Result<Arc<[u8]>> {
        let digest: Digest = format!("sha256:{}", file.sha256)
            .parse()
            .map_err(|_| std::io::Error::other(format!("`{}` is not a digest", file.sha256)))?;
        match &self.contents {
            Contents::Memory(contents) => contents
                .get(&digest)
                .cloned()
                .ok_or_else(|| std::io::Error::other(format!("the content of {} is missing", file.path))),
            Contents::Directory(directory) => {
                let bytes = read(&directory.join(&file.sha256), LARGEST_FILE)?;
                if Digest::of(&bytes) != digest {
                    let what = format!("the content of {} is not what its name says", file.path);
                    return Err(std::io::Error::other(what));
                }
                Ok(bytes.into())
            }
        }
    }
}

fn read(path: &Path, limit: u64) -> std::io::Result<Vec<u8>> {
    let (file, metadata) = open_regular(path, limit, Links::Follow)
        .map_err(|error| std::io::Error::new(error.io_kind(), format!("{}: {error}", path.display())))?;
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}
