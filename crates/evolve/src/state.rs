//! The state of a run: the sum of its events. The same events always give the same state.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use aec_base::digest::Digest;
use aec_base::name::Name;

use crate::analyse::{Tally, behaviour};
use crate::archive::{Archive, Elite};
use crate::edit::{Dropped, Edit};
use crate::event::{
    Arm, BudgetChanged, CycleStarted, Decided, Ending, Entry, Event, Measured, Phase, Proposed, Purpose,
    RetiredFor, Role, RunStarted, Taken, TaskRef, Way,
};
use crate::gate::{Bar, Rejection, Standing};

#[derive(Clone, Debug)]
pub struct State {
    pub started: RunStarted,
    /// The best candidate: none was shown to be better.
    pub champion: Digest,
    pub archive: Archive,
    pub candidates: BTreeMap<Digest, Known>,
    /// The progress of each agent.
    pub lanes: BTreeMap<String, AgentProgress>,
    /// Candidates that were not accepted, oldest first.
    pub buried: Vec<Digest>,
    /// Notes of agents to each other, oldest first.
    pub notes: Vec<Note>,
    pub tests: u32,
    /// Oldest first.
    pub accepted: Vec<Digest>,
    /// Finished cycles, oldest first.
    pub cycles: Vec<CycleRecord>,
    /// The cost of models that classify and propose.
    pub voices: Spend,
    /// The cost of trials, including cancelled and repeated ones.
    pub trials: Spend,
    /// The current budget, if a later session changed it.
    pub budget: Option<BudgetChanged>,
    /// The phase of a swarm's budget.
    pub phase: Phase,
    /// Rewards of the first and the best candidate on the holdout, once it was used.
    pub holdout_rewards: Option<(Rewards, Rewards)>,
    /// The result on the holdout.
    pub holdout: Option<Event>,
    /// Why the run has ended.
    pub ending: Option<Ending>,
    /// Why it last stopped, while it has not ended.
    pub stopped: Option<String>,
    pub used: Arc<Used>,
    /// Calls whose end is not recorded yet, at their highest possible cost.
    open_calls: BTreeMap<(String, Role), Spend>,
    seen: HashSet<Name>,
    learned: BTreeSet<TaskKey>,
}

type TaskKey = (String, Digest, u32);

/// One reward per task; absent if a trial says nothing about the agent.
pub type Rewards = Vec<Option<f64>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UsedFor {
    Learning,
    Testing,
    Holdout,
}

#[derive(Clone, Debug, Default)]
pub struct Used {
    /// How often each task was used for each purpose.
    pub times: BTreeMap<(UsedFor, String), u32>,
    /// How many tasks were used for each purpose.
    pub supplied: BTreeMap<UsedFor, u64>,
    pub revisions: HashSet<Digest>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spend {
    /// Dollars, as far as prices are known.
    pub usd: f64,
    pub tokens: u64,
    /// Trials or calls without a known price.
    pub unpriced: u64,
}

/// What the run knows about a candidate.
#[derive(Clone, Debug)]
pub struct Known {
    pub parents: Vec<Digest>,
    /// The agent that made it.
    pub agent: String,
    /// 0 for the candidate with which the run began.
    pub cycle: u32,
    /// How it was made.
    pub way: Way,
    pub edits: Vec<Edit>,
    /// The model's reasoning.
    pub reasoning: String,
    /// Letters of the system prompt.
    pub prompt_letters: usize,
    pub tally: Tally,
    /// New tasks that it was tested on.
    pub tested_on: Vec<TaskRef>,
    pub status: Status,
    /// The state of its last test.
    pub standing: Option<Standing>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The run began with it.
    Baseline,
    Open,
    Accepted,
    /// It was not shown to be better.
    Rejected(Rejection),
}

impl Status {
    pub fn words(self) -> &'static str {
        match self {
            Self::Baseline => "the beginning",
            Self::Open => "being measured",
            Self::Accepted => "accepted",
            Self::Rejected(rejection) => rejection.words(),
        }
    }
}

