//! Verifies that the records of an experiment are what its runs wrote: every file against the chains, every content
//! against its digest, every record against the rules that all trials obey.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use aec_base::content::ContentStore;
use aec_base::digest::{self, Digest};
use aec_base::document::Shared;
use aec_base::file::{Links, ReadError, open_regular};
use aec_base::name::Name;
use aec_base::parallel;
use aec_base::problem::Problem;
use aec_base::text;
use aec_judge::verdict::Outcome;
use serde::Serialize;

use crate::FAMILY;
use crate::chain::{Chain, files_named};
use crate::head;
use crate::index::{AuditedRows, IndexAudit, IndexError, Row};
use crate::jobs;
use crate::journal::damaged_journals;
use crate::layout::{ExperimentDirectory, Ledger};
use crate::read::{Listing, RecordFile, stranger};
use crate::record::TrialRecord;

/// Number of files in memory at a time.
const CHUNK: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    Full,
    /// Only records and chains, not the contents of artefacts.
    Quick,
}

/// What is verified.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    pub ledger: &'a Ledger,
    /// The root of `jobs`.
    pub jobs: &'a Path,
}

/// The result for one experiment.
#[derive(Clone, Debug, Serialize)]
pub struct Verified {
    pub experiment_id: Name,
    /// Record files, readable or not.
    pub records: usize,
    /// Number of readable records with each outcome that occurs.
    pub outcomes: BTreeMap<Outcome, usize>,
    pub chains: usize,
    /// Number of links in all chains.
    pub links: usize,
    pub contents: usize,
    /// One digest for all chains and the files of the runs.
    pub head: Option<Digest>,
    /// One digest for all chains, as earlier versions printed it.
    pub chain_head: Option<Digest>,
    /// Attempts whose files are in `jobs`.
    pub jobs: usize,
    #[serde(skip)]
    pub problems: Vec<Problem>,
}

/// The part of a record that the rest of the experiment must match.
struct Checked {
    digest: Option<Digest>,
    row: Option<Row>,
    outcome: Option<Outcome>,
    plan: Option<Digest>,
    contents: Vec<(Digest, Option<u64>, String)>,
    problems: Vec<Problem>,
}

/// The digests that the chains list for each attempt.
type LinkedRecords = BTreeMap<(Name, u32), Vec<Digest>>;

