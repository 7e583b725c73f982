//! A run as users see it: on a terminal, as JSON, on a page. Everything here is derived from its log, except
//! differences, which come from its workspace; all outputs share it.

use std::collections::HashMap;

use aec_base::decimal::{UNPRICED, cost, dollars, known_sum};
use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::text;
use aec_base::timestamp::Timestamp;
use serde::Serialize;

use crate::archive::{Behaviour, Cell};
use crate::cycle::summary;
use crate::edit::Dropped;
use crate::event::{Ending, Entry, Event, Kind, Phase, Way};
use crate::gate::Standing;
use crate::log;
use crate::run::{RunDirectory, Settings};
use crate::state::{Known, State, Status};
use crate::workspace::Workspace;
use crate::workspace::candidate::name;
use crate::workspace::diff::diff;

#[derive(Clone, Debug, Serialize)]
pub struct View {
    pub run: Name,
    pub kind: Kind,
    pub state: RunState,
    /// Why it stopped or ended, in words.
    pub reason: Option<String>,
    pub workspace: String,
    /// The experiment that records its trials.
    pub experiment: Name,
    pub started_at: Timestamp,
    pub updated_at: Timestamp,
    /// The settings, with the latest budget.
    pub settings: Option<Settings>,
    /// Tests that were started.
    pub tests: u32,
    /// Most tests of the run.
    pub horizon: u32,
    /// The candidate with which it began.
    pub baseline: Name,
    pub best: Name,
    pub best_candidate: Digest,
    pub accepted: usize,
    pub cost: CostView,
    /// The phase of the budget.
    pub phase: Phase,
    pub agents: Vec<AgentView>,
    /// Finished cycles, in the order in which they ended.
    pub cycles: Vec<CycleView>,
    /// Candidates, parents before children.
    pub candidates: Vec<CandidateView>,
    /// The best of each way of working, best first.
    pub archive: Vec<EliteView>,
    pub cells: usize,
    /// Notes of agents to each other.
    pub notes: Vec<NoteView>,
    /// The result on the holdout.
    pub holdout: Option<HoldoutView>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// A process is carrying it out.
    Running,
    /// It has not ended, and no process is carrying it out.
    Stopped,
    Ended,
}

impl RunState {
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Ended => "ended",
        }
    }
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct CostView {
    /// Dollars, as far as prices are known.
    pub total_usd: f64,
    pub trials_usd: f64,
    /// Dollars of models that classify and propose.
    pub voices_usd: f64,
    pub tokens: u64,
    /// Trials without a known price, which the dollars leave out.
    pub unpriced_trials: u64,
    /// Calls of models that classify and propose without a known price.
    pub unpriced_calls: u64,
}

impl CostView {
    /// The dollars of everything in words; without any known price they say nothing.
    pub fn known(&self) -> String {
        let unpriced = self.unpriced_trials + self.unpriced_calls;
        known_sum(self.total_usd, self.total_usd <= 0.0, unpriced)
            .map_or_else(|| UNPRICED.to_owned(), dollars)
    }

    /// The same, and what the dollars leave out.
    pub fn total(&self) -> String {
        match (self.known(), self.left_out()) {
            (known, Some(left_out)) if known != UNPRICED => format!("{known} and {left_out}"),
            (known, _) => known,
        }
    }

    /// The dollars of trials in words.
    pub fn trials(&self) -> String {
        cost(self.trials_usd, usize::try_from(self.unpriced_trials).unwrap_or(usize::MAX))
    }

    /// The dollars of models that classify and propose, in words.
    pub fn voices(&self) -> String {
        cost(self.voices_usd, usize::try_from(self.unpriced_calls).unwrap_or(usize::MAX))
    }

