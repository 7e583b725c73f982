//! The environment of an evaluation: finds it, decides how to run it, and prepares what it needs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aec_base::content::ContentStore;
use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::secret::Secret;
use aec_base::settings::Setting;
use aec_base::text::printable;
use aec_eval::FAMILY;
use aec_eval::config::{EvalOptions, EvalSettings, Headers, package_defaults};
use aec_eval::describe::{EnvironmentFacts, describe, sampling};
use aec_eval::evaluation::{Evaluation, EvaluationSetup, Executor};
use aec_eval::event::EvalEvent;
use aec_eval::find::{FoundPackage, find};
use aec_eval::native::{LazyJudge, NativeEnvironment, NativeExecutor, NativeSetup, PackageSource};

use aec_eval::python_executor::PythonExecutor;
use aec_eval::results::directory;
use aec_eval::results::payers::Payers;
use aec_eval::worker::{self, EnvironmentRequest, WorkerCount, WorkerPool, discover::discover};
use aec_model::client::{Model, Scope};
use aec_model::endpoint::{Endpoint, Provider};
use aec_model::gateway::{Gateway, Grant, MOST_CONNECTIONS};
use aec_model::meter::{Account, Budget};
use aec_model::routing::Target;
use aec_package::interaction::HarnessMode;
use aec_package::{Audience, PackageName, PackageSpec, assemble};
use aec_sandbox::python;
use aec_task::catalogue::Catalogue;
use aec_task::task::Task;
use tokio::runtime::Runtime;

use crate::commands::eval::EvalTaskArguments;
use crate::commands::eval::run::EvalRunArguments;
use crate::commands::models::Models;
use crate::commands::selection::NamedTasks;
use crate::commands::verify::isolation;
use crate::context::Context;
use crate::failure::Failure;
use crate::progress::eval::EvalProgress;

/// What Python workers are given as the number of rollouts at once when the user sets no limit.
const ALL_AT_ONCE: u64 = 65_535;

/// An evaluation whose environment has been found, before the first model call.
pub(crate) struct PreparedEvaluation {
    pub(crate) settings: EvalSettings,
    source: Source,
    package: Option<FoundPackage>,
}

