//! The selected attempt and its trace as lines, made from the end: only visible text is wrapped.

use super::super::phrases;
use super::super::state::{Row, State};
use super::super::trace::Entry;
use super::draw;
use super::view::View;
use crate::progress::text::wrap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The first line of an event.
    Head,
    /// Further lines of an event.
    Body,
    Fault,
}

/// The last `most` lines of the detail pane, or all if there are fewer.
pub(crate) fn lines(state: &State, view: &View, most: usize) -> Vec<(Kind, String)> {
    let width = usize::from(draw::areas(view).detail.width);
    let rows = state.rows(view.faults_only);
    let Some(row) = rows.get(view.position(state)) else { return Vec::new() };
    let trace = view.chosen(state).and_then(|key| state.trace(&key));
    // Collected with the last line first.
    let mut reversed: Vec<(Kind, String)> = Vec::new();
    if let Row::Ended(ended) = row
        && let Some(fault) = phrases::fault(state, ended)
    {
        reversed.extend(wrap(&fault, width).into_iter().rev().map(|line| (Kind::Fault, line)));
    }
    match trace {
        None if reversed.is_empty() => reversed.push((Kind::Body, nothing(*row).to_owned())),
        None => {}
        Some(trace) => {
            if trace.is_empty() {
                reversed.push((Kind::Body, nothing(*row).to_owned()));
            }
            let entries: Vec<&Entry> = trace.entries().collect();
            for entry in entries.iter().rev() {
                if reversed.len() >= most {
                    break;
                }
                reversed.extend(entry_lines(entry, width).into_iter().rev());
            }
            if trace.forgotten() > 0 && reversed.len() < most {
                reversed.push((Kind::Body, format!("({} earlier events)", trace.forgotten())));
            }
        }
    }
    reversed.truncate(most);
    reversed.reverse();
    reversed
}

fn nothing(row: Row<'_>) -> &'static str {
    match row {
        Row::Running(_) => "nothing to see yet",
        Row::Ended(_) => "the trace is in the record",
    }
}

fn entry_lines(entry: &Entry, width: usize) -> Vec<(Kind, String)> {
    let colon = if entry.head.is_empty() { "" } else { ": " };
    let head = format!("{} {}{colon}{}", entry.step, entry.kind, entry.head);
    let mut lines: Vec<(Kind, String)> =
        wrap(&head, width).into_iter().map(|line| (Kind::Head, line)).collect();
    let body = wrap(&entry.body, width.saturating_sub(2));
    lines.extend(body.into_iter().map(|line| (Kind::Body, format!("  {line}"))));
    lines
}
