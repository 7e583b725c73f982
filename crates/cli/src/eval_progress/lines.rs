//! Evaluations as lines, for logs and pipes.

use std::io;
use std::time::{Duration, Instant};

use aec_base::text::count;
use aec_eval::event::{EvalEvent, EvalStarted};

use super::rollout;
use super::state::{State, Tally};
use crate::progress::figures::{bar, span};
use crate::progress::outlet::Outlet;
use crate::progress::text::clean_line;

/// The least time between two lines of progress.
const PACE: Duration = Duration::from_secs(2);
/// Cells of the bar.
const CELLS: usize = 20;

/// Prints lines to stderr.
pub(crate) struct Lines {
    outlet: Outlet,
    is_verbose: bool,
    told: Option<Instant>,
}

impl Lines {
    pub(crate) fn new(color: bool, is_verbose: bool) -> io::Result<Self> {
        Ok(Self { outlet: Outlet::stderr(color)?, is_verbose, told: None })
    }

    /// The lines for an event that the state has taken in.
    pub(crate) fn say(&mut self, event: &EvalEvent, state: &State, now: Instant) {
        match event {
            EvalEvent::Started(started) => {
                for one in started.iter() {
                    for line in header(one) {
                        self.outlet.print(line);
                    }
                }
                self.told = Some(now);
            }
            EvalEvent::Finished(finished) => {
                if self.is_verbose
                    && let Some(row) = &finished.row
                {
                    let name = name_of(state, finished.evaluation);
                    for line in rollout::lines(row, &name, &state.redactor) {
                        self.outlet.print(line);
                    }
                }
                let (done, all) = state.progress();
                let due = self.told.is_none_or(|told| now.saturating_duration_since(told) >= PACE);
                if due || done == all {
                    self.told = Some(now);
                    self.outlet.print(progress(state));
                }
            }
            EvalEvent::Retried { evaluation, example_id, attempt, wait, why } => {
                let why = clean_line(why, &state.redactor);
                let name = name_of(state, *evaluation);
                self.outlet.print(format!(
                    "{name}: example {example_id} is tried again (try {attempt}) in {}: {why}",
                    span(*wait)
                ));
            }
            EvalEvent::Stopping(why) => {
                let why = clean_line(why, &state.redactor);
                self.outlet.print(format!("No further rollout is started: {why}"));
            }
            EvalEvent::Note { evaluation, text } => {
                let text = clean_line(text, &state.redactor);
                self.outlet.print(format!("{}: {text}", name_of(state, *evaluation)));
            }
            EvalEvent::Ended(_) => {}
        }
    }
}

fn name_of(state: &State, evaluation: usize) -> String {
    state.evaluations.get(evaluation).map(|tally| tally.started.env_id.clone()).unwrap_or_default()
}

/// What an evaluation is about to do.
pub(crate) fn header(started: &EvalStarted) -> Vec<String> {
    let mut lines = vec![
        format!("Loading environment: {} ({})", started.env_id, started.lane),
        format!(
            "Dataset: {}, {} per example = {} total rollouts",
            count(started.num_examples, "example"),
            count(started.rollouts_per_example as usize, "rollout"),
            started.total()
        ),
        format!("Model: {}", started.model),
    ];
    if started.done_before > 0 {
        lines.push(format!("Resuming with {} of them", started.done_before));
    }
    lines
}

/// How far it is.
pub(crate) fn progress(state: &State) -> String {
    let (done, all) = state.progress();
    #[expect(clippy::cast_precision_loss, reason = "a share of a bar")]
    let share = done as f64 / all.max(1) as f64;
    let mut line = format!("Progress: {} {done}/{all} ({:.0}%)", bar(share, CELLS), (share * 100.0).floor());
    match state.evaluations.as_slice() {
        [one] => line.push_str(&figures(one)),
        several => {
            for tally in several.iter().filter(|tally| tally.finished > 0) {
                line.push_str(&format!("  {}{}", tally.started.env_id, figures(tally)));
            }
        }
    }
    line
}

fn figures(tally: &Tally) -> String {
    let mut text = tally.mean().map(|mean| format!(" reward {mean:.2}")).unwrap_or_default();
    if tally.errors > 0 {
        text.push_str(&format!(", {}", count(tally.errors, "error")));
    }
    text
}
