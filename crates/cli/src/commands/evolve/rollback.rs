//! `aec-bench evolve rollback`.

use std::path::PathBuf;

use aec_base::digest::Digest;
use aec_base::name::Name;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::commands::evolve::{candidate, short, workspace};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench evolve rollback workspaces/cables evolve-cables-1-0")]
pub(crate) struct EvolveRollbackArguments {
    /// Workspace of the candidate
    #[arg(value_name = "WORKSPACE", value_hint = ValueHint::DirPath)]
    pub(crate) workspace: PathBuf,
    /// Candidate or label
    #[arg(value_name = "CANDIDATE")]
    pub(crate) candidate: String,
}

#[derive(Serialize)]
pub(crate) struct RolledBack {
    workspace: PathBuf,
    candidate: Digest,
    name: Name,
    /// The candidate that was in the workspace before.
    before: Digest,
}

pub(crate) fn rollback(context: &Context, arguments: &EvolveRollbackArguments) -> Result<Outcome, Failure> {
    let workspace = workspace(context, &arguments.workspace)?;
    let _held = workspace.hold()?;
    let target = candidate(&workspace, Some(&arguments.candidate))?;
    // The user's edits are kept in git before they are replaced.
    let before = workspace.keep_here()?;
    workspace.show(&target)?;
    let data = RolledBack {
        workspace: workspace.path().to_owned(),
        candidate: target.id,
        name: target.name(),
        before: before.id,
    };
    let outcome = Outcome::new(context.format, &data, || format!("{}\n", data.name))?;
    Ok(outcome.remark(format!("The previous candidate, {}, is kept.", short(data.before))))
}
