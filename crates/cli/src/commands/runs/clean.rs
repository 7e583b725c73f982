//! `aec-bench runs clean`.

use std::path::{Path, PathBuf};

use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_base::{staging, text};
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
    let rooms = aec_sandbox::sweep(arguments.dry_run);
    let directories = abandoned(&project, arguments.dry_run);
    let left = containers::clean(&project, arguments.images, arguments.dry_run)?;
    let (sandboxes, problems) = match modal::clean(context, &project, arguments.dry_run) {
        Ok(count) => (count, Vec::new()),
        // Everything else is done already, so this is only a problem to report.
        Err(problem) => (0, vec![*problem]),
    };
    let data = CleanData { swept: &swept, rooms, directories, left, sandboxes };
    let outcome = Outcome::new(context.format, &data, || clean_text(&data, arguments.dry_run))?;
    Ok(outcome.problems(problems))
}

/// Removes what killed processes left where the system keeps temporary files and where this program makes files that
/// appear whole, and returns the number of these directories and files.
fn abandoned(project: &Project, dry_run: bool) -> usize {
    let own = [Setting::Tasks, Setting::Datasets, Setting::Ledger, Setting::Prime, Setting::Templates];
    let own = own.map(|setting| project.settings.path(setting));
    let places = own.iter().map(PathBuf::as_path).chain([project.root.as_path()]);
    // A place that does not exist or cannot be read has nothing to remove.
    let swept = |place: &Path| staging::sweep(place, dry_run).unwrap_or(0);
    places.map(swept).sum::<usize>() + swept(&std::env::temp_dir())
}

#[derive(Serialize)]
struct CleanData<'a> {
    #[serde(flatten)]
    swept: &'a Swept,
    /// Rooms of ended processes whose control groups were left behind.
    rooms: usize,
    /// Temporary directories and half-written files of ended processes.
    directories: usize,
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
    for (count, first, rest) in [
        (data.rooms, "room", "whose run has ended"),
        (data.directories, "leftover", "of killed runs, evaluations and exports"),
        (data.left.containers, "container", "that was left behind"),
        (data.left.images, "image", "of tasks"),
    ] {
        if count > 0 {
            shown.push_str(&format!("{verb} {} {rest}\n", text::count(count, first)));
        }
    }
    if data.sandboxes > 0 {
        let verb = if dry_run { "Would end" } else { "Ended" };
        shown.push_str(&format!("{verb} {} at Modal whose run has ended\n", modal::counted(data.sandboxes)));
    }
    shown
}
