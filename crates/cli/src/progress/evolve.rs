//! Shows a run of evolution while it goes on: a line for every event, and on a terminal one more line about what is
//! under way.

use std::sync::Arc;
use std::time::Instant;

use aec_base::decimal::rounded;
use aec_base::text::{self, printable};
use aec_evolve::edit::Dropped;
use aec_evolve::event::{Entry, Event, Kind, Measured, Purpose};
use aec_evolve::gate::Standing;
use aec_evolve::journal::Observer;
use aec_evolve::state::State;
use aec_evolve::workspace::candidate::name;
use aec_report::stats::Cluster;
use aec_run::campaign;
use aec_run::control::{Control, Wish};
use aec_run::event::RunEvent;
use serde_json::Value;

use crate::commands::evolve::words::dropped_line;
use crate::commands::evolve::words::signed;
use crate::context::Context;
use crate::failure::Failure;
use crate::progress::events::{self, EventLog};
use crate::progress::figures::span;
use crate::progress::painter::{Display, Mode, Painter, Show};
use crate::progress::text::cut;

struct EvolveShow {
    begun: Instant,
    running: usize,
    ended: usize,
}

/// An event of a trial, or of the run.
enum Seen<'a> {
    Trial(&'a RunEvent),
    Run(&'a Entry, &'a State),
}

impl Show for EvolveShow {
    type Event<'a> = Seen<'a>;

    fn record(event: &Seen<'_>) -> Option<Value> {
        match event {
            Seen::Trial(event) => events::of_run(event),
            Seen::Run(entry, _) => serde_json::to_value(entry).ok(),
        }
    }

    fn on(&mut self, event: Seen<'_>, _: Mode, _: Instant) -> Vec<String> {
        match event {
            Seen::Trial(RunEvent::TrialStarted(_)) => self.running += 1,
            Seen::Trial(RunEvent::TrialEnded(_)) => {
                self.running = self.running.saturating_sub(1);
                self.ended += 1;
            }
            Seen::Trial(_) => {}
            Seen::Run(entry, state) => return line(entry, state).into_iter().collect(),
        }
        Vec::new()
    }

    fn picture(&self, _: Wish, now: Instant, columns: usize) -> Vec<String> {
        let (running, ended) = (text::count(self.running, "trial"), self.ended);
        let took = span(now.saturating_duration_since(self.begun));
        vec![cut(&format!("{running} under way, {ended} done, {took}"), columns)]
    }
}

/// Shows what a run does.
pub(crate) struct EvolveProgress(Painter<EvolveShow>);

impl EvolveProgress {
    pub(crate) fn new(context: &Context, events: Option<EventLog>) -> Result<Self, Failure> {
        let show = EvolveShow { begun: Instant::now(), running: 0, ended: 0 };
        let display = Display { mode: Mode::of(context, false, false), events };
        Ok(Self(Painter::new(display, show, context.color, Control::default())?))
    }

    /// Receives the events of trials.
    pub(crate) fn of_trials(&self) -> campaign::Observer {
        let watcher = self.0.watcher();
        Arc::new(move |event: &RunEvent| watcher.on(Seen::Trial(event)))
    }

    /// Receives all other events.
    pub(crate) fn of_events(&self) -> Observer {
        let watcher = self.0.watcher();
        Arc::new(move |entry: &Entry, state: &State| watcher.on(Seen::Run(entry, state)))
    }

    /// Ends the display. All lines are printed when this returns.
    pub(crate) fn finish(&mut self) {
        self.0.finish();
    }
}

