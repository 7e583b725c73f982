//! How agents work, derived from their traces: answers to the questions of a workflow ([`features`]), the kind of each
//! turn ([`rules`], or a model through [`prompt`] and [`reply`]), how kinds follow each other ([`structure`]), and
//! summaries of many trials ([`summary`]).
//!
//! Nothing here reads files, calls models or trusts what a trace says about itself.

mod action;
pub mod agreement;
mod code_action;
mod cues;
pub mod features;
#[cfg(test)]
mod features_tests;
pub mod kind;
#[cfg(test)]
mod labelled;
#[cfg(test)]
mod labelled_turns;
mod outcome;
mod paths;
mod program;
pub mod prompt;
mod python;
#[cfg(test)]
mod python_tests;
mod reading;
pub mod reply;
pub mod rules;
mod shell;
mod shell_action;
#[cfg(test)]
mod shell_tests;
mod shell_word;
pub mod structure;
pub mod summary;
mod text;
pub mod trace;

use features::Features;
use kind::Label;
use trace::Trace;

/// The features of a trace and the kinds of its turns; interprets the trace only once.
pub fn analyse(trace: &Trace) -> (Features, Vec<Label>) {
    let reading = reading::read(trace);
    (features::of(trace, &reading), rules::of(trace, &reading))
}
