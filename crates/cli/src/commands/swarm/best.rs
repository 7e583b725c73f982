//! `aec-bench swarm best`.

use std::path::PathBuf;

use aec_base::decimal::rounded;
use aec_base::name::Name;
use aec_evolve::event::Kind;
use aec_evolve::view::{EliteView, View};
use aec_evolve::workspace::Workspace;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::commands::evolve::export::write_files;
use crate::commands::evolve::words::{ARCHIVE, archive_text};
use crate::commands::evolve::{git, run};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Outcome, STRONG};
use crate::table::TableArguments;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench swarm best team-1\n  \
                        aec-bench swarm best team-1 --limit 3 --output best")]
pub(crate) struct SwarmBestArguments {
    /// Swarm, or the unique beginning of its id
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) limit: usize,
    /// Directory to write the files of the best candidate into; it must not exist
    #[arg(long, short, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) table: TableArguments,
}

#[derive(Serialize)]
pub(crate) struct Found {
    run: Name,
    best: Name,
    candidate: aec_base::digest::Digest,
    mean: Option<f64>,
    directory: Option<PathBuf>,
    archive: Vec<EliteView>,
}

pub(crate) fn best(context: &Context, arguments: &SwarmBestArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&ARCHIVE])?;
    let project = context.project(Vec::new())?;
    let view = View::read(&run(&project, Kind::Swarm, &arguments.run)?)?;
    let mut directory = None;
    if let Some(path) = &arguments.output {
        let workspace = Workspace::open(git(context)?, &project.root.join(&view.workspace))?;
        let candidate = workspace.load(view.best_candidate)?;
        directory = Some(write_files(context, path, &candidate)?);
    }
    let mean =
        view.candidates.iter().find(|candidate| candidate.name == view.best).and_then(|best| best.mean);
    let data = Found {
        run: view.run.clone(),
        best: view.best.clone(),
        candidate: view.best_candidate,
        mean,
        directory,
        archive: view.archive.iter().take(arguments.limit).cloned().collect(),
    };
    Outcome::new(context.format, &data, || {
        let mean = data.mean.map_or_else(String::new, |mean| format!("  mean reward {}", rounded(mean, 3)));
        let mut text = format!("{STRONG}{}{STRONG:#}{mean}\n", data.best);
        text.push_str(&archive_text(&data.archive, arguments.limit, view.cells));
        text
    })
}
