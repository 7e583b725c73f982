//! Arguments of the commands that call models.

use std::net::SocketAddr;
use std::path::PathBuf;

use aec_model::money::MicroDollars;
use aec_run::terms::{Caps, Limit};
use clap::{Args, Subcommand, ValueHint};

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Tell what would be called for a model, with which key, at what price, and whether it answers
    Check(ModelsCheckArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ModelsCheckArguments {
    /// Models or endpoint ids; every endpoint of the project when absent
    #[arg(value_name = "MODEL")]
    pub(crate) models: Vec<String>,
    /// Only tell what would be called; call nothing
    #[arg(long)]
    pub(crate) no_call: bool,
    #[command(flatten)]
    pub(crate) endpoints: EndpointsArgument,
    #[command(flatten)]
    pub(crate) tape: TapeArguments,
}

/// The flag rung of `paths.endpoints`.
#[derive(Debug, Args)]
pub(crate) struct EndpointsArgument {
    /// Endpoints file to use instead of the configured one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) endpoints: Option<PathBuf>,
}

/// Whether calls go out, are recorded, or come from a recording.
#[derive(Debug, Default, Args)]
pub(crate) struct TapeArguments {
    /// Record every model call in this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["replay", "cache"])]
    pub(crate) record: Option<PathBuf>,
    /// Answer every model call from a recording; never call a model
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "cache")]
    pub(crate) replay: Option<PathBuf>,
    /// Answer model calls from the project's cache where it has them, and add those it has not
    #[arg(long)]
    pub(crate) cache: bool,
}

impl TapeArguments {
    /// Where answers of models come from, as sessions name it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            tape if tape.record.is_some() => "record",
            tape if tape.replay.is_some() => "replay",
            tape if tape.cache => "cache",
            _ => "live",
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum GatewayCommand {
    /// Serve models on loopback to whoever holds a token; keys stay here
    Serve(GatewayServeArguments),
}

#[derive(Debug, Args)]
pub(crate) struct GatewayServeArguments {
    /// Models or endpoint ids that may be called
    #[arg(long, short, value_name = "MODEL", required = true)]
    pub(crate) model: Vec<String>,
    /// Address to listen on; it must be on loopback
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Listen on this Unix socket as well
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) socket: Option<PathBuf>,
    /// How many tokens to issue, each with a budget of its own (`budget.trial_usd`, `budget.trial_tokens`)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) tokens: u16,
    /// Most dollars that the holder of one token may spend
    #[arg(long, value_name = "USD")]
    pub(crate) token_max_cost: Option<Limit<MicroDollars>>,
    /// Most calls at once for each token
    #[arg(long, value_name = "N", default_value_t = aec_model::gateway::Grant::USUAL_IN_FLIGHT, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_in_flight: u32,
    #[command(flatten)]
    pub(crate) budget: Caps,
    #[command(flatten)]
    pub(crate) endpoints: EndpointsArgument,
    #[command(flatten)]
    pub(crate) tape: TapeArguments,
}
