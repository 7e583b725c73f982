//! `aec-bench task new`.

use std::path::PathBuf;

use aec_base::problem::Problem;
use aec_base::settings::Setting;
use aec_task::id::TaskId;
use aec_task::scaffold::{Written, new_task};
use aec_task::seed;
use aec_task::task::DISCIPLINES;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::arguments::TasksRootArgument;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench task new civil/pipe-capacity\n  \
                        aec-bench task new civil/culvert-capacity --from-seed culvert-capacity")]
pub(crate) struct TaskNewArguments {
    /// Id of the new task, such as civil/culvert-capacity [default: from the seed]
    #[arg(required_unless_present = "from_seed")]
    pub(crate) id: Option<String>,
    /// Fill in title, description, givens and answers from this note: a file, or its name in paths.seeds
    #[arg(long, value_name = "SEED", value_hint = ValueHint::FilePath)]
    pub(crate) from_seed: Option<String>,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

#[derive(Serialize)]
struct Data {
    task_id: TaskId,
    path: PathBuf,
    files: Vec<Written>,
}

pub(crate) fn new(context: &Context, arguments: &TaskNewArguments) -> Result<Outcome, Failure> {
    let wrong = |what: String| {
        Failure::usage(Problem::error(what).fix("write DISCIPLINE/NAME, such as civil/culvert-capacity"))
    };
    let project = context.project(arguments.tasks_root.overrides(context)?)?;
    let seed = match &arguments.from_seed {
        Some(name) => Some(seed::find(&project.settings.path(Setting::Seeds), name)?),
        None => None,
    };
    let typed = match (&arguments.id, &seed) {
        (Some(id), _) => id.clone(),
        (None, Some(seed)) if !seed.discipline.is_empty() => format!("{}/{}", seed.discipline, seed.id),
        _ => return Err(wrong("the seed names no discipline, so the task needs an id".to_owned())),
    };
    let id = TaskId::parse(&typed).map_err(|error| wrong(error.to_string()))?;
    if id.segments().count() < 2 {
        return Err(wrong(format!("`{id}` has no discipline")));
    }
    let root = project.settings.path(Setting::Tasks);
    let files = new_task(&project.root, &root, &id, seed.as_ref())?;
    let path = root.join(id.relative_path());
    let shown = project.shown(&path).display().to_string();
    let unusual = id.segments().next().filter(|first| !DISCIPLINES.contains(first)).map(|first| {
        format!("`{first}` is not one of the disciplines ({}); it is taken as given.", DISCIPLINES.join(", "))
    });
    let mut outcome = Outcome::new(context.format, &Data { task_id: id.clone(), path, files }, String::new)?
        .remark(format!("Created {shown}"))
        .remark(format!(
            "Next: fill in instruction.md and tests/verify.py, run `aec-bench task validate {id}`, then set lifecycle = \"active\"."
        ));
    if let Some(unusual) = unusual {
        outcome = outcome.remark(unusual);
    }
    Ok(outcome)
}
