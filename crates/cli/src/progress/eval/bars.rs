//! Evaluations on a terminal: a bar with the running reward, and a line for each evaluation when there are several.

use std::time::Instant;

use aec_base::decimal::rounded;
use aec_base::text::count;
use aec_run::control::Wish;

use super::lines::progress;
use super::state::{State, Tally};
use crate::progress::figures::guess;
use crate::progress::text::cut;

/// Most evaluations with a separate line.
const SHOWN: usize = 12;

/// The lines to show.
pub(super) fn picture(state: &State, wish: Wish, now: Instant, columns: usize) -> Vec<String> {
    if state.evaluations.is_empty() {
        return Vec::new();
    }
    let mut first = format!("{}, {}", progress(state), state.elapsed(now));
    if let Some(left) = state.left(now) {
        first.push_str(&format!(", about {} left", guess(left)));
    }
    let mut lines = vec![cut(&first, columns)];
    if state.evaluations.len() > 1 {
        lines.extend(state.evaluations.iter().take(SHOWN).map(|tally| cut(&line(tally), columns)));
        let more = state.evaluations.len().saturating_sub(SHOWN);
        if more > 0 {
            lines.push(format!("  and {}", count(more, "more evaluation")));
        }
    }
    match wish {
        Wish::GoOn => {}
        Wish::Finish => lines.push(cut("Stopping: finishing rollouts. Once more to cancel them.", columns)),
        Wish::GiveUp => lines.push(cut("Giving up.", columns)),
    }
    lines
}

fn line(tally: &Tally) -> String {
    let reward = tally
        .mean()
        .map_or_else(|| "no reward yet".to_owned(), |mean| format!("reward {}", rounded(mean, 2)));
    let started = &tally.started;
    format!(
        "  {} with {}: {}/{}, {reward}, {}",
        started.env_id,
        started.model,
        tally.done(),
        started.total(),
        tally.cost()
    )
}
