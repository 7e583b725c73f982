//! A run of cycles: the agent works through its cycles until all are used, nothing is accepted any more, or the user
//! stops it; then the run uses the holdout, once.

use std::sync::Arc;

use aec_base::problem::Problem;
use aec_base::text;
use aec_report::stats::{Bounds, Cluster, Confidence, paired_difference};
use aec_run::event::StopReason;
use tokio::task::block_in_place;

use crate::analyse::Looked;
use crate::arena::Halt;
use crate::cycle::Engine;
use crate::event::{Ending, Event, Kind, Phase, Purpose};
use crate::run::{EVOLVER, Settings};
use crate::strategy::{Next, next};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneEnd {
    Finished,
    /// Nothing was accepted for too long.
    Stagnated,
    /// No new cycle may start.
    NothingNew,
}

/// Why a run did not finish, in words and as problems.
#[derive(Debug)]
pub struct Unfinished {
    pub reason: String,
    /// Whether the user asked for it.
    pub asked: bool,
    /// Whether the run needs more dollars or tokens to continue.
    pub unpaid: bool,
    pub problems: Vec<Problem>,
}

/// Carries an evolution out. The log records whatever stops it, and the run can be resumed from there.
pub async fn carry_out(engine: &Engine) -> Result<(), Unfinished> {
    let carried = async {
        engine.publish()?;
        let ending = match lane(engine, EVOLVER).await? {
            LaneEnd::Stagnated => Ending::Stagnated,
            LaneEnd::NothingNew => Ending::Budget,
            LaneEnd::Finished => Ending::Finished,
        };
        finish(engine, ending).await
    };
    let carried: Result<(), Halt> = carried.await;
    carried.map_err(|halt| stop(engine, halt.into()))
}

impl From<Halt> for Unfinished {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Problems(problems) => {
                let reason = problems.first().map_or_else(String::new, in_words);
                Self { reason, asked: false, unpaid: false, problems }
            }
            Halt::Stopped(reason) => {
                let asked = matches!(reason, StopReason::Asked | StopReason::Insisted);
                let unpaid = matches!(reason, StopReason::Budget(_));
                Self { reason: reason_words(&reason), asked, unpaid, problems: Vec::new() }
            }
        }
    }
}

/// A problem in one line, with its file, for the log.
pub(crate) fn in_words(problem: &Problem) -> String {
    match &problem.file {
        Some(file) => format!("{} ({})", problem.what, text::printable(&file.to_string_lossy())),
        None => problem.what.clone(),
    }
}

/// Records why a run stops.
pub(crate) fn stop(engine: &Engine, unfinished: Unfinished) -> Unfinished {
    // If the log cannot be written either, the reason is still returned.
    let told = Event::Stopped { reason: unfinished.reason.clone(), taken: Some(engine.taken()) };
    if let Err(Halt::Problems(problems)) = engine.tell(told) {
        return Unfinished { problems, ..unfinished };
    }
    unfinished
}

fn reason_words(reason: &StopReason) -> String {
    match reason {
        StopReason::Asked | StopReason::Insisted => "the user stopped it".to_owned(),
        StopReason::Budget(message) => format!("the budget is used up: {message}"),
        StopReason::Time => "the time is over".to_owned(),
        StopReason::Faults(message) | StopReason::Storage(message) => message.clone(),
    }
}

/// Runs the remaining cycles of one agent.
pub(crate) async fn lane(engine: &Engine, agent: &str) -> Result<LaneEnd, Halt> {
    loop {
        engine.check()?;
        let open = engine.look(|state| state.lanes.get(agent).and_then(|progress| progress.open.clone()));
        if let Some(open) = open {
            engine.step(agent, &open).await?;
            continue;
        }
        if let Some(end) = begin_or_end(engine, agent)? {
            return Ok(end);
        }
    }
}

/// Begins the agent's next cycle, or returns why there is none.
fn begin_or_end(engine: &Engine, agent: &str) -> Result<Option<LaneEnd>, Halt> {
    // One agent at a time: no other may reach the next phase between the check of the phase and the start of the cycle.
    let beginning = engine.kept.beginning();
    phase(engine)?;
    match engine.look(|state| next(state, &engine.settings, agent)) {
        Next::Cycle(choice) => engine.begin(agent, &choice, &beginning)?,
        Next::Widen => {
            let cycle = engine.look(|state| state.lanes.get(agent).map_or(0, |progress| progress.cycle));
            engine.tell(Event::Widened { agent: agent.to_owned(), cycle })?;
        }
        Next::Pivot(way, parent) => {
            let cycle = engine.look(|state| state.lanes.get(agent).map_or(0, |progress| progress.cycle));
            engine.tell(Event::Pivoted { agent: agent.to_owned(), cycle, way, parent })?;
        }
        Next::Stagnated => return Ok(Some(LaneEnd::Stagnated)),
        Next::Finished => return Ok(Some(LaneEnd::Finished)),
        Next::NothingNew => return Ok(Some(LaneEnd::NothingNew)),
    }
    Ok(None)
}