/// The origin of the examples.
enum Source {
    /// Our own tasks, with the split to use if the user names none.
    Native { source: Box<PackageSource>, split: &'static str },
    /// An environment that `verifiers` loads in a Python interpreter.
    Python { python: PathBuf, env_id: String, below: Option<PathBuf> },
}

/// Finds the environment of an evaluation, and fills in the defaults of its package and of this program.
pub(crate) fn prepare(
    context: &Context,
    arguments: &EvalRunArguments,
    project: &Project,
    runtime: &Runtime,
    mut options: EvalOptions,
) -> Result<(PreparedEvaluation, Vec<Problem>), Failure> {
    let mut problems = Vec::new();
    if options.ledger.is_some() || options.save_to_hf_hub.is_on() {
        // Publishing and importing read the results from disk.
        options.save_results = true.into();
    }
    let selects = arguments.tasks.selects();
    if selects && options.env_id.is_some() {
        let problem = Problem::error("both an environment and tasks of this project were named");
        return Err(Failure::usage(problem.fix("leave out one of them")));
    }
    if selects {
        options.env_id = Some("tasks".to_owned());
        let settings = options.resolve()?;
        let (source, noticed) = selected(project, &arguments.tasks, None)?;
        problems.extend(noticed);
        return Ok((PreparedEvaluation { settings, source, package: None }, problems));
    }
    let settings = options.clone().resolve()?;
    if let Some(header) = settings.said.headers_from_state.iter().flat_map(Headers::keys).next() {
        let what = format!("the header `{}` cannot be taken from the state of a rollout", printable(header));
        let problem =
            Problem::error(what).id(FAMILY.number(110)).why("requests of all rollouts share their headers");
        return Err(problem.fix("give it a fixed value with `headers`, or leave it out").into());
    }
    let here = context.directory()?;
    let own = project.settings.path(Setting::Prime).join("environments");
    let places = [context.absolute(&settings.env_dir_path)?, own];
    let mut package = find(&settings.env_id, &settings.environment, &here, &places);
    let is_dataset = package.is_none() && settings.env_id.contains('@') && settings.said.python.is_none();
    if is_dataset {
        let settings = options.resolve()?;
        let (source, noticed) = selected(project, &arguments.tasks, Some(&settings.env_id))?;
        problems.extend(noticed);
        return Ok((PreparedEvaluation { settings, source, package: None }, problems));
    }
    let native = |package: &Option<FoundPackage>| {
        let tasks = package.as_ref().and_then(|package| package.tasks.clone());
        tasks.filter(|_| settings.said.python.is_none())
    };
    let source = if let Some(tasks) = native(&package) {
        Source::Native { source: Box::new(PackageSource::read(&tasks)?), split: "train" }
    } else {
        let python = interpreter(context, project, settings.said.python.as_deref())?;
        let (below, env_id) = match &package {
            Some(package) => (package.directory.parent().map(Path::to_path_buf), package.module.clone()),
            None => (None, settings.env_id.clone()),
        };
        let found = runtime.block_on(discover(&python, &env_id, below.as_deref()));
        let found = found.map_err(|error| Failure::environment(error.problem()))?;
        if let Some(refusal) = found.refusal(&settings.env_id, &python) {
            return Err(with_places(refusal, &places));
        }
        // A package of ours that is installed is treated like one in a directory.
        let installed = found.package_directory.as_deref().and_then(|directory| {
            let tasks = PackageSource::find(directory, &found.module)?;
            Some(FoundPackage { directory: tasks.clone(), module: found.module.clone(), tasks: Some(tasks) })
        });
        if package.is_none()
            && let Some(directory) = &found.package_directory
        {
            let place = installed.clone().unwrap_or_else(|| FoundPackage {
                directory: directory.clone(),
                module: found.module.clone(),
                tasks: None,
            });
            options = options.over(defaults(&place, &mut problems));
        }
        match installed.as_ref().and_then(|package| native(&Some(package.clone()))) {
            Some(tasks) => Source::Native { source: Box::new(PackageSource::read(&tasks)?), split: "train" },
            None => Source::Python { python, env_id, below },
        }
    };
    if let Some(package) = &mut package {
        options = options.over(defaults(package, &mut problems));
    }
    Ok((PreparedEvaluation { settings: options.resolve()?, source, package }, problems))
}

/// The evaluation options that a package sets for itself.
fn defaults(package: &FoundPackage, problems: &mut Vec<Problem>) -> EvalOptions {
    let beside = package.tasks.clone().unwrap_or_else(|| {
        // A module is a directory in the package, or a file beside its project file.
        let inner = package.directory.join(&package.module);
        if inner.is_dir() { inner } else { package.directory.clone() }
    });
    package_defaults(&beside).unwrap_or_else(|problem| {
        problems.push(problem);
        EvalOptions::default()
    })
}

/// The interpreter for Python environments: the one the user named, else that of a virtual environment, else `python3`.
pub(crate) fn interpreter(
    context: &Context,
    project: &Project,
    named: Option<&str>,
) -> Result<PathBuf, Failure> {
    if let Some(python) = named {
        return find_program(context, python);
    }
    let active = project.env.get("VIRTUAL_ENV").map(PathBuf::from);
    let beside = [context.directory()?.join(".venv"), project.root.join(".venv")];
    let own = active.into_iter().chain(beside).map(|venv| venv.join("bin/python"));
    if let Some(python) = own.into_iter().find(|python| python.is_file()) {
        return Ok(python);
    }
    let found = python::find(context.search_path().as_deref()).map(|python| python.path);
    found.ok_or_else(|| {
        let problem = Problem::error("there is no python3 on PATH").id(FAMILY.number(105));
        Failure::environment(problem.fix("install Python, or name an interpreter with --python"))
    })
}

/// A program, given by its path or by its name on `PATH`.
fn find_program(context: &Context, name: &str) -> Result<PathBuf, Failure> {
    if name.contains('/') {
        return context.absolute(Path::new(name));
    }
    let path = context.search_path().unwrap_or_default();
    let found = std::env::split_paths(&path).map(|place| place.join(name)).find(|place| place.is_file());
    found.ok_or_else(|| {
        let problem =
            Problem::error(format!("there is no `{}` on PATH", printable(name))).id(FAMILY.number(105));
        Failure::environment(problem.fix("name the interpreter by its path"))
    })
}

fn with_places(problem: Problem, places: &[PathBuf]) -> Failure {
    let places: Vec<String> =
        places.iter().map(|place| printable(&place.to_string_lossy()).into_owned()).collect();
    let why = problem.why.clone().unwrap_or_default();
    let looked = format!("{why}; it is neither in {}", places.join(" nor in "));
    Failure::input(vec![problem.why(looked)])
}

/// Tasks of this project as an environment.
fn selected(
    project: &Project,
    arguments: &EvalTaskArguments,
    dataset: Option<&str>,
) -> Result<(Source, Vec<Problem>), Failure> {
    let catalogue = Catalogue::load(&project.settings.path(Setting::Tasks));
    let mut selection = arguments.selection.clone();
    if let Some(dataset) = dataset {
        selection.dataset = Some(dataset.to_owned());
    }
    let named = NamedTasks::choose(project, (&arguments.task, &arguments.pattern), &selection, &catalogue)?;
    let tasks: Vec<Task> = named.tasks.into_iter().cloned().collect();
    let spec = PackageSpec {
        name: PackageName::of_selection(),
        version: "0.0.0".to_owned(),
        harness: HarnessMode::Auto,
        dataset: selection.dataset.clone(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        audience: Audience::Here,
    };
    let source = Box::new(PackageSource::from(assemble(&spec, &tasks)?).with_tasks(tasks));
    Ok((Source::Native { source, split: "all" }, named.warnings))
}

/// What the evaluations of one run share.
pub(crate) struct EvaluationOpener<'a> {
    pub(crate) context: &'a Context,
    pub(crate) arguments: &'a EvalRunArguments,
    pub(crate) opened: &'a Models,
    pub(crate) runtime: &'a Runtime,
    pub(crate) judge: LazyJudge,
    pub(crate) scratch: &'a Path,
    pub(crate) gateway: EnvironmentGateway,
}

/// The gateway for model requests that Python environments make themselves.
#[derive(Default)]
pub(crate) struct EnvironmentGateway {
    gateway: Gateway,
    address: Option<std::net::SocketAddr>,
}

impl EvaluationOpener<'_> {
    /// Loads the environment of an evaluation and opens its results.
    pub(crate) fn open(
        &mut self,
        number: usize,
        prepared: PreparedEvaluation,
        name: &str,
        progress: &EvalProgress,
    ) -> Result<Evaluation, Failure> {
        let PreparedEvaluation { settings, source, package } = prepared;
        let client = &self.opened.client;
        let model = client.model(name, None).map_err(Problem::from)?;
        let endpoints = match client.routes().resolve(name, None) {
            Ok(Target::Endpoints(endpoints)) => endpoints,
            _ => Vec::new(),
        };
        let run = Some(&self.opened.run);
        let payers = Payers::new(self.opened.meter.open(run, &settings.display_name(), Budget::default()));
        let directory = package.as_ref().map(|package| package.directory.as_path());
        let (lane, facts) = match source {
            Source::Native { source, split } => self.native(&settings, *source, split, &model, &payers)?,
            Source::Python { python, env_id, below } => {
                let request = EnvironmentRequest {
                    env_args: settings.env_args.clone(),
                    extra_env_kwargs: settings.extra_env_kwargs.clone(),
                    env_dir_path: below,
                    num_examples: settings
                        .num_examples
                        .most()
                        .map_or(-1, |most| i64::try_from(most).unwrap_or(-1)),
                    shuffle: settings.shuffle.is_some(),
                    shuffle_seed: settings.shuffle.and_then(|seed| u64::try_from(seed).ok()),
                    state_columns: settings.state_columns.clone(),
                    timeout: settings.timeout.map(|timeout| timeout.as_secs_f64()),
                    ..EnvironmentRequest::new(env_id)
                };
                let logs = if settings.said.save_results.is_on() {
                    directory::base(settings.said.output_dir.as_deref(), directory).join("logs")
                } else {
                    self.scratch.join("logs")
                };
                let logs = logs.join(format!("{}-{number}", std::process::id()));
                progress.on(&EvalEvent::Note {
                    evaluation: number,
                    text: format!("loading {} in {}", settings.display_name(), python.display()),
                });
                self.python(&settings, python, request, logs, &model, &payers)?
            }
        };
        let notes = facts.notes.clone();
        let description = describe(&settings, facts, &endpoints, name);
        let mut evaluation = Evaluation::open(EvaluationSetup {
            number,
            settings: &settings,
            lane,
            description,
            package: directory,
            provider: provider(&endpoints),
            rerun_errors: self.arguments.rerun_errors,
            model,
            payers,
            caps: self.arguments.budget.clone(),
            redactor: Arc::new(self.context.redactor()),
            observer: progress.observer(),
            wants_rows: progress.wants_rows(),
        })?;
        evaluation.notes.extend(notes);
        Ok(evaluation)
    }

