//! Evaluations as lines, for logs and pipes.

use std::time::{Duration, Instant};

use aec_base::decimal::rounded;
use aec_base::text::count;
use aec_eval::event::{EvalEvent, EvalStarted};

use super::rollout;
use super::state::{State, Tally};
use crate::progress::figures::{bar, span};
use crate::progress::text::clean_line;

/// Shortest time between two lines of progress.
const PACE: Duration = Duration::from_secs(2);
/// Cells of the bar.
const CELLS: usize = 20;

/// Decides which lines to print.
pub(super) struct Lines {
    is_verbose: bool,
    told: Option<Instant>,
}

impl Lines {
    pub(super) fn new(is_verbose: bool) -> Self {
        Self { is_verbose, told: None }
    }

    /// The lines for an event, after the state has been updated.
    pub(super) fn on(&mut self, event: &EvalEvent, state: &State, now: Instant) -> Vec<String> {
        let clean = |text: &str| clean_line(text, &state.redactor);
        match event {
            EvalEvent::Started(started) => {
                self.told = Some(now);
                started.iter().flat_map(header).collect()
            }
            EvalEvent::Finished(finished) => {
                let row = finished.row.as_ref().filter(|_| self.is_verbose);
                let name = state.name(finished.evaluation);
                let mut lines = row.map(|row| rollout::lines(row, name, &state.redactor)).unwrap_or_default();
                let (done, all) = state.progress();
                let due = self.told.is_none_or(|told| now.saturating_duration_since(told) >= PACE);
                if due || done == all {
                    self.told = Some(now);
                    lines.push(progress(state));
                }
                lines
            }
            EvalEvent::Retried { evaluation, example_id, attempt, wait, why } => {
                let (name, wait, why) = (state.name(*evaluation), span(*wait), clean(why));
                vec![format!("{name}: example {example_id} is tried again (try {attempt}) in {wait}: {why}")]
            }
            EvalEvent::Stopping(why) => vec![format!("No further rollout is started: {}", clean(why))],
            EvalEvent::Note { evaluation, text } => {
                vec![format!("{}: {}", state.name(*evaluation), clean(text))]
            }
            EvalEvent::Ended(_) => Vec::new(),
        }
    }
}

/// Lines about an evaluation that is about to begin.
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

pub(crate) fn progress(state: &State) -> String {
    let (done, all) = state.progress();
    #[expect(clippy::cast_precision_loss, reason = "a share of a bar")]
    let share = done as f64 / all.max(1) as f64;
    let mut line =
        format!("Progress: {} {done}/{all} ({}%)", bar(share, CELLS), rounded((share * 100.0).floor(), 0));
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
    let mut text = tally.mean().map(|mean| format!(" reward {}", rounded(mean, 2))).unwrap_or_default();
    if tally.errors > 0 {
        text.push_str(&format!(", {}", count(tally.errors, "error")));
    }
    text
}
