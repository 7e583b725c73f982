//! The datasets of a project: `paths.datasets`/NAME/VERSION/manifest.json, each version written once.

use std::io;
use std::path::{Path, PathBuf};

use aec_base::document::{Document, Syntax};
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::staging::Staging;
use aec_base::text;
use semver::Version;
use serde::Deserialize;

use super::manifest::{MANIFEST_FILE, Manifest, read_manifest_text};
use super::reference::{DatasetRef, parse_version};
use super::{FAMILY, finding};

/// The datasets of a project.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error("{0}")]
    Exists(Box<Problem>),
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl Store {
    /// The datasets below a directory, which need not exist.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The directory of a version.
    pub fn place(&self, name: &Name, version: &Version) -> PathBuf {
        self.root.join(name.as_str()).join(version.to_string())
    }

    /// Whether a version exists.
    pub fn has(&self, name: &Name, version: &Version) -> bool {
        self.place(name, version).symlink_metadata().is_ok()
    }

    /// The versions of a dataset, lowest first.
    pub fn versions(&self, name: &Name) -> Vec<Version> {
        let Ok(entries) = fs_err::read_dir(self.root.join(name.as_str())) else { return Vec::new() };
        let mut versions: Vec<Version> = entries
            .filter_map(Result::ok)
            .filter_map(|entry| parse_version(entry.file_name().to_str()?).ok())
            .collect();
        versions.sort();
        versions
    }

    /// The names of all datasets, sorted.
    fn names(&self) -> Vec<Name> {
        let Ok(entries) = fs_err::read_dir(&self.root) else { return Vec::new() };
        let mut names: Vec<Name> = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.path().is_dir())
            .filter_map(|entry| Name::parse(entry.file_name().to_str()?).ok())
            .collect();
        names.sort();
        names
    }

    /// The version that a reference selects.
    pub fn resolve(&self, reference: &DatasetRef) -> Result<Version, Problem> {
        let mut versions = self.versions(&reference.name);
        let found = match &reference.version {
            Some(version) => versions.iter().position(|known| known == version),
            None => versions.len().checked_sub(1),
        };
        match found {
            Some(index) => Ok(versions.swap_remove(index)),
            None => Err(self.unknown(reference, &versions)),
        }
    }

    /// The dataset that a reference selects.
    pub fn read(&self, reference: &DatasetRef) -> Result<Manifest, Vec<Problem>> {
        let version = self.resolve(reference).map_err(|problem| vec![problem])?;
        self.read_version(&reference.name, &version)
    }

    fn read_version(&self, name: &Name, version: &Version) -> Result<Manifest, Vec<Problem>> {
        let path = self.place(name, version).join(MANIFEST_FILE);
        let manifest = Manifest::read(&path)?;
        if manifest.name != *name || manifest.version != *version {
            let what =
                format!("the manifest is of {}, its directory says {name}@{version}", manifest.reference());
            return Err(vec![finding(11, what).fix("move the directory back to its place").in_file(path)]);
        }
        Ok(manifest)
    }

    /// All datasets by name and version, and the problems of those that cannot be read.
    pub fn list(&self) -> (Vec<Manifest>, Vec<Problem>) {
        let (mut manifests, mut problems) = (Vec::new(), Vec::new());
        for name in self.names() {
            for version in self.versions(&name) {
                match self.read_version(&name, &version) {
                    Ok(manifest) => manifests.push(manifest),
                    Err(found) => problems.extend(found),
                }
            }
        }
        (manifests, problems)
    }

    /// Writes a new version atomically. Never replaces an existing one.
    pub fn publish(&self, manifest: &Manifest) -> Result<PathBuf, PublishError> {
        let place = self.place(&manifest.name, &manifest.version);
        let exists =
            || PublishError::Exists(Box::new(already_there(&manifest.name, &manifest.version, &place)));
        if self.has(&manifest.name, &manifest.version) {
            return Err(exists());
        }
        let staging = Staging::begin(&self.root)?;
        let made = staging.path().join("version");
        fs_err::create_dir(&made)?;
        let text = manifest.to_json().map_err(io::Error::other)?;
        // Syncs the file and its directory.
        aec_base::file::write_atomic(&made.join(MANIFEST_FILE), text.as_bytes())?;
        match staging.publish(&made, &place) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists()),
            other => Ok(other.map(|()| place.clone())?),
        }
    }

    fn unknown(&self, reference: &DatasetRef, versions: &[Version]) -> Problem {
        if !versions.is_empty() {
            let known: Vec<String> = versions.iter().map(ToString::to_string).collect();
            return finding(10, format!("dataset `{}` has no such version", reference.name))
                .why(format!("its versions are {}", known.join(", ")))
                .fix("name one of them")
                .in_file(self.root.join(reference.name.as_str()));
        }
        let names = self.names();
        let problem = finding(10, format!("there is no dataset `{}`", reference.name)).in_file(&self.root);
        match text::nearest(reference.name.as_str(), &names) {
            Some(near) => problem.fix(format!("did you mean `{near}`?")),
            None => problem.fix("`aec-bench dataset list` shows the datasets"),
        }
    }
}