/// The phase of a run that has spent this many dollars. An evolution has no phases.
pub fn phase_of(settings: &Settings, kind: Kind, spent: f64) -> Phase {
    let (Kind::Swarm, Some(most)) = (kind, settings.max_cost_usd) else { return Phase::Exploring };
    match spent / most {
        share if share >= 1.0 => Phase::Exhausted,
        share if share >= settings.final_threshold => Phase::Final,
        share if share >= settings.wind_down_threshold => Phase::WindingDown,
        _ => Phase::Exploring,
    }
}

/// Records when the budget of a swarm reaches another phase. Within a session, the phase never goes back.
fn phase(engine: &Engine) -> Result<(), Halt> {
    let phase = phase_of(&engine.settings, engine.directory.kind, engine.spent());
    if phase > engine.look(|state| state.phase) {
        engine.tell(Event::PhaseChanged { phase })?;
    }
    Ok(())
}

/// Records the phase of a resumed swarm: with a larger budget it may be an earlier one.
pub(crate) fn phase_anew(engine: &Engine) -> Result<(), Halt> {
    let phase = phase_of(&engine.settings, engine.directory.kind, engine.spent());
    if phase != engine.look(|state| state.phase) {
        engine.tell(Event::PhaseChanged { phase })?;
    }
    Ok(())
}

/// Ends a run: uses the holdout once, and then nothing more. If the run cannot use it now, because money is lacking or
/// a model does not answer, the run is not over: it stops, and a later session finishes it.
pub(crate) async fn finish(engine: &Engine, ending: Ending) -> Result<(), Halt> {
    holdout(engine).await?;
    engine.tell(Event::Ended { reason: ending, taken: Some(engine.taken()) })
}

async fn holdout(engine: &Engine) -> Result<(), Halt> {
    let (baseline, best, done) =
        engine.look(|state| (state.started.baseline, state.champion, state.holdout.is_some()));
    // Without a change there is nothing to show, so the holdout stays unseen.
    if done || baseline == best {
        return Ok(());
    }
    // If a process was killed right after using the holdout, the log already has its rewards.
    if engine.look(|state| state.holdout_rewards.is_none()) {
        let used = engine.look(|state| Arc::clone(&state.used));
        let items = block_in_place(|| engine.supply.holdout(&used))?;
        if items.is_empty() {
            return Ok(());
        }
        let (first, last) = (engine.candidate(baseline)?, engine.candidate(best)?);
        let arms = [first.as_ref(), last.as_ref()];
        let looked = engine.arena.measure(&arms, &items).await?;
        let rewards = |arm: &[Looked]| arm.iter().map(|looked| looked.seen.reward).collect::<Vec<_>>();
        let counted = pairs(&rewards(&looked[1]), &rewards(&looked[0])).len();
        // The holdout can be used only once. If most trials say nothing about the agents, it does not count as used.
        if counted * 2 < items.len() {
            return Err(engine.without_rewards("most trials of the holdout have no reward", &looked));
        }
        engine.tell_measured(("", 0), Purpose::Holdout, &arms, &items, &looked)?;
    }
    let Some((first, last)) = engine.look(|state| state.holdout_rewards.clone()) else { return Ok(()) };
    let pairs = pairs(&last, &first);
    let cluster = |value: f64| -> Cluster { std::iter::once(value).collect() };
    let clusters: Vec<(Cluster, Cluster)> =
        pairs.iter().map(|(best, baseline)| (cluster(*best), cluster(*baseline))).collect();
    let estimate = paired_difference(&clusters, Bounds::REWARD, Confidence::default());
    let interval = estimate.and_then(|estimate| estimate.interval);
    engine.tell(Event::HoldoutMeasured {
        baseline,
        best,
        pairs: pairs.len(),
        left_out: last.len() - pairs.len(),
        baseline_mean: mean(pairs.iter().map(|(_, baseline)| *baseline)),
        best_mean: mean(pairs.iter().map(|(best, _)| *best)),
        difference: estimate.map(|estimate| estimate.mean),
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
    })
}

/// Rewards of the best and of the first candidate on the tasks where both have one.
fn pairs(best: &[Option<f64>], baseline: &[Option<f64>]) -> Vec<(f64, f64)> {
    best.iter().zip(baseline).filter_map(|(best, baseline)| Some(((*best)?, (*baseline)?))).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a holdout is small")]
fn mean(values: impl ExactSizeIterator<Item = f64>) -> Option<f64> {
    let count = values.len();
    (count > 0).then(|| values.sum::<f64>() / count as f64)
}
