//! Verdicts: the reward of a submission, and the reasons for it.
//!
//! Agent and judge share only frozen files: [`submission`] copies the files that the agent left, [`judge`] runs the
//! task's verifier on the copy in a fresh room, [`reward`] parses the result strictly, [`scorer`] is the standard
//! verifier and its native twin, [`settle`] decides which answer counts and what the outcome of a trial is.

pub mod audit;
pub mod cheat;
pub mod golden;
pub mod judge;
pub mod pool;
pub mod probe;
pub mod reward;
pub mod scorer;
pub mod settle;
pub mod submission;
pub mod verdict;
pub mod verifier;
