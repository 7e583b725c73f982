//! Imports trials of other programs into the ledger: one trial for each rollout, with an attempt for each time that it
//! was run. If this project has the task, the agent's results are judged again.
//!
//! A reader produces [`foreign::Foreign`]; everything else is decided here, once for all readers.

pub mod foreign;
mod known;
mod record;
mod rollouts;
mod trust;
mod verification;

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aec_base::content::ContentStore;
use aec_base::digest::{Digest, Hasher};
use aec_base::document::Family;
use aec_base::name::Name;
use aec_base::parallel;
use aec_base::problem::Problem;
use aec_base::secret::Redactor;
use aec_base::text::{count, printable};
use aec_base::timestamp::Timestamp;
use aec_judge::judge::Judge;
use aec_judge::settle::order::AnswerOrder;
use aec_ledger::journal;
use aec_ledger::layout::{ExperimentDirectory, Ledger};
use aec_ledger::record::{AgentFacts, TrialRecord};
use aec_ledger::writer::{CommitError, Writer, WriterSetup};
use aec_task::id::TaskId;
use aec_task::task::Task;
use serde::Serialize;

use crate::elsewhere::ForeignJudging;
use crate::session;
use foreign::{Foreign, Identity};
pub use known::KnownTasks;
pub use record::is_agents_doing;
use record::{Case, Made, Maker};
pub use rollouts::{RolloutKey, Row, refusal};
use rollouts::{Rollouts, Taken};
pub use trust::Rewards;
pub use verification::Verification;

/// Problems of imports are `H…`, like those of packages and of the Prime loop.
pub const FAMILY: Family = Family('H');

/// How many problems are reported one by one.
const TOLD: usize = 20;

/// Where trials go, and what is known about them beforehand.
pub struct ImportSetup<'a> {
    pub ledger: Ledger,
    pub jobs: PathBuf,
    pub experiment: Name,
    pub origin: Origin,
    pub tasks: &'a [Task],
    /// Judges again; absent when the user does not want that.
    pub judge: Option<&'a Judge>,
    pub redactor: &'a Redactor,
    /// Which rewards from elsewhere count.
    pub rewards: Rewards,
    pub tool_version: &'a str,
}

/// The program and run that made the trials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The harness of the records: `prime-hosted`, `verifiers` for a run on a user's machine, or `harbor`.
    pub adapter: &'static str,
    /// Distinguishes this run from others.
    pub id: String,
    /// The run's name for display.
    pub name: String,
}

/// The counts of an import. All but `verification` add up to `found`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// Everything in the source: rows, samples, directories of trials.
    pub found: usize,
    pub imported: usize,
    /// New further attempts at trials: rollouts that were run again after an error.
    pub attempts: usize,
    /// Trials that already have a record.
    pub skipped: usize,
    /// Rows that repeat a rollout without being another attempt at it.
    pub doubled: usize,
    /// Unreadable entries.
    pub refused: usize,
    /// Trials that did not finish.
    pub unfinished: usize,
    /// The results of judging the new records again.
    pub verification: VerificationCounts,
}

/// The results of judging records again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VerificationCounts {
    /// The rewards agree.
    pub agree: usize,
    /// The rewards differ.
    pub disagree: usize,
    /// The record was not judged again.
    pub unverified: usize,
}

/// Why the import stopped.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("the experiment cannot be written to")]
    Refused(Vec<Problem>),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Imports trials into one experiment.
pub struct Importer<'a> {
    setup: ImportSetup<'a>,
    known_tasks: KnownTasks<'a>,
    directory: ExperimentDirectory,
    contents: ContentStore,
    writer: Writer,
    plan: Digest,
    rollouts: Rollouts,
    repetitions: HashMap<Digest, u32>,
    imported: Imported,
    problems: Vec<Problem>,
    untold: usize,
    committed: Arc<Mutex<Committed>>,
    _locks: Vec<std::fs::File>,
}

/// What the writer did with the records.
#[derive(Default)]
struct Committed {
    imported: usize,
    attempts: usize,
    skipped: usize,
    failed: Option<String>,
}

impl Committed {
    fn hear(&mut self, attempt: u32, answer: Result<Digest, CommitError>) {
        match answer {
            Ok(_) if attempt == 1 => self.imported += 1,
            Ok(_) => self.attempts += 1,
            // Of two with the same id the first is recorded.
            Err(CommitError::Exists { .. }) => self.skipped += 1,
            Err(error) => drop(self.failed.get_or_insert_with(|| error.to_string())),
        }
    }
}

