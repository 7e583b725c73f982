//! The trials of a report: each name stored once, trials as numbers, in an order that depends only on the names, so
//! that sums do not depend on the order of the rows in the index.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher as _};

use aec_base::digest::Digest;
use aec_judge::settle::order::AnswerOrder;
use aec_judge::verdict::Outcome;
use aec_ledger::index::{Attempts, Brief, Filter, Index, IndexError};
use serde::Serialize;

use crate::withheld::Withheld;

/// A task at one revision.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Task {
    pub id: String,
    /// Digest of its files.
    pub revision: Digest,
    pub discipline: String,
    pub difficulty: Option<String>,
    /// Tasks of one family have the same value.
    pub family: String,
}

/// An agent: two with one name and different digests are different agents.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Agent {
    pub name: String,
    pub harness: String,
    pub model: Option<String>,
    /// Digest of harness, model, parameters and prompt.
    pub digest: Digest,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Experiment {
    pub id: String,
    pub dataset: Option<String>,
}

/// One trial, represented by its latest attempt.
#[derive(Clone, Debug)]
pub struct Trial {
    pub id: Box<str>,
    pub experiment: usize,
    pub task: usize,
    pub agent: usize,
    /// Counted from 1.
    pub repetition: u32,
    /// The latest attempt, from 1.
    pub attempt: u32,
    pub outcome: Outcome,
    pub fault_kind: Option<Box<str>>,
    pub reward: Option<f64>,
    /// Whether the reward was not given here: `elsewhere`, or `trusted` if it counts only because the user said so.
    pub foreign: Option<&'static str>,
    /// The cost of all its attempts.
    pub took: Took,
    /// Seconds from start to end of the latest attempt.
    pub seconds: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Took {
    /// Dollars of the attempts with a known cost.
    pub cost_usd: f64,
    pub without_cost: usize,
    pub tokens_in: u64,
    pub tokens_out: u64,
    /// Attempts without token counts.
    pub without_tokens: usize,
    pub model_calls: u64,
}

impl Took {
    pub fn add(&mut self, other: &Self) {
        self.cost_usd += other.cost_usd;
        self.without_cost += other.without_cost;
        self.tokens_in = self.tokens_in.saturating_add(other.tokens_in);
        self.tokens_out = self.tokens_out.saturating_add(other.tokens_out);
        self.without_tokens += other.without_tokens;
        self.model_calls += other.model_calls;
    }

    fn of(brief: &Brief<'_>) -> Self {
        let counted = brief.tokens_in.is_some() && brief.tokens_out.is_some();
        Self {
            cost_usd: brief.cost_usd.unwrap_or(0.0),
            without_cost: usize::from(brief.cost_usd.is_none()),
            tokens_in: brief.tokens_in.unwrap_or(0),
            tokens_out: brief.tokens_out.unwrap_or(0),
            without_tokens: usize::from(!counted),
            model_calls: brief.model_calls,
        }
    }
}

impl Trial {
    /// The reward that counts: the judge's reward, or 0 for an agent that left nothing to judge. Absent for trials that
    /// failed through no fault of the agent, or were never judged.
    pub fn counted(&self) -> Option<f64> {
        match self.outcome {
            Outcome::Scored => self.reward,
            Outcome::AgentFault => Some(0.0),
            _ => None,
        }
    }
}

pub fn is_full(reward: f64) -> bool {
    reward >= 1.0 - 1e-9
}

#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Sorted.
    pub experiments: Vec<Experiment>,
    /// Sorted.
    pub tasks: Vec<Task>,
    /// Sorted.
    pub agents: Vec<Agent>,
    /// Sorted by experiment, task, agent, repetition and id.
    pub trials: Vec<Trial>,
    /// Planned trials without a record.
    pub missing: Vec<Missing>,
    /// Trials whose records packages withheld.
    pub withheld: Vec<Withheld>,
    /// Experiments that came as packages.
    pub packages: BTreeSet<String>,
    /// The orders in which answers were chosen.
    pub answer_orders: BTreeSet<AnswerOrder>,
}

