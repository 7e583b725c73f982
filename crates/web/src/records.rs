//! Reads the ledger: at most once a second for all requests together, with sums that are computed once.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use aec_base::label::Beginnings;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_judge::verdict::Outcome;
use aec_ledger::expected::Absent;
use aec_ledger::index::{Filter, Index, IndexError, Summary};
use aec_ledger::jobs::LIVE;
use aec_ledger::layout::stem;
use aec_ledger::unknown::Unknown;
use aec_report::evaluate::{Evaluation, evaluate};
use aec_report::group::{Group, Unit};
use aec_report::label::PageLabels;
use aec_report::selection::Selection;
use aec_run::absent::{expected_plan, withheld};
use aec_run::plan::Plan;
use aec_run::session::sessions;
use aec_run::status::{State, under_way};
use serde::Serialize;

use crate::respond::Trouble;
use crate::site::Site;
use crate::words;

/// The state of the ledger at one moment.
pub(crate) struct Snapshot {
    pub(crate) summaries: Vec<Summary>,
    /// Experiments that have a directory, with or without records.
    pub(crate) experiments: Vec<Name>,
    /// Files that are not readable records.
    pub(crate) problems: Vec<Problem>,
}

impl Snapshot {
    pub(crate) fn summary(&self, experiment: &str) -> Option<&Summary> {
        self.summaries.iter().find(|summary| summary.experiment_id.as_str() == experiment)
    }

    fn has(&self, experiment: &str) -> bool {
        self.experiments.iter().any(|known| known.as_str() == experiment)
            || self.summary(experiment).is_some()
    }
}

/// A summary of a plan.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) dataset: Option<String>,
    pub(crate) trials: usize,
    pub(crate) repetitions: u32,
}

pub(crate) struct Evaluated {
    pub(crate) selection: Selection,
    pub(crate) evaluation: Evaluation,
    pub(crate) labels: Arc<PageLabels>,
    pub(crate) plan: Option<Planned>,
    /// Why the plan could not be read.
    pub(crate) plan_problem: Option<String>,
}

