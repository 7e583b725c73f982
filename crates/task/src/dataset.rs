//! Dataset manifests, as far as selecting tasks needs them: `NAME@VERSION` to a list of task ids.

use std::path::{Path, PathBuf};

use aec_base::document::{Document, Family, Syntax};
use aec_base::name::{self, Name};
use aec_base::problem::Problem;
use aec_base::text;
use semver::Version;
use serde::Deserialize;

/// Problems of datasets are `D…`.
pub const FAMILY: Family = Family('D');

/// A dataset by name, with or without a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatasetRef {
    /// Its name.
    pub name: Name,
    /// Its version; the highest one when absent.
    pub version: Option<Version>,
}

impl DatasetRef {
    /// Reads `NAME` or `NAME@VERSION`.
    pub fn parse(reference: &str) -> Result<Self, Problem> {
        let (name, version) = match reference.split_once('@') {
            Some((name, version)) => (name, Some(version)),
            None => (reference, None),
        };
        let wrong = |why: String| {
            Problem::error(format!("`{}` is not a dataset reference", text::printable(reference)))
                .why(why)
                .fix("write NAME or NAME@VERSION, such as electrical-v1@1.0.0")
        };
        name::check(name).map_err(|error| wrong(format!("the name {error}")))?;
        let version = version
            .map(|version| {
                Version::parse(version)
                    .map_err(|error| wrong(format!("the version is not MAJOR.MINOR.PATCH: {error}")))
            })
            .transpose()?;
        let name = Name::parse(name).map_err(|error| wrong(error.to_string()))?;
        Ok(Self { name, version })
    }
}

/// The part of `manifest.json` that selection reads. Manifests are made by a program, so unknown keys are fine.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ManifestHead {
    tasks: Vec<ManifestTask>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ManifestTask {
    task_id: String,
}

/// A dataset's task ids, in the form the manifest has them.
#[derive(Debug)]
pub struct DatasetTasks {
    /// The manifest.
    pub manifest: PathBuf,
    /// Its version.
    pub version: Version,
    /// Ids with slashes or dots.
    pub task_ids: Vec<String>,
}

/// Reads the manifest that a reference names below the datasets root.
pub fn read_tasks(root: &Path, reference: &DatasetRef) -> Result<DatasetTasks, Vec<Problem>> {
    let directory = root.join(reference.name.as_str());
    let versions = versions_in(&directory);
    let version = match &reference.version {
        Some(version) => versions.iter().find(|known| *known == version),
        None => versions.last(),
    };
    let Some(version) = version else {
        return Err(vec![unknown_dataset(root, reference, &versions)]);
    };
    let manifest = directory.join(version.to_string()).join("manifest.json");
    let document = Document::read(&manifest, Syntax::Json, FAMILY)?;
    let decoded = document.decode::<ManifestHead>();
    match decoded.value {
        Some(head) if decoded.problems.is_empty() => Ok(DatasetTasks {
            manifest,
            version: version.clone(),
            task_ids: head.tasks.into_iter().map(|task| task.task_id).collect(),
        }),
        _ => Err(decoded.problems),
    }
}

/// The versions below a dataset's directory, lowest first.
fn versions_in(directory: &Path) -> Vec<Version> {
    let Ok(entries) = fs_err::read_dir(directory) else { return Vec::new() };
    let mut versions: Vec<Version> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| Version::parse(entry.file_name().to_str()?).ok())
        .collect();
    versions.sort();
    versions
}

fn unknown_dataset(root: &Path, reference: &DatasetRef, versions: &[Version]) -> Problem {
    if !versions.is_empty() {
        let known: Vec<String> = versions.iter().map(ToString::to_string).collect();
        return Problem::error(format!("dataset `{}` has no such version", reference.name))
            .id(FAMILY.number(10))
            .why(format!("its versions are {}", known.join(", ")))
            .fix("name one of them")
            .in_file(root.join(reference.name.as_str()));
    }
    let names: Vec<String> = fs_err::read_dir(root)
        .map(|entries| {
            entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().into_string().ok()).collect()
        })
        .unwrap_or_default();
    let problem = Problem::error(format!("there is no dataset `{}`", reference.name))
        .id(FAMILY.number(10))
        .in_file(root);
    match text::nearest(reference.name.as_str(), &names) {
        Some(near) => problem.fix(format!("did you mean `{near}`?")),
        None => problem.fix("datasets lie in paths.datasets, one directory each"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references() {
        let parsed = DatasetRef::parse("electrical-v1@1.0.0").unwrap();
        assert_eq!((parsed.name.as_str(), parsed.version), ("electrical-v1", Some(Version::new(1, 0, 0))));
        assert_eq!(DatasetRef::parse("electrical-v1").unwrap().version, None);
        for bad in ["", "@1.0.0", "a@", "a@1", "a@latest", "../x@1.0.0", "a/b", "a@1.0.0@2"] {
            assert!(DatasetRef::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_highest_version_is_the_default() {
        let root = tempfile::tempdir().unwrap();
        for (version, id) in [("1.9.0", "a/old"), ("1.10.0", "a.new")] {
            let directory = root.path().join("set").join(version);
            fs_err::create_dir_all(&directory).unwrap();
            let manifest = format!(r#"{{"name":"set","tasks":[{{"task_id":"{id}","tags":[]}}]}}"#);
            fs_err::write(directory.join("manifest.json"), manifest).unwrap();
        }
        let read = |reference| read_tasks(root.path(), &DatasetRef::parse(reference).unwrap());
        assert_eq!(read("set").unwrap().task_ids, ["a.new"]);
        assert_eq!(read("set@1.9.0").unwrap().task_ids, ["a/old"]);
        assert!(read("set@2.0.0").unwrap_err()[0].why.as_ref().unwrap().contains("1.9.0, 1.10.0"));
        assert_eq!(read("sett").unwrap_err()[0].fix.as_deref(), Some("did you mean `set`?"));
    }
}
