//! `aec-bench evolve diff`.

use std::path::PathBuf;

use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::text;
use aec_evolve::FAMILY;
use aec_evolve::workspace::candidate::Candidate;
use aec_evolve::workspace::diff::diff as differences;
use aec_evolve::workspace::{Version, Workspace};
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::commands::evolve::{candidate, workspace};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench evolve diff workspaces/cables evolve-cables-1-1\n  \
                        aec-bench evolve diff workspaces/cables evolve-cables-1-0 evolve-cables-1-1")]
pub(crate) struct EvolveDiffArguments {
    /// Workspace of the candidates
    #[arg(value_name = "WORKSPACE", value_hint = ValueHint::DirPath)]
    pub(crate) workspace: PathBuf,
    /// Candidate or label
    #[arg(value_name = "CANDIDATE")]
    pub(crate) first: String,
    /// Second candidate [default: the first is compared with its parent]
    #[arg(value_name = "CANDIDATE")]
    pub(crate) second: Option<String>,
}

#[derive(Serialize)]
struct Compared {
    from: Name,
    to: Name,
    diff: String,
}

pub(crate) fn diff(context: &Context, arguments: &EvolveDiffArguments) -> Result<Outcome, Failure> {
    let workspace = workspace(context, &arguments.workspace)?;
    let first = candidate(&workspace, Some(&arguments.first))?;
    let (before, after) = match &arguments.second {
        Some(second) => (first, candidate(&workspace, Some(second))?),
        None => (parent_of(&workspace, &first)?, first),
    };
    let data = Compared { from: before.name(), to: after.name(), diff: differences(&before, &after) };
    let outcome = Outcome::new(context.format, &data, || diff_text(&data.diff))?;
    Ok(if data.diff.is_empty() { outcome.remark("They are the same.") } else { outcome })
}

/// A difference, safe to print: text written by a model cannot move the cursor.
pub(crate) fn diff_text(diff: &str) -> String {
    let lines: Vec<_> = diff.lines().map(text::printable).collect();
    if lines.is_empty() { String::new() } else { format!("{}\n", lines.join("\n")) }
}

fn parent_of(workspace: &Workspace, candidate: &Candidate) -> Result<Candidate, Failure> {
    let version = workspace.history()?.into_iter().find(|version| version.candidate == candidate.id);
    match version.as_ref().map(|version: &Version| version.parents.as_slice()) {
        Some([parent, ..]) => Ok(workspace.load(*parent)?),
        _ => {
            let what = format!("{} has no parent candidate", candidate.name());
            Err(Problem::error(what).id(FAMILY.number(17)).fix("name two candidates").into())
        }
    }
}
