//! One evaluation from its settings to its end: where its results go, which rollouts are missing, and carrying them
//! out.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aec_base::problem::Problem;
use aec_base::secret::Redactor;
use aec_base::timestamp::Timestamp;
use aec_model::client::Model;
use aec_model::meter::{Account, Spending};
use aec_run::control::Control;
use aec_run::terms::{Caps, going_on};
use futures_util::future::join_all;

use crate::config::{EvalSettings, Resume};
use crate::engine::{self, Course, Group, Kept, Observer, Sink, Stopped};
use crate::event::{EvalEvent, EvalStarted};
use crate::native::NativeExecutor;
use crate::python_executor::PythonExecutor;
use crate::results::aggregate::Aggregate;
use crate::results::configuration::differences;
use crate::results::directory;
use crate::results::metadata::{Cost, Description, Metadata};
use crate::results::payers::Payers;
use crate::results::present::Present;
use crate::results::resume::{self, OpenRun};
use crate::results::summary::Summary;
use crate::results::till::Till;
use crate::results::writer::ResultsWriter;

#[derive(Clone, Debug)]
pub enum Executor {
    /// Our own tasks, run in this process.
    Native(Arc<NativeExecutor>),
    /// Environments that `verifiers` loads, run by Python workers.
    Python(Arc<PythonExecutor>),
}

impl Executor {
    fn example_ids(&self) -> Vec<i64> {
        match self {
            Self::Native(executor) => {
                let ids = executor.environment.examples.iter().map(|example| example.example_id);
                ids.map(|id| i64::try_from(id).unwrap_or(i64::MAX)).collect()
            }
            Self::Python(executor) => executor.pool.loaded().example_ids.clone(),
        }
    }

    /// Whether the rollouts of an example must be judged together.
    fn needs_groups(&self) -> bool {
        match self {
            Self::Native(_) => false,
            // Rewards may compare rollouts, and the library computes advantages only within a group.
            Self::Python(_) => true,
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Native(_) => "native".to_owned(),
            Self::Python(executor) => {
                let version = executor.pool.loaded().version_info.vf_version.clone();
                format!(
                    "verifiers {} in Python",
                    version.unwrap_or_else(|| "of an unknown version".to_owned())
                )
            }
        }
    }
}

pub struct EvaluationSetup<'a> {
    pub number: usize,
    pub settings: &'a EvalSettings,
    /// Runs the rollouts.
    pub lane: Executor,
    /// Costs are added at the end.
    pub description: Description,
    pub package: Option<&'a Path>,
    /// The provider, if the name of the model does not tell.
    pub provider: Option<&'a str>,
    /// Whether rollouts that ended in an error are run again.
    pub rerun_errors: bool,
    pub model: Model,
    /// The same payers as in the executor.
    pub payers: Payers,
    /// The current limits on the cost of all sessions together.
    pub caps: Caps,
    pub redactor: Arc<Redactor>,
    pub observer: Observer,
    /// Whether the observer wants to see rows.
    pub wants_rows: bool,
}

pub struct Evaluation {
    pub started: EvalStarted,
    /// Problems noticed while opening the results.
    pub notes: Vec<Problem>,
    lane: Executor,
    groups: Groups,
    course: Course,
    sink: Arc<Sink>,
    description: Description,
    account: Account,
}

#[derive(Debug)]
pub struct Ended {
    pub started: EvalStarted,
    pub summary: Summary,
    /// Present if results are saved.
    pub metadata: Option<Metadata>,
    pub spent: Spending,
    /// The cost of all sessions; absent if some call had no price.
    pub cost: Option<Cost>,
    pub stopped: Option<Stopped>,
    /// Why the metadata could not be written.
    pub problem: Option<Problem>,
}

impl Ended {
    /// Whether every rollout has a row.
    pub fn is_complete(&self) -> bool {
        self.summary.rows >= self.started.total() as u64
    }
}

