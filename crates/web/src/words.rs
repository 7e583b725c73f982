//! Formats numbers in the same way on every page. Unknown values are a dash, and unknown costs are `unpriced`.

use aec_base::decimal::{self, UNPRICED, rounded};
use aec_ledger::index::Totals;
use aec_report::group::Group;
use aec_report::html::thousands;
use aec_report::stats::Interval;

pub(crate) const UNKNOWN: &str = "–";

pub(crate) fn share(value: Option<f64>) -> String {
    // Adding zero turns a negative zero into zero.
    finite(value).map_or_else(|| UNKNOWN.to_owned(), |value| rounded(value, 3))
}

/// The mean reward of a group; `*` marks one that is not of all trials.
pub(crate) fn mean(group: &Group) -> String {
    format!("{}{}", share(group.mean_reward), group.mark())
}

/// The same of totals.
pub(crate) fn mean_of(totals: &Totals) -> String {
    let mark = if totals.unknown.is_some() { "*" } else { "" };
    format!("{}{mark}", share(totals.mean_reward))
}

pub(crate) fn signed(value: Option<f64>) -> String {
    finite(value).map_or_else(|| UNKNOWN.to_owned(), |value| decimal::signed(value, 3))
}

pub(crate) fn span(interval: Option<Interval>) -> String {
    interval.map_or_else(
        || UNKNOWN.to_owned(),
        |span| format!("{} – {}", rounded(span.low, 3), rounded(span.high, 3)),
    )
}

/// An interval of a difference.
pub(crate) fn signed_span(interval: Option<Interval>) -> String {
    interval.map_or_else(
        || UNKNOWN.to_owned(),
        |span| format!("{} to {}", decimal::signed(span.low, 3), decimal::signed(span.high, 3)),
    )
}

pub(crate) fn dollars(value: Option<f64>) -> String {
    finite(value).map_or_else(|| UNPRICED.to_owned(), decimal::dollars)
}

/// Dollars, and the number of attempts without a price.
pub(crate) fn cost(known: f64, unpriced: usize) -> String {
    finite(Some(known)).map_or_else(|| UNPRICED.to_owned(), |known| decimal::cost(known, unpriced))
}

pub(crate) fn cost_of(group: &Group) -> String {
    cost(group.took.cost_usd, group.took.without_cost)
}

/// Dollars for each solved trial. If none is solved, there is no such number.
pub(crate) fn cost_per_solved(group: &Group) -> String {
    if group.solved == 0 { UNKNOWN.to_owned() } else { dollars(group.cost_per_solved) }
}

pub(crate) fn seconds(value: Option<f64>) -> String {
    finite(value).map_or_else(|| UNKNOWN.to_owned(), |value| format!("{} s", rounded(value, 1)))
}

pub(crate) fn count(value: usize) -> String {
    thousands(value as u64)
}

/// A count that may be unknown.
pub(crate) fn maybe(value: Option<u64>) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), thousands)
}

pub(crate) fn bytes(size: u64) -> String {
    match size {
        0..1_000 => format!("{size} B"),
        1_000..1_000_000 => format!("{}.{} kB", size / 1_000, size % 1_000 / 100),
        _ => format!("{}.{} MB", thousands(size / 1_000_000), size % 1_000_000 / 100_000),
    }
}

/// A time to the second, in readable form.
pub(crate) fn moment(timestamp: &str) -> String {
    let short = timestamp.get(..19).unwrap_or(timestamp);
    short.replacen('T', " ", 1)
}

fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_said_plainly() {
        assert_eq!((share(Some(-0.0)).as_str(), share(Some(f64::NAN)).as_str()), ("0.000", UNKNOWN));
        assert_eq!(
            [dollars(Some(0.0)), dollars(Some(0.25)), dollars(Some(12.5))],
            ["$0", "$0.2500", "$12.50"]
        );
        assert_eq!([dollars(None), cost(0.0, 0), cost(0.0, 1)], ["unpriced", "$0", "unpriced"]);
        assert_eq!(cost(2.0, 1), "$2.00 and 1 unpriced");
        assert_eq!([bytes(999), bytes(1_234), bytes(12_345_678)], ["999 B", "1.2 kB", "12.3 MB"]);
        assert_eq!(moment("2026-01-02T03:04:05.678Z"), "2026-01-02 03:04:05");
    }
}
