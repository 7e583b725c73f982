//! `aec-bench template new`.

use std::path::PathBuf;

use aec_author::new_template;
use aec_base::problem::Problem;
use aec_base::settings::Setting;
use aec_base::{name, text};
use aec_task::scaffold::Written;
use clap::Args;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench template new civil/culvert-flow")]
pub(crate) struct TemplateNewArguments {
    /// DISCIPLINE/NAME, such as civil/culvert-flow
    pub(crate) id: String,
}

#[derive(Serialize)]
struct Data {
    template: String,
    path: PathBuf,
    files: Vec<Written>,
}

pub(crate) fn new(context: &Context, arguments: &TemplateNewArguments) -> Result<Outcome, Failure> {
    let wrong = |why: String| {
        let problem =
            Problem::error(format!("`{}` is not a template's name", text::printable(&arguments.id)));
        Failure::usage(problem.why(why).fix("write DISCIPLINE/NAME, such as civil/culvert-flow"))
    };
    let Some((discipline, name)) = arguments.id.split_once('/') else {
        return Err(wrong("the discipline is missing".to_owned()));
    };
    for part in [discipline, name] {
        name::check(part).map_err(|error| wrong(error.to_string()))?;
    }
    let project = context.project(Vec::new())?;
    let root = project.settings.path(Setting::Templates);
    let files = new_template(&root, discipline, name)?;
    let path = root.join(name);
    let shown = project.shown(&path).display().to_string();
    let data = Data { template: arguments.id.clone(), path, files };
    Ok(Outcome::new(context.format, &data, String::new)?
        .remark(format!("Created {shown}"))
        .remark(format!(
            "Next: write your calculation, then `aec-bench generate validate-template {name}` and `aec-bench generate task {name}`."
        )))
}
