//! Worker processes that run the rollouts of installed `verifiers` environments, and their connection to a model.
//!
//! The environments run in Python, because they are Python; every model call goes through this process, which also
//! enforces all limits. A worker that dies takes only its own rollouts with it.

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
