//! What a run of evolution shows while it goes on: a line for everything that happens, and on a terminal one more that
//! says what is under way.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aec_base::text::{self, printable};
use aec_evolve::edit::Dropped;
use aec_evolve::event::{Entry, Event, Kind, Measured, Purpose};
use aec_evolve::gate::Standing;
use aec_evolve::journal::Observer;
use aec_evolve::state::State;
use aec_evolve::workspace::candidate::name;
use aec_report::stats::Cluster;
use aec_run::campaign;
use aec_run::event::RunEvent;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::commands::evolve::words::dropped_line;
use crate::commands::evolve::words::signed;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Format;
use crate::progress::outlet::Outlet;
use crate::progress::{Mode, Wanted};

/// Tells what a run does.
pub(crate) struct EvolveProgress {
    shared: Arc<Shared>,
}

struct Shared {
    outlet: Mutex<Option<Outlet>>,
    bar: Option<ProgressBar>,
    running: AtomicUsize,
    ended: AtomicUsize,
}

impl EvolveProgress {
    /// Begins.
    pub(crate) fn new(context: &Context) -> Result<Self, Failure> {
        let mode = Mode::choose(Wanted {
            quiet: context.quiet,
            full_screen: false,
            json: context.format == Format::Json,
            terminal: context.is_terminal(),
        });
        let outlet = match mode {
            Mode::Lines => Some(Outlet::stderr(context.color)?),
            _ => None,
        };
        let bar = (mode == Mode::Bars).then(|| {
            let style = ProgressStyle::with_template("{spinner} {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner());
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style);
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        let shared = Shared {
            outlet: Mutex::new(outlet),
            bar,
            running: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
        };
        shared.status();
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Hears of trials.
    pub(crate) fn of_trials(&self) -> campaign::Observer {
        let shared = Arc::clone(&self.shared);
        Arc::new(move |event: &RunEvent| {
            match event {
                RunEvent::TrialStarted(_) => drop(shared.running.fetch_add(1, Ordering::Relaxed)),
                RunEvent::TrialEnded(_) => {
                    shared.running.fetch_sub(1, Ordering::Relaxed);
                    shared.ended.fetch_add(1, Ordering::Relaxed);
                }
                _ => return,
            }
            shared.status();
        })
    }

    /// Hears of everything else.
    pub(crate) fn of_events(&self) -> Observer {
        let shared = Arc::clone(&self.shared);
        Arc::new(move |entry: &Entry, state: &State| {
            if let Some(line) = line(entry, state) {
                shared.print(line);
            }
        })
    }

    /// Ends. The lines are all printed when this returns.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.shared.bar {
            bar.finish_and_clear();
        }
        drop(self.shared.outlet.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl Shared {
    fn print(&self, line: String) {
        if let Some(bar) = &self.bar {
            bar.println(line);
        } else if let Some(outlet) = &mut *self.outlet.lock().unwrap_or_else(PoisonError::into_inner) {
            outlet.print(line);
        }
    }

    fn status(&self) {
        if let Some(bar) = &self.bar {
            let (running, ended) = (self.running.load(Ordering::Relaxed), self.ended.load(Ordering::Relaxed));
            bar.set_message(format!("{} under way, {ended} done", text::count(running, "trial")));
        }
    }
}

/// What happened, in a line; nothing for what is of no interest to somebody who looks on.
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
                rewards.mean().map_or_else(|| "no reward".to_owned(), |mean| format!("{mean:.3}"))
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

/// Which tasks of a test somebody has seen: selected ones come up again in later tests.
fn seen_before(measured: &Measured, state: &State) -> String {
    let known =
        measured.tasks.iter().filter(|task| task.repetition > 1 || state.was_learned_from(task)).count();
    match known {
        0 => "nobody has seen".to_owned(),
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
        "({} over {}, evidence {:.1})",
        signed(standing.difference),
        text::count(standing.pairs, "task"),
        standing.evidence
    )
}
