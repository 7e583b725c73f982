//! `aec-bench config view`.

use std::path::PathBuf;

use aec_base::project::Project;
use aec_base::settings::{Candidate, Origin, Setting};
use aec_base::text;
use aec_run::experiment::Experiment;
use clap::{Args, ValueHint};
use indexmap::IndexMap;
use serde::Serialize;

use crate::arguments::TasksRootArgument;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::{Table, TableArguments};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench config view\n  \
                        aec-bench config view --config experiment.yaml")]
pub(crate) struct ConfigViewArguments {
    /// Show the values that apply to this experiment
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Show the values that apply if `run` is given this backend
    #[arg(long, value_name = "NAME", value_parser = aec_base::settings::Backend::NAMES)]
    pub(crate) backend: Option<String>,
    #[command(flatten)]
    pub(crate) table: TableArguments,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

const SETTINGS: [&str; 3] = ["SETTING", "VALUE", "FROM"];
const AGENTS: [&str; 3] = ["AGENT", "HARNESS", "MODEL"];

#[derive(Serialize)]
struct ViewData<'a> {
    root: PathBuf,
    project_file: Option<PathBuf>,
    user_file: Option<PathBuf>,
    dotenv: Option<PathBuf>,
    settings: IndexMap<&'static str, ViewSetting<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    experiment: Option<&'a Experiment>,
}

#[derive(Serialize)]
struct ViewSetting<'a> {
    value: &'a str,
    origin: &'a Origin,
}

pub(crate) fn view(context: &Context, arguments: &ConfigViewArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&SETTINGS, &AGENTS])?;
    let mut overrides = arguments.tasks_root.overrides(context)?;
    if let Some(backend) = &arguments.backend {
        let origin = Origin::Flag { flag: "--backend" };
        overrides.push(Candidate { setting: Setting::Backend, value: backend.clone(), origin });
    }
    let mut project = context.project(overrides.clone())?;
    let mut experiment = None;
    if let Some(file) = &arguments.config {
        let read = Experiment::read(&context.absolute(file)?, &project.env)?;
        overrides.extend(read.backend.clone());
        overrides.extend(read.harbor_environment.clone());
        project = context.project(overrides)?;
        experiment = Some(read);
    }
    let settings = project
        .settings
        .iter()
        .map(|setting| (setting.spec.key, ViewSetting { value: &setting.value, origin: &setting.origin }))
        .collect();
    let data = ViewData {
        root: project.root.clone(),
        project_file: project.file.clone(),
        user_file: project.user_file.clone(),
        dotenv: project.dotenv.clone(),
        settings,
        experiment: experiment.as_ref(),
    };
    let mut outcome = Outcome::new(context.format, &data, || view_text(&project, experiment.as_ref()))?;
    if project.file.is_none() {
        outcome = outcome.remark(outside(&project));
    }
    Ok(outcome)
}

pub(crate) fn outside(project: &Project) -> String {
    format!(
        "No project here: paths are relative to {}. `aec-bench init` makes one.",
        text::printable(&project.root.to_string_lossy())
    )
}

fn view_text(project: &Project, experiment: Option<&Experiment>) -> String {
    let mut table = Table::new(SETTINGS).keyed().wrap(["VALUE", "FROM"]);
    for setting in project.settings.iter() {
        table.row([
            setting.spec.key.to_owned(),
            setting.value.clone(),
            origin_text(project, &setting.origin),
        ]);
    }
    let mut shown = table.render();
    if let Some(experiment) = experiment {
        let mut table = Table::new(AGENTS).keyed().cut(["AGENT", "MODEL"]);
        for agent in &experiment.agents {
            let harness = serde_json::to_value(agent.harness).unwrap_or_default();
            table.row([
                agent.name.to_string(),
                harness.as_str().unwrap_or_default().to_owned(),
                agent.model.clone().unwrap_or_else(|| "-".to_owned()),
            ]);
        }
        shown.push('\n');
        shown.push_str(&table.render());
    }
    shown
}

fn origin_text(project: &Project, origin: &Origin) -> String {
    let (rung, place) = match origin {
        Origin::Flag { flag } => return format!("flag {flag}"),
        Origin::Default => return "default".to_owned(),
        Origin::Experiment(place) => ("experiment", place),
        Origin::Project(place) => ("project", place),
        Origin::User(place) => ("user", place),
    };
    format!("{rung} {}:{}", project.shown(&place.file).display(), place.line)
}
