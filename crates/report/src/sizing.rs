//! `plan --detect`: how many trials and dollars are needed to detect a difference between two agents.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::selection::Selection;
use crate::stats::{
    Cluster, Design, Goal, minimal_detectable_effect, repetitions_needed, task_correlation, tasks_needed,
    variance_components,
};

/// Assumed without a pilot: the usual variance of rewards from 0 to 1, half of it between tasks, half of that shared by
/// both agents.
const ASSUMED: Scatter = Scatter { between: 0.09, within: 0.09, correlation: 0.5 };

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Scatter {
    pub between: f64,
    pub within: f64,
    /// The share of the variance between tasks that two agents have in common.
    pub correlation: f64,
}

#[derive(Clone, Copy, Debug)]
pub struct Planned {
    pub tasks: usize,
    pub repetitions: usize,
    pub agents: usize,
    /// Most dollars of a trial, if known.
    pub cost_per_trial: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sizing {
    pub detect: f64,
    /// Probability of finding a difference where there is none.
    pub alpha: f64,
    /// Probability of finding the difference.
    pub power: f64,
    pub scatter: Scatter,
    /// Trials of the pilot; 0 if the variance is an assumption.
    pub pilot_trials: usize,
    /// The smallest difference that the plan can detect.
    pub minimal_detectable_effect: Option<f64>,
    /// Whether the plan can detect the difference.
    pub is_enough: bool,
    /// Repetitions of the planned tasks that would suffice; absent if no number does.
    pub repetitions_needed: Option<usize>,
    /// Tasks with the planned repetitions that would suffice.
    pub tasks_needed: Option<usize>,
    /// Trials of all agents in the cheaper of the two ways.
    pub trials_needed: Option<usize>,
    /// Most dollars for them; absent if the cost of a trial is unknown.
    pub cost_needed: Option<f64>,
}

/// What is needed to detect a difference with such a plan. The pilot gives the cost of a trial, if it has one.
pub fn size(planned: &Planned, pilot: Option<&Selection>, detect: f64, goal: Goal) -> Sizing {
    let (scatter, pilot_trials) = pilot.and_then(learn).unwrap_or((ASSUMED, 0));
    let design = Design {
        tasks: planned.tasks,
        repetitions: planned.repetitions,
        between: scatter.between,
        within: scatter.within,
        correlation: scatter.correlation,
    };
    let repetitions = repetitions_needed(&design, detect, goal);
    let tasks = tasks_needed(&design, detect, goal);
    let trials = [
        repetitions.map(|repetitions| repetitions.saturating_mul(planned.tasks)),
        tasks.map(|tasks| tasks.saturating_mul(planned.repetitions)),
    ];
    let trials_needed =
        trials.into_iter().flatten().min().map(|trials| trials.saturating_mul(planned.agents.max(2)));
    let degrees = planned.tasks.checked_sub(1).filter(|degrees| *degrees > 0);
    let cost = pilot.and_then(cost_per_trial).or(planned.cost_per_trial);
    Sizing {
        detect,
        alpha: goal.alpha,
        power: goal.power,
        scatter,
        pilot_trials,
        minimal_detectable_effect: degrees.and_then(|degrees| {
            minimal_detectable_effect(design.standard_error_of_difference()?, Some(real(degrees)), goal)
        }),
        is_enough: repetitions.is_some_and(|needed| needed <= planned.repetitions),
        repetitions_needed: repetitions,
        tasks_needed: tasks,
        trials_needed,
        cost_needed: trials_needed.zip(cost).map(|(trials, cost)| real(trials) * cost),
    }
}

/// The variances in a pilot: the mean over its agents, and over pairs of them for the common part.
fn learn(pilot: &Selection) -> Option<(Scatter, usize)> {
    let mut by_agent: BTreeMap<usize, BTreeMap<usize, Cluster>> = BTreeMap::new();
    let mut trials = 0;
    for trial in &pilot.trials {
        if let Some(reward) = trial.counted() {
            by_agent.entry(trial.agent).or_default().entry(trial.task).or_default().add(reward);
            trials += 1;
        }
    }
    let found: Vec<_> = by_agent
        .values()
        .filter_map(|tasks| variance_components(&tasks.values().copied().collect::<Vec<_>>()))
        .collect();
    let mean = |values: &[f64]| (!values.is_empty()).then(|| values.iter().sum::<f64>() / real(values.len()));
    let agents: Vec<&BTreeMap<usize, Cluster>> = by_agent.values().collect();
    let mut shared = Vec::new();
    for (at, first) in agents.iter().enumerate() {
        for second in &agents[at + 1..] {
            let both = first.iter().filter_map(|(task, one)| Some((*one, *second.get(task)?)));
            shared.extend(task_correlation(&both.collect::<Vec<_>>()));
        }
    }
    let scatter = Scatter {
        between: mean(&found.iter().map(|one| one.between).collect::<Vec<_>>())?,
        within: mean(&found.iter().map(|one| one.within).collect::<Vec<_>>())?,
        correlation: mean(&shared).unwrap_or(ASSUMED.correlation),
    };
    Some((scatter, trials))
}

/// The mean cost of a trial; absent if any attempt has none.
fn cost_per_trial(pilot: &Selection) -> Option<f64> {
    let known = !pilot.trials.is_empty() && pilot.trials.iter().all(|trial| trial.took.without_cost == 0);
    known
        .then(|| pilot.trials.iter().map(|trial| trial.took.cost_usd).sum::<f64>() / real(pilot.trials.len()))
}

#[expect(clippy::cast_precision_loss, reason = "counts of trials are far below 2^52")]
fn real(count: usize) -> f64 {
    count as f64
}
