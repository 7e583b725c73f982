//! What a run knows: its events added up. The same events give the same state, whoever adds them up and whenever.

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

/// What a run knows.
#[derive(Clone, Debug)]
pub struct State {
    pub started: RunStarted,
    /// The best: nothing was shown to be better.
    pub champion: Digest,
    /// The best of each way of working.
    pub archive: Archive,
    /// Every candidate.
    pub candidates: BTreeMap<Digest, Known>,
    /// Who searches, and how far each is.
    pub lanes: BTreeMap<String, AgentProgress>,
    /// Candidates that were not accepted, oldest first.
    pub buried: Vec<Digest>,
    /// What agents want others to know, oldest first.
    pub notes: Vec<Note>,
    /// Tests that were begun.
    pub tests: u32,
    /// Candidates that were accepted, oldest first.
    pub accepted: Vec<Digest>,
    /// Cycles that are over, oldest first.
    pub cycles: Vec<CycleRecord>,
    /// What models took that look on and propose.
    pub voices: Spend,
    /// What trials took, those included that were cancelled or repeated.
    pub trials: Spend,
    /// What the run may take, where a later session was told something else than the first.
    pub budget: Option<BudgetChanged>,
    /// Where the money of a swarm stands.
    pub phase: Phase,
    /// Rewards on the tasks kept for the end, first candidate and best, once they were used.
    pub holdout_rewards: Option<(Rewards, Rewards)>,
    /// What they say.
    pub holdout: Option<Event>,
    /// Why it is over.
    pub ending: Option<Ending>,
    /// Why it stopped last, while it is not over.
    pub stopped: Option<String>,
    /// Tasks that were used.
    pub used: Arc<Used>,
    /// Calls that nobody saw end yet, at their bounds.
    open_calls: BTreeMap<(String, Role), Spend>,
    seen: HashSet<Name>,
    learned: BTreeSet<TaskKey>,
}

type TaskKey = (String, Digest, u32);

/// Rewards task by task; absent where a trial says nothing about the agent.
pub type Rewards = Vec<Option<f64>>;

/// What a task is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UsedFor {
    /// To learn from.
    Learning,
    /// To test.
    Testing,
    /// For the end.
    Holdout,
}

/// Tasks that a run has used.
#[derive(Clone, Debug, Default)]
pub struct Used {
    /// How often each, by what for.
    pub times: BTreeMap<(UsedFor, String), u32>,
    /// How many, by what for.
    pub supplied: BTreeMap<UsedFor, u64>,
    pub revisions: HashSet<Digest>,
}

/// Money and tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spend {
    /// Dollars, as far as prices are known.
    pub usd: f64,
    pub tokens: u64,
    /// Trials or calls without a known price.
    pub unpriced: u64,
}

/// What is known of a candidate.
#[derive(Clone, Debug)]
pub struct Known {
    /// What it was made from.
    pub parents: Vec<Digest>,
    /// Who made it.
    pub agent: String,
    /// In which cycle; 0 for the one that the run began with.
    pub cycle: u32,
    /// How it came to be.
    pub way: Way,
    /// What was changed.
    pub edits: Vec<Edit>,
    /// Why, as the model says.
    pub reasoning: String,
    /// Letters that an agent is told.
    pub prompt_letters: usize,
    /// What was seen of it.
    pub tally: Tally,
    /// Fresh tasks that it was tested on.
    pub tested_on: Vec<TaskRef>,
    /// What became of it.
    pub status: Status,
    /// How its last test stood.
    pub standing: Option<Standing>,
}

/// What became of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The run began with it.
    Baseline,
    /// It is being measured.
    Open,
    /// It was better.
    Accepted,
    /// It was not shown to be.
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

/// What an agent wants others to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub agent: String,
    pub text: String,
}

/// A cycle that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct CycleRecord {
    /// Whose.
    pub agent: String,
    pub cycle: u32,
    /// How the candidate came to be.
    pub way: Way,
    /// Where it came from.
    pub parent: Digest,
    /// The candidate; absent if there was none.
    pub candidate: Option<Digest>,
    /// Why there was none.
    pub reason: Option<String>,
    /// Changes that were proposed and not taken.
    pub dropped: Vec<Dropped>,
    pub accepted: bool,
    /// The best after it.
    pub champion: Digest,
    /// Mean reward of the best by then.
    pub champion_mean: Option<f64>,
}

/// How far an agent is.
#[derive(Clone, Debug, Default)]
pub struct AgentProgress {
    /// Its last cycle.
    pub cycle: u32,
    /// The cycle under way.
    pub open: Option<Open>,
    /// Cycles in a row without an acceptance.
    pub dry: u32,
    /// Whether the search is widened.
    pub widened: bool,
    /// Cycles in a row without anything new in the archive.
    pub idle: u32,
    /// How it works since it changed its ways.
    pub way: Way,
    /// Where it goes on from since then; once.
    pub parent: Option<Digest>,
    /// Failures in a row.
    pub failures: u32,
    /// Why it works no more.
    pub retired: Option<String>,
    /// Whether that lasts.
    pub retired_for: RetiredFor,
}

