//! What the commands of `prime` share: the connection to the service, and progress messages.

pub(crate) mod adapters;
pub(crate) mod doctor;
pub(crate) mod eval;
pub(crate) mod export;
pub(crate) mod push;
pub(crate) mod smoke;
pub(crate) mod train;
pub(crate) mod train_config;

use std::path::PathBuf;
use std::time::Duration;

use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::text::printable;
use aec_http::Proxies;
use aec_prime::FAMILY;
use aec_prime::service::client::{ApiError, ApiErrorKind, Client, ClientOptions};
use aec_prime::service::hub::EnvironmentName;
use aec_prime::service::settings::{Settings, SettingsError};
use aec_prime::service::watch::WatchOptions;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueHint};
use tokio::runtime::Runtime;

use crate::arguments::{SelectionArguments, TasksRootArgument};
use crate::commands::prime::adapters::PrimeAdaptersArguments;
use crate::commands::prime::doctor::PrimeDoctorArguments;
use crate::commands::prime::eval::PrimeEvalArguments;
use crate::commands::prime::export::PrimeExportArguments;
use crate::commands::prime::push::PrimePushArguments;
use crate::commands::prime::smoke::PrimeSmokeArguments;
use crate::commands::prime::train::PrimeTrainArguments;
use crate::commands::prime::train_config::PrimeTrainConfigArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Format, Outcome};
use crate::progress::outlet::Outlet;

#[derive(Debug, Subcommand)]
pub(crate) enum PrimeCommand {
    /// Check whether this machine and this account are ready for Prime
    Doctor(PrimeDoctorArguments),
    /// Write tasks and their verifiers as a package that `verifiers` loads
    Export(Box<PrimeExportArguments>),
    /// Load a package with the real `verifiers` library, and run the reference solution and an empty answer through it
    Smoke(Box<PrimeSmokeArguments>),
    /// Export a package and publish it on the hub
    Push(Box<PrimePushArguments>),
    /// Run a hosted evaluation of a published environment
    Eval(Box<PrimeEvalArguments>),
    /// List the adapters of hosted training runs, and show which of them answer
    Adapters(PrimeAdaptersArguments),
    /// Write the configuration file of a training run
    TrainConfig(Box<PrimeTrainConfigArguments>),
    /// Start a training run from a configuration
    Train(PrimeTrainArguments),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct PackageArguments {
    /// Name of the environment, such as aec-voltage-drop
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,
    /// Include these tasks: ids, or directories that contain ids
    #[arg(long, value_name = "ID", num_args = 1..)]
    pub(crate) task: Vec<String>,
    /// Include tasks whose ids match this pattern, such as electrical/*
    #[arg(long, short, value_name = "PATTERN")]
    pub(crate) pattern: Vec<String>,
    /// Only tasks of this dataset, in their frozen state
    #[arg(long, value_name = "NAME@VERSION")]
    pub(crate) dataset: Option<String>,
    /// Leave out tasks that match this pattern
    #[arg(long, value_name = "PATTERN")]
    pub(crate) exclude: Vec<String>,
    /// Only tasks of this discipline
    #[arg(long, value_name = "NAME")]
    pub(crate) domain: Vec<String>,
    /// Only tasks of this difficulty
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(aec_task::file::Difficulty::NAMES))]
    pub(crate) difficulty: Vec<String>,
    /// Only tasks with this tag; if repeated, tasks must have all the tags
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Only tasks at this lifecycle stage; `any` for all [default: active, and all of a dataset]
    #[arg(long, value_name = "STAGE", value_parser = ["proposed", "active", "deprecated", "retired", "any"])]
    pub(crate) lifecycle: Vec<String>,
    /// Whether a task is a single question or is worked on in a workspace [default: auto]
    #[arg(long, value_name = "MODE",
          value_parser = PossibleValuesParser::new(["auto", "single-turn", "stateful"]))]
    pub(crate) harness_mode: Option<String>,
    /// Version of the package [default: 0.1.0]
    #[arg(long = "version", value_name = "VERSION")]
    pub(crate) package_version: Option<String>,
    /// Directory of packages [default: environments in paths.prime]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

impl PackageArguments {
    /// The flags that select tasks. Visibility is not one of them: tasks that are not public are refused.
    pub(crate) fn selection(&self) -> SelectionArguments {
        // All tasks of a dataset are exported, whatever their present lifecycle stage is.
        let all = self.dataset.is_some() && self.lifecycle.is_empty();
        SelectionArguments {
            lifecycle: if all { vec!["any".to_owned()] } else { self.lifecycle.clone() },
            dataset: self.dataset.clone(),
            exclude: self.exclude.clone(),
            domain: self.domain.clone(),
            difficulty: self.difficulty.clone(),
            tag: self.tag.clone(),
            ..SelectionArguments::default()
        }
    }

    /// Whether the user selected tasks.
    pub(crate) fn selects(&self) -> bool {
        let lists = [
            &self.task,
            &self.pattern,
            &self.exclude,
            &self.domain,
            &self.difficulty,
            &self.tag,
            &self.lifecycle,
        ];
        self.dataset.is_some() || lists.iter().any(|list| !list.is_empty())
    }
}

