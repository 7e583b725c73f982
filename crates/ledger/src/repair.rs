//! Makes a ledger usable again after a crash: completes journals, cuts torn ends, removes leftovers, moves files that
//! are not records aside. It never deletes a record or a content.
//!
//! What is to be done is computed once; a dry run shows it, a repair carries it out.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aec_base::name::Name;
use aec_base::problem::Problem;
use serde::Serialize;

use crate::FAMILY;
use crate::chain::Chain;
use crate::head;
use crate::jobs::materialise;
use crate::journal::{self, Abandoned};
use crate::layout::{Ledger, stem};
use crate::read::{Broken, Listing, RecordFile, stranger};

/// A temporary file that did not change for this long has no writer any more.
const ABANDONED: Duration = Duration::from_mins(1);

/// Beginnings of the names of temporary files.
const TEMPORARY: [&str; 3] = [".new-", ".tmp", ".aec-bench-"];

/// The directory for files that are not records.
const DAMAGED: &str = "_damaged";

/// Whether to change anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Repair,
    /// Only report what would be done.
    DryRun,
}

/// An action that was done, or would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "action")]
pub enum Action {
    /// The torn end of a chain was cut.
    Cut { file: PathBuf, bytes: u64 },
    /// A temporary file was removed, or a journal whose records are all in their places.
    Removed { file: PathBuf },
    /// A file that is not a record was moved aside, or a journal that is not whole.
    PutAside { file: PathBuf, to: PathBuf, reason: String },
    /// A record was brought back from a journal.
    Restored { file: PathBuf },
    /// The files of an attempt that were removed from `jobs` were laid out again.
    LaidOut { directory: PathBuf },
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Repaired {
    pub actions: Vec<Action>,
    /// Temporary files that may still have a writer.
    pub recent: usize,
    /// Entries of journals that are lost.
    pub lost: usize,
    /// Problems that remain.
    #[serde(skip)]
    pub problems: Vec<Problem>,
}

/// Repairs the given experiments and the content store. `jobs` is the root of `jobs`.
pub fn repair(ledger: &Ledger, jobs: &Path, experiments: &[Name], mode: Mode) -> io::Result<Repaired> {
    let plan = Plan::make(ledger, jobs, experiments)?;
    match mode {
        Mode::Repair => plan.carry_out(ledger, jobs),
        Mode::DryRun => Ok(plan.repaired),
    }
}

/// Everything that is to be done.
#[derive(Default)]
struct Plan {
    repaired: Repaired,
    journals: Vec<(Name, Abandoned)>,
    /// Files that the journals deal with.
    taken: HashSet<PathBuf>,
    /// Attempts whose files are to be laid out.
    views: Vec<RecordFile>,
}

impl Plan {
    fn make(ledger: &Ledger, jobs: &Path, experiments: &[Name]) -> io::Result<Self> {
        let mut plan = Self::default();
        plan.leftovers(ledger.contents().root())?;
        plan.leftovers(ledger.root())?;
        for experiment in experiments {
            let directory = ledger.experiment(experiment);
            // Come first, because they also repair the ends of chains. Journals of running sessions are left alone.
            plan.journals(ledger, experiment)?;
            for place in [directory.path().to_path_buf(), directory.run(), directory.run().join("plans")] {
                plan.leftovers(&place)?;
            }
            for chain in directory.chains()? {
                plan.chain(&chain)?;
            }
            let view = jobs.join(experiment.as_str());
            let is_view_wanted = head::compare(&directory)?.jobs > directory.laid_out(jobs)?;
            let Listing { files, strangers } = ledger.list(experiment)?;
            plan.repaired
                .problems
                .extend(strangers.iter().map(|name| stranger(&directory.path().join(name))));
            for file in files {
                match file.read(ledger) {
                    _ if plan.taken.contains(&file.path(ledger)) => {}
                    Err(broken) if broken.damaged => plan.damaged(ledger, &file, &broken)?,
                    Err(broken) => plan.repaired.problems.push(broken.problem.about(file.id())),
                    Ok(_) => {
                        let directory = view.join(stem(&file.trial, file.attempt));
                        if is_view_wanted && directory.symlink_metadata().is_err() {
                            plan.act(Action::LaidOut { directory });
                            plan.views.push(file);
                        }
                    }
                }
            }
        }
        Ok(plan)
    }

