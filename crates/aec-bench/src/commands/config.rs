//! `aec-bench config view`, `set` and `reset`.

use std::path::PathBuf;

use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::{Candidate, Origin, SETTINGS, Setting};
use aec_base::text;
use aec_base::user::{EditError, UserConfig};
use aec_run::experiment::Experiment;
use indexmap::IndexMap;
use serde::Serialize;

use crate::arguments::{ConfigResetArguments, ConfigSetArguments, ConfigViewArguments};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::Table;

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

/// What to say when there is no project around.
pub(crate) fn outside(project: &Project) -> String {
    format!(
        "No project here: paths are relative to {}. `aec-bench init` makes one.",
        text::printable(&project.root.to_string_lossy())
    )
}

fn view_text(project: &Project, experiment: Option<&Experiment>) -> String {
    let mut table = Table::new(["SETTING", "VALUE", "FROM"]);
    for setting in project.settings.iter() {
        table.row([
            setting.spec.key.to_owned(),
            setting.value.clone(),
            origin_text(project, &setting.origin),
        ]);
    }
    let mut shown = table.render();
    if let Some(experiment) = experiment {
        let mut table = Table::new(["AGENT", "HARNESS", "MODEL"]);
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

#[derive(Serialize)]
struct EditData {
    file: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
}

pub(crate) fn set(context: &Context, arguments: &ConfigSetArguments) -> Result<Outcome, Failure> {
    let (setting, key) = user_setting(&arguments.key)?;
    let file = user_file(context)?;
    let mut config = read_for_edit(&file)?;
    config.set(setting, &arguments.value).map_err(edit_failure)?;
    let data = EditData { file, key: Some(key), value: Some(arguments.value.clone()) };
    let remark = format!("{key} = {} in {}", text::printable(&arguments.value), data.file.display());
    let outcome = Outcome::new(context.format, &data, String::new)?.remark(remark);
    Ok(match stronger(context, setting) {
        Some(place) => outcome.remark(format!("This project does not follow it: {place} says otherwise.")),
        None => outcome,
    })
}

/// Where the project around has a value of its own for a setting; the user's does not count there.
fn stronger(context: &Context, setting: Setting) -> Option<String> {
    let project = context.project(Vec::new()).ok()?;
    let Origin::Project(place) = &project.settings.get(setting).origin else { return None };
    Some(format!("{}:{}", project.shown(&place.file).display(), place.line))
}

pub(crate) fn reset(context: &Context, arguments: &ConfigResetArguments) -> Result<Outcome, Failure> {
    let file = user_file(context)?;
    let Some(key) = &arguments.key else {
        // Also the way out of a file that cannot be read.
        if let Err(error) = std::fs::remove_file(&file)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            let problem = Problem::error(format!("cannot remove the user file: {error}"));
            return Err(Failure::environment(problem.fix("remove it by hand").in_file(file)));
        }
        let remark = format!("removed {}", file.display());
        let data = EditData { file, key: None, value: None };
        return Ok(Outcome::new(context.format, &data, String::new)?.remark(remark));
    };
    let (setting, key) = user_setting(key)?;
    read_for_edit(&file)?.reset(setting).map_err(edit_failure)?;
    let remark = format!("{key} is back to its default, {}", setting.spec().default);
    let data = EditData { file, key: Some(key), value: Some(setting.spec().default.to_owned()) };
    Ok(Outcome::new(context.format, &data, String::new)?.remark(remark))
}

fn user_setting(name: &str) -> Result<(Setting, &'static str), Failure> {
    let known: Vec<&str> = SETTINGS.iter().filter_map(|row| row.user_key).collect();
    let Some(setting) = Setting::by_name(name) else {
        let problem = Problem::error(format!("unknown setting `{}`", text::printable(name)))
            .why(format!("the user file holds {}", text::one_of(&known).replace(" or ", " and ")));
        return Err(Failure::usage(problem.fix(text::near_or(name, &known, "name one of them"))));
    };
    match setting.spec().user_key {
        Some(key) => Ok((setting, key)),
        None => {
            let key = setting.spec().key;
            let flag = setting.spec().flag.map(|flag| format!(", or pass {flag}")).unwrap_or_default();
            Err(Failure::usage(
                Problem::error(format!("`{key}` is not kept in the user file"))
                    .why("the user file holds path defaults for all projects; this belongs to one project")
                    .fix(format!("set {key} in the project's aec-bench.toml{flag}")),
            ))
        }
    }
}

fn user_file(context: &Context) -> Result<PathBuf, Failure> {
    context.user_file().ok_or_else(|| {
        Failure::environment(
            Problem::error("there is no home directory for the user file").fix("set HOME or XDG_CONFIG_HOME"),
        )
    })
}

fn read_for_edit(file: &std::path::Path) -> Result<UserConfig, Failure> {
    UserConfig::read(file).map_err(|mut problems| {
        for problem in &mut problems {
            problem
                .why
                .get_or_insert_with(|| "nothing was changed, so that nothing in the file is lost".to_owned());
        }
        problems.push(
            Problem::note("the user file was not changed")
                .fix("correct it, or remove it with `aec-bench config reset`"),
        );
        Failure::input(problems)
    })
}

fn edit_failure(error: EditError) -> Failure {
    match error {
        EditError::Io(error) => error.into(),
        EditError::Value(_) | EditError::NotAUserSetting { .. } => {
            Failure::usage(Problem::error(error.to_string()).fix("give a path"))
        }
    }
}
