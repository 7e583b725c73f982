//! Where the next cycle goes on from, and in which way. It follows from what the run knows, and from nothing else.

use aec_base::digest::Digest;

use crate::config::Strategy;
use crate::edit::Scope;
use crate::event::{Kind, Phase, Way};
use crate::run::Settings;
use crate::state::{AgentProgress, State};

/// Every so many cycles of a search over an archive, skills are crossed.
const CROSSING: u32 = 3;

/// What the next cycle of an agent is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// How the new candidate comes to be.
    pub way: Way,
    /// Where it goes on from.
    pub parent: Digest,
    /// Whose skills are taken over, or which failure is looked at again.
    pub partner: Option<Digest>,
    /// How much may be changed.
    pub scope: Scope,
}

/// What is to be done with an agent between two cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// A cycle begins.
    Cycle(Choice),
    /// The search is widened first.
    Widen,
    /// The agent changes its ways first.
    Pivot(Way, Digest),
    /// Nothing was accepted for too long.
    Stagnated,
    /// All its cycles are used.
    Finished,
    /// Nothing new is begun any more.
    NothingNew,
}

/// What is to be done with an agent that has no cycle under way.
pub fn next(state: &State, settings: &Settings, agent: &str) -> Next {
    let Some(lane) = state.lanes.get(agent) else { return Next::Finished };
    if state.phase >= Phase::Final {
        return Next::NothingNew;
    }
    if lane.cycle >= settings.max_cycles {
        return Next::Finished;
    }
    if let Some(window) = settings.stagnation_window
        && lane.dry >= window
    {
        return if lane.widened { Next::Stagnated } else { Next::Widen };
    }
    if let Some(after) = settings.pivot_after
        && lane.idle >= after
        && state.phase == Phase::Exploring
    {
        let way = lane.way.next();
        let from = state.cycles.iter().rev().find(|cycle| cycle.agent == agent);
        let from = from.map_or(state.champion, |cycle| cycle.parent);
        let parent = state.archive.farthest(from).map_or(state.champion, |elite| elite.candidate);
        return Next::Pivot(way, parent);
    }
    Next::Cycle(choose(state, settings, lane))
}

fn choose(state: &State, settings: &Settings, lane: &AgentProgress) -> Choice {
    let careful = state.phase >= Phase::WindingDown;
    let parent = match settings.strategy {
        _ if careful => state.champion,
        Strategy::HillClimb => state.champion,
        Strategy::Qd => lane
            .parent
            .or_else(|| state.archive.choose().map(|elite| elite.candidate))
            .unwrap_or(state.champion),
    };
    let wanted = wanted_way(state, settings, lane);
    let partner = match wanted {
        _ if careful => None,
        Way::Mutation => None,
        Way::Crossover => state.archive.farthest(parent).map(|elite| elite.candidate),
        Way::Rescue => state.nearest_miss().filter(|candidate| *candidate != parent),
    };
    // A way that needs a second candidate is not taken where there is none.
    let way = if partner.is_some() { wanted } else { Way::Mutation };
    let scope = match state.mean(parent) {
        _ if careful => Scope::Minimal,
        _ if lane.widened => Scope::Comprehensive,
        Some(mean) => Scope::for_score(mean),
        None => Scope::Comprehensive,
    };
    Choice { way, parent, partner, scope }
}

fn wanted_way(state: &State, settings: &Settings, lane: &AgentProgress) -> Way {
    let next = lane.cycle + 1;
    if state.started.kind == Kind::Swarm && lane.way != Way::Mutation {
        // An agent that has changed its ways takes turns, so that it does not only repeat what there is.
        return if next.is_multiple_of(2) { lane.way } else { Way::Mutation };
    }
    if settings.strategy == Strategy::Qd && next.is_multiple_of(CROSSING) {
        return Way::Crossover;
    }
    if lane.widened && next.is_multiple_of(2) { Way::Rescue } else { Way::Mutation }
}