    fn act(&mut self, action: Action) {
        self.repaired.actions.push(action);
    }

    fn journals(&mut self, ledger: &Ledger, experiment: &Name) -> io::Result<()> {
        let directory = ledger.experiment(experiment);
        for journal in journal::abandoned(ledger, experiment)? {
            if let Some(problem) = journal.obstacle() {
                self.repaired.problems.push(problem);
                continue;
            }
            for (trial, attempt) in &journal.records {
                let file = directory.record(trial, *attempt);
                self.taken.insert(file.clone());
                self.act(Action::Restored { file });
            }
            for lost in &journal.lost {
                self.repaired.lost += 1;
                self.repaired.problems.push(lost.problem().about(experiment.to_string()));
            }
            let file = journal.path.clone();
            self.act(match journal.kept() {
                Some((to, reason)) => Action::PutAside { file, to, reason },
                None => Action::Removed { file },
            });
            self.journals.push((experiment.clone(), journal));
        }
        Ok(())
    }

    /// A torn last line of a chain is cut off. A torn line with others after it is evidence and stays.
    fn chain(&mut self, path: &Path) -> io::Result<()> {
        if journal::is_living(path) && !self.journals.iter().any(|(_, journal)| journal.chain == path) {
            return Ok(());
        }
        let chain = match Chain::read(path) {
            Ok(chain) => chain,
            Err(error) => {
                let problem = Problem::error(format!("a chain cannot be read: {error}"));
                self.repaired.problems.push(problem.id(FAMILY.number(1)).fix(error.fix()).in_file(path));
                return Ok(());
            }
        };
        let torn = |problem: &Problem| problem.id == Some(FAMILY.number(10));
        let (torn, others): (Vec<Problem>, Vec<Problem>) = chain.problems.into_iter().partition(torn);
        self.repaired.problems.extend(others);
        if !torn.is_empty() {
            let bytes = fs_err::metadata(path)?.len().saturating_sub(chain.sound_bytes);
            self.act(Action::Cut { file: path.to_path_buf(), bytes });
        }
        Ok(())
    }

