//! `aec-bench config check`: checks every configuration file and reports all problems at once.

use std::path::{Path, PathBuf};

use aec_base::problem::Problem;
use aec_base::project::{PROJECT_FILE, Project, ProjectFile, find_root};
use aec_base::settings::{Origin, Setting};
use aec_base::text;
use aec_base::user::UserConfig;
use aec_evolve::config::{Evolution, Swarm};
use aec_model::price::PriceList;
use aec_model::registry::Registry;
use aec_model::routing::Routes;
use aec_run::experiment::Experiment;
use aec_task::catalogue::Catalogue;
use aec_task::id::TaskId;
use aec_task::suite::SuiteFile;
use aec_task::task::{TASK_FILE, Task};
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Outcome, problem_text};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench config check\n  \
                        aec-bench config check experiment.yaml suite.toml")]
pub(crate) struct ConfigCheckArguments {
    /// Files to check [default: every configuration file of the project]
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Serialize)]
struct Data {
    root: PathBuf,
    files: Vec<Checked>,
}

#[derive(Serialize)]
struct Checked {
    file: PathBuf,
    kind: &'static str,
    problems: usize,
}

/// Checked files and problems found so far.
#[derive(Default)]
struct Findings {
    files: Vec<Checked>,
    problems: Vec<Problem>,
}

impl Findings {
    fn add<T>(&mut self, file: &Path, kind: &'static str, result: Result<T, Vec<Problem>>) -> Option<T> {
        let problems = match result {
            Ok(value) => {
                self.files.push(Checked { file: file.to_path_buf(), kind, problems: 0 });
                return Some(value);
            }
            Err(problems) => problems,
        };
        self.files.push(Checked { file: file.to_path_buf(), kind, problems: problems.len() });
        self.problems.extend(problems);
        None
    }
}

pub(crate) fn check(context: &Context, arguments: &ConfigCheckArguments) -> Result<Outcome, Failure> {
    let surroundings = context.surroundings()?;
    let mut findings = Findings::default();
    let root = find_root(&surroundings)?;
    let mut env = surroundings.env.clone();
    if let Some(root) = &root {
        let loaded = env.load_dotenv(root);
        // The user named files, so only those are checked, but the `.env` that they refer to must be readable.
        if loaded.is_err() || (arguments.files.is_empty() && !matches!(loaded, Ok(None))) {
            findings.add(&root.join(".env"), "environment", loaded);
        }
        context.remember_secrets_of(&env);
    }
    let base = root.clone().unwrap_or_else(|| surroundings.directory.clone());
    if arguments.files.is_empty() {
        if root.is_some() {
            let file = base.join(PROJECT_FILE);
            findings.add(&file, "project", ProjectFile::read(&file));
        }
        if let Some(file) = surroundings.user_file.as_deref().filter(|file| file.symlink_metadata().is_ok()) {
            findings.add(file, "user-config", UserConfig::read(file));
        }
        for file in suites_in(&base) {
            findings.add(&file, "suite", SuiteFile::read(&file));
        }
        let project = Project::open(&surroundings, Vec::new());
        let mut registry = None;
        if let Ok(project) = &project {
            registry = check_models(project, &mut findings);
            if let Some(registry) = &registry {
                context.remember_values(registry.secrets());
            }
        }
        let routes =
            Routes { env: env.clone(), registry: registry.unwrap_or_default(), directory: base.clone() };
        for file in experiments_in(&base) {
            if let Some(experiment) = findings.add(&file, "experiment", Experiment::read(&file, &env)) {
                let problems = unroutable(&experiment, &file, &routes);
                if let Some(checked) = findings.files.last_mut() {
                    checked.problems += problems.len();
                }
                findings.problems.extend(problems);
            }
        }
        for file in matching(&base, |name| is_yaml(name) && name.contains("evolution")) {
            findings.add(&file, "evolution", Evolution::read(&file, &base, &env));
        }
        for file in matching(&base, |name| is_yaml(name) && name.contains("swarm")) {
            findings.add(&file, "swarm", Swarm::read(&file, &base, &env));
        }
        // The path of the tasks comes from the project, so it must be readable.
        if let Ok(project) = project {
            let tasks = project.settings.path(Setting::Tasks);
            let catalogue = Catalogue::load(&tasks);
            findings.files.extend(catalogue.tasks.iter().map(|task| Checked {
                file: task.path.join(TASK_FILE),
                kind: "task",
                problems: 0,
            }));
            let counted: Vec<Problem> = catalogue.problems.into_iter().filter(Problem::counts).collect();
            let mut files: Vec<PathBuf> = counted.iter().filter_map(|problem| problem.file.clone()).collect();
            files.dedup();
            for file in files {
                let problems = counted.iter().filter(|problem| problem.file.as_ref() == Some(&file)).count();
                findings.files.push(Checked { file, kind: "task", problems });
            }
            findings.problems.extend(counted);
        }
    } else {
        for file in &arguments.files {
            check_file(&context.absolute(file)?, &base, &env, &mut findings)?;
        }
    }
    let Findings { files, problems } = findings;
    let data = Data { root: base, files };
    let outcome = Outcome::new(context.format, &data, || {
        let mut shown: String = problems.iter().map(problem_text).collect();
        let checked = text::count(data.files.len(), "file");
        shown.push_str(&match problems.len() {
            0 => format!("{checked} checked, no problems\n"),
            n => format!("{checked} checked, {}\n", text::count(n, "problem")),
        });
        shown
    })?;
    Ok(outcome.problems_in_text(problems))
}