impl Evaluation {
    /// Opens the results and finds out what is missing.
    pub fn open(setup: EvaluationSetup<'_>) -> Result<Self, Problem> {
        let settings = setup.settings;
        let rollouts = settings.rollouts_per_example;
        let examples = setup.lane.example_ids();
        let mut description = setup.description;
        description.till = Till::new(setup.payers.clone(), &setup.model, setup.caps.clone());
        let place = Place::find(settings, &description, (setup.package, setup.provider))?;
        let mut notes = Vec::new();
        let (present, kept, directory) = match place {
            Place::Nowhere => {
                let aggregate = Aggregate::new(rollouts, description.pass_threshold);
                (Present::default(), Kept::Memory(Box::new(aggregate)), None)
            }
            Place::New(path) => {
                setup.payers.keep_apart();
                let writer = ResultsWriter::create(&path, description.clone())?;
                (Present::default(), Kept::Disk(writer), Some(path))
            }
            Place::Old(run) => {
                run.check(&description)?;
                setup.payers.keep_apart();
                notes.extend(run.notes.iter().cloned());
                description.till.go_on(&run.metadata, &run.untold);
                notes.extend(run.metadata.budget.as_ref().and_then(|kept| going_on(&setup.caps, &kept.caps)));
                if !setup.rerun_errors || run.present.errored().is_empty() {
                    notes.extend(run.complete(examples.iter().copied(), rollouts));
                }
                let (present, path) = (run.present.clone(), run.path.clone());
                let writer = ResultsWriter::resume(*run, description.clone())?;
                (present, Kept::Disk(writer), Some(path))
            }
        };
        let grouped = !settings.said.independent_scoring.is_on() && setup.lane.needs_groups();
        let num_examples = examples.len();
        let groups = Groups { examples, rollouts, present, rerun_errors: setup.rerun_errors, grouped };
        let missing = groups.missing();
        let total = num_examples.saturating_mul(rollouts as usize);
        let started = EvalStarted {
            env_id: settings.display_name(),
            model: description.model.clone(),
            num_examples,
            rollouts_per_example: rollouts,
            done_before: total.saturating_sub(missing),
            lane: setup.lane.name(),
            directory,
            account: setup.payers.account.clone(),
        };
        let limit = |limit: crate::config::Limit| {
            limit.most().map(|most| usize::try_from(most).unwrap_or(usize::MAX))
        };
        let course = Course {
            number: setup.number,
            generation: limit(settings.max_concurrent_generation),
            scoring: limit(settings.max_concurrent_scoring),
            interleave: !settings.said.no_interleave_scoring.is_on(),
            max_retries: settings.said.max_retries.unwrap_or(0),
        };
        let sink = Sink::new(kept, setup.redactor, setup.observer, setup.wants_rows);
        Ok(Self {
            started,
            notes,
            lane: setup.lane,
            groups,
            course,
            sink: Arc::new(sink),
            description,
            account: setup.payers.account,
        })
    }

    /// What earlier sessions spent, and what all of them may spend.
    pub fn till(&self) -> &Till {
        &self.description.till
    }

    /// Carries the evaluation out and finishes its results.
    pub async fn run(self, control: Control) -> Ended {
        let Self { started, lane, groups, course, sink, description, account, .. } = self;
        let number = course.number;
        let stopped = match lane {
            Executor::Native(executor) => {
                engine::carry_out(executor, groups.into_iter(), course, Arc::clone(&sink), control).await
            }
            Executor::Python(executor) => {
                engine::carry_out(executor, groups.into_iter(), course, Arc::clone(&sink), control).await
            }
        };
        sink.tell(&EvalEvent::Ended(number));
        let (spent, cost) = (account.totals().all, description.till.cost());
        let ended = tokio::task::spawn_blocking(move || finish(sink, description)).await;
        let (summary, metadata, problem) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                let problem = Problem::error(format!("the results could not be finished: {error}"));
                (Aggregate::new(1, 0.5).summary(), None, Some(problem))
            }
        };
        Ended { started, summary, metadata, spent, cost, stopped, problem }
    }
}

