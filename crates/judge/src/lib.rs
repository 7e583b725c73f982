//! Verdicts: what a submission is worth, and why.
//!
//! Agent and judge share nothing but frozen files: [`submission`] copies what the agent left, [`judge`] runs the
//! task's verifier on the copy in a fresh room, [`reward`] reads the result without mercy, [`scorer`] is the
//! standard verifier and its native twin, [`settle`] decides what an answer is and what became of a trial.

pub mod audit;
pub mod cheat;
pub mod golden;
pub mod judge;
pub mod pool;
pub mod reward;
pub mod scorer;
pub mod settle;
pub mod submission;
pub mod verdict;
pub mod verifier;
