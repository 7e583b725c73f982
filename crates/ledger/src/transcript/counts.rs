//! Totals over the turns of an agent.

use super::SUBMIT_TOOL;
use super::turns::{CallResult, Turn};

/// How many characters of the first error are quoted.
const QUOTED: usize = 200;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub turns: u64,
    /// Including calls that submit an answer.
    pub tool_calls: u64,
    pub tool_errors: u64,
    pub submit_calls: u64,
    pub empty_responses: u64,
    /// The last line of the first failed call's message.
    pub first_error: Option<String>,
}

pub fn counts(turns: &[Turn]) -> Counts {
    let mut counts = Counts::default();
    for turn in turns {
        counts.turns += 1;
        counts.empty_responses += u64::from(turn.is_empty());
        counts.tool_calls += turn.calls.len() as u64;
        counts.submit_calls += turn.calls.iter().filter(|call| call.name == SUBMIT_TOOL).count() as u64;
        for failed in turn.results.iter().filter(|result| result.is_failed()) {
            counts.tool_errors += 1;
            counts.first_error = counts.first_error.take().or_else(|| complaint(failed));
        }
    }
    counts
}

fn complaint(failed: &CallResult) -> Option<String> {
    let said = [&failed.stderr, &failed.stdout].into_iter().find(|text| !text.trim().is_empty())?;
    let last = said.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(last.chars().take(QUOTED).collect())
}
