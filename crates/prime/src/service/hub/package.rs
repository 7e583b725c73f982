//! Prepares a package directory for the hub: wheel, source archive and content hash.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use aec_base::digest::Digest;
use bytes::Bytes;
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};

use super::files::{PackageFile, Reader, content_hash, source_files};
use super::project::Project;
use super::runtime::Runtime;
use super::wheel;

/// Prime warns about larger source archives.
pub const LARGE_SOURCE: usize = 250 * 1024 * 1024;

/// 1980-01-01, the time of all archived files.
const TIME: u64 = 315_532_800;

#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    #[error("{} does not exist; give the directory of an exported environment", path.display())]
    NoProject { path: PathBuf },
    #[error("{}: {reason}", path.display())]
    Project { path: PathBuf, reason: String },
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} is a link; put the files themselves into the package", path.display())]
    Link { path: PathBuf },
    #[error("{} is not a plain file", path.display())]
    NotAFile { path: PathBuf },
    #[error("{} has a name that is not UTF-8; rename it", path.display())]
    Name { path: PathBuf },
    #[error("{} is named in the build settings of pyproject.toml but is not there", path.display())]
    NoPackageDirectory { path: PathBuf },
    #[error("{} has no Python package: expected {name}/__init__.py or {name}.py", path.display())]
    NoModule { path: PathBuf, name: String },
    #[error("the package has more than {limit} bytes; leave out data with .gitignore")]
    TooLarge { limit: u64 },
    #[error("cannot pack: {reason}")]
    Archive { reason: String },
}

#[derive(Clone, Debug)]
pub struct Package {
    /// Name in `pyproject.toml`.
    pub name: String,
    /// Version in `pyproject.toml`.
    pub version: String,
    pub wheel_name: String,
    pub wheel: Bytes,
    pub wheel_sha256: String,
    /// The source archive, a `tar.gz`.
    pub source: Bytes,
    pub source_sha256: String,
    pub source_files: Vec<String>,
    /// Hash by which the hub identifies this version.
    pub content_hash: String,
    /// Generation of verifiers according to the requirements.
    pub runtime: Option<Runtime>,
    /// Files that the wheel has but the source archive must leave out. Private environments are installed from the
    /// archive, so they lack these files.
    pub missing_from_source: Vec<String>,
    metadata: Value,
}

impl Package {
    /// Reads a package directory and packs it in memory. Writes nothing.
    pub fn build(directory: &Path) -> Result<Self, PackageError> {
        let project = Project::read(directory)?;
        let wheel = wheel::build(directory, &project)?;
        let mut reader = Reader::default();
        let names = source_files(directory)?;
        let files: Vec<PackageFile> =
            names.into_iter().map(|name| reader.read(directory, name)).collect::<Result<_, _>>()?;
        let source = archive(&files).map_err(|error| PackageError::Archive { reason: error.to_string() })?;
        let source_files: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
        let published: BTreeSet<&String> = source_files.iter().collect();
        let missing = wheel.sources.iter().filter(|name| !published.contains(name)).cloned().collect();
        let requires_dist = project.requires_dist();
        Ok(Self {
            wheel_sha256: Digest::of(&wheel.bytes).hex(),
            source_sha256: Digest::of(&source).hex(),
            content_hash: content_hash(&files),
            runtime: Runtime::of_requirements(&requires_dist),
            missing_from_source: missing,
            metadata: metadata(&project, &requires_dist),
            source_files,
            source: source.into(),
            wheel: wheel.bytes.into(),
            wheel_name: wheel.file_name,
            name: project.name,
            version: project.version,
        })
    }

    /// The hub's metadata of the wheel.
    pub(super) fn wheel_body(&self, runtime: Option<Runtime>) -> Value {
        let mut body = self.body(&self.wheel_name, &self.wheel_name, &self.wheel_sha256, runtime);
        body["size"] = json!(self.wheel.len());
        body
    }

    /// The hub's metadata of the source archive.
    pub(super) fn source_body(&self, name: &str, runtime: Option<Runtime>) -> Value {
        let stem = format!("{name}-{}", self.version);
        let short: String = self.content_hash.chars().take(8).collect();
        let file_name = format!("{stem}-{short}.tar.gz");
        self.body(&file_name, &format!("{stem}.tar.gz"), &self.source_sha256, runtime)
    }

    fn body(&self, file_name: &str, original: &str, sha256: &str, runtime: Option<Runtime>) -> Value {
        let mut metadata = self.metadata.clone();
        metadata["original_filename"] = json!(original);
        let mut body = json!({
            "content_hash": self.content_hash,
            "filename": file_name,
            "sha256": sha256,
            "semantic_version": self.version,
            "metadata": metadata,
        });
        if let Some(runtime) = runtime {
            body["runtime_hint"] = json!(runtime.hub_name());
        }
        body
    }
}

fn metadata(project: &Project, requires_dist: &[String]) -> Value {
    json!({
        "description": project.description,
        "tags": project.tags,
        "license": project.license.as_ref().map_or_else(|| json!(""), |license| json!(license)),
        "dependencies": project.dependencies,
        "python_requires": project.requires_python.as_deref().unwrap_or(">=3.8"),
        "requires_dist": requires_dist,
    })
}

/// A `tar.gz` with the same bytes for the same files.
fn archive(files: &[PackageFile]) -> io::Result<Vec<u8>> {
    let gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::new(6));
    let mut tar = tar::Builder::new(gzip);
    for file in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(file.bytes.len() as u64);
        header.set_mode(if file.executable { 0o755 } else { 0o644 });
        header.set_mtime(TIME);
        header.set_uid(0);
        header.set_gid(0);
        header.set_entry_type(tar::EntryType::Regular);
        tar.append_data(&mut header, &file.name, file.bytes.as_slice())?;
    }
    tar.into_inner()?.finish()
}
