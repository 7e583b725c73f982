//! Arguments of the commands for those who develop: `dev`.

use std::path::PathBuf;
use std::time::Duration;

use aec_model_server::{Fault, Range, duration};
use clap::{Args, Subcommand, ValueHint};

#[derive(Debug, Subcommand)]
pub(crate) enum DevCommand {
    /// Serve a model that costs nothing, in the formats of OpenAI, Azure, Anthropic and Bedrock
    ServeModel(ServeModelArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ServeModelArguments {
    /// Port on 127.0.0.1; a free one when absent
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
    /// Seed of answers and faults
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Time until an answer begins: 50ms, or 20ms..2s
    #[arg(long, value_name = "TIME", default_value = "0")]
    pub(crate) latency: Range<Duration>,
    /// How fast streams flow; at once when absent
    #[arg(long, value_name = "N")]
    pub(crate) tokens_per_second: Option<f64>,
    /// Length of drawn answers: 40, or 16..64
    #[arg(long, value_name = "N", default_value = "16..64")]
    pub(crate) output_tokens: Range<u32>,
    /// Share of the drawn answers that call a tool where tools are offered
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) tool_calls: f64,
    /// Answer with the replies of this file, one per turn
    #[arg(long, value_name = "FILE", conflicts_with = "echo", value_hint = ValueHint::FilePath)]
    pub(crate) script: Option<PathBuf>,
    /// Answer with the last text of the user
    #[arg(long)]
    pub(crate) echo: bool,
    /// Let this go wrong for a share of the requests, such as rate=0.1; see docs/models.md
    #[arg(long = "fault", value_name = "KIND=SHARE")]
    pub(crate) faults: Vec<Fault>,
    /// The wait that rate limits ask for
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub(crate) retry_after: Duration,
    /// Refuse requests above this many at a time
    #[arg(long, value_name = "N")]
    pub(crate) limit_in_flight: Option<usize>,
    /// Refuse requests above this many per minute
    #[arg(long, value_name = "N")]
    pub(crate) requests_per_minute: Option<u32>,
    /// Refuse requests without the key that this variable holds
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) key: Option<String>,
}
