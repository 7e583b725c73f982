//! The local gateway: agents speak to it as they would speak to a provider.

use crate::message::Request;

pub mod anthropic;
pub mod openai;

/// A request of an agent, free of any provider's spelling.
#[derive(Clone, Debug, PartialEq)]
pub struct Inbound {
    /// The model as the agent names it.
    pub model: String,
    /// Whether the agent wants a stream of events.
    pub stream: bool,
    /// Whether the stream ends with what the call took.
    pub include_usage: bool,
    /// What it asks.
    pub request: Request,
}
