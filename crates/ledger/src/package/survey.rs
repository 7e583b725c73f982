//! Checks everything of an experiment that goes into a package, before anything is written.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::path::Path;

use aec_base::archive::fits;
use aec_base::archive::paths::PathSet;
use aec_base::digest::{self, Digest};
use aec_base::file::{Links, ReadError, open_regular};
use aec_base::parallel;
use aec_base::problem::Problem;

use super::export::Source;
use super::manifest::{
    Attempt, File, Manifest, RunFile, Withheld, annotation_member, record_member, run_member,
};
use super::tally::{Facts, Tally, read_record};
use super::{PackageError, RECORD_LIMIT, finding, refuse};
use crate::chain::{CHAIN_LIMIT, files_named};
use crate::imported::Imports;
use crate::layout::{ExperimentDirectory, parse_record_name};

/// Number of records in memory at a time.
const AT_ONCE: usize = 64;

const REPAIR: &str = "see `aec-bench ledger verify`, and restore what is missing";

/// Checks everything and returns the manifest of the package.
pub(super) fn survey(source: &Source<'_>) -> Result<Manifest, PackageError> {
    let directory = source.ledger.experiment(source.experiment);
    if !directory.path().is_dir() {
        return Err(finding(94, format!("there are no records of the experiment `{}`", source.experiment))
            .fix("see which ones there are: aec-bench ledger list")
            .in_file(directory.path())
            .into());
    }
    let mut tally = Tally::new(source.experiment);
    // Chains first: a running session adds records before their links.
    run_files(&directory, &mut tally)?;
    let found = records(source, &directory)?;
    let mut noted = Imports::read(&directory).map_err(|problem| *problem)?.withheld().clone();
    let kept_back = kept_back(source, &found)?;
    for facts in found {
        noted.remove(&facts.attempt.stem());
        if kept_back.contains(&facts.attempt.trial_id.to_string()) {
            let Attempt { trial_id, attempt, leaf, .. } = facts.attempt;
            tally.withhold(Withheld { trial_id, attempt, leaf });
        } else {
            tally.record(facts);
        }
    }
    for withheld in noted.into_values() {
        tally.withhold(withheld);
    }
    let mut manifest =
        tally.finish(source.tool_version, REPAIR, directory.path()).map_err(PackageError::Problems)?;
    if manifest.attempts.is_empty() && manifest.withheld.is_empty() {
        let what = format!("the experiment `{}` has no records", source.experiment);
        return Err(finding(95, what).fix("run it first").in_file(directory.path()).into());
    }
    manifest.annotations = annotations(source, &manifest)?;
    contents(source, &manifest)?;
    names(&manifest)?;
    Ok(manifest)
}

fn unreadable(path: &Path, error: &ReadError) -> PackageError {
    let what = format!("a file of the ledger cannot be read: {error}");
    finding(96, what).fix(REPAIR).in_file(path).into()
}

fn run_files(directory: &ExperimentDirectory, tally: &mut Tally) -> Result<(), PackageError> {
    let run = directory.run();
    for below in ["", "plans/"] {
        for path in files_named(&run.join(below), "", "")? {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let name = format!("{below}{name}");
            let Some(kind) = RunFile::of(&name) else { continue };
            let (mut file, _) =
                open_regular(&path, CHAIN_LIMIT, Links::Refuse).map_err(|error| unreadable(&path, &error))?;
            let (digest, size) = if let RunFile::Chain(session) = kind {
                let mut text = String::new();
                file.read_to_string(&mut text).map_err(|error| unreadable(&path, &error.into()))?;
                tally.chain(&session, &path, &text);
                (Digest::of(text.as_bytes()), text.len() as u64)
            } else {
                digest::copy(file, CHAIN_LIMIT, |_| Ok(()))?
            };
            tally.run_file(File { name, digest, size });
        }
    }
    Ok(())
}

/// Every record, sorted by file name.
fn records(source: &Source<'_>, directory: &ExperimentDirectory) -> Result<Vec<Facts>, PackageError> {
    let mut stems: Vec<String> = files_named(directory.path(), "", ".json")?
        .iter()
        .filter_map(|path| path.file_name()?.to_str())
        .filter(|name| parse_record_name(name).is_some())
        .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
        .collect();
    stems.sort();
    let (mut found, mut problems) = (Vec::with_capacity(stems.len()), Vec::new());
    for facts in parallel::map(&stems, AT_ONCE, |stem| record(source, directory, stem)) {
        match facts {
            Ok(facts) => found.push(facts),
            Err(problem) => problems.push(problem),
        }
    }
    refuse(problems)?;
    Ok(found)
}

