//! The interface through which environments call a model.

use std::future::Future;
use std::pin::Pin;

use crate::worker::protocol::{ModelAnswer, ModelCall, ModelFailure};

pub type ModelFuture<'a> = Pin<Box<dyn Future<Output = Result<ModelAnswer, ModelFailure>> + Send + 'a>>;

/// Answers the calls of environments. A call that is no longer wanted is dropped.
pub trait ModelCaller: Send + Sync {
    fn call(&self, call: ModelCall) -> ModelFuture<'_>;
}