/// The problem of a version that already exists.
pub fn already_there(name: &Name, version: &Version, place: &Path) -> Problem {
    let mut next = Version::new(version.major, version.minor, version.patch);
    if version.pre.is_empty() {
        next.patch = next.patch.saturating_add(1);
    }
    finding(31, format!("{name}@{version} exists already"))
        .why("a version is never changed once it is written")
        .fix(format!("choose another version, such as {next}"))
        .in_file(place)
}

/// The part of a manifest that a selection of tasks needs.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ManifestHead {
    tasks: Vec<TaskHead>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TaskHead {
    task_id: String,
}

/// The task ids of a dataset, as its manifest writes them.
#[derive(Debug)]
pub struct DatasetTasks {
    pub manifest: PathBuf,
    pub version: Version,
    /// Ids with slashes or dots.
    pub task_ids: Vec<String>,
}

impl Store {
    /// The ids of a dataset's tasks. Only the ids are read, so manifests of other programs are accepted too.
    pub fn task_ids(&self, reference: &DatasetRef) -> Result<DatasetTasks, Vec<Problem>> {
        let version = self.resolve(reference).map_err(|problem| vec![problem])?;
        let manifest = self.place(&reference.name, &version).join(MANIFEST_FILE);
        let document = Document::parse(&manifest, read_manifest_text(&manifest)?, Syntax::Json, FAMILY)?;
        let decoded = document.decode::<ManifestHead>();
        match decoded.value {
            Some(head) if decoded.problems.is_empty() => {
                let task_ids = head.tasks.into_iter().map(|task| task.task_id).collect();
                Ok(DatasetTasks { manifest, version, task_ids })
            }
            _ => Err(decoded.problems),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_version_is_the_default() {
        let root = tempfile::tempdir().unwrap();
        for (version, id) in [("1.9.0", "a/old"), ("1.10.0", "a.new"), ("1.10.0-rc.1", "a.rc")] {
            let directory = root.path().join("set").join(version);
            fs_err::create_dir_all(&directory).unwrap();
            let manifest = format!(r#"{{"name":"set","tasks":[{{"task_id":"{id}","tags":[]}}]}}"#);
            fs_err::write(directory.join("manifest.json"), manifest).unwrap();
        }
        let read = |reference| Store::new(root.path()).task_ids(&DatasetRef::parse(reference).unwrap());
        assert_eq!(read("set").unwrap().task_ids, ["a.new"]);
        assert_eq!(read("set@1.9.0").unwrap().task_ids, ["a/old"]);
        assert!(
            read("set@2.0.0").unwrap_err()[0].why.as_ref().unwrap().contains("1.9.0, 1.10.0-rc.1, 1.10.0")
        );
        assert_eq!(read("sett").unwrap_err()[0].fix.as_deref(), Some("did you mean `set`?"));
    }
}
