//! `aec-bench agent-entry`: the tool loop as a separate program, for containers and rooms. It reads its instructions
//! from variables and writes its results into files of the workspace.

use std::path::PathBuf;
use std::sync::Arc;

use aec_base::problem::Problem;
use aec_base::secret::Redactor;
use aec_run::agent_entry::{self, Place, Settings};
use clap::{Args, ValueHint};

use crate::commands::models;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::output::Outcome;

#[derive(Debug, Args)]
pub(crate) struct AgentEntryArguments {
    /// Directory to work in
    #[arg(long, value_name = "DIR", default_value = "/workspace", value_hint = ValueHint::DirPath)]
    pub(crate) workspace: PathBuf,
}

pub(crate) fn agent_entry(context: &Context, arguments: &AgentEntryArguments) -> Result<Outcome, Failure> {
    let env = context.surroundings()?.env;
    let settings = Settings::read(&env).map_err(|problems| Failure { exit: Exit::Usage, problems })?;
    let workspace = context.absolute(&arguments.workspace)?;
    if !workspace.is_dir() {
        let what = format!("{} is not a directory", workspace.display());
        return Err(Failure::usage(
            Problem::error(what).fix("name the directory to work in with --workspace"),
        ));
    }
    let redactor = Arc::new(Redactor::from_env(&env));
    let home = env.get("HOME").unwrap_or("/tmp").to_owned();
    let model = agent_entry::model(&settings, &env)?;
    let runtime = models::runtime()?;
    let report = runtime.block_on(agent_entry::run(settings, model, &Place { workspace, home }, redactor))?;
    let outcome = Outcome::new(context.format, &report, || format!("{}\n", report.line()))?;
    Ok(match &report.error {
        Some(error) => {
            outcome.problems(vec![Problem::error(error.clone()).fix("see trajectory.jsonl for the calls")])
        }
        None => outcome,
    })
}
