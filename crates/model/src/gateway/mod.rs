//! The local gateway: agents use it like a provider and reach only the models of their token. Agents are not trusted,
//! so requests are decoded strictly: whatever is not understood is refused.

pub mod anthropic;
mod connections;
mod grant;
pub mod openai;
mod server;
mod strict;

pub use connections::{Listener, MOST_CONNECTIONS};
pub use grant::{Grant, Witness};
pub use server::{Gateway, environment};

use crate::message::Request;

#[derive(Clone, Debug, PartialEq)]
pub struct Inbound {
    /// The model as the agent names it.
    pub model: String,
    /// Whether the agent wants the answer as a stream.
    pub stream: bool,
    /// Whether a stream ends with the usage.
    pub include_usage: bool,
    pub request: Request,
}
