//! `aec-bench evolve report`.

use std::path::PathBuf;

use aec_base::file::write_atomic;
use aec_base::problem::Problem;
use aec_base::text;
use aec_evolve::FAMILY;
use aec_evolve::view::View;
use aec_evolve::workspace::Workspace;
use clap::{Args, ValueHint};

use crate::commands::evolve::words::{ARCHIVE, CYCLES, view_text};
use crate::commands::evolve::{any_run, git};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::output::Outcome;
use crate::table::{TableArguments, paragraph};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench evolve report cables-1\n  \
                        aec-bench evolve report cables-1 --diffs --html evolution.html")]
pub(crate) struct EvolveReportArguments {
    /// Run of an evolution or a swarm, or the unique beginning of its id
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Write an HTML page with everything
    #[arg(long, value_name = "FILE.html", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
    /// Show the changes made by every candidate
    #[arg(long)]
    pub(crate) diffs: bool,
    #[command(flatten)]
    pub(crate) table: TableArguments,
}

/// Most candidates whose changes are shown.
const MOST_DIFFS: usize = 500;

pub(crate) fn report(context: &Context, arguments: &EvolveReportArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&CYCLES, &ARCHIVE])?;
    let project = context.project(Vec::new())?;
    let directory = any_run(&project, &arguments.run)?;
    let mut view = View::read(&directory)?;
    let mut problems = Vec::new();
    if arguments.diffs || arguments.html.is_some() {
        // Everything but the changes is in the log, so without the workspace only the changes are missing.
        match git(context).and_then(|git| Ok(Workspace::open(git, &project.root.join(&view.workspace))?)) {
            Ok(workspace) => view.add_diffs(&workspace, MOST_DIFFS),
            Err(failure) => problems.push(without_changes(&view, &failure)),
        }
    }
    let mut written = None;
    if let Some(path) = &arguments.html {
        let path = context.absolute(path)?;
        write_atomic(&path, aec_web::evolution_page(&view).as_bytes())?;
        written = Some(path);
    }
    if !arguments.diffs {
        for candidate in &mut view.candidates {
            candidate.diff = None;
        }
    }
    let outcome = Outcome::new(context.format, &view, || paragraph(&view_text(&view)))?;
    let outcome = outcome.problems(problems).exit(Exit::Success);
    Ok(match written {
        Some(path) => outcome.remark(format!("Wrote {}.", text::printable(&path.to_string_lossy()))),
        None => outcome,
    })
}

fn without_changes(view: &View, failure: &Failure) -> Problem {
    let why = failure.problems.first().map_or_else(String::new, |problem| problem.what.clone());
    Problem::warning(format!("changes are not shown: {}", text::printable(&view.workspace)))
        .id(FAMILY.number(11))
        .why(why)
        .fix("put the workspace back in its place, with its repository")
}
