//! Describes runs of evolution in text.

use aec_base::decimal::{self, rounded};
use aec_base::text;
use aec_evolve::edit::Dropped;
use aec_evolve::event::Kind;
use aec_evolve::gate::Standing;
use aec_evolve::view::{CandidateView, EliteView, HoldoutView, RunState, View};

use crate::commands::evolve::diff::diff_text;
use crate::output::STRONG;
use crate::table::Table;

pub(crate) fn head(view: &View) -> String {
    let reason =
        view.reason.as_ref().map_or_else(String::new, |reason| format!(": {}", text::printable(reason)));
    let mut shown = format!("{STRONG}{}{STRONG:#}  {}{reason}\n", view.run, view.state.name());
    let best = view.candidates.iter().find(|candidate| candidate.name == view.best);
    shown.push_str(&format!(
        "best {}{}  {} of {} accepted  {} of at most {}\n",
        view.best,
        best.map(score).map_or_else(String::new, |score| format!(" {score}")),
        view.accepted,
        text::count(view.candidates.len().saturating_sub(1), "candidate"),
        text::count(view.tests as usize, "test"),
        view.horizon,
    ));
    let cost = &view.cost;
    shown.push_str(&format!(
        "cost {}: trials {}, proposing {}; {} tokens\n",
        cost.total(),
        cost.trials(),
        cost.voices(),
        cost.tokens
    ));
    if view.kind == Kind::Swarm {
        shown.push_str(&format!("phase {}\n", view.phase.name()));
    }
    if let Some(holdout) = &view.holdout {
        shown.push_str(&holdout_text(holdout));
    }
    shown
}

/// The result on the tasks that were kept for the end.
pub(crate) fn holdout_text(holdout: &HoldoutView) -> String {
    let number = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), |value| rounded(value, 3));
    let signed = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), signed);
    let left_out = match holdout.left_out {
        0 => String::new(),
        count => format!("; {} left out, without a reward on both sides", text::count(count, "task")),
    };
    if holdout.pairs == 0 {
        return format!("holdout: nothing is known{left_out}\n");
    }
    format!(
        "holdout: {} instead of {}, difference {} (95 % from {} to {}) over {}{left_out}\n",
        number(holdout.best_mean),
        number(holdout.baseline_mean),
        signed(holdout.difference),
        signed(holdout.low),
        signed(holdout.high),
        text::count(holdout.pairs, "task"),
    )
}

/// A difference with its sign.
pub(crate) fn signed(value: f64) -> String {
    decimal::signed(value, 3)
}

pub(crate) fn score(candidate: &CandidateView) -> String {
    match (candidate.mean, candidate.low, candidate.high) {
        (Some(mean), Some(low), Some(high)) => {
            format!("{} ({} to {})", rounded(mean, 3), rounded(low, 3), rounded(high, 3))
        }
        (Some(mean), ..) => rounded(mean, 3),
        _ => String::new(),
    }
}

/// The columns of the table of cycles.
pub(crate) const CYCLES: [&str; 8] =
    ["AGENT", "CYCLE", "WAY", "CANDIDATE", "GAIN", "TASKS", "BEST", "OUTCOME"];
/// The columns of the table of the archive.
pub(crate) const ARCHIVE: [&str; 8] =
    ["CELL", "CANDIDATE", "MEAN REWARD", "TRIALS", "PROMPT", "TOKENS", "CALLS", "CHECKS"];

/// A run as text: its state, its cycles, its lineage and its archive.
pub(crate) fn view_text(view: &View) -> String {
    let mut shown = head(view);
    if !view.cycles.is_empty() {
        let mut table = Table::new(CYCLES)
            .keyed()
            .spare(["WAY", "TASKS", "BEST"])
            .cut(["AGENT"])
            .cut_front(["CANDIDATE"])
            .wrap(["OUTCOME"]);
        for cycle in &view.cycles {
            table.row([
                cycle.agent.clone(),
                cycle.cycle.to_string(),
                cycle.way.name().to_owned(),
                cycle.candidate.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
                cycle.standing.map_or_else(
                    || "-".to_owned(),
                    |standing| {
                        let Standing { difference, low, high, .. } = standing;
                        format!("{} ({} to {})", signed(difference), signed(low), signed(high))
                    },
                ),
                cycle.standing.map_or_else(|| "-".to_owned(), |standing| standing.pairs.to_string()),
                cycle.best_mean.map_or_else(|| "-".to_owned(), |mean| rounded(mean, 3)),
                text::printable(&cycle.outcome).into_owned(),
            ]);
        }
        shown.push('\n');
        shown.push_str(&table.render());
    }
    shown.push_str(&dropped_text(view));
    shown.push_str("\nLineage:\n");
    for (depth, candidate) in view.lineage() {
        let indent = "  ".repeat(depth.min(40));
        let mark = match candidate {
            candidate if candidate.name == view.best => "*",
            candidate if candidate.accepted => "+",
            _ => "-",
        };
        let from = match candidate.parents.as_slice() {
            [] => String::new(),
            [parent] => format!(", from {parent}"),
            [parent, also, ..] => format!(", from {parent} with {also}"),
        };
        shown.push_str(&format!(
            "{indent}{mark} {}  {}  {}{from}\n",
            candidate.name,
            score(candidate),
            if candidate.summary.is_empty() {
                candidate.status.clone()
            } else {
                text::printable(&candidate.summary).into_owned()
            },
        ));
        if let Some(diff) = &candidate.diff {
            for line in diff_text(diff).lines() {
                shown.push_str(&format!("{indent}    {line}\n"));
            }
        }
    }
    shown.push_str(&archive_text(&view.archive, 10, view.cells));
    if view.state == RunState::Stopped {
        shown.push_str(&format!("\nGo on with `aec-bench {} resume {}`.\n", view.kind.name(), view.run));
    }
    shown
}

/// Proposals of models that were not taken, and why. The author of the models' instructions needs to know this.
pub(crate) fn dropped_text(view: &View) -> String {
    let mut shown = String::new();
    for cycle in view.cycles.iter().filter(|cycle| !cycle.dropped.is_empty()) {
        for dropped in &cycle.dropped {
            shown.push_str(&format!("{} {}: {}\n", cycle.agent, cycle.cycle, dropped_line(dropped)));
        }
    }
    if shown.is_empty() { shown } else { format!("\nProposed and not taken:\n{shown}") }
}

pub(crate) fn dropped_line(dropped: &Dropped) -> String {
    format!("{}: {}", text::printable(&dropped.what), text::printable(&dropped.why))
}

pub(crate) fn archive_text(archive: &[EliteView], most: usize, cells: usize) -> String {
    if archive.is_empty() {
        return String::new();
    }
    let mut table = Table::new(ARCHIVE)
        .keyed()
        .spare(["CHECKS", "CALLS", "TOKENS", "PROMPT"])
        .cut(["CELL"])
        .cut_front(["CANDIDATE"]);
    for elite in archive.iter().take(most) {
        table.row([
            elite.cell.to_string(),
            elite.name.to_string(),
            format!("{} ({} to {})", rounded(elite.mean, 3), rounded(elite.low, 3), rounded(elite.high, 3)),
            elite.trials.to_string(),
            rounded(elite.behaviour.prompt_letters, 0),
            rounded(elite.behaviour.tokens, 0),
            rounded(elite.behaviour.calls, 2),
            rounded(elite.behaviour.checks, 2),
        ]);
    }
    format!("\nArchive, {} of {cells} cells:\n{}", archive.len(), table.render())
}