    /// Temporary files without a writer.
    fn leftovers(&mut self, directory: &Path) -> io::Result<()> {
        let entries = match fs_err::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut left = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            if TEMPORARY.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
                left.push(entry.path());
            }
        }
        left.sort();
        for file in left {
            // Its writer may have renamed it meanwhile.
            let Ok(metadata) = file.symlink_metadata() else { continue };
            if metadata.is_dir() {
                continue;
            }
            let age = metadata.modified().ok().and_then(|modified| modified.elapsed().ok());
            if age.is_none_or(|age| age < ABANDONED) {
                self.repaired.recent += 1;
            } else {
                self.act(Action::Removed { file });
            }
        }
        Ok(())
    }

    /// A file that is not a record is moved aside, with the reason beside it.
    fn damaged(&mut self, ledger: &Ledger, file: &RecordFile, broken: &Broken) -> io::Result<()> {
        let place = ledger.root().join(DAMAGED).join(file.experiment.as_str());
        let name = |number: u32| match number {
            0 => file.file_name(),
            number => format!("{}.{number}", file.file_name()),
        };
        let free = (0..=u32::MAX)
            .map(|number| place.join(name(number)))
            .find(|path| path.symlink_metadata().is_err());
        let Some(to) = free else { return Err(io::ErrorKind::AlreadyExists.into()) };
        let reason = broken.problem.what.clone();
        self.act(Action::PutAside { file: file.path(ledger), to, reason });
        Ok(())
    }

    fn carry_out(self, ledger: &Ledger, jobs: &Path) -> io::Result<Repaired> {
        let mut done: HashSet<PathBuf> = self.taken;
        for (experiment, journal) in self.journals {
            done.extend([journal.path.clone(), journal.chain.clone()]);
            journal.restore(ledger, &experiment, jobs)?;
        }
        for action in &self.repaired.actions {
            match action {
                Action::Cut { file, .. } | Action::Removed { file } | Action::PutAside { file, .. }
                    if done.contains(file) => {}
                Action::Restored { .. } | Action::LaidOut { .. } => {}
                Action::Cut { file, bytes } => {
                    let chain = fs_err::OpenOptions::new().write(true).open(file)?;
                    chain.set_len(chain.metadata()?.len().saturating_sub(*bytes))?;
                    chain.sync_all()?;
                }
                Action::Removed { file } => match fs_err::remove_file(file) {
                    // Its writer renamed it meanwhile.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    removed => removed?,
                },
                Action::PutAside { file, to, reason } => put_aside(file, to, reason)?,
            }
        }
        for file in self.views {
            if let Ok(stored) = file.read(ledger) {
                materialise(&ledger.contents(), &stored.record, &jobs.join(file.experiment.as_str()))?;
            }
        }
        Ok(self.repaired)
    }
}

