//! What can go wrong with a model call: one kind each, and whether trying again can help.

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
    /// The model said nothing.
    Empty,
    /// The answer stopped before its end: the token limit left nothing usable, or a stream ended early.
    Truncated,
    /// Too many requests or tokens for now.
    Rate,
    /// The provider is broken or overloaded.
    Server,
    /// No connection, a connection that broke, or silence for too long.
    Network,
    /// An answer that does not follow the provider's own format.
    Protocol,
    /// The provider refused the request as it is: unknown model, bad parameter.
    Request,
    /// The call does not fit the budget, or a budget in money meets a model without a price.
    Budget,
    /// Replay was asked for and the call is not on the cassette.
    Replay,
    /// The caller gave up.
    Cancelled,
}

impl FailureKind {
    /// Whether the model said nothing, whatever kept it from speaking. Programs of others have one word for it.
    pub fn is_silence(self) -> bool {
        matches!(self, Self::Empty | Self::Truncated | Self::ContentFilter)
    }

    /// The name as written in files.
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
    /// What kind.
    pub kind: FailureKind,
    /// What happened, in one line; secrets are scrubbed before it leaves the client.
    pub message: String,
    /// HTTP status, if there was an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Whether the same request can succeed later.
    pub retryable: bool,
    /// How long the provider asks to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Whose budget is used up, when that is why the call was not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<AccountKind>,
}

impl Failure {
    /// A failure that will happen again.
    pub fn lasting(kind: FailureKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, message, status: None, retryable: false, retry_after_ms: None, account: None }
    }

    /// A failure that may go away.
    pub fn passing(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { retryable: true, ..Self::lasting(kind, message) }
    }

    /// With a message short enough to be read. To be called when secrets have been scrubbed.
    #[must_use]
    pub fn shorten(mut self) -> Self {
        const LONGEST: usize = 400;
        self.message = cut(self.message, LONGEST);
        self
    }

    /// With the HTTP status.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// With the wait that the provider asks for.
    #[must_use]
    pub fn retry_after(mut self, wait: Option<Duration>) -> Self {
        self.retry_after_ms = wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        self
    }
}

/// A foreign text on one line, for a message. It is long enough to hold any secret whole: what is shown is cut only
/// after secrets are scrubbed ([`Failure::shorten`]), since half a secret would not be recognised.
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
