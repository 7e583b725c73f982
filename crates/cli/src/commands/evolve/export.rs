//! `aec-bench evolve export`.

use std::path::{Path, PathBuf};

use aec_base::digest::Digest;
use aec_base::file::write_atomic;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_evolve::FAMILY;
use aec_evolve::workspace::candidate::Candidate;
use clap::{ArgGroup, Args, ValueHint};
use serde::Serialize;

use crate::commands::evolve::{candidate, workspace};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("target").args(["output", "prompt"]).required(true).multiple(true)),
    after_help = "Examples:\n  \
                  aec-bench evolve export workspaces/cables --prompt prompts/cables.md\n  \
                  aec-bench evolve export workspaces/cables evolve-cables-1-1 --output best"
)]
pub(crate) struct EvolveExportArguments {
    /// Workspace of the candidate
    #[arg(value_name = "WORKSPACE", value_hint = ValueHint::DirPath)]
    pub(crate) workspace: PathBuf,
    /// Candidate or label [default: the current files of the workspace]
    #[arg(value_name = "CANDIDATE")]
    pub(crate) candidate: Option<String>,
    /// Directory to write the candidate's files into; it must not exist
    #[arg(long, short, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    /// File to write the whole system prompt into, for `system_prompt_file` of an experiment; it must not exist
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) prompt: Option<PathBuf>,
}

#[derive(Serialize)]
struct Exported {
    candidate: Digest,
    name: Name,
    directory: Option<PathBuf>,
    prompt: Option<PathBuf>,
    files: usize,
}

pub(crate) fn export(context: &Context, arguments: &EvolveExportArguments) -> Result<Outcome, Failure> {
    let workspace = workspace(context, &arguments.workspace)?;
    let exported = candidate(&workspace, arguments.candidate.as_deref())?;
    if let Some(path) = &arguments.prompt {
        nothing_in_place(&context.absolute(path)?, "name a file that does not exist")?;
    }
    let directory = match &arguments.output {
        Some(path) => Some(write_files(context, path, &exported)?),
        None => None,
    };
    let prompt = match &arguments.prompt {
        Some(path) => {
            let path = context.absolute(path)?;
            write_atomic(&path, format!("{}\n", exported.system_prompt().trim_end()).as_bytes())?;
            Some(path)
        }
        None => None,
    };
    let data = Exported {
        candidate: exported.id,
        name: exported.name(),
        files: directory.as_ref().map_or(0, |_| exported.files.len()),
        directory,
        prompt,
    };
    Outcome::new(context.format, &data, || {
        let places = data.directory.iter().chain(&data.prompt);
        let places: Vec<String> = places.map(|path| path.display().to_string()).collect();
        format!("{}\n", places.join("\n"))
    })
}

/// An export never replaces anything.
fn nothing_in_place(path: &Path, fix: &str) -> Result<(), Failure> {
    if path.symlink_metadata().is_ok() {
        let problem = Problem::error("the destination of the export exists already").id(FAMILY.number(18));
        return Err(problem.fix(fix).in_file(path).into());
    }
    Ok(())
}

pub(crate) fn write_files(context: &Context, path: &Path, candidate: &Candidate) -> Result<PathBuf, Failure> {
    let directory = context.absolute(path)?;
    nothing_in_place(&directory, "name a directory that does not exist")?;
    for (path, content) in &candidate.files {
        let place = directory.join(path);
        if let Some(parent) = place.parent() {
            std::fs::create_dir_all(parent)?;
        }
        write_atomic(&place, content)?;
    }
    Ok(directory)
}
