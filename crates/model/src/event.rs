//! Events of a call, for logs, trajectories and cassettes. A replayed call gives the same events.

use aec_base::secret::Redactor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::message::Usage;
use crate::money::MicroDollars;

/// An event of a call. Durations are those of the live call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum CallEvent {
    /// A request was sent.
    Attempt {
        /// Counted from 1.
        attempt: u32,
        /// The label of the endpoint.
        endpoint: String,
        /// The most that it can cost: this is charged if its end is never known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_most: Option<Charged>,
    },
    /// The attempt failed.
    Failed {
        /// Counted from 1.
        attempt: u32,
        /// The failure.
        failure: Failure,
        /// How long the attempt took.
        elapsed_ms: u64,
        /// The wait before the next attempt; absent when there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_ms: Option<u64>,
        /// What it may have cost nevertheless; absent when nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        charged: Option<Charged>,
    },
    /// The attempt was answered.
    Answered {
        /// Counted from 1.
        attempt: u32,
        /// How long the attempt took.
        elapsed_ms: u64,
        /// The tokens it used.
        usage: Option<Usage>,
        /// What it cost; absent when the model has no price.
        cost: Option<MicroDollars>,
        /// Upper bound of its tokens, when the provider did not report them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens_at_most: Option<u64>,
        /// What the provider reported, if it is more than this call can have used. It is not charged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        implausible: Option<Usage>,
    },
}

impl CallEvent {
    /// Scrubs text from people and providers. Returns whether there was anything to scrub.
    pub fn scrub(&mut self, redactor: &Redactor) -> bool {
        match self {
            Self::Attempt { endpoint, attempt: _, at_most: _ } => redactor.scrub_text(endpoint),
            Self::Failed { failure, .. } => redactor.scrub_text(&mut failure.message),
            Self::Answered { .. } => false,
        }
    }
}

/// The cost of an attempt, or its upper bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Charged {
    /// The provider's counts, if it reported them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Tokens, exact or as an upper bound.
    pub tokens: u64,
    /// Their price; absent when the model has none.
    pub cost: Option<MicroDollars>,
}
