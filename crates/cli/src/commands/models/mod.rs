//! What every command that calls models needs: the client, the account that pays, and the flags for both.

pub(crate) mod check;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::{Candidate, Origin, Setting};
use aec_model::cassette::{Cache, Player, Recorder};
use aec_model::client::{Client, Setup};
use aec_model::day::DayBook;
use aec_model::meter::{Account, AccountKind, Budget, Meter, Unpriced};
use aec_model::money::MicroDollars;
use aec_model::price::PriceList;
use aec_model::registry::Registry;
use aec_model::retry::RetryPolicy;
use aec_model::routing::Routes;
use aec_model::tape::Tape;
use aec_run::terms::Caps;
use clap::{Args, Subcommand, ValueHint};

use crate::commands::models::check::ModelsCheckArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Show what would be called for a model, with which key, at what price, and whether it answers
    Check(ModelsCheckArguments),
}

/// `--endpoints`, which overrides the setting `paths.endpoints`.
#[derive(Debug, Args)]
pub(crate) struct EndpointsArgument {
    /// Use this endpoints file instead of the configured one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) endpoints: Option<PathBuf>,
}

/// Whether model calls go out, are recorded, or are answered from a recording.
#[derive(Debug, Default, Args)]
pub(crate) struct TapeArguments {
    /// Record every model call in this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["replay", "cache"])]
    pub(crate) record: Option<PathBuf>,
    /// Answer every model call from a recording; never call a model
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "cache")]
    pub(crate) replay: Option<PathBuf>,
    /// Answer model calls from the project's cache, and add answers that it does not have
    #[arg(long)]
    pub(crate) cache: bool,
}

impl TapeArguments {
    /// The source of model answers, as sessions record it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            tape if tape.record.is_some() => "record",
            tape if tape.replay.is_some() => "replay",
            tape if tape.cache => "cache",
            _ => "live",
        }
    }
}

impl ModelsCommand {
    pub(crate) fn execute(self, context: &Context) -> Result<Outcome, Failure> {
        match self {
            Self::Check(arguments) => check::check(context, &arguments),
        }
    }
}

/// A client, the account that pays for its calls, and problems found while opening it.
pub(crate) struct Models {
    pub(crate) client: Client,
    pub(crate) meter: Meter,
    pub(crate) run: Account,
    pub(crate) endpoint_ids: Vec<String>,
    pub(crate) problems: Vec<Problem>,
}

/// Opens the project with overrides from the flags for endpoints and budget.
pub(crate) fn project(
    context: &Context,
    endpoints: &EndpointsArgument,
    budget: &Caps,
) -> Result<Project, Failure> {
    project_with(context, endpoints, budget, Vec::new())
}

/// Like `project`, with further overrides.
pub(crate) fn project_with(
    context: &Context,
    endpoints: &EndpointsArgument,
    budget: &Caps,
    mut overrides: Vec<Candidate>,
) -> Result<Project, Failure> {
    let mut add = |setting: Setting, value: String, flag: &'static str| {
        overrides.push(Candidate { setting, value, origin: Origin::Flag { flag } });
    };
    if let Some(file) = &endpoints.endpoints {
        let value = context.absolute(file)?.to_string_lossy().into_owned();
        add(Setting::Endpoints, value, "--endpoints");
    }
    if let Some(dollars) = &budget.max_cost {
        add(Setting::ExperimentDollars, dollars.said().to_owned(), "--max-cost");
    }
    if let Some(tokens) = &budget.max_total_tokens {
        add(Setting::ExperimentTokens, tokens.said().to_owned(), "--max-total-tokens");
    }
    context.project(overrides)
}

pub(crate) fn open(
    context: &Context,
    project: &Project,
    tape: &TapeArguments,
    retry: RetryPolicy,
    unpriced: Unpriced,
) -> Result<Models, Failure> {
    open_with(context, project, tape, retry, unpriced, |_| Ok(()))
}

