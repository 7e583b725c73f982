//! Wire formats. A dialect turns a request into a body and a body into a reply; it knows no clock and no
//! network, so each case is a test of bytes. Vendors are data on a dialect (see `endpoint`).

use crate::failure::Failure;
use crate::message::{Reply, Request};
use bytes::Bytes;

pub mod anthropic;
pub mod aws_events;
pub mod bedrock;
pub mod converse;
pub mod events;
mod fields;
pub mod openai;
pub mod refusal;
pub mod reported;
mod turns;

/// How one call differs from another of the same dialect: what the endpoint knows and the request does not.
#[derive(Clone, Debug, Default)]
pub struct Wire {
    /// The model as the provider names it.
    pub model: String,
    /// Whether the answer comes as a stream of events.
    pub stream: bool,
    /// Whether to ask for prompt caching where it has to be asked for.
    pub cache_prompt: bool,
    /// Which spelling of the output limit an OpenAI-like server takes.
    pub limit_key: LimitKey,
    /// Whether the model is named in the body; Azure deployments name it in the path.
    pub model_in_body: bool,
}

/// The key of the output limit in OpenAI-like bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitKey {
    /// `max_completion_tokens`, which reasoning models insist on.
    #[default]
    MaxCompletionTokens,
    /// `max_tokens`, which compatible servers know.
    MaxTokens,
}

/// A wire format.
pub trait Dialect: Send + Sync {
    /// Path below the endpoint's base URL, beginning with `/`.
    fn path(&self, wire: &Wire) -> String;

    /// Headers that belong to the format, not to the vendor; content type excepted.
    fn headers(&self) -> &'static [(&'static str, &'static str)];

    /// The request body, in JSON. Equal requests give equal bytes.
    fn encode(&self, request: &Request, wire: &Wire) -> serde_json::Result<Vec<u8>>;

    /// The reply in a complete body of a success. Faults of the answer itself (empty, filtered, cut short) are
    /// not looked for here; see [`crate::dialect::refusal::inspect`].
    fn decode(&self, body: &[u8]) -> Result<Reply, Failure>;

    /// A reader of a stream of events.
    fn reader(&self) -> Box<dyn StreamReader>;
}

/// Puts a reply together from the pieces of a stream.
pub trait StreamReader: Send {
    /// Takes bytes as they came off the wire, cut anywhere.
    fn take(&mut self, bytes: &Bytes) -> Result<(), Failure>;

    /// Whether the closing event was seen; what follows it is of no interest.
    fn is_done(&self) -> bool;

    /// Bytes of answer text, thoughts and arguments received so far.
    fn received(&self) -> usize;

    /// The reply, once the stream has ended. An early end is [`crate::failure::FailureKind::Truncated`] and retryable.
    fn finish(self: Box<Self>) -> Result<Reply, Failure>;
}