    fn native(
        &self,
        settings: &EvalSettings,
        source: PackageSource,
        split: &'static str,
        model: &Model,
        payers: &Payers,
    ) -> Result<(Executor, EnvironmentFacts), Failure> {
        let columns: Vec<Arc<str>> = settings.state_columns.iter().map(|name| name.as_str().into()).collect();
        let environment = NativeEnvironment::load(NativeSetup {
            source,
            env_args: &settings.env_args,
            extra_env_kwargs: &settings.extra_env_kwargs,
            split,
            num_examples: settings.num_examples.most().and_then(|most| usize::try_from(most).ok()),
            shuffle: settings.shuffle,
            judge: LazyJudge::clone(&self.judge),
            contents: ContentStore::new(self.scratch),
            redactor: Arc::new(self.context.redactor()),
            isolation: isolation(&self.arguments.sandbox),
            timeout: settings.timeout.map(|timeout| timeout.as_secs_f64()),
            details: columns.iter().any(|name| &**name == "details"),
        })?;
        if settings.said.save_to_hf_hub.is_on() {
            refuse_held_out(&environment)?;
        }
        let facts = EnvironmentFacts::native(&environment);
        let executor = NativeExecutor {
            label: settings.display_name(),
            environment,
            model: model.clone(),
            sampling: sampling(&settings.sampling_args)?,
            seed: settings.said.seed,
            payers: payers.clone(),
            columns,
        };
        Ok((Executor::Native(Arc::new(executor)), facts))
    }

