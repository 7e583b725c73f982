//! `aec-bench evolve stop`.

use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::text;
use aec_evolve::FAMILY;
use aec_evolve::event::Kind;
use aec_evolve::view::View;
use aec_run::control::Wish;
use clap::Args;
use serde::Serialize;

use crate::commands::evolve::run;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench evolve stop cables-1\n  \
                        aec-bench evolve stop cables-1 --force")]
pub(crate) struct EvolveStopArguments {
    /// Run, or the unique beginning of its id
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Cancel the trials under way instead of waiting for them
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Serialize)]
pub(crate) struct Stopping {
    run: Name,
    agent: Option<String>,
    force: bool,
    running: bool,
}

pub(crate) fn stop(context: &Context, arguments: &EvolveStopArguments) -> Result<Outcome, Failure> {
    ask_to_stop(context, Kind::Evolution, arguments, None)
}

pub(crate) fn ask_to_stop(
    context: &Context,
    kind: Kind,
    arguments: &EvolveStopArguments,
    agent: Option<&str>,
) -> Result<Outcome, Failure> {
    let project = context.project(Vec::new())?;
    let directory = run(&project, kind, &arguments.run)?;
    if let Some(agent) = agent {
        let view = View::read(&directory)?;
        if !view.agents.iter().any(|known| known.name == agent) {
            let names: Vec<&str> = view.agents.iter().map(|agent| agent.name.as_str()).collect();
            let what = format!("`{}` is not an agent of {}", text::printable(agent), directory.run);
            let problem = Problem::error(what).id(FAMILY.number(36));
            return Err(problem.fix(format!("name {}", text::one_of(&names))).into());
        }
    }
    let running = directory.is_carried_out();
    if running {
        let wish = if arguments.force { Wish::GiveUp } else { Wish::Finish };
        directory.ask_to_stop(wish, agent)?;
    }
    let data =
        Stopping { run: directory.run, agent: agent.map(str::to_owned), force: arguments.force, running };
    let outcome = Outcome::new(context.format, &data, String::new)?;
    Ok(outcome.remark(match (running, agent) {
        (false, _) => format!("{} is not running.", data.run),
        (true, Some(agent)) => format!("Asked {agent} of {} to stop.", data.run),
        (true, None) => {
            format!("Asked {} to stop. Go on with `aec-bench {} resume {}`.", data.run, kind.name(), data.run)
        }
    }))
}