/// A cycle under way.
#[derive(Clone, Debug)]
pub struct Open {
    /// How it began.
    pub started: CycleStarted,
    /// Rewards of the parent, task by task, once it was measured.
    pub learned: Option<Rewards>,
    /// Changes that were proposed and not taken.
    pub dropped: Vec<Dropped>,
    /// The new candidate.
    pub proposed: Option<Proposed>,
    /// Rewards of the new candidate on the tasks of its parent, once it was measured.
    pub screened: Option<Rewards>,
    /// The test under way.
    pub test: Option<Test>,
}

/// A test under way.
#[derive(Clone, Debug)]
pub struct Test {
    /// The one that is challenged.
    pub against: Digest,
    /// What is needed.
    pub bar: Bar,
    /// Rewards of candidate and challenged, task by task.
    pub pairs: Vec<(Option<f64>, Option<f64>)>,
    /// The tasks that it has had.
    pub had: HashSet<Digest>,
}

impl State {
    /// What a run knows at its beginning.
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

    /// What the events of a log add up to; `None` without a beginning.
    pub fn replay(entries: &[Entry]) -> Option<Self> {
        let (first, rest) = entries.split_first()?;
        let Event::RunStarted(started) = &first.event else { return None };
        let mut state = Self::new((**started).clone());
        for entry in rest {
            state.apply(&entry.event);
        }
        Some(state)
    }

    /// Adds an event.
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
                // Logs of earlier versions do not say how many calls there were.
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
                if let Some(lane) = self.lanes.get_mut(agent) {
                    (lane.widened, lane.dry) = (true, 0);
                }
            }
            Event::Pivoted { agent, way, parent, .. } => {
                if let Some(lane) = self.lanes.get_mut(agent) {
                    (lane.way, lane.parent, lane.idle) = (*way, Some(*parent), 0);
                }
            }
            Event::PhaseChanged { phase } => self.phase = *phase,
            Event::AgentFailed { agent, failures, .. } => {
                if let Some(lane) = self.lanes.get_mut(agent) {
                    lane.failures = *failures;
                }
            }
            Event::AgentRetired { agent, reason, retired_for } => {
                if let Some(lane) = self.lanes.get_mut(agent) {
                    lane.retired = Some(reason.clone());
                    lane.retired_for = *retired_for;
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

    /// Calls that were under way when a process was killed will not be heard of again: their bounds are spent. When a run
    /// is resumed nobody else can be asking.
    pub fn settle_open_calls(&mut self) {
        for open in std::mem::take(&mut self.open_calls).into_values() {
            self.voices.usd += open.usd;
            self.voices.tokens += open.tokens;
            self.voices.unpriced += open.unpriced;
        }
    }

    /// What is told of all attempts replaces what the trials that were measured add up to: it knows of others as well.
    fn taken(&mut self, taken: Option<Taken>) {
        if let Some(Taken { cost_usd, tokens }) = taken {
            (self.trials.usd, self.trials.tokens) = (cost_usd, tokens);
        }
    }

    /// Whoever resumes a run gives agents that failed another try.
    fn revive(&mut self) {
        for lane in self.lanes.values_mut() {
            lane.failures = 0;
            if lane.retired_for == RetiredFor::Failures {
                lane.retired = None;
            }
        }
    }

    fn open(&mut self, agent: &str) -> Option<&mut Open> {
        self.lanes.get_mut(agent)?.open.as_mut()
    }

    fn begin_cycle(&mut self, started: &CycleStarted) {
        self.archive.note_selected(started.parent);
        for task in &started.tasks {
            // A task that was used for a test before is not taken from those to learn from.
            if !self.tested(started.parent).any(|tested| tested == task) {
                self.use_task(UsedFor::Learning, task);
            }
            self.learned.insert(key(task));
        }
        if let Some(lane) = self.lanes.get_mut(&started.agent) {
            lane.cycle = started.cycle;
            lane.parent = None;
            lane.open = Some(Open {
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
                // What is kept for the end says nothing to the search.
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

    /// Puts a candidate into the archive, as far as it is known by now.
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
            .and_then(|lane| lane.open.as_ref())
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
                // Somebody else was quicker: it must be shown to be better than the new best as well.
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
        let Some(lane) = self.lanes.get_mut(agent) else { return };
        let Some(open) = lane.open.take() else { return };
        lane.failures = 0;
        lane.dry = if accepted { 0 } else { lane.dry + 1 };
        lane.idle = if accepted || new { 0 } else { lane.idle + 1 };
        lane.widened &= !accepted;
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

    /// Mean reward of a candidate.
    pub fn mean(&self, candidate: Digest) -> Option<f64> {
        self.candidates.get(&candidate).and_then(|known| known.tally.mean())
    }

    /// What everything took.
    pub fn spend(&self) -> Spend {
        Spend {
            usd: self.voices.usd + self.trials.usd,
            tokens: self.voices.tokens + self.trials.tokens,
            unpriced: self.voices.unpriced + self.trials.unpriced,
        }
    }

    /// Whether somebody has learned from a task, in whichever repetition.
    pub fn was_learned_from(&self, task: &TaskRef) -> bool {
        self.learned.iter().any(|(_, revision, _)| *revision == task.revision)
    }

    /// Tasks that a candidate was tested on and that nobody has learned from yet: there it need not work again.
    pub fn known_tasks(&self, candidate: Digest, most: usize) -> Vec<TaskRef> {
        self.tested(candidate).filter(|task| !self.learned.contains(&key(task))).take(most).cloned().collect()
    }

    /// The failed candidate that came nearest.
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
