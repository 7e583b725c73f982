//! A run as it is shown: on a terminal, as JSON, on a page. Everything here follows from its log, and differences from
//! its workspace; nothing is computed twice in different places.

use std::collections::HashMap;

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

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct View {
    /// Its id.
    pub run: Name,
    /// An evolution or a swarm.
    pub kind: Kind,
    /// What it is doing.
    pub state: RunState,
    /// Why it stopped or is over, in words.
    pub reason: Option<String>,
    pub workspace: String,
    /// Where its trials are recorded.
    pub experiment: Name,
    /// When it began.
    pub started_at: Timestamp,
    /// When something last happened.
    pub updated_at: Timestamp,
    /// What it was told, with the budget that was given last.
    pub settings: Option<Settings>,
    /// Tests that were begun, of how many.
    pub tests: u32,
    /// Tests at most.
    pub horizon: u32,
    /// The candidate that it began with.
    pub baseline: Name,
    pub best: Name,
    pub best_candidate: Digest,
    /// Candidates that were accepted.
    pub accepted: usize,
    /// What it took.
    pub cost: CostView,
    /// Where the money stands.
    pub phase: Phase,
    /// Who searches.
    pub agents: Vec<AgentView>,
    /// Cycles that are over, in the order in which they ended.
    pub cycles: Vec<CycleView>,
    /// Candidates, parents before children.
    pub candidates: Vec<CandidateView>,
    /// The best of each way of working, best first.
    pub archive: Vec<EliteView>,
    /// Cells of the archive.
    pub cells: usize,
    /// What agents want others to know.
    pub notes: Vec<NoteView>,
    /// The tasks that were kept for the end.
    pub holdout: Option<HoldoutView>,
}

/// What a run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Somebody carries it out.
    Running,
    /// It is not over, and nobody carries it out.
    Stopped,
    /// It is over.
    Ended,
}

impl RunState {
    /// The name as written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Ended => "ended",
        }
    }
}

/// What a run took.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CostView {
    /// Dollars, as far as prices are known.
    pub total_usd: f64,
    /// Dollars of trials.
    pub trials_usd: f64,
    /// Dollars of models that look on and propose.
    pub voices_usd: f64,
    pub tokens: u64,
    /// Trials without a known price, which the dollars leave out.
    pub unpriced_trials: u64,
    /// The same of calls of models that look on and propose.
    pub unpriced_calls: u64,
}

impl CostView {
    /// What the dollars leave out, in words; `None` where every price is known.
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
    /// Its last cycle.
    pub cycle: u32,
    /// Cycles in a row without an acceptance.
    pub without_acceptance: u32,
    /// Cycles in a row without anything new in the archive.
    pub without_progress: u32,
    /// How it works.
    pub way: Way,
    /// What it does now, in words.
    pub doing: String,
    /// Why it works no more.
    pub retired: Option<String>,
}

/// A cycle that is over.
#[derive(Clone, Debug, Serialize)]
pub struct CycleView {
    /// Whose.
    pub agent: String,
    pub cycle: u32,
    /// How the candidate came to be.
    pub way: Way,
    /// Where it came from.
    pub parent: Name,
    pub candidate: Option<Name>,
    /// What is new in it.
    pub summary: String,
    /// What became of it, in words.
    pub outcome: String,
    /// Changes that were proposed and not taken, each with the rule that it breaks.
    pub dropped: Vec<Dropped>,
    pub accepted: bool,
    /// How its test stood; absent without a pair.
    pub standing: Option<Standing>,
    /// The best after it.
    pub best: Name,
    /// Mean reward of the best by then.
    pub best_mean: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct CandidateView {
    /// How people name it.
    pub name: Name,
    pub candidate: Digest,
    /// What it was made from.
    pub parents: Vec<Name>,
    /// How many steps from the beginning.
    pub depth: usize,
    /// Who made it.
    pub agent: String,
    pub cycle: u32,
    /// How it came to be.
    pub way: Way,
    /// What became of it, in words.
    pub status: String,
    /// Whether it was accepted, or the run began with it.
    pub accepted: bool,
    /// What is new in it.
    pub summary: String,
    /// Why, as the model says.
    pub reasoning: String,
    /// Trials with a reward.
    pub trials: usize,
    /// Mean reward.
    pub mean: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// How its test stood; absent without a pair.
    pub standing: Option<Standing>,
    /// What tells it from its first parent, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// The best of a way of working.
#[derive(Clone, Debug, Serialize)]
pub struct EliteView {
    pub cell: Cell,
    /// The candidate.
    pub name: Name,
    /// Who found it.
    pub agent: String,
    /// How it works.
    pub behaviour: Behaviour,
    /// Trials with a reward.
    pub trials: usize,
    /// Mean reward.
    pub mean: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    pub accepted: bool,
    /// How often it was taken as a parent.
    pub selected: u32,
}

/// What an agent wants others to know.
#[derive(Clone, Debug, Serialize)]
pub struct NoteView {
    pub agent: String,
    pub text: String,
}

/// The tasks that were kept for the end.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HoldoutView {
    /// Tasks that count.
    pub pairs: usize,
    /// Tasks left out.
    pub left_out: usize,
    /// Mean reward of the candidate that the run began with.
    pub baseline_mean: Option<f64>,
    /// Mean reward of the best.
    pub best_mean: Option<f64>,
    pub difference: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl View {
    pub fn read(directory: &RunDirectory) -> Result<Self, Vec<Problem>> {
        let entries = log::entries(directory.path())?;
        let view = Self::of(&entries, directory.is_carried_out());
        view.ok_or_else(|| vec![Problem::error("the run has no beginning").in_file(directory.path())])
    }

    /// What events show.
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

    /// Every candidate below its first parent, and how deep: depth first, siblings in the order of the candidates.
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

    /// Adds what tells candidates from their first parents; at most so many, the newest.
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
    let doing = |lane: &crate::state::AgentProgress| match &lane.open {
        _ if lane.retired.is_some() => "retired".to_owned(),
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
        .map(|(name, lane)| AgentView {
            name: name.clone(),
            cycle: lane.cycle,
            without_acceptance: lane.dry,
            without_progress: lane.idle,
            way: lane.way,
            doing: doing(lane),
            retired: lane.retired.clone(),
        })
        .collect()
}

/// How a test stands. Without a pair there is no difference, not one of 0.
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

/// What became of a candidate, in words. One whose agent works no more is not being measured any more either.
fn status(state: &State, known: &Known) -> &'static str {
    let is_left =
        state.ending.is_some() || state.lanes.get(&known.agent).is_some_and(|lane| lane.retired.is_some());
    match known.status {
        Status::Open if is_left => "not decided: its agent works no more",
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
