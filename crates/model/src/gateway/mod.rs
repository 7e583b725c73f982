//! The local gateway: agents speak to it as they would to a provider, and reach the models that their token names.
//! An agent is not trusted, so a request is read strictly and says nothing that is not understood.

pub mod anthropic;
mod connections;
mod grant;
pub mod openai;
mod server;
mod strict;

pub use connections::Listener;
pub use grant::{Grant, Witness};
pub use server::{Gateway, environment};

use crate::message::Request;

/// A request that an agent sent to the gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct Inbound {
    /// The model as the agent names it.
    pub model: String,
    /// Whether the agent wants the answer as a stream of events.
    pub stream: bool,
    /// Whether a stream is to end with what the call took.
    pub include_usage: bool,
    /// What is asked.
    pub request: Request,
}
