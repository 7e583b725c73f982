//! Chooses the parent of the next cycle and the way of working. The choice depends only on the state of the run.

use aec_base::digest::Digest;

use crate::config::Strategy;
use crate::edit::Scope;
use crate::event::{Kind, Phase, Way};
use crate::run::Settings;
use crate::state::{AgentProgress, State};

/// In a search over an archive, every third cycle crosses skills.
const CROSSING: u32 = 3;

/// The plan for the next cycle of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// How the new candidate is made.
    pub way: Way,
    pub parent: Digest,
    /// The candidate that gives its skills, or the failed one to repair.
    pub partner: Option<Digest>,
    pub scope: Scope,
}

/// What an agent does between two cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Begins a cycle.
    Cycle(Choice),
    /// Widens the search first.
    Widen,
    /// Changes its way of working first.
    Pivot(Way, Digest),
    /// Stops, because nothing was accepted for too long.
    Stagnated,
    /// Stops, because all its cycles are used.
    Finished,
    /// Stops, because no new cycle may start.
    NothingNew,
}

/// What an agent without an open cycle does next.
pub fn next(state: &State, settings: &Settings, agent: &str) -> Next {
    let Some(progress) = state.lanes.get(agent) else { return Next::Finished };
    if state.phase >= Phase::Final {
        return Next::NothingNew;
    }
    if progress.cycle >= settings.max_cycles {
        return Next::Finished;
    }
    if let Some(window) = settings.stagnation_window
        && progress.dry >= window
    {
        return if progress.widened { Next::Stagnated } else { Next::Widen };
    }
    if let Some(after) = settings.pivot_after
        && progress.idle >= after
        && state.phase == Phase::Exploring
    {
        let way = progress.way.next();
        let from = state.cycles.iter().rev().find(|cycle| cycle.agent == agent);
        let from = from.map_or(state.champion, |cycle| cycle.parent);
        let parent = state.archive.farthest(from).map_or(state.champion, |elite| elite.candidate);
        return Next::Pivot(way, parent);
    }
    Next::Cycle(choose(state, settings, progress))
}

fn choose(state: &State, settings: &Settings, progress: &AgentProgress) -> Choice {
    let careful = state.phase >= Phase::WindingDown;
    let parent = match settings.strategy {
        _ if careful => state.champion,
        Strategy::HillClimb => state.champion,
        Strategy::Qd => progress
            .parent
            .or_else(|| state.archive.choose().map(|elite| elite.candidate))
            .unwrap_or(state.champion),
    };
    let wanted = wanted_way(state, settings, progress);
    let partner = match wanted {
        _ if careful => None,
        Way::Mutation => None,
        Way::Crossover => state.archive.farthest(parent).map(|elite| elite.candidate),
        Way::Rescue => state.nearest_miss().filter(|candidate| *candidate != parent),
    };
    // A way that needs a second candidate is impossible without one.
    let way = if partner.is_some() { wanted } else { Way::Mutation };
    let scope = match state.mean(parent) {
        _ if careful => Scope::Minimal,
        _ if progress.widened => Scope::Comprehensive,
        Some(mean) => Scope::for_score(mean),
        None => Scope::Comprehensive,
    };
    Choice { way, parent, partner, scope }
}

fn wanted_way(state: &State, settings: &Settings, progress: &AgentProgress) -> Way {
    let next = progress.cycle + 1;
    if state.started.kind == Kind::Swarm && progress.way != Way::Mutation {
        // An agent that has changed its way of working alternates, so that it does not only recombine what exists.
        return if next.is_multiple_of(2) { progress.way } else { Way::Mutation };
    }
    if settings.strategy == Strategy::Qd && next.is_multiple_of(CROSSING) {
        return Way::Crossover;
    }
    if progress.widened && next.is_multiple_of(2) { Way::Rescue } else { Way::Mutation }
}
