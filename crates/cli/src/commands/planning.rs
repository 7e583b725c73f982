//! What `plan` and `run` share: making a plan with its tasks from the arguments.

use std::path::Path;

use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::{Backend, Candidate, Origin, Setting};
use aec_base::text;
use aec_judge::settle::order::AnswerOrder;
use aec_run::experiment::{Agent, Experiment, Harness, ResourceLimitsTable, is_below_root};
use aec_run::overrides;
use aec_run::plan::{Conditions, Credentials, Plan};
use aec_run::planning::{Places, Request};
use aec_task::file::Quantity;
use aec_task::task::{Task, primary_output};
use indexmap::IndexMap;
use serde_json::Value;

use crate::commands::models;
use crate::commands::plan::PlanArguments;
use crate::context::Context;
use crate::failure::Failure;

/// The version recorded in plans and records.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The plan that flags and files ask for, and the project that it is for.
pub(crate) struct Asked {
    pub(crate) project: Project,
    pub(crate) request: Request,
    /// `AGENT_*` variables that influenced the plan.
    pub(crate) variables: Vec<&'static str>,
}

/// Directories named by flags: setting, value, flag.
pub(crate) type Roots<'a> = &'a [(Setting, Option<&'a str>, &'static str)];

/// Opens the project with overrides from the flags, and with the experiment's backend.
pub(crate) fn open(
    context: &Context,
    arguments: &PlanArguments,
    roots: Roots<'_>,
    experiment: Option<&Experiment>,
) -> Result<Project, Failure> {
    let mut overrides = arguments.tasks_root.overrides(context)?;
    for (setting, value, flag) in roots {
        if let Some(value) = value {
            let value = context.absolute(Path::new(value))?.to_string_lossy().into_owned();
            overrides.push(Candidate { setting: *setting, value, origin: Origin::Flag { flag } });
        }
    }
    let flags = [
        (Setting::Backend, arguments.backend.clone(), "--backend"),
        (Setting::HarborEnvironment, arguments.harbor_environment.clone(), "--harbor-environment"),
        (
            Setting::ExperimentDollars,
            arguments.budget.max_cost.as_ref().map(|limit| limit.said().to_owned()),
            "--max-cost",
        ),
        (
            Setting::ExperimentTokens,
            arguments.budget.max_total_tokens.as_ref().map(|limit| limit.said().to_owned()),
            "--max-total-tokens",
        ),
        (
            Setting::Endpoints,
            match &arguments.endpoints.endpoints {
                Some(file) => Some(context.absolute(file)?.to_string_lossy().into_owned()),
                None => None,
            },
            "--endpoints",
        ),
    ];
    for (setting, value, flag) in flags {
        if let Some(value) = value {
            overrides.push(Candidate { setting, value, origin: Origin::Flag { flag } });
        }
    }
    for from_file in [
        |experiment: &Experiment| experiment.backend.clone(),
        |experiment: &Experiment| experiment.harbor_environment.clone(),
    ] {
        overrides.extend(experiment.and_then(from_file));
    }
    context.project(overrides)
}

/// The directories of a project that plans are made from.
pub(crate) fn places(project: &Project) -> Places {
    Places {
        root: project.root.clone(),
        tasks: project.settings.path(Setting::Tasks),
        datasets: project.settings.path(Setting::Datasets),
        ledger: project.settings.path(Setting::Ledger),
    }
}

/// Reads the plan that the user asks for.
pub(crate) fn read(context: &Context, arguments: &PlanArguments, roots: Roots<'_>) -> Result<Asked, Failure> {
    let mut experiment = match &arguments.config {
        Some(file) => {
            // References in the experiment are filled in from the project's environment.
            let project = open(context, arguments, roots, None)?;
            Experiment::read(&context.absolute(file)?, &project.env)?
        }
        None => from_flags(arguments)?,
    };
    if let Some(repetitions) = arguments.repetitions {
        experiment.repetitions = repetitions;
    }
    if arguments.config.is_some() {
        narrow(&mut experiment, arguments);
    }
    let project = open(context, arguments, roots, Some(&experiment))?;
    let mut conditions = conditions(&project, &experiment, arguments);
    let variables = overrides::apply(&project.env, &mut experiment, &mut conditions)?;
    let id = match &arguments.experiment_id {
        Some(id) => Some(Name::parse(id).map_err(|error| {
            Failure::usage(
                Problem::error(format!("the experiment id `{}` {error}", text::printable(id)))
                    .fix("write letters, digits, `.`, `_` and `-`"),
            )
        })?),
        None => None,
    };
    let filters = arguments.selection.filters()?;
    let wanted = Box::new(move |task: &Task| filters.iter().all(|filter| filter.takes(task)));
    Ok(Asked { project, request: Request { experiment, id, conditions, wanted }, variables })
}

/// Selection flags narrow what the experiment file selects.
fn narrow(experiment: &mut Experiment, arguments: &PlanArguments) {
    let table = arguments.selection.table(Vec::new());
    let tasks = &mut experiment.tasks;
    tasks.exclude_patterns.extend(table.exclude_patterns);
    if table.dataset.is_some() {
        tasks.dataset = table.dataset;
    }
    for (own, flag) in [(&mut tasks.domains, table.domains), (&mut tasks.tags, table.tags)] {
        if !flag.is_empty() {
            *own = flag;
        }
    }
    if !table.difficulties.is_empty() {
        tasks.difficulties = table.difficulties;
    }
    if !table.visibility.is_empty() {
        tasks.visibility = table.visibility;
    }
    if table.lifecycle.is_some() {
        tasks.lifecycle = table.lifecycle;
    }
}