/// Moves a file aside, with the reason beside it.
fn put_aside(from: &Path, to: &Path, reason: &str) -> io::Result<()> {
    let place = to.parent().unwrap_or(to);
    fs_err::create_dir_all(place)?;
    let mut beside = to.to_path_buf().into_os_string();
    beside.push(".reason.txt");
    let word = |name: Option<&std::ffi::OsStr>| name.unwrap_or_default().to_string_lossy().into_owned();
    let (experiment, stem) = (word(place.file_name()), word(from.file_stem()));
    // Writes the reason first: a damaged file without a reason would be a riddle.
    aec_base::file::write_atomic(Path::new(&beside), format!("{experiment}/{stem}\n{reason}\n").as_bytes())?;
    fs_err::rename(from, to)?;
    for directory in [Some(place), from.parent()].into_iter().flatten() {
        fs_err::File::open(directory)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::example;
    use crate::verify::{Depth, Scope, verify};

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    fn ledger() -> (tempfile::TempDir, Ledger) {
        let directory = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(directory.path());
        let records = ["a", "b", "c"].map(|trial| example::record("exp", trial, 1));
        example::write_session(&ledger, "1", &records);
        (directory, ledger)
    }

    fn old(path: &Path) {
        fs_err::write(path, "half").unwrap();
        let times = std::fs::FileTimes::new().set_modified(SystemTime::now() - 2 * ABANDONED);
        std::fs::File::options().write(true).open(path).unwrap().set_times(times).unwrap();
    }

    #[test]
    fn what_a_crash_leaves_is_put_right_and_nothing_is_lost() {
        let (_directory, ledger) = ledger();
        let exp = ledger.root().join("exp");
        let chain = exp.join("_run/chain-1.jsonl");
        let sound = fs_err::read(&chain).unwrap();
        fs_err::write(&chain, [sound.as_slice(), b"{\"sequence\": 4, \"tri"].concat()).unwrap();
        fs_err::write(exp.join("b.json"), "{ torn").unwrap();
        old(&exp.join(".new-1"));
        old(&ledger.contents().root().join(".new-2"));
        fs_err::write(exp.join(".tmpabc"), "under way").unwrap();

        let would = repair(&ledger, &ledger.root().join("jobs"), &[name("exp")], Mode::DryRun).unwrap();
        assert_eq!(would.actions.len(), 4, "{would:?}");
        assert!(exp.join("b.json").exists() && exp.join(".new-1").exists());
        assert!(fs_err::read(&chain).unwrap().len() > sound.len());

        let repaired = repair(&ledger, &ledger.root().join("jobs"), &[name("exp")], Mode::Repair).unwrap();
        assert_eq!(repaired.actions, would.actions);
        assert_eq!((repaired.recent, repaired.problems.len()), (1, 0));
        assert_eq!(fs_err::read(&chain).unwrap(), sound);
        assert!(!exp.join(".new-1").exists() && exp.join(".tmpabc").exists());
        let aside = ledger.root().join("_damaged/exp/b.json");
        assert_eq!(fs_err::read_to_string(&aside).unwrap(), "{ torn");
        let reason = fs_err::read_to_string(ledger.root().join("_damaged/exp/b.json.reason.txt")).unwrap();
        assert!(reason.starts_with("exp/b\nthe record is not valid JSON"), "{reason}");
        // Missing records are still reported.
        let found = verify(
            &Scope { ledger: &ledger, jobs: &ledger.root().join("jobs") },
            None,
            &name("exp"),
            Depth::Full,
        )
        .unwrap()
        .problems;
        assert_eq!(found.iter().map(|problem| problem.id.as_deref().unwrap()).collect::<Vec<_>>(), ["L032"]);
        // A second repair has nothing to do; a second damaged file of the same name does not replace the first.
        assert_eq!(
            repair(&ledger, &ledger.root().join("jobs"), &[name("exp")], Mode::Repair).unwrap().actions,
            []
        );
        fs_err::write(exp.join("b.json"), "torn again").unwrap();
        repair(&ledger, &ledger.root().join("jobs"), &[name("exp")], Mode::Repair).unwrap();
        assert_eq!(fs_err::read_to_string(&aside).unwrap(), "{ torn");
        assert_eq!(
            fs_err::read_to_string(ledger.root().join("_damaged/exp/b.json.1")).unwrap(),
            "torn again"
        );
    }

    #[test]
    fn evidence_and_what_is_only_out_of_place_stays() {
        let (_directory, ledger) = ledger();
        let exp = ledger.root().join("exp");
        fs_err::copy(exp.join("a.json"), exp.join("d.json")).unwrap();
        fs_err::write(exp.join("e.json"), "{\"schema_version\": 9}").unwrap();
        let chain = exp.join("_run/chain-1.jsonl");
        let text = fs_err::read_to_string(&chain).unwrap().replacen("\"a\"", "\"z\"", 1);
        fs_err::write(&chain, format!("{text}torn")).unwrap();
        let repaired = repair(&ledger, &ledger.root().join("jobs"), &[name("exp")], Mode::Repair).unwrap();
        assert!(matches!(repaired.actions.as_slice(), [Action::Cut { bytes: 4, .. }]), "{repaired:?}");
        let told: Vec<_> = repaired.problems.iter().map(|problem| problem.id.as_deref().unwrap()).collect();
        assert_eq!(told, ["L012", "L022", "L021"]);
        assert_eq!(fs_err::read_to_string(&chain).unwrap(), text);
        fs_err::write(&chain, format!("nonsense\n{text}torn")).unwrap();
        assert_eq!(
            repair(&ledger, &ledger.root().join("jobs"), &[name("exp")], Mode::Repair).unwrap().actions,
            []
        );
    }

    #[test]
    fn links_are_moved_and_not_followed() {
        let (directory, ledger) = ledger();
        let target = directory.path().join("precious");
        fs_err::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, ledger.root().join("exp/x.json")).unwrap();
        let repaired = repair(&ledger, &ledger.root().join("jobs"), &[name("exp")], Mode::Repair).unwrap();
        assert_eq!(repaired.actions.len(), 1);
        assert!(ledger.root().join("_damaged/exp/x.json").is_symlink());
        assert_eq!(fs_err::read_to_string(&target).unwrap(), "precious");
    }
}
