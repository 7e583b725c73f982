//! Failures of a model call: each has one kind, and says whether a retry can help.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meter::AccountKind;

/// The kind of a failure. Every failure has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The key is missing, wrong or not allowed to do this.
    Auth,
    /// The request is longer than the model's context.
    Overlong,
    /// The provider's filter refused the request or the answer.
    ContentFilter,
    /// The answer is empty.
    Empty,
    /// The answer stopped early: the token limit left nothing usable, or a stream ended too soon.
    Truncated,
    /// Too many requests or tokens for now.
    Rate,
    /// The provider is broken or overloaded.
    Server,
    /// No connection, a connection that broke, or silence for too long.
    Network,
    /// An answer that does not follow the provider's own format.
    Protocol,
    /// The provider refused the request itself: unknown model, bad parameter.
    Request,
    /// The call does not fit the budget, or a budget in money meets a model without a price.
    Budget,
    /// The call should be replayed, but is not on the cassette.
    Replay,
    /// The caller gave up.
    Cancelled,
}

impl FailureKind {
    /// Whether the answer was empty, for whatever reason. Other programs use one word for all of these.
    pub fn is_silence(self) -> bool {
        matches!(self, Self::Empty | Self::Truncated | Self::ContentFilter)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Overlong => "overlong",
            Self::ContentFilter => "content_filter",
            Self::Empty => "empty",
            Self::Truncated => "truncated",
            Self::Rate => "rate",
            Self::Server => "server",
            Self::Network => "network",
            Self::Protocol => "protocol",
            Self::Request => "request",
            Self::Budget => "budget",
            Self::Replay => "replay",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A model call that gave no answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{}: {message}", kind.name())]
pub struct Failure {
    /// The kind.
    pub kind: FailureKind,
    /// What happened, in one line; secrets are scrubbed before it leaves the client.
    pub message: String,
    /// HTTP status, if there was an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Whether the same request can succeed later.
    pub retryable: bool,
    /// The wait that the provider asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The account whose budget is used up, if that is why the call was not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<AccountKind>,
}

impl Failure {
    /// A failure that will occur again.
    pub fn lasting(kind: FailureKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, message, status: None, retryable: false, retry_after_ms: None, account: None }
    }

    /// A failure that may be temporary.
    pub fn passing(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { retryable: true, ..Self::lasting(kind, message) }
    }

    /// Shortens the message for display. The caller must have scrubbed secrets before.
    #[must_use]
    pub fn shorten(mut self) -> Self {
        const LONGEST: usize = 400;
        self.message = cut(self.message, LONGEST);
        self
    }

    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Adds the wait that the provider asks for.
    #[must_use]
    pub fn retry_after(mut self, wait: Option<Duration>) -> Self {
        self.retry_after_ms = wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        self
    }
}

/// A foreign text on one line, for a message. It is not cut so short that a secret could be split: [`Failure::shorten`]
/// cuts after secrets are scrubbed, since half a secret would not be recognised.
pub fn excerpt(text: &str) -> String {
    const ENOUGH: usize = 8000;
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    cut(line, ENOUGH)
}

fn cut(text: String, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