pub fn verify(
    scope: &Scope<'_>,
    index: Option<&mut IndexAudit>,
    experiment: &Name,
    depth: Depth,
) -> io::Result<Verified> {
    let ledger = scope.ledger;
    let directory = ledger.experiment(experiment);
    // Files are listed before chains are read: a running writer has already linked every listed file.
    let Listing { files, strangers } = ledger.list(experiment)?;
    let mut verified = Verified {
        experiment_id: experiment.clone(),
        records: files.len(),
        outcomes: BTreeMap::new(),
        chains: 0,
        links: 0,
        contents: 0,
        head: None,
        chain_head: None,
        jobs: 0,
        problems: strangers.iter().map(|name| stranger(&directory.path().join(name))).collect(),
    };
    let mut rows = None;
    if let Some(index) = index {
        match index.rows(experiment) {
            Ok(found) => rows = Some(found),
            Err(error) => verified.problems.push(unreadable_index(ledger, &error)),
        }
    }
    let links = read_chains(&directory, &mut verified)?;
    let plans = plans(&directory)?;
    let mut seen = HashSet::new();
    for chunk in files.chunks(CHUNK) {
        let checked = parallel::map(chunk, 16, |file| check(scope, file, depth));
        let mut unseen = Vec::new();
        for (file, mut found) in chunk.iter().zip(checked) {
            verified.problems.append(&mut found.problems);
            if let Some(outcome) = found.outcome {
                *verified.outcomes.entry(outcome).or_default() += 1;
                let changed = unlinked(ledger, file, found.digest, &links, verified.chains);
                if let (Some(rows), Some(row)) = (&mut rows, &found.row) {
                    // The index cannot know of a record that was changed in place, which is a problem already.
                    if changed.is_some() { rows.pass(row) } else { rows.compare(row) }
                }
                verified.problems.extend(changed);
            }
            if let (Some(plan), Some(plans)) = (found.plan, &plans)
                && !plans.contains(&plan)
            {
                let problem = Problem::error(format!("`{}` ran under a plan that is not here", file.id()));
                let problem = problem.id(FAMILY.number(36)).fix("compare with a copy of the ledger");
                verified.problems.push(problem.about(file.id()).in_file(file.path(ledger)));
            }
            if depth == Depth::Full {
                let new = found.contents.into_iter().filter(|(digest, ..)| seen.insert(*digest));
                unseen.extend(new.map(|(digest, size, what)| (digest, size, what, file.id())));
            }
        }
        verified.contents += unseen.len();
        let contents = ledger.contents();
        let faults = parallel::map(&unseen, 16, |(digest, size, what, id)| {
            check_content(&contents, *digest, *size).map(|problem| {
                problem.why(format!("it is `{}` of `{id}`", text::printable(what))).about(id.clone())
            })
        });
        verified.problems.extend(faults.into_iter().flatten());
    }
    if verified.chains == 0 && verified.records > 0 {
        let what = format!("no chain says where the {} come from", text::count(verified.records, "record"));
        let problem = Problem::error(what).id(FAMILY.number(38)).about(experiment.to_string());
        verified.problems.push(problem.fix("compare with a copy of the ledger").in_file(directory.run()));
    }
    verified.problems.extend(deleted(&directory, experiment, &files, &links));
    verified.problems.extend(rows.map(AuditedRows::finish).unwrap_or_default());
    runs(&directory, scope.jobs, &mut verified)?;
    Ok(verified)
}

/// A problem if the head of an experiment is not the one that the user kept, and advice if it is one of an earlier
/// version.
pub fn check_head(verified: &Verified, kept: Digest) -> Option<Problem> {
    let now = || verified.head.map_or_else(|| "none".to_owned(), |head| head.to_string());
    let problem = match kept {
        kept if verified.head == Some(kept) => return None,
        kept if verified.chain_head == Some(kept) => {
            Problem::note(format!("the head of `{}` that was kept covers its records alone", verified.experiment_id))
                .id(FAMILY.number(46))
                .why("an earlier version printed it; plans, terms, sessions and imports are not part of it")
                .fix(format!("keep this one instead: {}", now()))
        }
        _ => Problem::error(format!("the head of `{}` is not the one that was kept", verified.experiment_id))
            .id(FAMILY.number(39))
            .why(format!(
                "it is {}: records were added since, or removed from the end, or a file of its runs was changed",
                now()
            ))
            .fix("compare with a copy of the ledger"),
    };
    Some(problem.about(verified.experiment_id.to_string()))
}

fn unreadable_index(ledger: &Ledger, error: &IndexError) -> Problem {
    Problem::error(format!("the index cannot be compared: {error}"))
        .id(FAMILY.number(28))
        .fix("run `aec-bench ledger reindex`")
        .in_file(ledger.index_file())
}

/// The files of the runs, and the number of attempts in `jobs`, against what the last session stored.
fn runs(directory: &ExperimentDirectory, jobs: &Path, verified: &mut Verified) -> io::Result<()> {
    let about = verified.experiment_id.to_string();
    let head::Differences { problems, jobs: were } = head::compare(directory)?;
    verified.problems.extend(problems.into_iter().map(|problem| problem.about(about.clone())));
    verified.jobs = directory.laid_out(jobs)?;
    if verified.jobs < were {
        let lost = text::count(were - verified.jobs, "attempt");
        let problem =
            Problem::error(format!("the files of {lost} were removed from `jobs`")).id(FAMILY.number(45));
        let problem =
            problem.why("the last session stored that they were here; their contents are in the ledger");
        let problem = problem.fix("run `aec-bench ledger repair`, which lays them out again");
        verified.problems.push(problem.about(about.clone()).in_file(jobs.join(&about)));
    }
    for path in damaged_journals(directory)? {
        let problem = Problem::error("records of a journal are lost").id(FAMILY.number(13));
        let problem = problem.why("entries of it were damaged when `ledger repair` or a run recovered it");
        let problem = problem.fix("restore them from a copy; remove the file when nothing of it is needed");
        verified.problems.push(problem.about(about.clone()).in_file(path));
    }
    Ok(())
}