pub(crate) struct Overall {
    pub(crate) group: Group,
    pub(crate) plan: Option<Planned>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Progress {
    pub(crate) state: &'static str,
    pub(crate) planned: Option<usize>,
    pub(crate) recorded: usize,
    pub(crate) outcomes: BTreeMap<&'static str, usize>,
    /// Over the trials that were scored so far.
    pub(crate) mean_reward: Option<f64>,
    /// Trials whose rewards are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unknown: Option<Unknown>,
    pub(crate) cost_usd: f64,
    pub(crate) without_cost: usize,
    pub(crate) under_way: Vec<Attempt>,
    /// The number of running attempts; the list may be shorter.
    pub(crate) running: usize,
    /// The same in words.
    pub(crate) counts: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Attempt {
    pub(crate) stem: String,
    /// The label of the attempt in its experiment.
    pub(crate) label: String,
    /// Seconds since its last event, in steps.
    pub(crate) silent_seconds: Option<u64>,
}

/// The number of planned trials, and the labels of their ids.
pub(crate) type PlannedTrials = Option<(usize, Beginnings)>;

/// Most running attempts in the list.
const SHOWN_ATTEMPTS: usize = 50;

fn unreadable(error: &IndexError) -> Trouble {
    Trouble::internal(
        format!("the ledger does not answer: {error}"),
        "run `aec-bench ledger reindex`, then load this page again",
    )
}

fn unusable(problem: &Problem) -> Trouble {
    Trouble::internal(problem.what.clone(), "see `aec-bench ledger verify`")
}

impl Site {
    /// The trials of an experiment that packages withheld.
    pub(crate) fn withheld(&self, experiment: &Name) -> Result<Vec<Absent>, Trouble> {
        withheld(&self.ledger, experiment).map_err(|problem| unusable(&problem))
    }

    /// Tells a selection what packages withheld of an experiment, and whether it came as one.
    pub(crate) fn note_absent(
        &self,
        selection: &mut Selection,
        experiment: &Name,
        filter: &Filter,
    ) -> Result<(), Trouble> {
        selection.note_withheld(&self.withheld(experiment)?, filter);
        if self.ledger.is_package(experiment).map_err(|problem| unusable(&problem))? {
            selection.packages.insert(experiment.to_string());
        }
        Ok(())
    }

    /// A snapshot of the ledger that is at most a second old.
    pub(crate) fn snapshot(&self) -> Result<Arc<Snapshot>, Trouble> {
        self.snapshot.try_get(|| {
            if !self.ledger.root().exists() {
                return Ok(Snapshot { summaries: Vec::new(), experiments: Vec::new(), problems: Vec::new() });
            }
            let experiments = self.ledger.experiments().map_err(|error| {
                Trouble::internal(format!("the ledger cannot be read: {error}"), "check its permissions")
            })?;
            let (mut summaries, refreshed) = self.ask(Index::summaries)?;
            for summary in &mut summaries {
                let withheld = self.withheld(&summary.experiment_id)?;
                summary.trials.note_withheld(withheld.len());
            }
            Ok(Snapshot { summaries, experiments, problems: refreshed })
        })
    }

    pub(crate) fn ask<T>(
        &self,
        question: impl Fn(&Index) -> Result<T, IndexError>,
    ) -> Result<(T, Vec<Problem>), Trouble> {
        let (answer, refreshed) = Index::ask(&self.ledger, question).map_err(|error| unreadable(&error))?;
        Ok((answer, refreshed.problems))
    }

    /// The experiment that an address names. It must exist.
    pub(crate) fn experiment(&self, id: &str) -> Result<Name, Trouble> {
        let missing = || {
            let shown = aec_base::text::printable(id);
            Trouble::missing(
                format!("there is no experiment `{shown}`"),
                "the first page lists them, and `aec-bench runs list` too",
            )
        };
        let name = Name::parse(id).map_err(|_| missing())?;
        if self.snapshot()?.has(id) { Ok(name) } else { Err(missing()) }
    }

    /// A number that changes when the records or the plan of an experiment do.
    pub(crate) fn state(&self, snapshot: &Snapshot, experiment: &Name) -> u64 {
        let mut hasher = DefaultHasher::new();
        if let Some(summary) = snapshot.summary(experiment.as_str()) {
            summary.attempts.hash(&mut hasher);
            summary.trials.outcomes.hash(&mut hasher);
            summary.trials.mean_reward.map(f64::to_bits).hash(&mut hasher);
            summary.trials.unknown.map(|unknown| (unknown.withheld, unknown.unverified)).hash(&mut hasher);
            summary.cost_usd.to_bits().hash(&mut hasher);
            for moment in [&summary.first, &summary.last] {
                moment.as_ref().map(aec_base::timestamp::Timestamp::as_str).hash(&mut hasher);
            }
        }
        self.plan_state(experiment).hash(&mut hasher);
        hasher.finish()
    }

    fn plan(&self, experiment: &Name) -> (Option<Plan>, Option<String>) {
        match expected_plan(&self.ledger.experiment(experiment)) {
            Ok(plan) => (plan, None),
            Err(problems) => (None, problems.first().map(|problem| problem.what.clone())),
        }
    }

    pub(crate) fn evaluated(&self, experiment: &Name) -> Result<Arc<Evaluated>, Trouble> {
        let snapshot = self.snapshot()?;
        let state = self.state(&snapshot, experiment);
        self.evaluated.get(experiment.as_str(), state, || {
            let filter = Filter { experiments: vec![experiment.to_string()], ..Filter::default() };
            let (mut selection, _) = self.ask(|index| Selection::read(index, &filter))?;
            self.note_absent(&mut selection, experiment, &filter)?;
            let (plan, plan_problem) = self.plan(experiment);
            if let Some(plan) = &plan {
                selection.note_missing(&plan.expected(), &filter);
            }
            let evaluation = evaluate(&selection, Unit::Task);
            let labels = Arc::new(labels(
                plan.as_ref(),
                selection.tasks.iter().map(|task| task.id.as_str()),
                selection.trials.iter().map(|trial| &*trial.id),
            ));
            Ok(Evaluated { selection, evaluation, labels, plan: plan.map(planned), plan_problem })
        })
    }

    /// The labels of everything that is planned or recorded in an experiment.
    pub(crate) fn labels(&self, experiment: &Name) -> Result<Arc<PageLabels>, Trouble> {
        let snapshot = self.snapshot()?;
        let state = self.state(&snapshot, experiment);
        if let Some(evaluated) = self.evaluated.known(experiment.as_str(), state) {
            return Ok(Arc::clone(&evaluated.labels));
        }
        self.labels.get(experiment.as_str(), state, || {
            let filter = Filter { experiments: vec![experiment.to_string()], ..Filter::default() };
            let ((tasks, trials), _) = self.ask(|index| {
                let (mut tasks, mut trials) = (BTreeSet::new(), Vec::new());
                index.each(&filter, |brief| {
                    trials.push(brief.trial_id.to_owned());
                    if !tasks.contains(&brief.task.id) {
                        tasks.insert(brief.task.id.clone());
                    }
                })?;
                Ok((tasks, trials))
            })?;
            let (plan, _) = self.plan(experiment);
            let (tasks, trials) = (tasks.iter().map(String::as_str), trials.iter().map(String::as_str));
            Ok(labels(plan.as_ref(), tasks, trials))
        })
    }

    pub(crate) fn overall(&self, experiment: &Name) -> Result<Arc<Overall>, Trouble> {
        let state = self.state(&*self.snapshot()?, experiment);
        self.overall.get(experiment.as_str(), state, || {
            let evaluated = self.evaluated(experiment)?;
            Ok(Overall { group: evaluated.evaluation.overall.clone(), plan: evaluated.plan.clone() })
        })
    }

    /// The same, if it is in the cache.
    pub(crate) fn known_overall(&self, experiment: &Name) -> Result<Option<Arc<Overall>>, Trouble> {
        let state = self.state(&*self.snapshot()?, experiment);
        Ok(self.overall.known(experiment.as_str(), state))
    }

    /// Whether a process is carrying an experiment out.
    pub(crate) fn is_running(&self, experiment: &Name) -> bool {
        sessions(&self.ledger.experiment(experiment)).is_ok_and(|(_, busy)| busy)
    }

    pub(crate) fn doing(&self, experiment: &Name, overall: &Group, plan: Option<&Planned>) -> State {
        let settled = overall.outcomes.keys().all(|outcome| outcome.is_settled());
        match plan {
            _ if self.is_running(experiment) => State::Running,
            None => State::Unplanned,
            Some(_) if overall.missing == 0 && settled => State::Complete,
            Some(_) => State::Incomplete,
        }
    }

    /// The progress of an experiment, from sums alone: no trial is read.
    pub(crate) fn progress(&self, experiment: &Name) -> Result<Progress, Trouble> {
        let snapshot = self.snapshot()?;
        let summary = snapshot.summary(experiment.as_str());
        let plan = self.planned_trials(experiment)?;
        let planned = plan.map(|(trials, _)| trials);
        let live = self.places.jobs.join(experiment.as_str()).join(LIVE);
        let attempts = under_way(&live);
        let beginnings = plan.map_or_else(
            || Beginnings::of(attempts.iter().map(|attempt| attempt.trial_id.as_str())),
            |(_, beginnings)| beginnings,
        );
        let is_running = self.is_running(experiment);
        let recorded = summary.map_or(0, |summary| summary.trials.count);
        let mut progress = Progress {
            state: match planned {
                _ if is_running => State::Running,
                None => State::Unplanned,
                Some(planned) if recorded >= planned => State::Complete,
                Some(_) => State::Incomplete,
            }
            .name(),
            planned,
            recorded,
            outcomes: Outcome::ALL
                .into_iter()
                .filter_map(|outcome| Some((outcome.name(), summary?.trials.of(outcome))))
                .filter(|(_, count)| *count > 0)
                .collect(),
            mean_reward: summary.and_then(|summary| summary.trials.mean_reward),
            unknown: summary.and_then(|summary| summary.trials.unknown),
            cost_usd: summary.map_or(0.0, |summary| summary.cost_usd),
            without_cost: summary.map_or(0, |summary| summary.trials.without_cost),
            running: attempts.len(),
            under_way: attempts
                .iter()
                .take(SHOWN_ATTEMPTS)
                .map(|attempt| Attempt {
                    stem: stem(&attempt.trial_id, attempt.attempt),
                    label: stem(beginnings.get(attempt.trial_id.as_str()), attempt.attempt),
                    silent_seconds: attempt.silent_seconds.map(in_steps),
                })
                .collect(),
            counts: String::new(),
        };
        progress.counts = counts(&progress);
        Ok(progress)
    }

    /// The trials of the plan. Plans are read once, because they can be long.
    fn planned_trials(&self, experiment: &Name) -> Result<PlannedTrials, Trouble> {
        let state = self.plan_state(experiment);
        let known = self.plans.get(experiment.as_str(), state, || {
            let (plan, _) = self.plan(experiment);
            Ok::<_, Trouble>(plan.map(|plan| {
                let ids: Vec<Name> = plan.trials().into_iter().map(|trial| trial.id).collect();
                (ids.len(), Beginnings::of(ids.iter().map(Name::as_str)))
            }))
        })?;
        Ok(*known)
    }

    fn plan_state(&self, experiment: &Name) -> u64 {
        let mut hasher = DefaultHasher::new();
        let plan = self.ledger.experiment(experiment).run().join("plan.json");
        if let Ok(found) = std::fs::symlink_metadata(plan) {
            (found.mtime(), found.mtime_nsec(), found.len(), found.ino()).hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// 0 below ten seconds; after that, in steps of ten seconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds since an event")]
fn in_steps(seconds: f64) -> u64 {
    (seconds.max(0.0) as u64) / 10 * 10
}

/// The labels of the tasks and trials of an experiment; those without a record are in its plan.
fn labels<'a>(
    plan: Option<&'a Plan>,
    tasks: impl Iterator<Item = &'a str>,
    trials: impl Iterator<Item = &'a str>,
) -> PageLabels {
    let ids: Vec<Name> = plan.into_iter().flat_map(Plan::trials).map(|trial| trial.id).collect();
    let planned = plan.into_iter().flat_map(|plan| &plan.tasks).map(|task| task.task_id.as_str());
    PageLabels::of(tasks.chain(planned), trials.map(|id| -> &str { id }).chain(ids.iter().map(Name::as_str)))
}

/// Progress in words.
fn counts(progress: &Progress) -> String {
    let planned =
        progress.planned.map(|planned| format!(" of {}", words::count(planned))).unwrap_or_default();
    let outcomes: Vec<String> =
        progress.outcomes.iter().map(|(name, count)| format!("{} {name}", words::count(*count))).collect();
    let outcomes = if outcomes.is_empty() { String::new() } else { format!(" ({})", outcomes.join(", ")) };
    format!(
        "{}{planned} recorded{outcomes} · {} under way · mean reward {}{} · {}",
        words::count(progress.recorded),
        words::count(progress.running),
        words::share(progress.mean_reward),
        progress.unknown.map(|unknown| format!("* ({})", unknown.names())).unwrap_or_default(),
        words::cost(progress.cost_usd, progress.without_cost)
    )
}

fn planned(plan: Plan) -> Planned {
    let trials = plan.tasks.len() * plan.agents.len() * plan.repetitions as usize;
    Planned {
        trials,
        repetitions: plan.repetitions,
        dataset: plan.dataset.map(|dataset| dataset.id),
        name: plan.name,
        description: plan.description,
    }
}
