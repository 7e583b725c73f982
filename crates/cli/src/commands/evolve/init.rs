//! `aec-bench evolve init`.

use std::path::PathBuf;

use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::text;
use aec_evolve::workspace::Workspace;
use aec_run::experiment::Harness;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::commands::evolve::{git, harness_names};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench evolve init workspaces/beams\n  \
                        aec-bench evolve init workspaces/pipes --harness direct --name pipes-v2")]
pub(crate) struct EvolveInitArguments {
    /// Directory of the workspace; it must be empty or not exist
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) path: PathBuf,
    /// Name of the workspace [default: the name of its directory]
    #[arg(long, short, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Harness that the prompt is written for
    #[arg(long, short = 'a', visible_alias = "adapter", value_name = "NAME", default_value = "tool_loop", value_parser = harness_names())]
    pub(crate) harness: String,
}

#[derive(Serialize)]
struct Made {
    workspace_path: PathBuf,
    name: Name,
    harness: &'static str,
    candidate: Digest,
}

pub(crate) fn init(context: &Context, arguments: &EvolveInitArguments) -> Result<Outcome, Failure> {
    let path = context.absolute(&arguments.path)?;
    let given = match &arguments.name {
        Some(name) => name.clone(),
        None => path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
    };
    let name = Name::parse(&given).map_err(|error| {
        Failure::usage(
            Problem::error(format!("the name `{}` {error}", text::printable(&given)))
                .fix("pass --name with letters, digits, `.`, `_` and `-`"),
        )
    })?;
    let harness = Harness::parse(&arguments.harness).unwrap_or(Harness::ToolLoop);
    let workspace = Workspace::init(git(context)?, &path, &name, harness)?;
    let here = workspace.here()?;
    let data = Made { workspace_path: path, name, harness: harness.name(), candidate: here.id };
    let outcome = Outcome::new(context.format, &data, || format!("{}\n", data.workspace_path.display()))?;
    Ok(outcome.remark(format!(
        "{} begins with {}. Edit prompts/system.md, then name the workspace in an evolution file.",
        data.name,
        here.name()
    )))
}