fn read_chains(directory: &ExperimentDirectory, verified: &mut Verified) -> io::Result<LinkedRecords> {
    let unreadable = |path: PathBuf, error: &ReadError| {
        Problem::error(format!("a chain cannot be read: {error}"))
            .id(FAMILY.id(Shared::Unreadable))
            .fix(error.fix())
            .in_file(path)
    };
    let mut links = LinkedRecords::new();
    for path in directory.chains()? {
        verified.chains += 1;
        let chain = match Chain::read(&path) {
            Ok(chain) => chain,
            Err(error) => {
                verified.problems.push(unreadable(path, &error));
                continue;
            }
        };
        verified.problems.extend(chain.problems);
        verified.links += chain.links.len();
        for link in chain.links {
            let digests = links.entry((link.trial_id, link.attempt)).or_default();
            if !digests.contains(&link.record) {
                digests.push(link.record);
            }
        }
    }
    for ((trial, attempt), digests) in &links {
        if digests.len() > 1 {
            let file = RecordFile {
                experiment: verified.experiment_id.clone(),
                trial: trial.clone(),
                attempt: *attempt,
            };
            let problem =
                Problem::error(format!("`{}` was recorded {} times, differently", file.id(), digests.len()))
                    .id(FAMILY.number(33))
                    .why("an attempt is recorded once")
                    .fix("compare with a copy of the ledger");
            verified.problems.push(problem.about(file.id()).in_file(directory.run()));
        }
    }
    match directory.head().and_then(|head| Ok((head, directory.chain_head()?))) {
        Ok(heads) => (verified.head, verified.chain_head) = heads,
        // An unreadable chain already has its problem.
        Err(ReadError::Io(error)) => return Err(error),
        Err(_) => {}
    }
    Ok(links)
}

/// The digests of the stored plans; `None` when there are none.
fn plans(directory: &ExperimentDirectory) -> io::Result<Option<HashSet<Digest>>> {
    let path = directory.run().join("plans");
    if !path.is_dir() {
        return Ok(None);
    }
    let files = files_named(&path, "", ".json")?;
    let stems = files.iter().filter_map(|file| file.file_stem()?.to_str());
    Ok(Some(stems.filter_map(|stem| Digest::try_from(format!("sha256:{stem}")).ok()).collect()))
}

fn check(scope: &Scope<'_>, file: &RecordFile, depth: Depth) -> Checked {
    let ledger = scope.ledger;
    match file.read(ledger) {
        Err(broken) => Checked {
            digest: broken.digest,
            row: None,
            outcome: None,
            plan: None,
            contents: Vec::new(),
            problems: vec![broken.problem.about(file.id())],
        },
        Ok(stored) => {
            let record = &stored.record;
            let rule = record.reward_fault().map(|what| {
                let problem = Problem::error(format!("`{}` {what}", file.id())).id(FAMILY.number(37));
                let problem = problem.why("only a scored trial has a reward, which is from 0 to 1");
                problem.fix("compare with a copy of the ledger").about(file.id()).in_file(file.path(ledger))
            });
            let mut problems: Vec<Problem> = rule.into_iter().collect();
            if depth == Depth::Full {
                let differences =
                    jobs::differences(&ledger.contents(), record, &scope.jobs.join(file.experiment.as_str()));
                problems.extend(differences.into_iter().map(|problem| problem.about(file.id())));
            }
            Checked {
                digest: Some(stored.digest),
                row: Some(Row::new(record, stored.digest, stored.size)),
                outcome: Some(record.outcome),
                plan: Some(record.plan),
                contents: contents(record),
                problems,
            }
        }
    }
}