fn from_flags(arguments: &PlanArguments) -> Result<Experiment, Failure> {
    let tasks: Vec<String> = arguments.tasks.iter().chain(&arguments.more_tasks).cloned().collect();
    let selects = !tasks.is_empty()
        || arguments.selection.dataset.is_some()
        || !arguments.selection.domain.is_empty()
        || !arguments.selection.difficulty.is_empty()
        || !arguments.selection.tag.is_empty();
    if !selects {
        let problem = Problem::error("no experiment and no task was named")
            .fix("pass --config FILE, or tasks with --model or --harness");
        return Err(Failure::usage(problem));
    }
    let harness = arguments.harness.as_deref().and_then(Harness::parse);
    if harness.is_none() && arguments.model.is_empty() {
        let problem =
            Problem::error("no agent was named").fix("pass --model MODEL, or --harness oracle to try it out");
        return Err(Failure::usage(problem));
    }
    let harness = harness.unwrap_or(Harness::ToolLoop);
    if harness.needs_model() && arguments.model.is_empty() {
        let problem = Problem::error(format!("the harness `{}` needs a model", harness.name()));
        return Err(Failure::usage(problem.fix("pass --model MODEL")));
    }
    if let Some(file) = &arguments.system_prompt_file
        && !is_below_root(file)
    {
        let what =
            format!("`--system-prompt-file {}` is not a path below the project root", text::printable(file));
        return Err(Failure::usage(Problem::error(what).fix("write a path such as prompts/electrical.md")));
    }
    if arguments.system_prompt_file.is_some() && !harness.hears_prompts() {
        let what =
            format!("`--system-prompt-file` has no effect: the harness `{}` asks no model", harness.name());
        return Err(Failure::usage(Problem::error(what).fix("leave it out")));
    }
    let parameters = parameters(&arguments.parameter)?;
    let agent = |model: Option<&String>| -> Result<Agent, Failure> {
        Ok(Agent {
            name: agent_name(harness, model.map(String::as_str))?,
            harness,
            model: model.cloned(),
            client: None,
            parameters: parameters.clone(),
            system_prompt_file: arguments.system_prompt_file.clone(),
        })
    };
    let agents = if arguments.model.is_empty() {
        vec![agent(None)?]
    } else {
        arguments.model.iter().map(|model| agent(Some(model))).collect::<Result<_, _>>()?
    };
    Ok(Experiment {
        experiment_id: None,
        name: None,
        description: None,
        tasks: arguments.selection.table(tasks),
        agents,
        resource_limits: ResourceLimitsTable::default(),
        repetitions: arguments.repetitions.unwrap_or(1),
        disable_verification: false,
        backend: None,
        harbor_environment: None,
        credentials: Credentials::default(),
    })
}

/// `tool_loop-claude-sonnet-4`: the harness, and the characters of the model's name that a name may contain.
fn agent_name(harness: Harness, model: Option<&str>) -> Result<Name, Failure> {
    let mut name = harness.name().to_owned();
    if let Some(model) = model {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let parts: Vec<&str> = model.split(|c| !allowed(c)).filter(|part| !part.is_empty()).collect();
        name = format!("{name}-{}", parts.join("-"));
        name.truncate(aec_base::name::MAX_NAME);
    }
    Name::parse(&name).map_err(|error| {
        Failure::usage(
            Problem::error(format!("`{name}` {error}")).fix("describe the agent in an experiment file"),
        )
    })
}

fn parameters(given: &[String]) -> Result<IndexMap<String, Value>, Failure> {
    given
        .iter()
        .map(|parameter| {
            let (key, value) = parameter.split_once('=').ok_or_else(|| {
                let what = format!("`{}` is not KEY=VALUE", text::printable(parameter));
                Failure::usage(Problem::error(what).fix("write, say, --parameter max_turns=12"))
            })?;
            let value = aec_base::json::from_str(value).unwrap_or_else(|_| Value::from(value));
            Ok((key.to_owned(), value))
        })
        .collect()
}

pub(crate) fn backend(project: &Project) -> Backend {
    Backend::parse(&project.settings.get(Setting::Backend).value).unwrap_or(Backend::Local)
}

fn conditions(project: &Project, experiment: &Experiment, arguments: &PlanArguments) -> Conditions {
    let backend = backend(project);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "seconds are checked when they are read"
    )]
    let seconds = |value: f64| value.ceil().clamp(1.0, f64::from(u32::MAX)) as u32;
    let limits = &experiment.resource_limits;
    Conditions {
        backend,
        sandbox: arguments.sandbox.choice(),
        timeout_override: arguments
            .timeout
            .or_else(|| limits.timeout_override.map(|limit| seconds(limit.get()))),
        memory_mb: arguments.memory_mb.or_else(|| limits.memory_mb.map(Quantity::get)),
        disable_verification: arguments.no_verify || experiment.disable_verification,
        allow_leaks: arguments.allow_leaks,
        instruction: None,
        tools: None,
        harbor_environment: (backend == Backend::Harbor)
            .then(|| project.settings.get(Setting::HarborEnvironment).value.clone()),
        answer_order: AnswerOrder::PRESENT,
    }
}

/// Prompts of a plan's tasks, to estimate its cost.
pub(crate) fn prompts(plan: &Plan, tasks: &[Task]) -> aec_run::estimate::Prompts {
    tasks
        .iter()
        .map(|task| {
            let instruction = match &plan.conditions.instruction {
                Some(instruction) => instruction.clone(),
                None => task.instruction().unwrap_or_default(),
            };
            let output = primary_output(&instruction);
            (instruction, output)
        })
        .collect()
}

pub(crate) fn trial_budget(project: &Project) -> aec_model::meter::Budget {
    models::budget(project, Setting::TrialDollars, Setting::TrialTokens)
}
