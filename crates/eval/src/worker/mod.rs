//! Worker processes that play the rollouts of installed `verifiers` environments, and the way they reach a model.
//!
//! The environments run in Python, because they are Python; every call of a model leaves through this process, which also
//! keeps all limits. A worker that ends takes only its own rollouts with it.

mod connection;
pub mod discover;
mod error;
mod files;
pub mod install;
mod log;
mod model_caller;
mod pool;
mod process;
mod program;
mod protocol;
mod row;
mod setup;

use crate::FAMILY;

pub use error::{Cause, Death, LoadFailure, Stage, WorkerError};
pub use model_caller::{ModelCaller, ModelFuture};
pub use pool::{Generated, Job, WorkerPool};
pub use protocol::{
    FailureKind, Interface, Loaded, Member, Message, ModelAnswer, ModelCall, ModelFailure, Tool, ToolCall,
    Usage, VersionInfo,
};
pub use row::Row;
pub use setup::{EnvironmentRequest, Gateway, Limits, Setup, WorkerCount, worker_variables};
