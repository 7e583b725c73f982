//! Plans: into how many parts a source is cut, and how the results of the parts are merged.
//!
//! # The model
//!
//! A source of `n` characters is cut into `L` leaves, each read by one call. What the calls find is merged in a
//! balanced tree: a merge reads up to `k` results and gives one, level by level, until one is left. `d` is the number
//! of levels. A fact of the source survives with probability `leaf_accuracy · compose_accuracy^d`.
//!
//! One call reads its instructions ([`CallShape::prompt_chars`]) and its text, and everything must fit into the window.
//! A leaf gives [`CallShape::output_per_mille`] of what it reads, a merge as much as it reads, and both at most
//! [`CallShape::output_cap_chars`]. Larger leaves therefore need fewer calls, but give longer results, of which fewer
//! fit into one merge: leaf size and branching must be chosen together.
//!
//! The cost of a plan, in characters read, is what all calls read, [`CallShape::output_weight`] times what they
//! write, and [`CallShape::call_cost_chars`] for each call. For given `k` and `d` the cost grows with the number of
//! leaves, so only the least number that satisfies the window needs to be looked at; all `k` up to the limit and all
//! `d` that the accuracy allows are tried, which finds the cheapest plan exactly. Of equals, fewer levels win, then
//! the smaller `k`.
//!
//! An eighth of each leaf is kept free, because full leaves could not be cut at the best places.

mod choose;
mod tree;

use std::fmt;

use aec_base::decimal::rounded;
use aec_base::text;
use serde::{Deserialize, Serialize};

pub use choose::choose;
pub use tree::{Group, SourceTree};

use crate::split::Form;
use aec_task::long_documents::settings::PlannerSettings;

/// The version of the recorded [`Plan`].
pub const PLAN_VERSION: u32 = 1;

/// What one call looks like, in characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallShape {
    /// Instructions around the text of every call.
    pub prompt_chars: u64,
    /// Space for the header row of a table that was cut.
    pub context_chars: u64,
    /// Characters that a leaf gives for each thousand it reads.
    pub output_per_mille: u64,
    /// Most characters that a call gives.
    pub output_cap_chars: u64,
    /// What a character written costs, in characters read.
    pub output_weight: u64,
    /// What a call costs beside its characters, in characters read.
    pub call_cost_chars: u64,
    pub chars_per_token: u64,
}

impl CallShape {
    /// A typical call for a window of this many characters.
    pub fn for_window(window: u64) -> Self {
        Self {
            prompt_chars: (window / 25).min(4_000),
            context_chars: (window / 50).min(2_000),
            output_per_mille: 50,
            output_cap_chars: (window * 48 / 1_000).clamp(1, 4_800),
            output_weight: 5,
            call_cost_chars: 1_000,
            chars_per_token: 4,
        }
    }

    pub fn tokens(&self, chars: u64) -> u64 {
        chars.div_ceil(self.chars_per_token.max(1))
    }
}

/// The dimensions of one source's tree.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shape {
    pub chars: u64,
    pub leaves: u64,
    /// Most characters of a leaf.
    pub leaf_chars: u64,
    /// Most results that one merge takes; 1 when there is nothing to merge.
    pub branching: u64,
    /// Levels of merges.
    pub depth: u32,
    pub totals: Totals,
}

/// Sums over calls.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Totals {
    pub calls: u64,
    /// The lowest probability that a fact survives.
    pub accuracy: f64,
    pub input_chars: u64,
    pub output_chars: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// The cost in characters read.
    pub cost: u64,
}

/// No plan reaches the accuracy that is wanted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Infeasible {
    /// The best accuracy of any plan; 0 when nothing fits into the window.
    pub best_accuracy: f64,
    /// Changes that would each make a plan possible.
    pub what_would_do: Vec<Suggestion>,
}

/// A change of one setting that makes a plan possible.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Suggestion {
    /// Raise `context_window_chars` at least to this.
    Window(u64),
    /// Raise `max_branching_factor` at least to this.
    Branching(u32),
    /// Lower `accuracy_target` at least to this.
    Target(f64),
}

