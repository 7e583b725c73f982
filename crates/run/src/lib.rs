//! Experiments: which tasks, which agents, how often and where; plans made from them, and trials that carry them out.

pub mod agent_entry;
pub mod agents;
mod answer;
pub mod control;
pub mod conversation;
pub mod desk;
pub mod dispatch;
pub mod estimate;
pub mod event;
pub mod experiment;
pub mod forecast;
pub mod harness;
mod leaks;
pub mod overrides;
pub mod parameters;
pub mod plan;
pub mod planning;
mod queue;
pub mod recording;
pub mod room;
pub mod salvage;
pub mod session;
pub mod status;
pub mod task;
pub mod trajectory;
pub mod trial;
pub mod workspace;
