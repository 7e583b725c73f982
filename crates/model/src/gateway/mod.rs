//! The server side of the wire formats: requests of agents inside a room become ours, and our replies become what
//! their SDKs expect. An agent is not trusted, so a request is read strictly and says nothing that is not understood.

pub mod anthropic;
pub mod openai;
mod strict;

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
