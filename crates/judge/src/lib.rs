//! Verdicts: what a submission is worth, and why.

pub mod scorer;
