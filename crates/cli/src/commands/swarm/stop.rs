//! `aec-bench swarm stop`.

use aec_evolve::event::Kind;
use clap::Args;

use crate::commands::evolve::stop::{EvolveStopArguments, ask_to_stop};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench swarm stop team-1\n  \
                        aec-bench swarm stop team-1 --agent agent-1")]
pub(crate) struct SwarmStopArguments {
    #[command(flatten)]
    pub(crate) stop: EvolveStopArguments,
    /// Stop only this agent, at once
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
}

pub(crate) fn stop_swarm(context: &Context, arguments: &SwarmStopArguments) -> Result<Outcome, Failure> {
    ask_to_stop(context, Kind::Swarm, &arguments.stop, arguments.agent.as_deref())
}
