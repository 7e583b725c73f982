//! `aec-bench init`.

use std::path::{Path, PathBuf};

use aec_task::scaffold::{Action, ProjectScaffold, Written, new_project};
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::commands::schema;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::Table;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench init bridge-tasks\n  \
                        aec-bench init bridge-tasks --no-example --force")]
pub(crate) struct InitArguments {
    /// Directory of the project; created if it does not exist
    #[arg(default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
    /// Rewrite the project's files if they exist (never .env)
    #[arg(long)]
    pub(crate) force: bool,
    /// Leave out the example task
    #[arg(long)]
    pub(crate) no_example: bool,
}

#[derive(Serialize)]
struct Data {
    root: PathBuf,
    files: Vec<Written>,
}

pub(crate) fn init(context: &Context, arguments: &InitArguments) -> Result<Outcome, Failure> {
    let root = context.absolute(&arguments.directory)?;
    let files = scaffold(&root, arguments.force, !arguments.no_example)?;
    let data = Data { root, files };
    let cd = if arguments.directory == Path::new(".") {
        String::new()
    } else {
        format!("cd {} && ", arguments.directory.display())
    };
    let outcome = Outcome::new(context.format, &data, String::new)?;
    let mut table = Table::facts();
    for written in &data.files {
        table.row([action(written), &written.path]);
    }
    Ok(outcome
        .remark(table.render())
        .remark(format!("The project is ready. Next: {cd}aec-bench task validate --all")))
}

/// Creates the project. This is also the first step of `quickstart`.
pub(crate) fn scaffold(root: &Path, force: bool, example: bool) -> Result<Vec<Written>, Failure> {
    let schemas = schema::all();
    Ok(new_project(root, &ProjectScaffold { force, example, schemas: &schemas })?)
}

fn action(written: &Written) -> &'static str {
    match written.action {
        Action::Created => "created",
        Action::Replaced => "replaced",
        Action::Extended => "extended",
        Action::Kept => "kept",
    }
}
