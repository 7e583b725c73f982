//! Many agents at once, over one archive and one budget. Each has a tree of its own and works through its own cycles;
//! what one finds, the others go on from. An agent that fails begins its step anew, and one that fails too often is
//! retired; neither loses what was accepted, since that is in the log before anybody goes on.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aec_run::event::StopReason;
use tokio::task::{AbortHandle, JoinSet};

use crate::arena::Halt;
use crate::cycle::Engine;
use crate::event::{Ending, Event, Phase};
use crate::evolution::{LaneEnd, Unfinished, finish, lane, stop};

/// The pause before an agent that failed once begins anew; it doubles with each failure.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// How often wishes are looked for.
const TICK: Duration = Duration::from_millis(200);

/// How an agent ended.
enum Ended {
    Lane(LaneEnd),
    /// The money is used up.
    Budget,
    /// It works no more.
    Retired,
}

/// Carries a swarm out.
pub async fn carry_out(engine: &Arc<Engine>) -> Result<(), Unfinished> {
    match work(engine).await {
        Ok(()) => Ok(()),
        Err(halt) => Err(stop(engine, halt)),
    }
}

async fn work(engine: &Arc<Engine>) -> Result<(), Halt> {
    engine.publish()?;
    let agents: Vec<String> = engine.look(|state| {
        let works =
            |(name, lane): (&String, &crate::state::Lane)| lane.retired.is_none().then(|| name.clone());
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
    for agent in &agents {
        handles.insert(agent.clone(), begin(&mut running, agent));
    }
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut halt: Option<Halt> = None;
    let mut exhausted = false;
    while !running.is_empty() {
        tokio::select! {
            Some(ended) = running.join_next_with_id() => match ended {
                Ok((_, (_, Ok(Ended::Lane(LaneEnd::NothingNew) | Ended::Budget)))) => exhausted = true,
                Ok((_, (_, Ok(_)))) => {}
                Ok((_, (_, Err(found)))) => halt = halt.or(Some(found)),
                Err(error) if error.is_cancelled() => {}
                Err(error) => {
                    // A bug in one agent's work is that agent's failure.
                    let of = |(name, handle): (&String, &AbortHandle)| (handle.id() == error.id()).then(|| name.clone());
                    let name = handles.iter().find_map(of).unwrap_or_default();
                    if failed(engine, &name, "it ended in a bug of this program")? {
                        handles.insert(name.clone(), begin(&mut running, &name));
                    }
                }
            },
            _ = ticks.tick() => {
                for (agent, handle) in &handles {
                    if engine.directory.hear_stop_of(agent) && !handle.is_finished() {
                        handle.abort();
                        let reason = "somebody stopped it".to_owned();
                        engine.tell(Event::AgentRetired { agent: agent.clone(), reason })?;
                    }
                }
            }
        }
    }
    if let Some(halt) = halt {
        return Err(halt);
    }
    engine.check()?;
    let ending = if exhausted {
        Ending::Budget
    } else if engine.look(|state| state.lanes.values().all(|lane| lane.retired.is_some())) {
        Ending::Retired
    } else {
        Ending::Finished
    };
    finish(engine, ending).await
}

/// Lets an agent work, and begin anew when it fails.
async fn supervise(engine: &Engine, agent: &str) -> Result<Ended, Halt> {
    loop {
        let problems = match lane(engine, agent).await {
            Ok(end) => return Ok(Ended::Lane(end)),
            Err(Halt::Stopped(StopReason::Budget(_))) => {
                if engine.look(|state| state.phase) < Phase::Exhausted {
                    engine.tell(Event::PhaseChanged { phase: Phase::Exhausted })?;
                }
                return Ok(Ended::Budget);
            }
            Err(Halt::Stopped(reason)) => return Err(Halt::Stopped(reason)),
            Err(Halt::Problems(problems)) => problems,
        };
        let error = problems.first().map_or_else(String::new, |problem| problem.what.clone());
        if !failed(engine, agent, &error)? {
            return Ok(Ended::Retired);
        }
        let failures = engine.look(|state| state.lanes.get(agent).map_or(0, |lane| lane.failures));
        let pause = FIRST_PAUSE * 2_u32.saturating_pow(failures.saturating_sub(1).min(6));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = engine.control.reached(aec_run::control::Wish::Finish) => {}
        }
    }
}

/// Writes down that an agent failed. Whether it may begin anew.
fn failed(engine: &Engine, agent: &str, error: &str) -> Result<bool, Halt> {
    let failures = engine.look(|state| state.lanes.get(agent).map_or(0, |lane| lane.failures)) + 1;
    engine.tell(Event::AgentFailed { agent: agent.to_owned(), error: error.to_owned(), failures })?;
    if failures <= engine.settings.max_restarts {
        return Ok(true);
    }
    let reason = format!("it failed {failures} times in a row, the last time: {error}");
    engine.tell(Event::AgentRetired { agent: agent.to_owned(), reason })?;
    Ok(false)
}
