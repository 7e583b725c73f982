//! `aec-bench eval install`, and `aec-bench env install`.

use std::path::{Path, PathBuf};

use aec_base::settings::Setting;
use aec_eval::worker::install::install as install_into;
use serde::Serialize;

use super::eval_environment::interpreter;
use super::models;
use crate::arguments::EvalInstallArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Serialize)]
struct Data {
    python: PathBuf,
    installed: Vec<String>,
}

pub(crate) fn install(context: &Context, arguments: &EvalInstallArguments) -> Result<Outcome, Failure> {
    let project = context.project(Vec::new())?;
    let named = arguments.python.as_deref().map(Path::to_string_lossy);
    let python = interpreter(context, &project, named.as_deref())?;
    let here = context.directory()?;
    let own = arguments.env_dir_path.clone().unwrap_or_else(|| PathBuf::from("environments"));
    let places = [here.join(own), project.settings.path(Setting::Prime).join("environments")];
    let runtime = models::runtime()?;
    for environment in &arguments.environments {
        runtime.block_on(install_into(&python, environment, &places)).map_err(Failure::environment)?;
    }
    let data = Data { python, installed: arguments.environments.clone() };
    let text = || {
        let lines =
            data.installed.iter().map(|name| format!("{name} is installed in {}\n", data.python.display()));
        lines.collect()
    };
    Outcome::new(context.format, &data, text)
}