fn finish(sink: Arc<Sink>, description: Description) -> (Summary, Option<Metadata>, Option<Problem>) {
    // All tasks have ended by now, even after giving up, so none still holds the sink.
    let Some(sink) = Arc::into_inner(sink) else {
        let problem = Problem::error("rollouts are still under way");
        return (Aggregate::new(1, 0.5).summary(), None, Some(problem));
    };
    match sink.end() {
        Kept::Memory(aggregate) => (aggregate.summary(), None, None),
        Kept::Disk(writer) => {
            let latest = writer.latest();
            match writer.finish(description) {
                Ok(metadata) => (latest.summary(), Some(metadata), None),
                Err(problem) => (latest.summary(), None, Some(problem)),
            }
        }
    }
}

enum Place {
    Nowhere,
    New(PathBuf),
    Old(Box<OpenRun>),
}

impl Place {
    fn find(
        settings: &EvalSettings,
        description: &Description,
        (package, provider): (Option<&Path>, Option<&str>),
    ) -> Result<Self, Problem> {
        let threshold = Some(description.pass_threshold);
        if let Resume::Path(path) = &settings.resume {
            return Ok(Self::Old(Box::new(resume::open(path, threshold)?)));
        }
        if !settings.said.save_results.is_on() && settings.resume == Resume::No {
            return Ok(Self::Nowhere);
        }
        let base = directory::base(settings.said.output_dir.as_deref(), package);
        let group = directory::group(&base, &settings.display_name(), &description.model, provider);
        if settings.resume == Resume::Latest {
            let fits = |saved: &Metadata| differences(saved, description).is_empty();
            let found = directory::find_incomplete(&group, description.rollouts(), fits)
                .or_else(|| directory::find_whole(&group, description, fits))
                // A run with another configuration is opened too, so that the user sees the differences.
                .or_else(|| directory::find_cut_off(&group));
            if let Some(found) = found {
                return Ok(Self::Old(Box::new(resume::open(&found.path, threshold)?)));
            }
        }
        directory::create(&group).map(Self::New)
    }
}

struct Groups {
    examples: Vec<i64>,
    rollouts: u32,
    present: Present,
    rerun_errors: bool,
    /// Whether the rollouts of an example stay in one group.
    grouped: bool,
}

impl Groups {
    fn missing(&self) -> usize {
        let of_example = |id: &i64| self.wanted(*id).count();
        self.examples.iter().map(of_example).sum()
    }

    /// The missing rollouts of an example, each with the number of its next attempt.
    fn wanted(&self, id: i64) -> impl Iterator<Item = (u32, u32)> {
        (0..self.rollouts).filter_map(move |number| match self.present.get(id, number) {
            None => Some((number, 1)),
            Some(row) if row.has_error && self.rerun_errors => Some((number, row.attempt + 1)),
            Some(_) => None,
        })
    }

    /// The groups, created lazily: there may be very many.
    fn into_iter(self) -> impl Iterator<Item = Group> + Send + 'static {
        (0..self.examples.len()).flat_map(move |example| {
            let id = self.examples.get(example).copied().unwrap_or_default();
            let all: Vec<(u32, u32)> = self.wanted(id).collect();
            let size = if self.grouped { all.len().max(1) } else { 1 };
            let groups: Vec<Group> =
                all.chunks(size).map(|rollouts| Group { example, rollouts: rollouts.to_vec() }).collect();
            groups
        })
    }
}

/// Carries out evaluations side by side: they share the limits of their models.
pub async fn run_all(evaluations: Vec<Evaluation>, control: &Control) -> Vec<Ended> {
    join_all(evaluations.into_iter().map(|evaluation| evaluation.run(control.clone()))).await
}

pub fn now() -> Timestamp {
    Timestamp::now_in_milliseconds()
}