/// A note of an agent to the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub agent: String,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CycleRecord {
    pub agent: String,
    pub cycle: u32,
    /// How the candidate was made.
    pub way: Way,
    pub parent: Digest,
    /// Absent if no candidate was made.
    pub candidate: Option<Digest>,
    /// Why no candidate was made.
    pub reason: Option<String>,
    /// Proposed changes that were not made.
    pub dropped: Vec<Dropped>,
    pub accepted: bool,
    /// The best candidate after it.
    pub champion: Digest,
    /// Mean reward of the best candidate at that time.
    pub champion_mean: Option<f64>,
}

#[derive(Clone, Debug, Default)]
pub struct AgentProgress {
    pub cycle: u32,
    pub open: Option<Open>,
    /// Cycles in a row without an acceptance.
    pub dry: u32,
    pub widened: bool,
    /// Cycles in a row without anything new in the archive.
    pub idle: u32,
    /// Its way of working since it last changed it.
    pub way: Way,
    /// The parent of the first cycle after that change.
    pub parent: Option<Digest>,
    pub failures: u32,
    /// Why it stopped working.
    pub retired: Option<String>,
    /// Whether it may work again when the swarm is resumed.
    pub retired_for: RetiredFor,
}

#[derive(Clone, Debug)]
pub struct Open {
    pub started: CycleStarted,
    /// Rewards of the parent, one per task, once it was measured.
    pub learned: Option<Rewards>,
    /// Proposed changes that were not made.
    pub dropped: Vec<Dropped>,
    pub proposed: Option<Proposed>,
    /// Rewards of the new candidate on the tasks of its parent, once it was measured.
    pub screened: Option<Rewards>,
    pub test: Option<Test>,
}

#[derive(Clone, Debug)]
pub struct Test {
    /// The challenged candidate.
    pub against: Digest,
    pub bar: Bar,
    /// Rewards of the candidate and the challenged one, one pair per task.
    pub pairs: Vec<(Option<f64>, Option<f64>)>,
    /// The tasks that were used.
    pub had: HashSet<Digest>,
}

impl State {
    /// The state at the beginning of a run.
    pub fn new(started: RunStarted) -> Self {
        let baseline = started.baseline;
        let known = Known {
            parents: Vec::new(),
            agent: String::new(),
            cycle: 0,
            way: Way::Mutation,
            edits: Vec::new(),
            reasoning: String::new(),
            prompt_letters: started.prompt_letters,
            tally: Tally::default(),
            tested_on: Vec::new(),
            status: Status::Baseline,
            standing: None,
        };
        let lanes = started.agents.iter().map(|agent| (agent.clone(), AgentProgress::default())).collect();
        Self {
            champion: baseline,
            archive: Archive::default(),
            candidates: BTreeMap::from([(baseline, known)]),
            lanes,
            buried: Vec::new(),
            notes: Vec::new(),
            tests: 0,
            accepted: Vec::new(),
            cycles: Vec::new(),
            voices: Spend::default(),
            trials: Spend::default(),
            budget: None,
            phase: Phase::Exploring,
            holdout_rewards: None,
            holdout: None,
            ending: None,
            stopped: None,
            used: Arc::default(),
            open_calls: BTreeMap::new(),
            seen: HashSet::new(),
            learned: BTreeSet::new(),
            started,
        }
    }