/// Which tasks of an environment to use, and how agents work on them.
#[derive(Debug, Args)]
pub(crate) struct SliceArguments {
    /// The side of the split: train, eval or all
    #[arg(long, value_name = "SIDE", value_parser = PossibleValuesParser::new(["train", "eval", "all"]))]
    pub(crate) split: Option<String>,
    /// Only tasks of this difficulty; if repeated, tasks of any of them
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(aec_task::file::Difficulty::NAMES))]
    pub(crate) difficulty: Vec<String>,
    /// Whether a task is a single question or is worked on in a workspace
    #[arg(long, value_name = "MODE", value_parser = PossibleValuesParser::new(["auto", "single-turn", "stateful"]))]
    pub(crate) harness: Option<String>,
}

impl PrimeCommand {
    pub(crate) fn execute(self, context: &Context) -> Result<Outcome, Failure> {
        match self {
            Self::Doctor(arguments) => doctor::doctor(context, &arguments),
            Self::Export(arguments) => export::export(context, &arguments),
            Self::Smoke(arguments) => smoke::smoke(context, &arguments),
            Self::Push(arguments) => push::push(context, &arguments),
            Self::Eval(arguments) => eval::eval(context, &arguments),
            Self::Adapters(arguments) => adapters::list(context, &arguments),
            Self::TrainConfig(arguments) => train_config::train_config(context, &arguments),
            Self::Train(arguments) => train::train(context, &arguments),
        }
    }
}

/// A connection, and the runtime that it runs on.
pub(crate) struct Service {
    pub(crate) runtime: Runtime,
    pub(crate) client: Client,
    pub(crate) project: Project,
}

impl Service {
    /// Reads the credentials that `prime login` saved, and the variables of the project. Nothing is sent yet.
    pub(crate) fn open(context: &Context) -> Result<Self, Failure> {
        let project = context.project(Vec::new())?;
        let settings = settings(context, &project)?;
        let options = ClientOptions { proxies: Proxies::of(&project.env), ..ClientOptions::default() };
        let client = Client::new(settings, options).map_err(|error| failed(&error))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, client, project })
    }
}

/// The settings of the account. Its key is removed from everything that is printed.
pub(crate) fn settings(context: &Context, project: &Project) -> Result<Settings, Failure> {
    let home = etcetera::home_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let settings = Settings::load(&home, |name| project.env.get(name).map(str::to_owned));
    let settings = settings.map_err(|error: SettingsError| {
        let problem = Problem::error(error.to_string()).id(FAMILY.number(30));
        Failure::input(vec![problem.fix("run `prime login`, or set PRIME_API_KEY")])
    })?;
    if let Some(key) = &settings.api_key {
        context.remember_values(std::iter::once(("PRIME_API_KEY", key.reveal())));
    }
    Ok(settings)
}

/// A call that failed, with a fix for the user's mistake or the service's failure.
pub(crate) fn failed(error: &ApiError) -> Failure {
    let problem = Problem::error(error.to_string()).id(FAMILY.number(31));
    Failure::environment(problem.fix(match error.kind {
        ApiErrorKind::NoKey | ApiErrorKind::Unauthorized { .. } => "run `prime login`, or set PRIME_API_KEY",
        _ if error.is_passing() => "wait a little and try again",
        _ => "see `aec-bench prime doctor`",
    }))
}

/// A request that makes no sense.
pub(crate) fn unusable(error: &dyn std::fmt::Display, fix: &str) -> Failure {
    Failure::input(vec![Problem::error(error.to_string()).id(FAMILY.number(32)).fix(fix)])
}

pub(crate) fn environment_name(text: &str) -> Result<EnvironmentName, Failure> {
    text.parse().map_err(|why: String| {
        let problem = Problem::error(why).id(FAMILY.number(33));
        Failure::usage(problem.fix("write the owner and the name, such as your-owner/aec-electrical-v1"))
    })
}

/// Parses the interval between status requests.
pub(crate) fn watch(seconds: f64) -> Result<WatchOptions, Failure> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(interval) if interval >= Duration::from_millis(10) && interval <= Duration::from_hours(1) => {
            Ok(WatchOptions { interval, ..WatchOptions::default() })
        }
        _ => Err(Failure::usage(
            Problem::error(format!("--poll-interval {seconds} is not between 0.01 and 3600"))
                .fix("write seconds, such as 10"),
        )),
    }
}

/// Reports progress on stderr, unless the user asked for silence or JSON.
pub(crate) struct Narrator {
    outlet: Option<Outlet>,
}

impl Narrator {
    pub(crate) fn new(context: &Context) -> Result<Self, Failure> {
        let wanted = !context.quiet && context.format == Format::Text;
        Ok(Self { outlet: if wanted { Some(Outlet::stderr(context.color)?) } else { None } })
    }

    pub(crate) fn say(&mut self, text: &str) {
        if let Some(outlet) = &mut self.outlet {
            outlet.print(printable(text).into_owned());
        }
    }
}