/// Planned trials of one task and agent without a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    pub task: Task,
    pub agent: Agent,
    pub count: usize,
}

impl Selection {
    /// The trials that a filter accepts. Filters on outcomes and attempts are ignored, because a report without
    /// failures would be misleading.
    pub fn read(index: &Index, filter: &Filter) -> Result<Self, IndexError> {
        let filter = Filter { attempts: Attempts::All, outcome: None, limit: None, ..filter.clone() };
        let mut reader = Reader::default();
        index.each(&filter, |brief| reader.take(brief))?;
        Ok(reader.finish())
    }

    /// A warning about trials whose answers were chosen in different orders.
    pub fn mixed_orders(orders: &BTreeSet<AnswerOrder>) -> Option<String> {
        let names: Vec<&str> = orders.iter().map(|order| order.name()).collect();
        (names.len() > 1).then(|| {
            format!(
                "answers were chosen by different orders ({}), so an agent that both wrote and submitted one may have \
                 earned something else in each",
                names.join(", ")
            )
        })
    }

    /// Tasks that were run in more than one revision, with the number of revisions.
    pub fn mixed_revisions(&self) -> Vec<(&str, usize)> {
        let mut mixed: Vec<(&str, usize)> = Vec::new();
        for pair in self.tasks.chunk_by(|a, b| a.id == b.id) {
            let revisions: BTreeSet<Digest> = pair.iter().map(|task| task.revision).collect();
            if revisions.len() > 1 {
                mixed.push((pair[0].id.as_str(), revisions.len()));
            }
        }
        mixed
    }

    /// Treats different revisions of a task as the same task.
    pub fn merge_revisions(&mut self) {
        let mut first = Vec::with_capacity(self.tasks.len());
        for (at, task) in self.tasks.iter().enumerate() {
            let known = first.last().copied().filter(|known: &usize| self.tasks[*known].id == task.id);
            first.push(known.unwrap_or(at));
        }
        for trial in &mut self.trials {
            trial.task = first[trial.task];
        }
    }

    /// The same with fewer trials; unused names are removed.
    #[must_use]
    pub fn filtered(&self, keep: impl Fn(&Trial) -> bool) -> Self {
        let trials = self.trials.iter().filter(|trial| keep(trial)).cloned().collect();
        let selection = sorted(self.experiments.clone(), self.tasks.clone(), self.agents.clone(), trials);
        Self { answer_orders: self.answer_orders.clone(), ..selection }
    }
}

/// Values in order of insertion, looked up without copying the key.
#[derive(Debug)]
struct Names<T> {
    list: Vec<T>,
    by_hash: HashMap<u64, Vec<usize>>,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self { list: Vec::new(), by_hash: HashMap::new() }
    }
}

