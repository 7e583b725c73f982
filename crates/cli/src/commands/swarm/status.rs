//! `aec-bench swarm status`.

use aec_evolve::event::Kind;
use aec_evolve::view::View;
use clap::Args;

use crate::commands::evolve::run;
use crate::commands::evolve::words::{ARCHIVE, archive_text, head};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::{Table, TableArguments, paragraph};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench swarm status team-1")]
pub(crate) struct SwarmStatusArguments {
    /// Swarm, or the unique beginning of its id
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) table: TableArguments,
}

const AGENTS: [&str; 5] = ["AGENT", "CYCLE", "WAY", "WITHOUT PROGRESS", "DOING"];

pub(crate) fn status(context: &Context, arguments: &SwarmStatusArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&AGENTS, &ARCHIVE])?;
    let project = context.project(Vec::new())?;
    let view = View::read(&run(&project, Kind::Swarm, &arguments.run)?)?;
    Outcome::new(context.format, &view, || {
        let mut text = paragraph(&head(&view));
        let mut table = Table::new(AGENTS).keyed().spare(["WAY"]).cut(["AGENT"]).wrap(["DOING"]);
        for agent in &view.agents {
            table.row([
                agent.name.clone(),
                agent.cycle.to_string(),
                agent.way.name().to_owned(),
                agent.without_progress.to_string(),
                agent.retired.as_ref().map_or_else(|| agent.doing.clone(), |why| format!("retired: {why}")),
            ]);
        }
        text.push('\n');
        text.push_str(&table.render());
        text.push_str(&archive_text(&view.archive, 10, view.cells));
        text
    })
}