impl<'a> Importer<'a> {
    /// Locks the experiment and completes what a killed import had recorded.
    pub fn open(setup: ImportSetup<'a>) -> Result<Self, ImportError> {
        let directory = setup.ledger.experiment(&setup.experiment);
        fs_err::create_dir_all(directory.run())?;
        let locks = session::lock_whole(&directory).map_err(ImportError::Refused)?;
        if session::current_plan(&directory).map_err(ImportError::Refused)?.is_some() {
            let problem = Problem::error(format!("`{}` was run here", setup.experiment))
                .id(FAMILY.number(20))
                .why("an experiment is either run or imported: its plan says which trials belong to it")
                .fix("import under another --experiment");
            return Err(ImportError::Refused(vec![problem]));
        }
        journal::recover(&setup.ledger, &setup.experiment, &setup.jobs)?;
        // An import has no plan; where a record names one, it identifies the imported run.
        let plan = Digest::of(format!("import\n{}\n{}", setup.origin.adapter, setup.origin.id).as_bytes());
        let writer = Writer::open(
            WriterSetup {
                ledger: setup.ledger.clone(),
                jobs: setup.jobs.clone(),
                experiment: setup.experiment.clone(),
                session: session::new_id(&Timestamp::now_in_milliseconds()),
                plan,
            },
            None,
        )?;
        Ok(Self {
            known_tasks: KnownTasks::new(setup.tasks),
            contents: setup.ledger.contents(),
            setup,
            directory,
            writer,
            plan,
            rollouts: Rollouts::default(),
            repetitions: HashMap::new(),
            imported: Imported::default(),
            problems: Vec::new(),
            untold: 0,
            committed: Arc::default(),
            _locks: locks,
        })
    }

    /// The run that is imported.
    pub fn origin(&self) -> &Origin {
        &self.setup.origin
    }

    pub fn experiment(&self) -> &Name {
        &self.setup.experiment
    }

    /// Imports some trials. Those that already have records are skipped.
    pub fn take<F: Foreign>(&mut self, foreign: &[F]) -> Result<(), ImportError> {
        let maker = self.maker();
        let identities = parallel::map(foreign, 16, |one| {
            let identity = one.identity(&self.known_tasks);
            let agent = maker.agent(&identity.agent);
            (identity, agent)
        });
        let mut cases = Vec::with_capacity(identities.len());
        for (foreign, (identity, agent)) in foreign.iter().zip(identities) {
            if let Err(error) = TaskId::parse(&identity.task_id) {
                let task = printable(&identity.task_id).into_owned();
                let what =
                    format!("a trial names the task `{task}`, which no task can have as its id: {error}");
                self.refuse(
                    Problem::error(what)
                        .id(FAMILY.number(45))
                        .fix("correct the file, or leave the trial out"),
                );
                continue;
            }
            cases.extend(self.admit(foreign, &identity, agent)?);
        }
        let maker = self.maker();
        for made in parallel::map(&cases, 16, |case| maker.record(case)) {
            let Made { record, verification } = made?;
            let counts = &mut self.imported.verification;
            *match verification {
                Verification::Agrees => &mut counts.agree,
                Verification::Disagrees { .. } => &mut counts.disagree,
                Verification::Unverified(_) => &mut counts.unverified,
            } += 1;
            if let Some(problem) = verification.problem(record.trial_id.as_str()) {
                tell(&mut self.problems, &mut self.untold, problem);
            }
            // The writer writes records while the next ones are made.
            let (committed, attempt) = (Arc::clone(&self.committed), record.attempt);
            self.writer.commit(record, Box::new(move |answer| lock(&committed).hear(attempt, answer)));
        }
        lock(&self.committed).failed.take().map_or(Ok(()), |reason| Err(io::Error::other(reason).into()))
    }

    /// Counts an unreadable entry, and reports why.
    pub fn refuse(&mut self, problem: Problem) {
        self.imported.found += 1;
        self.imported.refused += 1;
        self.tell(problem);
    }

    /// Counts a trial that did not finish.
    pub fn unfinished(&mut self) {
        self.imported.found += 1;
        self.imported.unfinished += 1;
    }

    /// Reports a problem of the source to the user.
    pub fn tell(&mut self, problem: Problem) {
        tell(&mut self.problems, &mut self.untold, problem);
    }

    /// Waits until everything is on disk; returns the counts and the problems.
    pub fn finish(mut self) -> Result<(Imported, Vec<Problem>), ImportError> {
        self.writer.close()?;
        self.directory.seal(&self.setup.jobs)?;
        let committed = std::mem::take(&mut *lock(&self.committed));
        if let Some(reason) = committed.failed {
            return Err(io::Error::other(reason).into());
        }
        self.imported.imported += committed.imported;
        self.imported.attempts += committed.attempts;
        self.imported.skipped += committed.skipped;
        if self.imported.found == 0 {
            let problem = Problem::warning("there is nothing to import").id(FAMILY.number(28));
            self.problems
                .push(problem.fix("wait until there are results, or name another file or directory"));
        }
        if self.imported.unfinished > 0 {
            let what = format!("{} without a result", count(self.imported.unfinished, "trial"));
            let problem = Problem::warning(what).id(FAMILY.number(39)).why("these did not come to their end");
            self.problems.push(problem.fix("finish it with `harbor job resume`, then import it again"));
        }
        if self.untold > 0 {
            self.problems.push(Problem::warning(format!("{} more problems of this kind", self.untold)));
        }
        Ok((self.imported, self.problems))
    }

