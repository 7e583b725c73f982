//! Sums over some trials: counts, means with their intervals, and costs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use aec_judge::verdict::Outcome;
use aec_ledger::unknown::Unknown;
use serde::Serialize;

use crate::evaluate::{agent_names, families};
use crate::faults::Faults;
use crate::selection::{Missing, Selection, Took, Trial, is_full};
use crate::stats::{Cluster, Confidence, Interval, clustered_mean_logit, pass_at_k, pass_hat_k};

/// Which trials are treated as alike. An interval by task generalises to other tasks like these; one by family to other
/// families.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Repetitions of one task.
    #[default]
    Task,
    /// All tasks from one template.
    Family,
}

impl Unit {
    /// The unit of a task, as a number below the number of tasks.
    pub(crate) fn of(self, families: &[usize], task: usize) -> usize {
        match self {
            Self::Task => task,
            Self::Family => families[task],
        }
    }
}

/// The mean reward with three denominators, so that it is clear how trials without a reward count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Denominators {
    /// All finished trials; every fault counts as 0, whatever its cause.
    pub as_run: Option<f64>,
    /// Without trials that failed through no fault of the agent. This is the mean reward.
    pub without_infra: Option<f64>,
    /// All planned trials; those without a reward that counts are 0, also what was withheld or is not verified.
    pub worst_case: Option<f64>,
}

/// How often at least one, or every one, of `k` tries solves a task; the mean over tasks with at least `k` tries.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pass {
    pub k: usize,
    pub pass_at_k: f64,
    pub pass_hat_k: f64,
    /// Tasks with at least `k` tries.
    pub tasks: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    pub name: String,
    /// Trials with a record.
    pub trials: usize,
    /// Planned trials without a record.
    pub missing: usize,
    pub tasks: usize,
    /// Trials by outcome, without outcomes that do not occur.
    pub outcomes: BTreeMap<Outcome, usize>,
    pub faults: Faults,
    /// Trials behind the mean.
    pub counted: usize,
    /// Mean reward, without trials that failed through no fault of the agent.
    pub mean_reward: Option<f64>,
    pub interval: Option<Interval>,
    /// Trials whose rewards are unknown, and what they may do to the mean; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Unknown>,
    pub standard_error: Option<f64>,
    pub denominators: Denominators,
    /// Trials with full reward.
    pub solved: usize,
    /// Their share of the trials that count.
    pub solve_rate: Option<f64>,
    /// Trials with any reward.
    pub nonzero: usize,
    /// Probabilities over several tries.
    pub pass: Vec<Pass>,
    /// The cost of all attempts.
    pub took: Took,
    /// Dollars of all attempts per solved trial.
    pub cost_per_solved: Option<f64>,
    pub mean_seconds: Option<f64>,
}

impl Group {
    /// The mean reward that ranks count: what is unknown is 0.
    pub fn sure_mean(&self) -> Option<f64> {
        let mean = self.mean_reward?;
        Some(self.unknown.map_or(mean, |unknown| unknown.low))
    }

    /// The interval of the mean, wide enough for what is unknown.
    #[expect(clippy::cast_precision_loss, reason = "counts of trials are far below 2^52")]
    pub fn sure_interval(&self) -> Option<Interval> {
        let interval = self.interval?;
        let Some(unknown) = self.unknown else { return Some(interval) };
        let (known, hidden) = (self.counted as f64, unknown.count() as f64);
        let all = known + hidden;
        Some(Interval { low: interval.low * known / all, high: (interval.high * known + hidden) / all })
    }

    /// What is written after a mean that is not of all trials.
    pub fn mark(&self) -> &'static str {
        if self.unknown.is_some() { "*" } else { "" }
    }
}

/// The rewards that count, by unit: of all trials, or of one agent.
pub fn clusters(selection: &Selection, unit: Unit, agent: Option<&str>) -> Vec<Cluster> {
    let names = agent_names(&selection.agents);
    let families = families(&selection.tasks);
    let mut clusters: BTreeMap<usize, Cluster> = BTreeMap::new();
    for trial in &selection.trials {
        let name = names.get(&selection.agents[trial.agent].digest).map(String::as_str);
        if (agent.is_none() || name == agent)
            && let Some(reward) = trial.counted()
        {
            clusters.entry(unit.of(&families, trial.task)).or_default().add(reward);
        }
    }
    clusters.into_values().collect()
}

/// The trials of one agent on one task. There are far fewer cells than trials, and every table is computed from them.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) task: usize,
    pub(crate) agent: usize,
    trials: usize,
    outcomes: [usize; Outcome::ALL.len()],
    faults: Faults,
    rewards: Cluster,
    solved: usize,
    nonzero: usize,
    took: Took,
    seconds: f64,
}

/// The trials of a selection by task and agent, sorted like them.
pub(crate) fn cells(selection: &Selection) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    let mut places: HashMap<(usize, usize), usize> = HashMap::new();
    for trial in &selection.trials {
        let place = (trial.task, trial.agent);
        // Trials of one cell are adjacent, except with several experiments.
        let at = match cells.last() {
            Some(last) if (last.task, last.agent) == place => cells.len() - 1,
            _ => *places.entry(place).or_insert_with(|| {
                cells.push(Cell::new(trial.task, trial.agent));
                cells.len() - 1
            }),
        };
        cells[at].add(trial);
    }
    cells
}