impl fmt::Display for Suggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Window(chars) => write!(f, "context_window_chars = {chars}"),
            Self::Branching(branches) => write!(f, "max_branching_factor = {branches}"),
            Self::Target(accuracy) => write!(f, "accuracy_target = {accuracy}"),
        }
    }
}

impl fmt::Display for Infeasible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the best accuracy that can be had is {}", self.best_accuracy)?;
        let ways: Vec<String> = self.what_would_do.iter().map(ToString::to_string).collect();
        let ways: Vec<&str> = ways.iter().map(String::as_str).collect();
        if ways.is_empty() { Ok(()) } else { write!(f, "; {} would do", text::one_of(&ways)) }
    }
}

impl std::error::Error for Infeasible {}

/// A source for a section.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub section: &'a str,
    /// The label of the source.
    pub source: &'a str,
    pub text: &'a str,
    pub form: Form,
}

/// Sources for which there is no plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct PlanError(pub Vec<SourceError>);

/// A source for which there is no plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("section `{section}`, source `{origin}` of {chars} characters: {reason}")]
pub struct SourceError {
    pub section: String,
    /// The label of the source.
    pub origin: String,
    pub chars: u64,
    pub reason: Infeasible,
}

/// All trees of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    pub schema_version: u32,
    pub planner: PlannerSettings,
    /// The assumptions about calls.
    pub call: CallShape,
    /// A tree for each section and source.
    pub trees: Vec<SourceTree>,
    /// Sums over all calls; the accuracy is that of the worst tree.
    pub totals: Totals,
}

impl Plan {
    /// Plans all sources, or says for each source without a plan what would make one possible.
    pub fn make(
        requests: &[Request<'_>],
        planner: &PlannerSettings,
        call: &CallShape,
    ) -> Result<Self, PlanError> {
        let mut trees = Vec::with_capacity(requests.len());
        let mut errors = Vec::new();
        for request in requests {
            let chars = request.text.chars().count() as u64;
            match choose(chars, planner, call) {
                Ok(shape) => trees.push(SourceTree::grow(request, shape, call)),
                Err(reason) => errors.push(SourceError {
                    section: request.section.to_owned(),
                    origin: request.source.to_owned(),
                    chars,
                    reason,
                }),
            }
        }
        if !errors.is_empty() {
            return Err(PlanError(errors));
        }
        let sum = |part: fn(&Totals) -> u64| {
            trees.iter().fold(0_u64, |sum, tree: &SourceTree| sum.saturating_add(part(&tree.shape.totals)))
        };
        let (input_chars, output_chars) = (sum(|t| t.input_chars), sum(|t| t.output_chars));
        let totals = Totals {
            calls: sum(|totals| totals.calls),
            accuracy: trees.iter().map(|tree| tree.shape.totals.accuracy).fold(1.0, f64::min),
            input_chars,
            output_chars,
            input_tokens: call.tokens(input_chars),
            output_tokens: call.tokens(output_chars),
            cost: sum(|totals| totals.cost),
        };
        Ok(Self { schema_version: PLAN_VERSION, planner: planner.clone(), call: call.clone(), trees, totals })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for tree in &self.trees {
            let shape = &tree.shape;
            let leaves = usize::try_from(shape.leaves).unwrap_or(usize::MAX);
            write!(f, "{} ← {}: ", tree.section, tree.source)?;
            write!(f, "{} characters, {}", shape.chars, text::count(leaves, "part"))?;
            if shape.depth > 0 {
                let levels = text::count(shape.depth as usize, "level");
                write!(f, " merged by {} in {levels}", shape.branching)?;
            }
            writeln!(f, ", accuracy {}", rounded(shape.totals.accuracy, 3))?;
        }
        let totals = &self.totals;
        let calls = text::count(usize::try_from(totals.calls).unwrap_or(usize::MAX), "call");
        write!(
            f,
            "{calls}, about {} tokens read and {} written, accuracy at least {}",
            totals.input_tokens,
            totals.output_tokens,
            rounded(totals.accuracy, 3)
        )
    }
}

#[cfg(test)]
mod tests;
