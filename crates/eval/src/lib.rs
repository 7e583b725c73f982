//! Evaluations: a model works on the examples of an environment, each rollout is judged, and the results are stored in
//! the format of `verifiers`.
//!
//! An environment is a set of our own tasks, run in this process ([`native`]), or any other that `verifiers` loads, run
//! by Python workers ([`worker`]). [`engine`] decides which rollout is next and how many run at once, [`results`]
//! stores the rows.

pub mod config;
pub mod describe;
pub mod engine;
pub mod evaluation;
pub mod event;
pub mod find;
pub mod heartbeat;
pub mod hub;
pub mod model_choice;
pub mod native;
pub mod python_executor;
pub mod results;
pub mod worker;

use aec_base::document::Family;

/// Problems of evaluations are `R…`.
pub const FAMILY: Family = Family('R');
