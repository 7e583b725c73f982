//! `aec-bench swarm history`.

use aec_evolve::event::Kind;
use clap::Args;

use crate::commands::evolve::history::{RUNS, list};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::TableArguments;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench swarm history\n  \
                        aec-bench swarm history --limit 5 --json")]
pub(crate) struct SwarmHistoryArguments {
    /// Show at most this many, the latest
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) table: TableArguments,
}

pub(crate) fn swarm_history(
    context: &Context,
    arguments: &SwarmHistoryArguments,
) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&RUNS])?;
    list(context, Kind::Swarm, arguments.limit)
}