fn record(source: &Source<'_>, directory: &ExperimentDirectory, stem: &str) -> Result<Facts, Problem> {
    let path = directory.path().join(format!("{stem}.json"));
    let wrong = |why: String| {
        let what = format!("the record `{stem}` cannot be packed: {why}");
        finding(96, what).about(stem).fix("run `aec-bench ledger repair`").in_file(&path)
    };
    let bytes = read_bytes(&path, RECORD_LIMIT).map_err(|error| wrong(error.to_string()))?;
    let record = read_record(&bytes, source.experiment, stem).map_err(wrong)?;
    Facts::of(&record, Digest::of(&bytes), bytes.len() as u64).map_err(wrong)
}

/// The bytes of a regular file.
pub(super) fn read_bytes(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    let (file, _) = open_regular(path, limit, Links::Refuse)?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The trials to withhold, from ids or beginnings of ids.
fn kept_back(source: &Source<'_>, found: &[Facts]) -> Result<BTreeSet<String>, PackageError> {
    let trials: BTreeSet<&str> = found.iter().map(|facts| facts.attempt.trial_id.as_str()).collect();
    let (mut kept_back, mut problems) = (BTreeSet::new(), Vec::new());
    for given in source.withhold {
        let mut fitting =
            trials.range(given.as_str()..).take_while(|trial| trial.starts_with(given.as_str()));
        let what = match (fitting.next(), fitting.next()) {
            (Some(exact), _) if exact == given => {
                kept_back.insert(given.clone());
                continue;
            }
            (Some(one), None) => {
                kept_back.insert((*one).to_owned());
                continue;
            }
            (Some(_), Some(_)) => format!("more than one trial begins with `{given}`"),
            (None, _) => format!("the experiment has no trial `{given}`"),
        };
        let fix = format!("see its trials: aec-bench ledger list -e {}", source.experiment);
        problems.push(finding(100, what).fix(fix));
    }
    refuse(problems)?;
    Ok(kept_back)
}

/// Annotations of attempts in the package.
fn annotations(source: &Source<'_>, manifest: &Manifest) -> Result<Vec<File>, PackageError> {
    let Some(directory) = source.annotations else { return Ok(Vec::new()) };
    let stems: BTreeSet<String> = manifest.attempts.iter().map(Attempt::stem).collect();
    let mut found = Vec::new();
    for path in files_named(directory, "", ".jsonl")? {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if !name.strip_suffix(".jsonl").is_some_and(|stem| stems.contains(stem)) {
            continue;
        }
        let (file, _) =
            open_regular(&path, RECORD_LIMIT, Links::Refuse).map_err(|error| unreadable(&path, &error))?;
        let (digest, size) = digest::copy(file, RECORD_LIMIT, |_| Ok(()))?;
        found.push(File { name: name.to_owned(), digest, size });
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Checks that every content exists; packing checks that it is unchanged.
fn contents(source: &Source<'_>, manifest: &Manifest) -> Result<(), PackageError> {
    let store = source.ledger.contents();
    let mut problems = Vec::new();
    for content in &manifest.contents {
        let path = store.path(content.digest);
        let what = match path.symlink_metadata() {
            Ok(there) if there.is_file() && there.len() == content.size => continue,
            Ok(_) => format!("the content {} has changed", content.digest),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                format!("the content {} is not here", content.digest)
            }
            Err(error) => format!("the content {} cannot be read: {error}", content.digest),
        };
        problems.push(finding(97, what).fix(REPAIR).in_file(path));
    }
    refuse(problems)
}

/// Checks that every name fits into an archive, and that none can be confused with another.
fn names(manifest: &Manifest) -> Result<(), PackageError> {
    let records = manifest.attempts.iter().map(|attempt| record_member(&attempt.stem()));
    let withheld = manifest.withheld.iter().map(|withheld| record_member(&withheld.stem()));
    let run = manifest.run.iter().map(|file| run_member(&file.name));
    let annotations = manifest.annotations.iter().map(|file| annotation_member(&file.name));
    let mut names = PathSet::default();
    let mut problems = Vec::new();
    for name in records.chain(withheld).chain(run).chain(annotations) {
        let why = match names.add_file(&name) {
            Err(error) => error.to_string(),
            Ok(()) if !fits(&name) => "it is too long".to_owned(),
            Ok(()) => continue,
        };
        let what = format!("`{name}` is not a name for a file of a package: {why}");
        problems.push(finding(103, what).fix("such an experiment can be copied, not packed"));
    }
    refuse(problems)
}
