//! Bringing rollouts into the ledger: one record for each, with the rollout as it came, its conversation and its answer.
//! Where the task is known here, the answer is judged again.

mod check;
mod record;

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};

use aec_base::digest::{Digest, Hasher};
use aec_base::name::Name;
use aec_base::parallel;
use aec_base::problem::Problem;
use aec_base::secret::Redactor;
use aec_base::timestamp::Timestamp;
use aec_judge::judge::Judge;
use aec_ledger::journal;
use aec_ledger::layout::{ExperimentDirectory, Ledger};
use aec_ledger::record::TrialRecord;
use aec_ledger::writer::{CommitError, Writer, WriterSetup};
use aec_run::session;
use aec_task::task::Task;
use serde::Serialize;

use crate::FAMILY;
use crate::rollouts::rollout::Rollout;
use crate::rollouts::run::Run;
pub use check::{KnownTasks, Verification};

/// Where rollouts go, and what is known about them beforehand.
pub struct ImportSetup<'a> {
    /// The ledger.
    pub ledger: Ledger,
    /// The root of `jobs`.
    pub jobs: PathBuf,
    /// The experiment.
    pub experiment: Name,
    /// What made them.
    pub origin: Origin,
    /// What is known of their run.
    pub run: Run,
    /// The tasks of this project.
    pub tasks: &'a [Task],
    /// Judges answers again; absent when nobody wants that.
    pub judge: Option<&'a Judge>,
    /// Keeps secrets out of records.
    pub redactor: &'a Redactor,
    /// The version of this program.
    pub tool_version: &'a str,
}

/// What made the rollouts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The harness of the records: `prime-hosted`, or `verifiers` for a run on somebody's machine.
    pub adapter: &'static str,
    /// What tells this run from others: the evaluation's id, or the name of the directory.
    pub id: String,
}

/// What was brought in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// New records.
    pub recorded: usize,
    /// Rollouts whose records were here already.
    pub known: usize,
    /// Judged again, with the same reward.
    pub verified: usize,
    /// Judged again, with another reward.
    pub disagreeing: usize,
    /// Not judged again.
    pub unverified: usize,
}

/// A rollout with the bytes that it was read from.
pub struct Sample {
    /// The rollout.
    pub rollout: Rollout,
    /// What it was read from.
    pub raw: Vec<u8>,
}

/// Why nothing more was brought in.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The experiment cannot be written to.
    #[error("the experiment cannot be written to")]
    Refused(Vec<Problem>),
    /// The disk did not take it.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Brings rollouts into one experiment.
pub struct Importer<'a> {
    setup: ImportSetup<'a>,
    known_tasks: KnownTasks<'a>,
    directory: ExperimentDirectory,
    writer: Writer,
    plan: Digest,
    seen: usize,
    repetitions: HashMap<Digest, u32>,
    imported: Imported,
    disagreements: Vec<Problem>,
    under_way: UnderWay,
    _locks: Vec<std::fs::File>,
}

/// Records that the writer has and has not answered for.
struct UnderWay {
    sender: Sender<Result<Digest, CommitError>>,
    receiver: Receiver<Result<Digest, CommitError>>,
    count: usize,
}

impl UnderWay {
    fn new() -> Self {
        let (sender, receiver) = channel();
        Self { sender, receiver, count: 0 }
    }

    fn commit(&mut self, writer: &Writer, record: TrialRecord) {
        let sender = self.sender.clone();
        self.count += 1;
        writer.commit(record, Box::new(move |done| drop(sender.send(done))));
    }

    /// Hears of records until at most so many are under way.
    fn settle(&mut self, left: usize, imported: &mut Imported) -> Result<(), ImportError> {
        while self.count > left {
            let answer = self.receiver.recv().map_err(io::Error::other)?;
            self.count -= 1;
            match answer {
                Ok(_) => imported.recorded += 1,
                // Two rows with one id: the first is the record.
                Err(CommitError::Exists { .. }) => imported.known += 1,
                Err(error) => return Err(io::Error::other(error.to_string()).into()),
            }
        }
        Ok(())
    }
}