/// Checks the files about models that exist.
fn check_models(project: &Project, findings: &mut Findings) -> Option<Registry> {
    let there = |setting| {
        let path = project.settings.path(setting);
        let named = project.settings.get(setting).origin != Origin::Default;
        (named || path.symlink_metadata().is_ok()).then_some(path)
    };
    if let Some(file) = there(Setting::Prices) {
        findings.add(&file, "prices", PriceList::with_user_file(&file));
    }
    let file = there(Setting::Endpoints)?;
    let (registry, warnings) = findings.add(&file, "endpoints", Registry::read(&file, &project.env))?;
    if let Some(checked) = findings.files.last_mut() {
        checked.problems += warnings.len();
    }
    findings.problems.extend(warnings);
    Some(registry)
}

/// Agents whose model no endpoint serves.
fn unroutable(experiment: &Experiment, file: &Path, routes: &Routes) -> Vec<Problem> {
    let errors = experiment.agents.iter().filter_map(|agent| {
        let error = routes.resolve(agent.model.as_deref()?, agent.client.as_ref()).err()?;
        Some(Problem::from(error).about(agent.name.to_string()).in_file(file))
    });
    errors.collect()
}

fn check_file(
    file: &Path,
    root: &Path,
    env: &aec_base::env::Env,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let extension = file.extension().map(|extension| extension.to_string_lossy().into_owned());
    match (name.as_str(), extension.as_deref()) {
        (PROJECT_FILE, _) => {
            findings.add(file, "project", ProjectFile::read(file));
        }
        (TASK_FILE, _) => {
            let directory = file.parent().unwrap_or_else(|| Path::new("."));
            let name =
                directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let id = TaskId::parse(&name).map_err(|error| {
                Problem::error(error.to_string()).fix("rename the task's directory").in_file(directory)
            })?;
            findings.add(file, "task", Task::load(id, directory).map(|loaded| loaded.task));
        }
        (name, Some("toml")) if name.contains("endpoints") => {
            findings.add(file, "endpoints", Registry::read(file, env).map(|(registry, _)| registry));
        }
        (name, Some("toml")) if name.contains("prices") => {
            findings.add(file, "prices", PriceList::with_user_file(file));
        }
        (_, Some("toml")) => {
            findings.add(file, "suite", SuiteFile::read(file));
        }
        (name, Some("yaml" | "yml")) if name.contains("evolution") => {
            findings.add(file, "evolution", Evolution::read(file, root, env));
        }
        (name, Some("yaml" | "yml")) if name.contains("swarm") => {
            findings.add(file, "swarm", Swarm::read(file, root, env));
        }
        (_, Some("yaml" | "yml")) => {
            findings.add(file, "experiment", Experiment::read(file, env));
        }
        (_, Some("json")) => {
            findings.add(file, "user-config", UserConfig::read(file));
        }
        _ => {
            return Err(Failure::usage(
                Problem::error(format!("`{}` is not a configuration file", text::printable(&name)))
                    .fix("name an .toml, .yaml or .json file"),
            ));
        }
    }
    Ok(())
}

fn is_yaml(name: &str) -> bool {
    name.ends_with(".yaml") || name.ends_with(".yml")
}

fn suites_in(root: &Path) -> Vec<PathBuf> {
    matching(root, |name| name.ends_with(".toml") && name.contains("suite"))
}

/// Experiments are beside the project file or in `experiments/`.
fn experiments_in(root: &Path) -> Vec<PathBuf> {
    let mut files = matching(root, |name| is_yaml(name) && name.contains("experiment"));
    files.extend(matching(&root.join("experiments"), is_yaml));
    files
}

fn matching(directory: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_str().is_some_and(&wanted))
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}
