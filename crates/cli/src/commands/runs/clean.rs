//! `aec-bench runs clean`.

use aec_base::settings::Setting;
use aec_base::text;
use aec_ledger::garbage::{self, Swept};
use aec_ledger::journal::recover;
use aec_run::session::hold;
use clap::Args;
use serde::Serialize;

use crate::arguments::LedgerRootArgument;
use crate::commands::ledger::open;
use crate::commands::{containers, modal};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench runs clean --dry-run\n  \
                        aec-bench runs clean")]
pub(crate) struct RunsCleanArguments {
    /// Show what would be removed and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Also remove task images from the container engine; they are built again when needed
    #[arg(long)]
    pub(crate) images: bool,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}

pub(crate) fn clean(context: &Context, arguments: &RunsCleanArguments) -> Result<Outcome, Failure> {
    let (project, ledger) = open(context, &arguments.ledger_root)?;
    // Files of a running run have no record yet, and a killed run may have records only in its journal.
    let mut held = Vec::new();
    for experiment in ledger.experiments()? {
        held.push(hold(&ledger.experiment(&experiment))?);
        recover(&ledger, &experiment, &project.settings.path(Setting::Jobs))?;
    }
    let swept = garbage::sweep(&ledger, arguments.dry_run)?;
    let left = containers::clean(&project, arguments.images, arguments.dry_run)?;
    let (sandboxes, problems) = match modal::clean(context, &project, arguments.dry_run) {
        Ok(count) => (count, Vec::new()),
        // Everything else is done already, so this is only a problem to report.
        Err(problem) => (0, vec![*problem]),
    };
    let data = CleanData { swept: &swept, left, sandboxes };
    let outcome = Outcome::new(context.format, &data, || clean_text(&data, arguments.dry_run))?;
    Ok(outcome.problems(problems))
}

#[derive(Serialize)]
struct CleanData<'a> {
    #[serde(flatten)]
    swept: &'a Swept,
    #[serde(flatten)]
    left: containers::Left,
    /// Sandboxes at Modal whose run has ended.
    sandboxes: usize,
}

fn clean_text(data: &CleanData<'_>, dry_run: bool) -> String {
    let verb = if dry_run { "Would remove" } else { "Removed" };
    let mut shown = format!(
        "{verb} {} ({} bytes) that no record refers to\n",
        text::count(data.swept.removed, "content"),
        data.swept.bytes
    );
    for (count, noun) in
        [(data.left.containers, "container that was left behind"), (data.left.images, "image of tasks")]
    {
        if count > 0 {
            let (first, rest) = noun.split_once(' ').unwrap_or((noun, ""));
            shown.push_str(&format!("{verb} {} {rest}\n", text::count(count, first)));
        }
    }
    if data.sandboxes > 0 {
        let verb = if dry_run { "Would end" } else { "Ended" };
        shown.push_str(&format!("{verb} {} at Modal whose run has ended\n", modal::counted(data.sandboxes)));
    }
    shown
}
