//! `aec-bench eval install`, and `aec-bench env install`.

use std::path::{Path, PathBuf};

use aec_base::problem::Problem;
use aec_base::settings::Setting;
use aec_base::text::printable;
use aec_eval::FAMILY;
use aec_eval::config::Environment;
use aec_eval::find::find;
use aec_eval::worker::install::install as install_into;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::commands::eval::environment::interpreter;
use crate::commands::models;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench eval install aec-voltage-drop")]
pub(crate) struct EvalInstallArguments {
    /// Environments: names in the environment directories, paths, or pip requirements
    #[arg(value_name = "ENV", required = true)]
    pub(crate) environments: Vec<String>,
    /// Interpreter to install into [default: the one on PATH]
    #[arg(long, value_name = "PYTHON", value_hint = ValueHint::FilePath)]
    pub(crate) python: Option<PathBuf>,
    /// Directory of environments [default: ./environments, then those of this project]
    #[arg(long, short = 'p', value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) env_dir_path: Option<PathBuf>,
}

#[derive(Serialize)]
struct Data {
    /// Absent if nothing had to be installed.
    python: Option<PathBuf>,
    environments: Vec<Named>,
}

#[derive(Serialize)]
struct Named {
    environment: String,
    /// Its directory, if it was installed from one.
    directory: Option<PathBuf>,
    /// False for an environment that the native executor evaluates: it needs no interpreter.
    installed: bool,
}

/// What is to be installed.
enum What {
    /// A package of ours: the native executor evaluates it unless the user names an interpreter.
    Native(PathBuf),
    Directory(PathBuf),
    /// A requirement for the installer, such as `name==1.0`.
    Requirement,
}

pub(crate) fn install(context: &Context, arguments: &EvalInstallArguments) -> Result<Outcome, Failure> {
    let project = context.project(Vec::new())?;
    let here = context.directory()?;
    let own = arguments.env_dir_path.clone().unwrap_or_else(|| PathBuf::from("environments"));
    let places = [here.join(own), project.settings.path(Setting::Prime).join("environments")];
    let wanted: Vec<(&String, What)> = arguments
        .environments
        .iter()
        .map(|named| Ok((named, resolve(named, &here, &places)?)))
        .collect::<Result<_, Failure>>()?;
    let named = arguments.python.as_deref().map(Path::to_string_lossy);
    let needs_python = |what: &What| named.is_some() || !matches!(what, What::Native(_));
    let mut python = None;
    if wanted.iter().any(|(_, what)| needs_python(what)) {
        python = Some(interpreter(context, &project, named.as_deref())?);
    }
    let search: Vec<PathBuf> =
        context.search_path().map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    let runtime = models::runtime()?;
    let mut environments = Vec::with_capacity(wanted.len());
    for (named, what) in wanted {
        let python = python.as_deref().filter(|_| needs_python(&what));
        let directory = match what {
            What::Native(directory) | What::Directory(directory) => Some(directory),
            What::Requirement => None,
        };
        if let Some(python) = python {
            let target = directory.as_deref().map_or_else(|| named.into(), Path::to_string_lossy);
            runtime.block_on(install_into(python, &target, &search)).map_err(Failure::environment)?;
        }
        environments.push(Named { environment: named.clone(), directory, installed: python.is_some() });
    }
    let data = Data { python, environments };
    Outcome::new(context.format, &data, || text(&data))
}

fn text(data: &Data) -> String {
    let line = |one: &Named| match (&data.python, one.installed) {
        (Some(python), true) => format!("{} is installed in {}\n", one.environment, python.display()),
        _ => format!(
            "{} is evaluated without Python: nothing to install (--python PATH installs it for verifiers there)\n",
            one.environment
        ),
    };
    data.environments.iter().map(line).collect()
}

/// A plain name always means an environment on this machine: a package index may have another package of that name.
fn resolve(named: &str, here: &Path, places: &[PathBuf]) -> Result<What, Failure> {
    let Ok(environment) = Environment::parse(named) else { return Ok(What::Requirement) };
    if let Some(found) = find(named, &environment, here, places) {
        let directory = found.directory;
        return Ok(if found.tasks.is_some() { What::Native(directory) } else { What::Directory(directory) });
    }
    let fix = match &environment {
        Environment::Named { owner: Some(_), .. } => {
            "fetch it with `prime env pull`, then install its directory".to_owned()
        }
        Environment::Named { name, .. } => {
            format!(
                "name its directory, or a requirement such as {name}==1.0 to take it from a package index"
            )
        }
        Environment::Directory(_) => "name a directory with a pyproject.toml".to_owned(),
    };
    let looked: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    let problem = Problem::error(format!("there is no environment `{}`", printable(named)))
        .id(FAMILY.number(112))
        .why(format!("looked in {}", looked.join(" and ")))
        .fix(fix);
    Err(Failure::input(vec![problem]))
}