    /// What the dollars leave out, in words; `None` if every price is known.
    pub fn left_out(&self) -> Option<String> {
        let words = |count: u64, word: &str| {
            (count > 0).then(|| text::count(usize::try_from(count).unwrap_or(usize::MAX), word))
        };
        let parts = [words(self.unpriced_trials, "trial"), words(self.unpriced_calls, "call")];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("{} without a known price", parts.join(" and ")))
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct AgentView {
    pub name: String,
    pub cycle: u32,
    /// Cycles in a row without an acceptance.
    pub without_acceptance: u32,
    /// Cycles in a row without anything new in the archive.
    pub without_progress: u32,
    pub way: Way,
    /// What it is doing now, in words.
    pub doing: String,
    /// Why it stopped working.
    pub retired: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct CycleView {
    pub agent: String,
    pub cycle: u32,
    pub way: Way,
    pub parent: Name,
    pub candidate: Option<Name>,
    /// Its changes, in one line.
    pub summary: String,
    pub outcome: String,
    /// Proposed changes that were not made, each with the rule that it breaks.
    pub dropped: Vec<Dropped>,
    pub accepted: bool,
    /// The state of its test; absent without a pair.
    pub standing: Option<Standing>,
    /// The best candidate after it.
    pub best: Name,
    /// Mean reward of the best candidate at that time.
    pub best_mean: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct CandidateView {
    pub name: Name,
    pub candidate: Digest,
    pub parents: Vec<Name>,
    /// Number of steps from the first candidate.
    pub depth: usize,
    pub agent: String,
    pub cycle: u32,
    pub way: Way,
    /// In words.
    pub status: String,
    /// Whether it was accepted, or the run began with it.
    pub accepted: bool,
    /// Its changes, in one line.
    pub summary: String,
    /// The model's reasoning.
    pub reasoning: String,
    pub trials: usize,
    pub mean: Option<f64>,
    /// Lower end of the mean's interval.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// The state of its test; absent without a pair.
    pub standing: Option<Standing>,
    /// The difference to its first parent, if the caller asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct EliteView {
    pub cell: Cell,
    pub name: Name,
    pub agent: String,
    pub behaviour: Behaviour,
    pub trials: usize,
    pub mean: f64,
    /// Lower end of the mean's interval.
    pub low: f64,
    pub high: f64,
    pub accepted: bool,
    /// How often it was chosen as a parent.
    pub selected: u32,
}

#[derive(Clone, Debug, Serialize)]
pub struct NoteView {
    pub agent: String,
    pub text: String,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct HoldoutView {
    /// Tasks that count.
    pub pairs: usize,
    pub left_out: usize,
    /// Mean reward of the candidate with which the run began.
    pub baseline_mean: Option<f64>,
    pub best_mean: Option<f64>,
    pub difference: Option<f64>,
    /// Lower end of the difference's interval.
    pub low: Option<f64>,
    pub high: Option<f64>,
}

impl View {
    pub fn read(directory: &RunDirectory) -> Result<Self, Vec<Problem>> {
        let entries = log::entries(directory.path())?;
        let view = Self::of(&entries, directory.is_carried_out());
        view.ok_or_else(|| vec![Problem::error("the run has no beginning").in_file(directory.path())])
    }

    /// The view after some events.
    pub fn of(entries: &[Entry], running: bool) -> Option<Self> {
        let state = State::replay(entries)?;
        let (first, last) = (entries.first()?, entries.last()?);
        let run_state = match state.ending {
            Some(_) => RunState::Ended,
            None if running => RunState::Running,
            None => RunState::Stopped,
        };
        let started = &state.started;
        Some(Self {
            run: started.run.clone(),
            kind: started.kind,
            state: run_state,
            reason: state
                .ending
                .map(|ending| Ending::words(ending).to_owned())
                .or_else(|| state.stopped.clone())
                .filter(|_| run_state != RunState::Running),
            workspace: started.workspace.clone(),
            experiment: started.experiment.clone(),
            started_at: first.at.clone(),
            updated_at: last.at.clone(),
            settings: serde_json::from_value(started.settings.clone())
                .ok()
                .map(|settings: Settings| settings.with_budget(state.budget)),
            tests: state.tests,
            horizon: started.horizon,
            baseline: name(started.baseline),
            best: name(state.champion),
            best_candidate: state.champion,
            accepted: state.candidates.values().filter(|known| known.status == Status::Accepted).count(),
            cost: CostView {
                total_usd: state.spend().usd,
                trials_usd: state.trials.usd,
                voices_usd: state.voices.usd,
                tokens: state.spend().tokens,
                unpriced_trials: state.trials.unpriced,
                unpriced_calls: state.voices.unpriced,
            },
            phase: state.phase,
            agents: agents(&state),
            cycles: cycles(&state),
            candidates: candidates(&state),
            archive: archive(&state),
            cells: Cell::COUNT,
            notes: state
                .notes
                .iter()
                .map(|note| NoteView { agent: note.agent.clone(), text: note.text.clone() })
                .collect(),
            holdout: holdout(&state),
        })
    }

    /// Every candidate below its first parent, with its depth: depth first, siblings in the order of the candidates.
    pub fn lineage(&self) -> Vec<(usize, &CandidateView)> {
        let places: HashMap<&Name, usize> =
            self.candidates.iter().enumerate().map(|(at, candidate)| (&candidate.name, at)).collect();
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); self.candidates.len()];
        let mut waiting: Vec<(usize, usize)> = Vec::new();
        for (at, candidate) in self.candidates.iter().enumerate() {
            match candidate.parents.first().and_then(|parent| places.get(parent)) {
                Some(parent) => children[*parent].push(at),
                None => waiting.push((0, at)),
            }
        }
        waiting.reverse();
        let mut lineage = Vec::with_capacity(self.candidates.len());
        while let Some((depth, at)) = waiting.pop() {
            lineage.push((depth, &self.candidates[at]));
            waiting.extend(children[at].iter().rev().map(|child| (depth + 1, *child)));
        }
        lineage
    }

    /// Adds the differences of the newest candidates to their first parents, for at most this many.
    pub fn add_diffs(&mut self, workspace: &Workspace, most: usize) {
        let ids: Vec<(Name, Digest)> =
            self.candidates.iter().map(|candidate| (candidate.name.clone(), candidate.candidate)).collect();
        let find = |name: &Name| ids.iter().find(|(known, _)| known == name).map(|(_, id)| *id);
        let skipped = self.candidates.len().saturating_sub(most);
        for candidate in self.candidates.iter_mut().skip(skipped) {
            let Some(parent) = candidate.parents.first().and_then(find) else { continue };
            if let (Ok(before), Ok(after)) = (workspace.load(parent), workspace.load(candidate.candidate)) {
                candidate.diff = Some(diff(&before, &after));
            }
        }
    }
}

fn agents(state: &State) -> Vec<AgentView> {
    let doing = |progress: &crate::state::AgentProgress| match &progress.open {
        _ if progress.retired.is_some() => "retired".to_owned(),
        None => "between cycles".to_owned(),
        Some(open) => match (&open.learned, &open.proposed, &open.screened, &open.test) {
            (None, ..) => format!("measures {}", name(open.started.parent)),
            (_, None, ..) => format!("changes {}", name(open.started.parent)),
            (_, Some(proposed), None, _) => format!("measures {}", name(proposed.candidate)),
            (_, Some(proposed), Some(_), None) => format!("looks at {}", name(proposed.candidate)),
            (_, Some(proposed), Some(_), Some(test)) => {
                format!("tests {} against {}", name(proposed.candidate), name(test.against))
            }
        },
    };
    state
        .lanes
        .iter()
        .map(|(name, progress)| AgentView {
            name: name.clone(),
            cycle: progress.cycle,
            without_acceptance: progress.dry,
            without_progress: progress.idle,
            way: progress.way,
            doing: doing(progress),
            retired: progress.retired.clone(),
        })
        .collect()
}

/// The state of a test. Without a pair there is no difference, rather than one of 0.
fn standing(known: &Known) -> Option<Standing> {
    known.standing.filter(|standing| standing.pairs > 0)
}

fn cycles(state: &State) -> Vec<CycleView> {
    state
        .cycles
        .iter()
        .map(|cycle| {
            let known = cycle.candidate.and_then(|candidate| state.candidates.get(&candidate));
            CycleView {
                agent: cycle.agent.clone(),
                cycle: cycle.cycle,
                way: cycle.way,
                parent: name(cycle.parent),
                candidate: cycle.candidate.map(name),
                summary: known.map(summary).unwrap_or_default(),
                outcome: match (known, &cycle.reason) {
                    (Some(known), _) => known.status.words().to_owned(),
                    (None, Some(reason)) => reason.clone(),
                    (None, None) => String::new(),
                },
                dropped: cycle.dropped.clone(),
                accepted: cycle.accepted,
                standing: known.and_then(standing),
                best: name(cycle.champion),
                best_mean: cycle.champion_mean,
            }
        })
        .collect()
}

fn candidates(state: &State) -> Vec<CandidateView> {
    let mut ordered: Vec<(Digest, &Known)> =
        state.candidates.iter().map(|(id, known)| (*id, known)).collect();
    let order: Vec<Digest> = state.cycles.iter().filter_map(|cycle| cycle.candidate).collect();
    let place = |id: &Digest| order.iter().position(|other| other == id);
    ordered.sort_by_key(|(id, known)| match known.status {
        Status::Baseline => (0, 0),
        Status::Open => (2, 0),
        _ => (1, place(id).unwrap_or(usize::MAX)),
    });
    let mut views: Vec<CandidateView> = Vec::with_capacity(ordered.len());
    for (id, known) in ordered {
        let parents: Vec<Name> = known.parents.iter().map(|parent| name(*parent)).collect();
        let above = |parent: &Name| views.iter().find(|view| view.name == *parent).map(|view| view.depth);
        let depth = parents.iter().filter_map(above).max().map_or(0, |depth| depth + 1);
        let interval = known.tally.interval();
        views.push(CandidateView {
            name: name(id),
            candidate: id,
            parents,
            depth,
            agent: known.agent.clone(),
            cycle: known.cycle,
            way: known.way,
            status: status(state, known).to_owned(),
            accepted: matches!(known.status, Status::Accepted | Status::Baseline),
            summary: summary(known),
            reasoning: known.reasoning.clone(),
            trials: known.tally.rewards.len(),
            mean: known.tally.mean(),
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
            standing: standing(known),
            diff: None,
        });
    }
    views
}

/// The status of a candidate, in words. A candidate of a retired agent is no longer being measured either.
fn status(state: &State, known: &Known) -> &'static str {
    let is_left = state.ending.is_some()
        || state.lanes.get(&known.agent).is_some_and(|progress| progress.retired.is_some());
    match known.status {
        Status::Open if is_left => "not decided: its agent stopped working",
        status => status.words(),
    }
}

fn archive(state: &State) -> Vec<EliteView> {
    state
        .archive
        .ranked()
        .into_iter()
        .map(|(cell, elite)| EliteView {
            cell: *cell,
            name: name(elite.candidate),
            agent: elite.agent.clone(),
            behaviour: elite.behaviour,
            trials: elite.trials,
            mean: elite.mean,
            low: elite.low,
            high: elite.high,
            accepted: elite.accepted,
            selected: elite.selected,
        })
        .collect()
}

fn holdout(state: &State) -> Option<HoldoutView> {
    match state.holdout.as_ref()? {
        Event::HoldoutMeasured {
            pairs, left_out, baseline_mean, best_mean, difference, low, high, ..
        } => Some(HoldoutView {
            pairs: *pairs,
            left_out: *left_out,
            baseline_mean: *baseline_mean,
            best_mean: *best_mean,
            difference: *difference,
            low: *low,
            high: *high,
        }),
        _ => None,
    }
}