    fn maker(&self) -> Maker<'_, 'a> {
        let ImportSetup { judge, redactor, .. } = self.setup;
        Maker {
            setup: &self.setup,
            tasks: &self.known_tasks,
            plan: self.plan,
            bench: ForeignJudging { judge, contents: &self.contents, redactor, order: AnswerOrder::PRESENT },
        }
    }

    /// Decides whether a trial gets a record, and which.
    fn admit<'f, F: Foreign>(
        &mut self,
        foreign: &'f F,
        identity: &Identity,
        agent: AgentFacts,
    ) -> Result<Option<Case<'f, F>>, ImportError> {
        self.imported.found += 1;
        let own = Name::nearest(&identity.id);
        let (mut trial, mut attempt, mut earlier) = (own.clone(), 1, None);
        if let Some(key) = &identity.rollout
            && let Some(taken) = self.rollouts.find(key)
        {
            let refused = refusal(&key.example, key.number.unwrap_or_default(), taken.row, key.row);
            match refused {
                None => {
                    (trial, attempt, earlier) =
                        (taken.trial.clone(), key.row.attempt, Some(taken.repetition));
                    taken.row = key.row;
                }
                Some(_) if taken.trial == own => {
                    self.imported.skipped += 1;
                    return Ok(None);
                }
                // It has its own id, so it is another rollout, whatever its numbers.
                Some(_) if key.is_named => {}
                Some(what) => {
                    self.imported.doubled += 1;
                    let problem = Problem::warning(what).id(FAMILY.number(29));
                    let problem = problem.why("two processes wrote to the file, or lines were copied");
                    self.tell(problem.fix("nothing: the first row was taken"));
                    return Ok(None);
                }
            }
        }
        let repetition = earlier.unwrap_or_else(|| self.repetition(&identity.task_id, &agent));
        if let Some(key) = &identity.rollout
            && earlier.is_none()
            && self.rollouts.find(key).is_none()
        {
            self.rollouts.insert(key, Taken { row: key.row, trial: trial.clone(), repetition });
        }
        // Earlier versions made a separate trial of each attempt.
        let is_here = |trial, attempt| self.directory.record(trial, attempt).symlink_metadata().is_ok();
        let is_its_own = trial == own && attempt == 1;
        if is_here(&trial, attempt) || !is_its_own && is_here(&own, 1) {
            self.check_same(foreign, &trial, attempt)?;
            self.imported.skipped += 1;
            return Ok(None);
        }
        Ok(Some(Case { foreign, agent, trial, attempt, repetition }))
    }

    /// Two runs can have the same name. A different record must not be skipped, else the import would silently lose it.
    fn check_same<F: Foreign>(&self, foreign: &F, trial: &Name, attempt: u32) -> Result<(), ImportError> {
        let Some((path, text)) = foreign.original() else { return Ok(()) };
        // `ledger verify` deals with unreadable records.
        let read = fs_err::read(self.directory.record(trial, attempt)).ok();
        let record: Option<TrialRecord> = read.and_then(|bytes| aec_base::json::from_slice(&bytes).ok());
        let kept =
            record.and_then(|record| record.timing.artefacts.into_iter().find(|kept| kept.path == path));
        let found = Digest::of(self.setup.redactor.scrub(text).as_bytes());
        if kept.is_none_or(|kept| kept.digest == found) {
            return Ok(());
        }
        let what = format!("`{trial}` of `{}` is another rollout than the one found", self.setup.experiment);
        let problem = Problem::error(what)
            .id(FAMILY.number(19))
            .why(format!(
                "another run that is called `{}` was imported into this experiment",
                self.setup.origin.name
            ))
            .fix("import under another --experiment, or rename the directory of one of the two runs");
        Err(ImportError::Refused(vec![problem]))
    }

    /// The repetition of a trial for its task and agent, in order of arrival: the same order gives the same numbers.
    fn repetition(&mut self, task_id: &str, agent: &AgentFacts) -> u32 {
        let mut hasher = Hasher::default();
        hasher.part(task_id.as_bytes());
        hasher.part(agent.digest.bytes());
        let count = self.repetitions.entry(hasher.finish()).or_default();
        *count += 1;
        *count
    }
}

fn lock(committed: &Mutex<Committed>) -> MutexGuard<'_, Committed> {
    committed.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tell(problems: &mut Vec<Problem>, untold: &mut usize, problem: Problem) {
    if problems.len() < TOLD { problems.push(problem) } else { *untold += 1 }
}
