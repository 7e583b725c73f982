//! `aec-bench swarm`.

pub(crate) mod best;
pub(crate) mod history;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod status;
pub(crate) mod stop;

use clap::Subcommand;

use crate::commands::evolve::resume::EvolveResumeArguments;
use crate::commands::swarm::best::SwarmBestArguments;
use crate::commands::swarm::history::SwarmHistoryArguments;
use crate::commands::swarm::run::SwarmRunArguments;
use crate::commands::swarm::status::SwarmStatusArguments;
use crate::commands::swarm::stop::SwarmStopArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum SwarmCommand {
    /// Improve a workspace with many agents at once, with one archive and one budget
    Run(Box<SwarmRunArguments>),
    /// Continue a swarm that was stopped or killed
    #[command(after_help = "Examples:\n  \
                            aec-bench swarm resume team-2 --max-total-tokens 500000")]
    Resume(Box<EvolveResumeArguments>),
    /// Ask a swarm, or one of its agents, to stop
    Stop(SwarmStopArguments),
    /// Show the progress of a swarm: agents, archive, budget
    Status(SwarmStatusArguments),
    /// List swarms
    History(SwarmHistoryArguments),
    /// Show the best candidates of a swarm, and export the best
    Best(SwarmBestArguments),
}

impl SwarmCommand {
    pub(crate) fn execute(self, context: &Context) -> Result<Outcome, Failure> {
        match self {
            Self::Run(arguments) => run::swarm(context, &arguments),
            Self::Resume(arguments) => resume::resume_swarm(context, &arguments),
            Self::Stop(arguments) => stop::stop_swarm(context, &arguments),
            Self::Status(arguments) => status::status(context, &arguments),
            Self::History(arguments) => history::swarm_history(context, &arguments),
            Self::Best(arguments) => best::best(context, &arguments),
        }
    }
}