impl Cell {
    fn new(task: usize, agent: usize) -> Self {
        Self {
            task,
            agent,
            trials: 0,
            outcomes: [0; Outcome::ALL.len()],
            faults: Faults::default(),
            rewards: Cluster::default(),
            solved: 0,
            nonzero: 0,
            took: Took::default(),
            seconds: 0.0,
        }
    }

    fn add(&mut self, trial: &Trial) {
        self.trials += 1;
        let place = Outcome::ALL.iter().position(|outcome| *outcome == trial.outcome);
        self.outcomes[place.unwrap_or_default()] += 1;
        self.faults.count(trial.outcome, trial.fault_kind.as_deref());
        self.took.add(&trial.took);
        self.seconds += trial.seconds;
        if let Some(reward) = trial.counted() {
            self.rewards.add(reward);
            self.nonzero += usize::from(reward > 0.0);
            self.solved += usize::from(is_full(reward));
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Sum {
    trials: usize,
    missing: usize,
    withheld: usize,
    outcomes: [usize; Outcome::ALL.len()],
    faults: Faults,
    rewards: BTreeMap<usize, Cluster>,
    tasks: BTreeSet<usize>,
    /// Tries and solved tries, by task and agent.
    tries: Vec<(usize, usize)>,
    nonzero: usize,
    took: Took,
    seconds: f64,
}

impl Sum {
    pub(crate) fn add(&mut self, cell: &Cell, unit: usize) {
        self.trials += cell.trials;
        self.outcomes.iter_mut().zip(cell.outcomes).for_each(|(sum, count)| *sum += count);
        self.faults.add(cell.faults);
        self.tasks.insert(cell.task);
        self.took.add(&cell.took);
        self.seconds += cell.seconds;
        self.nonzero += cell.nonzero;
        if cell.rewards.count > 0 {
            self.rewards.entry(unit).or_default().merge(cell.rewards);
            self.tries.push((cell.rewards.count, cell.solved));
        }
    }

    /// Adds a trial whose record a package withheld.
    pub(crate) fn withhold(&mut self) {
        self.withheld += 1;
    }

    pub(crate) fn miss(&mut self, missing: &Missing) {
        self.missing += missing.count;
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of trials are far below 2^52")]
    pub(crate) fn finish(self, name: String) -> Group {
        let clusters: Vec<Cluster> = self.rewards.values().copied().collect();
        let estimate = clustered_mean_logit(&clusters, Confidence::default());
        let counted: usize = clusters.iter().map(|cluster| cluster.count).sum();
        let sum: f64 = clusters.iter().map(|cluster| cluster.sum).sum();
        let over = |others: usize| {
            let all = counted + others;
            (all > 0).then(|| sum / all as f64)
        };
        let outcomes: BTreeMap<Outcome, usize> =
            Outcome::ALL.into_iter().zip(self.outcomes).filter(|(_, count)| *count > 0).collect();
        let of = |outcome: Outcome| outcomes.get(&outcome).copied().unwrap_or(0);
        let faults = of(Outcome::InfraFault) + of(Outcome::VerifierFault);
        let never = of(Outcome::Cancelled) + self.missing;
        let unknown = Unknown::of(sum, counted, self.withheld, of(Outcome::Unverified));
        let hidden = unknown.map_or(0, |unknown| unknown.count());
        let solved: usize = self.tries.iter().map(|tries| tries.1).sum();
        let priced = self.took.without_cost == 0;
        Group {
            name,
            trials: self.trials,
            missing: self.missing,
            tasks: self.tasks.len(),
            faults: self.faults,
            counted,
            mean_reward: estimate.as_ref().map(|estimate| estimate.mean),
            interval: estimate.as_ref().and_then(|estimate| estimate.interval),
            unknown,
            standard_error: estimate.as_ref().and_then(|estimate| estimate.standard_error),
            denominators: Denominators {
                as_run: over(faults),
                without_infra: over(0),
                worst_case: over(faults + never + hidden),
            },
            solved,
            solve_rate: (counted > 0).then(|| solved as f64 / counted as f64),
            nonzero: self.nonzero,
            pass: passes(&self.tries),
            cost_per_solved: (solved > 0 && priced).then(|| self.took.cost_usd / solved as f64),
            took: self.took,
            mean_seconds: (self.trials > 0).then(|| self.seconds / self.trials as f64),
            outcomes,
        }
    }
}

/// Probabilities for 1, 2, 4, … tries and for the largest number, as far as tasks have that many.
#[expect(clippy::cast_precision_loss, reason = "counts of trials are far below 2^52")]
fn passes(tries: &[(usize, usize)]) -> Vec<Pass> {
    let most = tries.iter().map(|(count, _)| *count).max().unwrap_or(0);
    let powers = std::iter::successors(Some(1_usize), |k| k.checked_mul(2)).take_while(|k| *k < most);
    let ks = powers.chain((most > 0).then_some(most));
    ks.filter_map(|k| {
        let chances: Vec<(f64, f64)> =
            tries.iter().filter_map(|(n, c)| Some((pass_at_k(*n, *c, k)?, pass_hat_k(*n, *c, k)?))).collect();
        let tasks = chances.len();
        let mean = |pick: fn(&(f64, f64)) -> f64| chances.iter().map(pick).sum::<f64>() / tasks as f64;
        (tasks > 0).then(|| Pass { k, pass_at_k: mean(|one| one.0), pass_hat_k: mean(|one| one.1), tasks })
    })
    .collect()
}