/// An event as a line, or nothing if it is not worth showing.
fn line(entry: &Entry, state: &State) -> Option<String> {
    let of = |agent: &str, cycle: u32| match state.started.kind {
        Kind::Swarm => format!("{agent} {cycle}"),
        Kind::Evolution => format!("cycle {cycle}"),
    };
    Some(match &entry.event {
        Event::CycleStarted(started) => {
            let partner =
                started.partner.map_or_else(String::new, |partner| format!(" with {}", name(partner)));
            let (cycle, way) = (of(&started.agent, started.cycle), started.way.name());
            format!("{cycle}: {way} of {}{partner}", name(started.parent))
        }
        Event::Measured(measured) => {
            let cycle = of(&measured.agent, measured.cycle);
            let mean = |at: usize| {
                let seen = measured.arms.get(at).into_iter().flat_map(|arm| &arm.seen);
                let rewards: Cluster = seen.filter_map(|seen| seen.reward).collect();
                rewards.mean().map_or_else(|| "no reward".to_owned(), |mean| rounded(mean, 3))
            };
            let id = measured.arms.first().map(|arm| name(arm.candidate).to_string()).unwrap_or_default();
            let tasks = text::count(measured.tasks.len(), "task");
            match measured.purpose {
                Purpose::Learn => format!("{cycle}: {id} {} on {tasks}", mean(0)),
                Purpose::Screen => format!("{cycle}: {id} {} on the same tasks", mean(0)),
                Purpose::Accept => {
                    let seen = seen_before(measured, state);
                    format!("{cycle}: {id} {} against {} on {tasks} {seen}", mean(0), mean(1))
                }
                Purpose::Holdout => format!("holdout: {} against {} on {tasks}", mean(1), mean(0)),
            }
        }
        Event::Proposed(proposed) => {
            let edits: Vec<String> = proposed.edits.iter().map(aec_evolve::edit::Edit::words).collect();
            format!(
                "{}: {} {}{}",
                of(&proposed.agent, proposed.cycle),
                name(proposed.candidate),
                edits.join(", "),
                not_taken(&proposed.dropped)
            )
        }
        Event::NotProposed { agent, cycle, reason, dropped } => {
            format!("{}: no candidate: {}{}", of(agent, *cycle), printable(reason), not_taken(dropped))
        }
        Event::Decided(decided) => {
            let what = match decided.rejection {
                None => "accepted".to_owned(),
                Some(rejection) => format!("rejected, {}", rejection.words()),
            };
            format!(
                "{}: {} {what} {}",
                of(&decided.agent, decided.cycle),
                name(decided.candidate),
                stands(&decided.standing)
            )
        }
        Event::Widened { cycle, .. } => {
            format!("after cycle {cycle}: nothing accepted for a while, the search is widened")
        }
        Event::Pivoted { agent, cycle, way, parent } => {
            format!("{agent} {cycle}: no progress, goes on with {} of {}", way.name(), name(*parent))
        }
        Event::PhaseChanged { phase } => format!("budget: {}", phase.name()),
        Event::AgentFailed { agent, error, failures } => {
            format!("{agent}: failure {failures}: {}", printable(error))
        }
        Event::AgentRetired { agent, reason, .. } => format!("{agent}: retired: {}", printable(reason)),
        Event::Stopped { reason, .. } => format!("stopped: {}", printable(reason)),
        Event::Ended { reason, .. } => format!("over: {}", reason.words()),
        Event::RunStarted(_)
        | Event::Resumed { .. }
        | Event::BudgetChanged(_)
        | Event::Asked { .. }
        | Event::Answered { .. }
        | Event::TestStarted { .. }
        | Event::HoldoutMeasured { .. } => return None,
    })
}

/// How many tasks of a test were used before: selected tasks come up again in later tests.
fn seen_before(measured: &Measured, state: &State) -> String {
    let known =
        measured.tasks.iter().filter(|task| task.repetition > 1 || state.was_learned_from(task)).count();
    match known {
        0 => "that are new".to_owned(),
        known if known == measured.tasks.len() => "that were seen before".to_owned(),
        known => format!("({known} seen before)"),
    }
}

fn not_taken(dropped: &[Dropped]) -> String {
    if dropped.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = dropped.iter().map(dropped_line).collect();
    format!(" (not taken: {})", lines.join("; "))
}

fn stands(standing: &Standing) -> String {
    if standing.pairs == 0 {
        return "(no task counts)".to_owned();
    }
    format!(
        "({} over {}, evidence {})",
        signed(standing.difference),
        text::count(standing.pairs, "task"),
        rounded(standing.evidence, 1)
    )
}
