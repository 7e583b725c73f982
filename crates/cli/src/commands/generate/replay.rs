//! `aec-bench generate replay`.

use std::path::PathBuf;

use aec_author::manifest::FAMILY;
use aec_author::replay;
use aec_base::problem::Problem;
use aec_base::text;
use clap::{Args, ValueHint};

use crate::arguments::SandboxArgument;
use crate::commands::generate::task::engines;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench generate replay tasks/generated/cables/generation-manifest.json")]
pub(crate) struct ReplayArguments {
    /// Path of generation-manifest.json
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) manifest: PathBuf,
    /// Write the result into this directory; it must not exist
    #[arg(long, short, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
}

pub(crate) fn replay(context: &Context, arguments: &ReplayArguments) -> Result<Outcome, Failure> {
    let manifest = context.absolute(&arguments.manifest)?;
    let output = arguments.output.as_ref().map(|output| context.absolute(output)).transpose()?;
    let replay = replay::replay(&engines(context, &arguments.sandbox), &manifest, output.as_deref())?;
    let problems: Vec<Problem> = replay
        .different
        .iter()
        .map(|difference| {
            Problem::error(difference.what.clone())
                .id(FAMILY.number(20))
                .about(&difference.task)
                .fix("the task was edited, or generated elsewhere; --output writes what the manifest describes")
                .in_file(manifest.with_file_name(&difference.task))
        })
        .collect();
    let outcome = Outcome::new(context.format, &replay, String::new)?;
    let count = text::count(replay.instances, "instance");
    Ok(outcome.remark(format!("{} of {count} identical to the byte.", replay.identical)).problems(problems))
}