    fn python(
        &mut self,
        settings: &EvalSettings,
        python: PathBuf,
        request: EnvironmentRequest,
        logs: PathBuf,
        model: &Model,
        payers: &Payers,
    ) -> Result<(Executor, EnvironmentFacts), Failure> {
        sampling(&settings.sampling_args)?;
        let token = self.gateway.admit(
            self.runtime,
            self.opened,
            model,
            &payers.account,
            &settings.display_name(),
        )?;
        let concurrency = settings.max_concurrent_generation.most().unwrap_or(ALL_AT_ONCE);
        let setup = worker::Setup {
            python,
            environment: request,
            concurrency: usize::try_from(concurrency).unwrap_or(usize::MAX),
            workers: WorkerCount::Exactly(settings.num_workers as usize),
            surroundings: std::env::vars_os().collect(),
            variables: std::collections::BTreeMap::new(),
            gateway: Some(token),
            logs,
            limits: worker::Limits::default(),
        };
        let pool = self.runtime.block_on(WorkerPool::start(setup));
        let pool = pool.map_err(|error| Failure::input(vec![error.problem()]))?;
        if settings.said.independent_scoring.is_on()
            && let Some(problem) = pool.loaded().refuses_independent_scoring(&settings.env_id)
        {
            return Err(problem.into());
        }
        let facts = EnvironmentFacts::python(pool.loaded());
        let executor = PythonExecutor {
            label: settings.display_name(),
            model: model.clone(),
            model_name: model.name().to_owned(),
            sampling_args: settings.sampling_args.clone(),
            payers: payers.clone(),
            independent: settings.said.independent_scoring.is_on(),
            pool,
        };
        Ok((Executor::Python(Arc::new(executor)), facts))
    }
}

/// Held-out tasks must not be published, because rows contain the questions.
fn refuse_held_out(environment: &NativeEnvironment) -> Result<(), Failure> {
    let held_out = environment.examples.iter().find(|example| example.task.visibility != "public");
    held_out.map_or(Ok(()), |example| {
        let what = format!("`{}` is not public, and its rows would be published", example.task.task_id);
        let problem = Problem::error(what).id(FAMILY.number(109));
        Err(problem.fix("leave out --save-to-hf-hub, or select public tasks").into())
    })
}

impl EnvironmentGateway {
    /// Lets an environment call the models of this run, on the account of its evaluation.
    fn admit(
        &mut self,
        runtime: &Runtime,
        opened: &Models,
        model: &Model,
        account: &Account,
        label: &str,
    ) -> Result<worker::Gateway, Failure> {
        let address = match self.address {
            Some(address) => address,
            None => {
                let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
                let address = listener.local_addr()?;
                let gateway = self.gateway.clone();
                runtime.spawn(async move {
                    gateway.serve(listener, MOST_CONNECTIONS, std::future::pending()).await
                });
                *self.address.insert(address)
            }
        };
        let others = opened.endpoint_ids.iter().filter(|id| *id != model.name());
        let mut models = vec![model.clone()];
        models.extend(others.filter_map(|id| opened.client.model(id, None).ok()));
        let scope = Scope::new(format!("{label}/own"), account.clone());
        let token: Secret = self.gateway.issue(Grant { models, scope, max_in_flight: u32::MAX })?;
        Ok(worker::Gateway { base_url: format!("http://{address}/v1"), token: token.reveal().to_owned() })
    }
}

/// The model's provider, if the name of the model alone does not tell; it becomes part of directory names.
fn provider(endpoints: &[Endpoint]) -> Option<&'static str> {
    endpoints.first().filter(|endpoint| endpoint.provider == Provider::OpenAi).map(|_| "openai")
}