/// A rollout that gets a record, with its place among the others.
struct Case {
    sample: Sample,
    trial: Name,
    repetition: u32,
}

impl<'a> Importer<'a> {
    /// Locks the experiment and finishes what a killed import had recorded.
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
        let plan = plan_of(&setup.origin);
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
            setup,
            directory,
            writer,
            plan,
            seen: 0,
            repetitions: HashMap::new(),
            imported: Imported::default(),
            disagreements: Vec::new(),
            under_way: UnderWay::new(),
            _locks: locks,
        })
    }

    /// Brings some rollouts in. Those whose records are here already are passed over.
    pub fn take(&mut self, samples: Vec<Sample>) -> Result<(), ImportError> {
        let mut cases = Vec::with_capacity(samples.len());
        for sample in samples {
            self.seen += 1;
            let repetition = self.repetition(&sample.rollout);
            let trial = self.trial(&sample.rollout);
            if self.directory.record(&trial, 1).symlink_metadata().is_ok() {
                self.imported.known += 1;
            } else {
                cases.push(Case { sample, trial, repetition });
            }
        }
        let maker = record::Maker {
            setup: &self.setup,
            tasks: &self.known_tasks,
            plan: self.plan,
            contents: self.setup.ledger.contents(),
        };
        let made = parallel::map(&cases, 16, |case| maker.record(case));
        for made in made {
            let (record, verification) = made?;
            match &verification {
                Verification::Agrees { .. } => self.imported.verified += 1,
                Verification::Disagrees { local, hosted } => {
                    self.imported.disagreeing += 1;
                    self.disagreements.push(disagreement(record.trial_id.as_str(), *local, *hosted));
                }
                Verification::Unverified { .. } => self.imported.unverified += 1,
            }
            self.under_way.commit(&self.writer, record);
        }
        // The writer puts these in their places while the next ones are made.
        self.under_way.settle(cases.len(), &mut self.imported)
    }

    /// Waits until everything is on disk: what was brought in, and where this judge disagrees.
    pub fn finish(mut self) -> Result<(Imported, Vec<Problem>), ImportError> {
        self.under_way.settle(0, &mut self.imported)?;
        self.writer.close()?;
        Ok((self.imported, self.disagreements))
    }

    /// Which attempt at its task a rollout is, as they come: the same order gives the same numbers.
    fn repetition(&mut self, rollout: &Rollout) -> u32 {
        let mut hasher = Hasher::default();
        hasher.part(record::task_id(rollout, &self.setup.run, &self.known_tasks).as_bytes());
        hasher.part(record::model(rollout, &self.setup.run).unwrap_or_default().as_bytes());
        let count = self.repetitions.entry(hasher.finish()).or_default();
        *count += 1;
        *count
    }

    /// The trial's id: the same for the same sample, however often it is imported.
    fn trial(&self, rollout: &Rollout) -> Name {
        let sample = rollout.sample_id.clone().unwrap_or_else(|| format!("sample-{}", self.seen));
        Name::nearest(&format!("prime-{}-{sample}", self.setup.origin.id))
    }
}

/// An import has no plan; where a record names one, it names the run that was imported.
fn plan_of(origin: &Origin) -> Digest {
    Digest::of(format!("import\n{}\n{}", origin.adapter, origin.id).as_bytes())
}

fn disagreement(trial: &str, local: f64, hosted: Option<f64>) -> Problem {
    let hosted = hosted.map_or_else(|| "no reward".to_owned(), |reward| format!("a reward of {reward}"));
    Problem::warning(format!("{trial}: the sample says {hosted}, the verifier here says {local}"))
        .id(FAMILY.number(21))
        .why("the record has the reward of the verifier here, and the other one beside it")
        .fix("find out which of the two ran another verifier; nobody should train on the difference")
}
