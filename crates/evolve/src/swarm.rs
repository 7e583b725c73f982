//! Many agents at once, with one archive and one budget. Each has its own tree and its own cycles, and builds on what
//! the others find. An agent that fails repeats its step, and one that fails too often is retired; no accepted
//! candidate is lost, because the log records it first. If all agents fail, the swarm stops, and resuming it gives them
//! another try.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aec_base::problem::Problem;
use aec_run::event::StopReason;
use tokio::task::{AbortHandle, JoinSet};

use crate::arena::Halt;
use crate::cycle::Engine;
use crate::event::{Ending, Event, Phase, RetiredFor};
use crate::evolution::{LaneEnd, Unfinished, finish, in_words, lane, phase_anew, stop};

/// The pause before an agent that failed once starts again; it doubles with each failure.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// How often to check for requests of the user.
const TICK: Duration = Duration::from_millis(200);

enum Ended {
    AgentProgress(LaneEnd),
    /// Its next step could not be paid for; the reason.
    Budget(String),
    /// It failed too often; the last problems.
    Retired(Vec<Problem>),
}

pub async fn carry_out(engine: &Arc<Engine>) -> Result<(), Unfinished> {
    match work(engine).await {
        Ok(()) => Ok(()),
        Err(unfinished) => Err(stop(engine, unfinished)),
    }
}

async fn work(engine: &Arc<Engine>) -> Result<(), Unfinished> {
    engine.publish()?;
    // Once the holdout is used, the search must not continue: the holdout would say nothing about new candidates.
    let is_over = engine.look(|state| state.holdout_rewards.is_some());
    if !is_over {
        phase_anew(engine)?;
    }
    let agents: Vec<String> = engine.look(|state| {
        let works = |(name, progress): (&String, &crate::state::AgentProgress)| {
            progress.retired.is_none().then(|| name.clone())
        };
        state.lanes.iter().filter_map(works).collect()
    });
    let mut running: JoinSet<(String, Result<Ended, Halt>)> = JoinSet::new();
    let mut handles: HashMap<String, AbortHandle> = HashMap::new();
    let begin = |running: &mut JoinSet<_>, agent: &str| {
        let (engine, name) = (Arc::clone(engine), agent.to_owned());
        running.spawn(async move {
            let ended = supervise(&engine, &name).await;
            (name, ended)
        })
    };
    for agent in agents.iter().filter(|_| !is_over) {
        handles.insert(agent.clone(), begin(&mut running, agent));
    }
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut halt: Option<Halt> = None;
    let mut unpaid: Option<String> = None;
    let mut wound_down = is_over && engine.look(|state| state.phase >= Phase::Final);
    let mut faults: Vec<Problem> = Vec::new();
    while !running.is_empty() {
        tokio::select! {
            Some(ended) = running.join_next_with_id() => match ended {
                Ok((_, (_, Ok(Ended::AgentProgress(LaneEnd::NothingNew))))) => wound_down = true,
                Ok((_, (_, Ok(Ended::AgentProgress(_))))) => {}
                Ok((_, (_, Ok(Ended::Budget(message))))) => unpaid = unpaid.or(Some(message)),
                Ok((_, (_, Ok(Ended::Retired(problems))))) => faults.extend(problems),
                Ok((_, (_, Err(found)))) => halt = halt.or(Some(found)),
                Err(error) if error.is_cancelled() => {}
                Err(error) => {
                    // A panic in one agent's work is that agent's failure.
                    let of = |(name, handle): (&String, &AbortHandle)| (handle.id() == error.id()).then(|| name.clone());
                    let name = handles.iter().find_map(of).unwrap_or_default();
                    let what = "it ended in a bug of this program";
                    if failed(engine, &name, what)? {
                        handles.insert(name.clone(), begin(&mut running, &name));
                    } else {
                        faults.push(Problem::error(format!("{name}: {what}")).fix("report it, then resume"));
                    }
                }
            },
            _ = ticks.tick() => {
                for (agent, handle) in &handles {
                    if engine.directory.hear_stop_of(agent) && !handle.is_finished() {
                        handle.abort();
                        let reason = "the user stopped it".to_owned();
                        let retired_for = RetiredFor::Wish;
                        engine.tell(Event::AgentRetired { agent: agent.clone(), reason, retired_for })?;
                    }
                }
            }
        }
    }
    if let Some(halt) = halt {
        return Err(halt.into());
    }
    engine.check()?;
    // An agent stopped for lack of money: with more it can continue, so the swarm is not over.
    if let Some(message) = unpaid {
        return Err(Halt::Stopped(StopReason::Budget(message)).into());
    }
    let all_retired = engine.look(|state| state.lanes.values().all(|progress| progress.retired.is_some()));
    // Faults may pass, so a swarm that only stopped because of faults is not over either.
    if all_retired && !faults.is_empty() {
        return Err(all_failed(faults));
    }
    let ending = if wound_down {
        Ending::Budget
    } else if all_retired {
        Ending::Retired
    } else {
        Ending::Finished
    };
    Ok(finish(engine, ending).await?)
}

/// The problem when every agent failed too often: each fault once.
fn all_failed(faults: Vec<Problem>) -> Unfinished {
    let mut problems: Vec<Problem> = Vec::new();
    for fault in faults {
        if !problems.iter().any(|known| known.what == fault.what) {
            problems.push(fault);
        }
    }
    let first = problems.first().map_or_else(String::new, in_words);
    let reason = format!("every agent was retired: {first}");
    Unfinished { reason, asked: false, unpaid: false, problems }
}

/// Runs an agent, and starts it again when it fails.
async fn supervise(engine: &Engine, agent: &str) -> Result<Ended, Halt> {
    loop {
        let problems = match lane(engine, agent).await {
            Ok(end) => return Ok(Ended::AgentProgress(end)),
            Err(Halt::Stopped(StopReason::Budget(message))) => {
                if engine.look(|state| state.phase) < Phase::Exhausted {
                    engine.tell(Event::PhaseChanged { phase: Phase::Exhausted })?;
                }
                return Ok(Ended::Budget(message));
            }
            Err(Halt::Stopped(reason)) => return Err(Halt::Stopped(reason)),
            Err(Halt::Problems(problems)) => problems,
        };
        let error = problems.first().map_or_else(String::new, in_words);
        if !failed(engine, agent, &error)? {
            return Ok(Ended::Retired(problems));
        }
        let failures = engine.look(|state| state.lanes.get(agent).map_or(0, |progress| progress.failures));
        let pause = FIRST_PAUSE * 2_u32.saturating_pow(failures.saturating_sub(1).min(6));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = engine.control.reached(aec_run::control::Wish::Finish) => {}
        }
    }
}

/// Records that an agent failed. Returns whether it may start again.
fn failed(engine: &Engine, agent: &str, error: &str) -> Result<bool, Halt> {
    let failures = engine.look(|state| state.lanes.get(agent).map_or(0, |progress| progress.failures)) + 1;
    engine.tell(Event::AgentFailed { agent: agent.to_owned(), error: error.to_owned(), failures })?;
    if failures < engine.settings.max_restarts {
        return Ok(true);
    }
    let times = aec_base::text::count(failures as usize, "time");
    let reason = format!("it failed {times} in a row, the last time: {error}");
    let retired_for = RetiredFor::Failures;
    engine.tell(Event::AgentRetired { agent: agent.to_owned(), reason, retired_for })?;
    Ok(false)
}