/// Every content that a record refers to, with its length and a description.
fn contents(record: &TrialRecord) -> Vec<(Digest, Option<u64>, String)> {
    let files =
        record.all_artefacts().map(|artefact| (artefact.digest, Some(artefact.size), artefact.path.clone()));
    let submitted = record.outputs.submission.iter().flat_map(|submission| &submission.files);
    let snapshots =
        record.outputs.snapshots.iter().map(|digest| (*digest, None, "a state of the workspace".to_owned()));
    let submitted = submitted.map(|(path, file)| (file.digest, Some(file.size), path.clone()));
    files.chain(submitted).chain(snapshots).collect()
}

fn unlinked(
    ledger: &Ledger,
    file: &RecordFile,
    digest: Option<Digest>,
    links: &LinkedRecords,
    chains: usize,
) -> Option<Problem> {
    let problem = match links.get(&(file.trial.clone(), file.attempt)) {
        // The missing chains are already one problem for all records.
        None if chains == 0 => return None,
        None => Problem::error(format!("no run of the experiment recorded `{}`", file.id()))
            .id(FAMILY.number(31))
            .why("the file was added by other means"),
        Some(digests) if digest.is_some_and(|digest| digests.contains(&digest)) => return None,
        Some(_) => Problem::error(format!("`{}` is not what was recorded", file.id()))
            .id(FAMILY.number(30))
            .why("the file was changed afterwards"),
    };
    Some(problem.fix("compare with a copy of the ledger").about(file.id()).in_file(file.path(ledger)))
}

fn deleted(
    directory: &ExperimentDirectory,
    experiment: &Name,
    files: &[RecordFile],
    links: &LinkedRecords,
) -> Vec<Problem> {
    // Chains list attempts that an imported package withheld, but their records are not here.
    let elsewhere = crate::imported::kept_elsewhere(directory).unwrap_or_default();
    let listed: HashSet<(&Name, u32)> = files.iter().map(|file| (&file.trial, file.attempt)).collect();
    let missing = links.keys().filter(|(trial, attempt)| {
        // It may have appeared after the files were listed.
        !listed.contains(&(trial, *attempt))
            && !elsewhere.contains(&(trial.clone(), *attempt))
            && directory.record(trial, *attempt).symlink_metadata().is_err()
    });
    let problem = |(trial, attempt): &(Name, u32)| {
        let file = RecordFile { experiment: experiment.clone(), trial: trial.clone(), attempt: *attempt };
        Problem::error(format!("`{}` was recorded and is not here", file.id()))
            .id(FAMILY.number(32))
            .why("the file was removed, or the program was killed before it appeared")
            .fix("run `aec-bench ledger repair`, or compare with a copy of the ledger")
            .about(file.id())
            .in_file(directory.record(trial, *attempt))
    };
    missing.map(problem).collect()
}

fn check_content(contents: &ContentStore, expected: Digest, size: Option<u64>) -> Option<Problem> {
    let path = contents.path(expected);
    let found = open_regular(&path, u64::MAX, Links::Refuse)
        .and_then(|(file, _)| Ok(digest::copy(file, u64::MAX, |_| Ok(()))?));
    let problem = match found {
        Ok((found, length)) if found == expected && size.is_none_or(|size| size == length) => return None,
        Ok((found, _)) if found == expected => {
            Problem::error("a content has another length than the record says").id(FAMILY.number(35))
        }
        Ok(_) => Problem::error("a content is not what it was").id(FAMILY.number(35)),
        Err(ReadError::Missing) => Problem::error("a content is not here").id(FAMILY.number(34)),
        Err(error) => {
            Problem::error(format!("a content cannot be read: {error}")).id(FAMILY.id(Shared::Unreadable))
        }
    };
    Some(problem.fix("compare with a copy of the ledger").in_file(path))
}

#[cfg(test)]
mod tests;
