//! The format of price files: the one that is compiled in and `configs/prices.toml` of a project.

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
    /// The prices; the most specific one that matches counts.
    pub price: Vec<PriceTable>,
}

/// `[[price]]`. It names `provider` and `model`, or `endpoint`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PriceTable {
    /// Who sells it, such as `openai`, `azure`, `anthropic`, `bedrock`, `together`, `prime` or `offline`.
    pub provider: Option<String>,
    /// The model's whole name, or a pattern in which `*` stands for anything; capitals do not matter.
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
    /// Most tokens that one picture counts; absent: a bound that holds for every model known.
    pub image_tokens: Option<u64>,
    /// Tokens that one call may read and write together; absent: not known.
    pub context_window: Option<u64>,
    /// Where the figures come from.
    pub source: Option<String>,
    /// When they were looked at, such as 2026-11-16.
    pub checked: Option<String>,
}

/// `above`: the rates of a whole call whose input is longer than a limit.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TierTable {
    /// Input tokens, cached ones included, above which these rates hold.
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
