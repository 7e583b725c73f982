//! Wire formats. A dialect encodes a request and decodes a reply; it uses no clock and no network, so its tests compare
//! bytes. Vendors are data on a dialect (see `endpoint`).

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

/// What the endpoint adds to a request.
#[derive(Clone, Debug, Default)]
pub struct Wire {
    /// The model as the provider names it.
    pub model: String,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// Whether to request prompt caching, in formats where that is explicit.
    pub cache_prompt: bool,
    /// The name of the output limit for an OpenAI-like server.
    pub limit_key: LimitKey,
    /// Whether the body names the model; Azure deployments have it in the path.
    pub model_in_body: bool,
}

/// The key of the output limit in OpenAI-like bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitKey {
    /// `max_completion_tokens`, which reasoning models require.
    #[default]
    MaxCompletionTokens,
    /// `max_tokens`, which compatible servers understand.
    MaxTokens,
}

pub trait Dialect: Send + Sync {
    /// Path below the endpoint's base URL, beginning with `/`.
    fn path(&self, wire: &Wire) -> String;

    /// Headers of the format, not of the vendor; without the content type.
    fn headers(&self) -> &'static [(&'static str, &'static str)];

    /// The request body, in JSON. Equal requests give equal bytes.
    fn encode(&self, request: &Request, wire: &Wire) -> serde_json::Result<Vec<u8>>;

    /// Decodes a complete body of a success. [`crate::dialect::refusal::inspect`] finds faults of the answer itself
    /// (empty, filtered, cut short).
    fn decode(&self, body: &[u8]) -> Result<Reply, Failure>;

    fn reader(&self) -> Box<dyn StreamReader>;
}

/// Assembles a reply from the pieces of a stream.
pub trait StreamReader: Send {
    /// Takes bytes from the network, cut at any point.
    fn take(&mut self, bytes: &Bytes) -> Result<(), Failure>;

    /// Whether the closing event was seen; anything after it is ignored.
    fn is_done(&self) -> bool;

    /// Bytes of answer text, thoughts and arguments received so far.
    fn received(&self) -> usize;

    /// The reply, once the stream has ended. An early end is [`crate::failure::FailureKind::Truncated`] and retryable.
    fn finish(self: Box<Self>) -> Result<Reply, Failure>;
}
