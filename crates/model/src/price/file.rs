//! The format of price files: the built-in one and `configs/prices.toml` of a project.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rate::Rate;

/// A price file.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PriceFile {
    /// Version of this format: 1, also when absent.
    pub schema_version: Option<u32>,
    /// Date of the list, such as 2026-11-16.
    pub version: Option<String>,
    /// The prices; the most specific match counts.
    pub price: Vec<PriceTable>,
}

/// `[[price]]`. It names `provider` and `model`, or `endpoint`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PriceTable {
    /// The seller, such as `openai`, `azure`, `anthropic`, `bedrock`, `together`, `prime` or `offline`.
    pub provider: Option<String>,
    /// The model's whole name, or a pattern in which `*` matches anything; case does not matter.
    pub model: Option<String>,
    /// Id of one endpoint, instead of provider and model.
    pub endpoint: Option<String>,
    /// Dollars per million tokens of input.
    pub input: Option<Rate>,
    /// Dollars per million tokens of output, thoughts included.
    pub output: Option<Rate>,
    /// Dollars per million tokens read from the provider's cache; absent: as input.
    pub cache_read: Option<Rate>,
    /// Dollars per million tokens written to the provider's cache; absent: as input.
    pub cache_write: Option<Rate>,
    /// Rates of calls with a long input.
    pub above: Option<TierTable>,
    /// Most tokens that one picture counts; absent: a bound for all known models.
    pub image_tokens: Option<u64>,
    /// Tokens that one call may read and write together; absent: unknown.
    pub context_window: Option<u64>,
    /// The source of the figures.
    pub source: Option<String>,
    /// When the figures were checked, such as 2026-11-16.
    pub checked: Option<String>,
}

/// `above`: the rates of a whole call whose input is longer than a limit.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TierTable {
    /// Input tokens, including cached ones, above which these rates apply.
    pub context_above: Option<u64>,
    /// Dollars per million tokens of input.
    pub input: Option<Rate>,
    /// Dollars per million tokens of output.
    pub output: Option<Rate>,
    /// Dollars per million tokens read from the cache; absent: as this input.
    pub cache_read: Option<Rate>,
    /// Dollars per million tokens written to the cache; absent: as this input.
    pub cache_write: Option<Rate>,
}
