//! Bringing job directories into the ledger: one record for each trial that has a result, with what Harbor wrote about it.
//! Where its task is known here, what the agent left is judged again.

mod known;
pub(crate) mod planned;
mod record;

use std::io;
use std::path::PathBuf;

use aec_base::content::ContentStore;
use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::secret::Redactor;
use aec_base::text::printable;
use aec_base::timestamp::Timestamp;
use aec_judge::judge::Judge;
use aec_ledger::journal;
use aec_ledger::layout::Ledger;
use aec_ledger::writer::{CommitError, Writer, WriterSetup};
use aec_run::session;
use aec_task::task::Task;
use serde::Serialize;

use crate::FAMILY;
use crate::result::{Job, Trial, TrialError};
use known::KnownTasks;

/// How far two rewards may lie apart and be the same: one of them went through text.
pub(crate) const SAME: f64 = 1e-9;

/// Where trials go, and what is known here.
pub struct ImportSetup<'a> {
    /// The ledger.
    pub ledger: Ledger,
    /// The root of `jobs`.
    pub jobs: PathBuf,
    /// The experiment.
    pub experiment: Name,
    /// The tasks of this project.
    pub tasks: &'a [Task],
    /// Judges again; absent when nobody wants that.
    pub judge: Option<&'a Judge>,
    /// Keeps secrets out of records.
    pub redactor: &'a Redactor,
    /// The version of this program.
    pub tool_version: &'a str,
}

/// What was brought in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// Directories of trials.
    pub discovered: usize,
    /// New records.
    pub imported: usize,
    /// Trials whose records were here already.
    pub duplicate: usize,
    /// Trials whose results cannot be read.
    pub invalid: usize,
    /// Trials that have no result: they did not come to their end.
    pub missing: usize,
    /// Judged again, with the same reward.
    pub verified: usize,
    /// Judged again, with another reward.
    pub disagreeing: usize,
    /// Not judged again.
    pub unverified: usize,
}

/// Why nothing was brought in.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The experiment cannot be written to.
    #[error("the experiment cannot be written to")]
    Refused(Vec<Problem>),
    /// The disk did not take it.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Everything that making one record needs.
pub(crate) struct Maker<'a> {
    setup: &'a ImportSetup<'a>,
    job: &'a Job,
    tasks: &'a KnownTasks<'a>,
    plan: Digest,
    contents: ContentStore,
}

/// Brings the trials of a job in. Those whose records are here already are passed over.
pub fn import(setup: &ImportSetup<'_>, job: &Job) -> Result<(Imported, Vec<Problem>), ImportError> {
    let directory = setup.ledger.experiment(&setup.experiment);
    fs_err::create_dir_all(directory.run())?;
    let _locks = session::lock_whole(&directory).map_err(ImportError::Refused)?;
    if session::current_plan(&directory).map_err(ImportError::Refused)?.is_some() {
        let problem = Problem::error(format!("`{}` was run here", setup.experiment))
            .id(FAMILY.number(34))
            .why("an experiment is either run or imported: its plan says which trials belong to it")
            .fix("import under another --experiment");
        return Err(ImportError::Refused(vec![problem]));
    }
    journal::recover(&setup.ledger, &setup.experiment, &setup.jobs)?;
    let id = job.id.clone().unwrap_or_else(|| job.name());
    let plan = Digest::of(format!("import\nharbor\n{id}").as_bytes());
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
    let tasks = KnownTasks::new(setup.tasks);
    let maker = Maker { setup, job, tasks: &tasks, plan, contents: setup.ledger.contents() };
    let mut imported = Imported { discovered: job.trials.len(), ..Imported::default() };
    let mut problems = Vec::new();
    let mut repetitions = record::Repetitions::default();
    for path in &job.trials {
        let shown = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let trial = match Trial::read(path) {
            Ok(trial) => trial,
            Err(TrialError::Missing) => {
                imported.missing += 1;
                continue;
            }
            Err(error) => {
                imported.invalid += 1;
                let what = format!("{}: {error}", printable(&shown));
                problems
                    .push(Problem::warning(what).id(FAMILY.number(32)).fix("the other trials were taken"));
                continue;
            }
        };
        let name = record::trial_name(job, &trial);
        let repetition = repetitions.next(&maker, &trial);
        if directory.record(&name, 1).symlink_metadata().is_ok() {
            imported.duplicate += 1;
            continue;
        }
        let made = maker.record(&trial, &name, repetition)?;
        let (sender, receiver) = std::sync::mpsc::channel();
        let verification = made.verification;
        writer.commit(made.record, Box::new(move |done| drop(sender.send(done))));
        match receiver.recv().map_err(io::Error::other)? {
            Ok(_) => imported.imported += 1,
            Err(CommitError::Exists { .. }) => {
                imported.duplicate += 1;
                continue;
            }
            Err(error) => return Err(io::Error::other(error.to_string()).into()),
        }
        match verification {
            record::Verification::Agrees => imported.verified += 1,
            record::Verification::Disagrees { local, hosted } => {
                imported.disagreeing += 1;
                problems.push(disagreement(name.as_str(), local, hosted));
            }
            record::Verification::Unverified(_) => imported.unverified += 1,
        }
    }
    writer.close()?;
    if imported.missing > 0 {
        let what = format!("{} without a result", aec_base::text::count(imported.missing, "trial"));
        let problem = Problem::warning(what).id(FAMILY.number(31));
        let why = if job.is_finished {
            "the job ended, but these did not"
        } else {
            "the job did not come to its end"
        };
        problems.push(problem.why(why).fix("finish the job with `harbor job resume`, then import it again"));
    }
    Ok((imported, problems))
}

pub(crate) fn disagreement(trial: &str, local: f64, hosted: Option<f64>) -> Problem {
    let hosted = hosted.map_or_else(|| "no reward".to_owned(), |reward| format!("a reward of {reward}"));
    Problem::warning(format!("{trial}: Harbor says {hosted}, the verifier here says {local}"))
        .id(FAMILY.number(33))
        .why("the record has the reward of the verifier here, and the other one beside it")
        .fix("find out what differs: another verifier, or one that ran beside what the agent left running")
}
