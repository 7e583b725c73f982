//! What happens during a call, for logs, trajectories and cassettes. A replayed call gives the same events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::message::Usage;
use crate::money::MicroDollars;

/// One thing that happened during a call. Durations are as they were when the call was live.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum CallEvent {
    /// A request went out.
    Attempt {
        /// Counted from 1.
        attempt: u32,
        /// Which endpoint, by its label.
        endpoint: String,
        /// What it can take at most: so much is spent if nobody sees how it ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_most: Option<Charged>,
    },
    /// It failed.
    Failed {
        /// Counted from 1.
        attempt: u32,
        /// How.
        failure: Failure,
        /// How long the attempt took.
        elapsed_ms: u64,
        /// How long until the next one; absent when there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_ms: Option<u64>,
        /// What it may have taken all the same; absent when that is nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        charged: Option<Charged>,
    },
    /// It was answered.
    Answered {
        /// Counted from 1.
        attempt: u32,
        /// How long the attempt took.
        elapsed_ms: u64,
        /// What it took.
        usage: Option<Usage>,
        /// What it cost; absent when the model has no price.
        cost: Option<MicroDollars>,
        /// Tokens at most, when the provider did not say how many.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens_at_most: Option<u64>,
    },
}

/// What an attempt took, or may have taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Charged {
    /// What the provider counted, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Tokens, or at most so many.
    pub tokens: u64,
    /// Their price; absent when the model has none.
    pub cost: Option<MicroDollars>,
}
