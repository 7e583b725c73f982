//! Experiments: which tasks, which agents, how often and where.

pub mod experiment;
