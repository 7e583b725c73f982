//! Experiments: which tasks, which agents, how often and where; plans made from them, and trials that carry them out.

pub mod agent_entry;
pub mod control;
pub mod conversation;
pub mod event;
pub mod experiment;
pub mod harness;
pub mod parameters;
pub mod room;
pub mod task;
pub mod trajectory;
pub mod workspace;