/// Like `open`, with endpoints in addition to those of the endpoints file.
pub(crate) fn open_with(
    context: &Context,
    project: &Project,
    tape: &TapeArguments,
    retry: RetryPolicy,
    unpriced: Unpriced,
    change: impl FnOnce(&mut Registry) -> Result<(), Failure>,
) -> Result<Models, Failure> {
    let mut problems = Vec::new();
    let mut registry = read_registry(project, &mut problems)?;
    change(&mut registry)?;
    context.remember_values(registry.secrets());
    let endpoint_ids = registry.ids().map(str::to_owned).collect();
    let prices = read_prices(project)?;
    let routes = Routes { env: project.env.clone(), registry, directory: project.root.clone() };
    let tape = open_tape(context, project, tape, &mut problems)?;
    let meter = Meter::new(unpriced);
    let run = open_accounts(project, &meter, matches!(tape, Tape::Replay(_)))?;
    let setup = Setup { routes, prices, retry, tape, redactor: context.redactor() };
    let client = Client::new(setup);
    Ok(Models { client, meter, run, endpoint_ids, problems })
}

/// Reads the endpoints file. The default file may be absent.
fn read_registry(project: &Project, problems: &mut Vec<Problem>) -> Result<Registry, Failure> {
    let path = project.settings.path(Setting::Endpoints);
    if is_absent(project, Setting::Endpoints, &path) {
        return Ok(Registry::default());
    }
    let (registry, warnings) = Registry::read(&path, &project.env)?;
    problems.extend(warnings);
    Ok(registry)
}

fn read_prices(project: &Project) -> Result<PriceList, Failure> {
    let path = project.settings.path(Setting::Prices);
    if is_absent(project, Setting::Prices, &path) {
        return Ok(PriceList::builtin());
    }
    Ok(PriceList::with_user_file(&path)?)
}

fn is_absent(project: &Project, setting: Setting, path: &Path) -> bool {
    project.settings.get(setting).origin == Origin::Default && path.symlink_metadata().is_err()
}

fn open_tape(
    context: &Context,
    project: &Project,
    arguments: &TapeArguments,
    problems: &mut Vec<Problem>,
) -> Result<Tape, Failure> {
    if let Some(directory) = &arguments.record {
        let directory = context.absolute(directory)?;
        return Ok(Tape::Record(Recorder::create(&directory, Arc::new(context.redactor()))?));
    }
    if let Some(directory) = &arguments.replay {
        let (player, warnings) = Player::open(&context.absolute(directory)?)?;
        problems.extend(warnings);
        return Ok(Tape::Replay(player));
    }
    if arguments.cache {
        let directory = project.settings.path(Setting::ModelCache);
        let (cache, warnings) = Cache::open(&directory, Arc::new(context.redactor()))?;
        problems.extend(warnings);
        return Ok(Tape::Cache(cache));
    }
    Ok(Tape::Live)
}

/// The account of the day, and in it the account of the run. A replay costs nothing, so it does not count for the day.
fn open_accounts(project: &Project, meter: &Meter, replay: bool) -> Result<Account, Failure> {
    let day = budget(project, Setting::DayDollars, Setting::DayTokens);
    let day = if day == Budget::default() || replay {
        None
    } else {
        let book = DayBook::open(&project.settings.path(Setting::Spend)).map_err(|error| {
            Failure::environment(
                Problem::error(error.to_string()).fix("make paths.spend a writable directory"),
            )
        })?;
        Some(meter.open_day(book, day))
    };
    let run = experiment_budget(project);
    Ok(meter.open(day.as_ref(), AccountKind::Run, run))
}

pub(crate) fn experiment_budget(project: &Project) -> Budget {
    budget(project, Setting::ExperimentDollars, Setting::ExperimentTokens)
}

pub(crate) fn budget(project: &Project, dollars: Setting, tokens: Setting) -> Budget {
    Budget {
        money: project.settings.dollars(dollars).and_then(MicroDollars::from_dollars),
        tokens: project.settings.tokens(tokens),
    }
}

pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    aec_model::transport::allow_many_connections();
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::environment(Problem::error(format!("no runtime can be started: {error}"))))
}