impl<T> Names<T> {
    fn number(&mut self, key: impl Hash, is: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> usize {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let alike = self.by_hash.entry(hasher.finish()).or_default();
        if let Some(number) = alike.iter().find(|number| is(&self.list[**number])) {
            return *number;
        }
        alike.push(self.list.len());
        self.list.push(make());
        self.list.len() - 1
    }
}

#[derive(Default)]
struct Reader {
    experiments: Names<Experiment>,
    tasks: Names<Task>,
    agents: Names<Agent>,
    /// The numbers of tasks and agents in the index, mapped to ours.
    known_tasks: HashMap<i64, usize>,
    known_agents: HashMap<i64, usize>,
    trials: Vec<Trial>,
    /// The cost of attempts that are not the latest of their trial.
    earlier: HashMap<(usize, Box<str>), Took>,
    answer_orders: BTreeSet<AnswerOrder>,
}

impl Reader {
    fn take(&mut self, brief: &Brief<'_>) {
        let own = |text: Option<&str>| text.map(str::to_owned);
        let experiment = self.experiments.number(
            (brief.experiment_id, brief.dataset_id),
            |known| known.id == brief.experiment_id && known.dataset.as_deref() == brief.dataset_id,
            || Experiment { id: brief.experiment_id.to_owned(), dataset: own(brief.dataset_id) },
        );
        let shared = brief.task;
        let task = *self.known_tasks.entry(shared.number).or_insert_with(|| {
            self.tasks.number(
                (&shared.id, shared.revision),
                |known| known.id == shared.id && known.revision == shared.revision,
                || Task {
                    id: shared.id.clone(),
                    revision: shared.revision,
                    discipline: shared.domain.clone(),
                    difficulty: shared.difficulty.clone(),
                    family: shared.family.clone(),
                },
            )
        });
        let shared = brief.agent;
        let agent = *self.known_agents.entry(shared.number).or_insert_with(|| {
            self.answer_orders.insert(shared.answer_order);
            self.agents.number(
                (&shared.name, shared.digest),
                |known| known.name == shared.name && known.digest == shared.digest,
                || Agent {
                    name: shared.name.clone(),
                    harness: shared.adapter.clone(),
                    model: shared.model.clone(),
                    digest: shared.digest,
                },
            )
        });
        let took = Took::of(brief);
        let id: Box<str> = brief.trial_id.into();
        if !brief.is_latest {
            self.earlier.entry((experiment, id)).or_default().add(&took);
            return;
        }
        self.trials.push(Trial {
            id,
            experiment,
            task,
            agent,
            repetition: brief.repetition,
            attempt: brief.attempt,
            outcome: brief.outcome,
            fault_kind: brief.fault_kind.map(Into::into),
            reward: brief.reward.filter(|reward| reward.is_finite()),
            foreign: match brief.judged {
                Some("elsewhere") => Some("elsewhere"),
                Some("trusted") => Some("trusted"),
                _ => None,
            },
            took,
            seconds: brief.total_seconds,
        });
    }

    fn finish(mut self) -> Selection {
        for trial in &mut self.trials {
            if self.earlier.is_empty() {
                break;
            }
            if let Some(earlier) = self.earlier.get(&(trial.experiment, trial.id.clone())) {
                trial.took.add(earlier);
            }
        }
        let selection = sorted(self.experiments.list, self.tasks.list, self.agents.list, self.trials);
        Selection { answer_orders: self.answer_orders, ..selection }
    }
}

/// Sorts names, drops unused ones, and sorts trials by them.
fn sorted(
    experiments: Vec<Experiment>,
    tasks: Vec<Task>,
    agents: Vec<Agent>,
    mut trials: Vec<Trial>,
) -> Selection {
    let (experiments, new) = rank(experiments, trials.iter().map(|trial| trial.experiment));
    for trial in &mut trials {
        trial.experiment = new[trial.experiment];
    }
    let (tasks, new) = rank(tasks, trials.iter().map(|trial| trial.task));
    for trial in &mut trials {
        trial.task = new[trial.task];
    }
    let (agents, new) = rank(agents, trials.iter().map(|trial| trial.agent));
    for trial in &mut trials {
        trial.agent = new[trial.agent];
    }
    trials.sort_unstable_by(|a, b| {
        let place = |trial: &Trial| (trial.experiment, trial.task, trial.agent, trial.repetition);
        place(a).cmp(&place(b)).then_with(|| a.id.cmp(&b.id))
    });
    Selection { experiments, tasks, agents, trials, ..Selection::default() }
}

/// The used names, sorted, and the new number of each old one.
fn rank<T: Ord>(names: Vec<T>, used: impl Iterator<Item = usize>) -> (Vec<T>, Vec<usize>) {
    let mut is_used = vec![false; names.len()];
    for number in used {
        is_used[number] = true;
    }
    let mut new = vec![usize::MAX; names.len()];
    let mut list: Vec<(T, usize)> = names
        .into_iter()
        .enumerate()
        .filter(|(old, _)| is_used[*old])
        .map(|(old, name)| (name, old))
        .collect();
    list.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let names = list
        .into_iter()
        .enumerate()
        .map(|(number, (name, old))| {
            new[old] = number;
            name
        })
        .collect();
    (names, new)
}