    /// The sum of the events of a log; `None` without a beginning.
    pub fn replay(entries: &[Entry]) -> Option<Self> {
        let (first, rest) = entries.split_first()?;
        let Event::RunStarted(started) = &first.event else { return None };
        let mut state = Self::new((**started).clone());
        for entry in rest {
            state.apply(&entry.event);
        }
        Some(state)
    }

    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::RunStarted(_) => {}
            Event::Resumed { .. } => {
                (self.stopped, self.ending) = (None, None);
                self.settle_open_calls();
                self.revive();
            }
            Event::BudgetChanged(budget) => self.budget = Some(*budget),
            Event::CycleStarted(started) => self.begin_cycle(started),
            Event::Measured(measured) => self.measured(measured),
            Event::Asked { agent, role, at_most_usd, at_most_tokens, .. } => {
                let open = self.open_calls.entry((agent.clone(), *role)).or_default();
                open.usd += at_most_usd.unwrap_or(0.0);
                open.unpriced += u64::from(at_most_usd.is_none());
                open.tokens += at_most_tokens;
            }
            Event::Answered { agent, role, cost_usd, unpriced_calls, tokens, .. } => {
                self.open_calls.remove(&(agent.clone(), *role));
                self.voices.usd += cost_usd.unwrap_or(0.0);
                // Logs of earlier versions do not record the number of calls.
                self.voices.unpriced += (*unpriced_calls).max(u64::from(cost_usd.is_none()));
                self.voices.tokens += tokens;
            }
            Event::Proposed(proposed) => self.proposed(proposed),
            Event::NotProposed { agent, reason, dropped, .. } => {
                if let Some(open) = self.open(agent) {
                    open.dropped.clone_from(dropped);
                }
                self.end_cycle(agent, None, Some(reason.clone()), false);
            }
            Event::TestStarted { agent, against, bar, .. } => {
                self.tests += 1;
                if let Some(open) = self.open(agent) {
                    open.test =
                        Some(Test { against: *against, bar: *bar, pairs: Vec::new(), had: HashSet::new() });
                }
            }
            Event::Decided(decided) => self.decided(decided),
            Event::Widened { agent, .. } => {
                if let Some(progress) = self.lanes.get_mut(agent) {
                    (progress.widened, progress.dry) = (true, 0);
                }
            }
            Event::Pivoted { agent, way, parent, .. } => {
                if let Some(progress) = self.lanes.get_mut(agent) {
                    (progress.way, progress.parent, progress.idle) = (*way, Some(*parent), 0);
                }
            }
            Event::PhaseChanged { phase } => self.phase = *phase,
            Event::AgentFailed { agent, failures, .. } => {
                if let Some(progress) = self.lanes.get_mut(agent) {
                    progress.failures = *failures;
                }
            }
            Event::AgentRetired { agent, reason, retired_for } => {
                if let Some(progress) = self.lanes.get_mut(agent) {
                    progress.retired = Some(reason.clone());
                    progress.retired_for = *retired_for;
                }
            }
            Event::HoldoutMeasured { .. } => self.holdout = Some(event.clone()),
            Event::Stopped { reason, taken } => {
                self.stopped = Some(reason.clone());
                self.taken(*taken);
            }
            Event::Ended { reason, taken } => {
                self.ending = Some(*reason);
                self.taken(*taken);
            }
        }
    }

    /// Counts calls that were under way when a process was killed at their highest possible cost, because their end
    /// will never be recorded. When a run is resumed no other process can be asking.
    pub fn settle_open_calls(&mut self) {
        for open in std::mem::take(&mut self.open_calls).into_values() {
            self.voices.usd += open.usd;
            self.voices.tokens += open.tokens;
            self.voices.unpriced += open.unpriced;
        }
    }

    /// The reported cost of all attempts replaces the sum over measured trials, because it includes other trials.
    fn taken(&mut self, taken: Option<Taken>) {
        if let Some(Taken { cost_usd, tokens }) = taken {
            (self.trials.usd, self.trials.tokens) = (cost_usd, tokens);
        }
    }

    /// Resuming a run gives failed agents another try.
    fn revive(&mut self) {
        for progress in self.lanes.values_mut() {
            progress.failures = 0;
            if progress.retired_for == RetiredFor::Failures {
                progress.retired = None;
            }
        }
    }

    fn open(&mut self, agent: &str) -> Option<&mut Open> {
        self.lanes.get_mut(agent)?.open.as_mut()
    }

    fn begin_cycle(&mut self, started: &CycleStarted) {
        self.archive.note_selected(started.parent);
        for task in &started.tasks {
            // A task that was already used for a test does not count against the tasks to learn from.
            if !self.tested(started.parent).any(|tested| tested == task) {
                self.use_task(UsedFor::Learning, task);
            }
            self.learned.insert(key(task));
        }
        if let Some(progress) = self.lanes.get_mut(&started.agent) {
            progress.cycle = started.cycle;
            progress.parent = None;
            progress.open = Some(Open {
                started: started.clone(),
                learned: None,
                dropped: Vec::new(),
                proposed: None,
                screened: None,
                test: None,
            });
        }
    }

    fn tested(&self, candidate: Digest) -> impl Iterator<Item = &TaskRef> {
        self.candidates.get(&candidate).into_iter().flat_map(|known| &known.tested_on)
    }

    fn use_task(&mut self, used_for: UsedFor, task: &TaskRef) {
        let used = Arc::make_mut(&mut self.used);
        *used.times.entry((used_for, task.task_id.clone())).or_default() += 1;
        *used.supplied.entry(used_for).or_default() += 1;
        used.revisions.insert(task.revision);
    }

    fn measured(&mut self, measured: &Measured) {
        for arm in &measured.arms {
            self.tally(arm, measured);
        }
        self.taken(measured.taken);
        let rewards = |arm: Option<&Arm>| -> Rewards {
            arm.map(|arm| arm.seen.iter().map(|seen| seen.reward).collect()).unwrap_or_default()
        };
        match measured.purpose {
            Purpose::Learn => {
                if let Some(open) = self.open(&measured.agent) {
                    open.learned = Some(rewards(measured.arms.first()));
                }
            }
            Purpose::Screen => {
                if let Some(open) = self.open(&measured.agent) {
                    open.screened = Some(rewards(measured.arms.first()));
                }
            }
            Purpose::Accept => {
                for task in &measured.tasks {
                    self.use_task(UsedFor::Testing, task);
                }
                let (candidate, champion) = (rewards(measured.arms.first()), rewards(measured.arms.get(1)));
                if let Some(test) = self.open(&measured.agent).and_then(|open| open.test.as_mut()) {
                    test.pairs.extend(candidate.into_iter().zip(champion));
                    test.had.extend(measured.tasks.iter().map(|task| task.revision));
                }
            }
            Purpose::Holdout => {
                for task in &measured.tasks {
                    self.use_task(UsedFor::Holdout, task);
                }
                self.holdout_rewards = Some((rewards(measured.arms.first()), rewards(measured.arms.get(1))));
            }
        }
    }

    fn tally(&mut self, arm: &Arm, measured: &Measured) {
        let Some(known) = self.candidates.get_mut(&arm.candidate) else { return };
        for (task, seen) in measured.tasks.iter().zip(&arm.seen) {
            if self.seen.insert(seen.trial.clone()) {
                // The holdout must not influence the search.
                if measured.purpose != Purpose::Holdout {
                    known.tally.add_of(task.revision, seen);
                }
                self.trials.usd += seen.cost_usd.unwrap_or(0.0);
                self.trials.tokens += seen.tokens;
                self.trials.unpriced += u64::from(seen.cost_usd.is_none());
            }
        }
        if measured.purpose == Purpose::Accept {
            known.tested_on.extend(measured.tasks.iter().cloned());
        }
        let is_there = self.archive.find(arm.candidate).is_some();
        if (is_there || known.status == Status::Baseline) && measured.purpose != Purpose::Holdout {
            self.offer(arm.candidate);
        }
    }

    /// Offers a candidate with its current measurements to the archive.
    fn offer(&mut self, candidate: Digest) -> bool {
        let Some(known) = self.candidates.get(&candidate) else { return false };
        let Some(mean) = known.tally.mean() else { return false };
        let interval = known.tally.interval();
        self.archive.offer(Elite {
            candidate,
            agent: known.agent.clone(),
            cycle: known.cycle,
            behaviour: behaviour(known.prompt_letters, &known.tally),
            trials: known.tally.rewards.len(),
            mean,
            low: interval.map_or(0.0, |interval| interval.low),
            high: interval.map_or(1.0, |interval| interval.high),
            accepted: matches!(known.status, Status::Accepted | Status::Baseline),
            selected: 0,
            improved: 0,
        })
    }

    fn proposed(&mut self, proposed: &Proposed) {
        let way = self
            .lanes
            .get(&proposed.agent)
            .and_then(|progress| progress.open.as_ref())
            .map_or(Way::Mutation, |open| open.started.way);
        self.candidates.entry(proposed.candidate).or_insert_with(|| Known {
            parents: proposed.parents.clone(),
            agent: proposed.agent.clone(),
            cycle: proposed.cycle,
            way,
            edits: proposed.edits.clone(),
            reasoning: proposed.reasoning.clone(),
            prompt_letters: proposed.prompt_letters,
            tally: Tally::default(),
            tested_on: Vec::new(),
            status: Status::Open,
            standing: None,
        });
        if let Some(note) = &proposed.note {
            self.notes.push(Note { agent: proposed.agent.clone(), text: note.clone() });
        }
        if let Some(open) = self.open(&proposed.agent) {
            open.dropped.clone_from(&proposed.dropped);
            open.proposed = Some(proposed.clone());
        }
    }

    fn decided(&mut self, decided: &Decided) {
        let candidate = decided.candidate;
        let status = match decided.rejection {
            None => Status::Accepted,
            Some(rejection) => Status::Rejected(rejection),
        };
        let wins = status == Status::Accepted && decided.against == self.champion;
        if let Some(known) = self.candidates.get_mut(&candidate) {
            known.standing = Some(decided.standing);
            known.status = status;
        }
        if status == Status::Accepted {
            self.accepted.push(candidate);
            if !wins {
                // Another agent was quicker: the candidate must also be shown to be better than the new best one.
                if let Some(open) = self.open(&decided.agent) {
                    open.test = None;
                }
                return;
            }
            self.champion = candidate;
            for parent in
                self.candidates.get(&candidate).map(|known| known.parents.clone()).unwrap_or_default()
            {
                self.archive.note_improved(parent);
            }
        } else {
            self.buried.push(candidate);
        }
        let worthless = matches!(
            decided.rejection,
            Some(Rejection::WorseThanParent | Rejection::HoldsAnswers | Rejection::TooManyFaults)
        );
        let new = !worthless && self.offer(candidate);
        self.end_cycle(&decided.agent, Some(candidate), None, new);
    }

    fn end_cycle(&mut self, agent: &str, candidate: Option<Digest>, reason: Option<String>, new: bool) {
        let accepted = candidate.is_some_and(|candidate| self.champion == candidate);
        let champion_mean = self.mean(self.champion);
        let champion = self.champion;
        let Some(progress) = self.lanes.get_mut(agent) else { return };
        let Some(open) = progress.open.take() else { return };
        progress.failures = 0;
        progress.dry = if accepted { 0 } else { progress.dry + 1 };
        progress.idle = if accepted || new { 0 } else { progress.idle + 1 };
        progress.widened &= !accepted;
        self.cycles.push(CycleRecord {
            agent: agent.to_owned(),
            cycle: open.started.cycle,
            way: open.started.way,
            parent: open.started.parent,
            candidate,
            reason,
            dropped: open.dropped,
            accepted,
            champion,
            champion_mean,
        });
    }

    pub fn mean(&self, candidate: Digest) -> Option<f64> {
        self.candidates.get(&candidate).and_then(|known| known.tally.mean())
    }

    pub fn spend(&self) -> Spend {
        Spend {
            usd: self.voices.usd + self.trials.usd,
            tokens: self.voices.tokens + self.trials.tokens,
            unpriced: self.voices.unpriced + self.trials.unpriced,
        }
    }

    /// Whether any agent has learned from a task, in any repetition.
    pub fn was_learned_from(&self, task: &TaskRef) -> bool {
        self.learned.iter().any(|(_, revision, _)| *revision == task.revision)
    }

    /// Tasks that a candidate was tested on and that no agent has learned from yet: it need not work on them again.
    pub fn known_tasks(&self, candidate: Digest, most: usize) -> Vec<TaskRef> {
        self.tested(candidate).filter(|task| !self.learned.contains(&key(task))).take(most).cloned().collect()
    }

    /// The rejected candidate that came nearest to acceptance.
    pub fn nearest_miss(&self) -> Option<Digest> {
        let difference =
            |candidate: &Digest| self.candidates.get(candidate)?.standing.map(|standing| standing.difference);
        self.buried
            .iter()
            .filter(|candidate| {
                self.candidates
                    .get(candidate)
                    .is_some_and(|known| !matches!(known.status, Status::Rejected(Rejection::HoldsAnswers)))
            })
            .filter_map(|candidate| Some((*candidate, difference(candidate)?)))
            .max_by(|one, other| one.1.total_cmp(&other.1).then_with(|| other.0.cmp(&one.0)))
            .map(|(candidate, _)| candidate)
    }
}

fn key(task: &TaskRef) -> TaskKey {
    (task.task_id.clone(), task.revision, task.repetition)
}
