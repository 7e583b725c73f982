//! Harbor for `plan` and `run`: checks whether Harbor can carry out a plan, previews its jobs, and finds its program.

use aec_base::env::Env;
use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::secret::Reference;
use aec_base::settings::{Backend, Setting};
use aec_harbor::FAMILY;
use aec_harbor::agent::{Carried, HarborAgent, prepare};
use aec_harbor::job::JobSetup;
use aec_harbor::program::{Environment, Program};
use aec_harbor::run::Harbor;
use aec_ledger::layout::Ledger;
use aec_model::meter::{Budget, Unpriced};
use aec_model::retry::RetryPolicy;
use aec_run::plan::{Credentials, Plan, PlannedTrial};
use aec_run::resume::{Rerun, past, to_do};
use aec_run::terms::Terms;
use aec_task::task::Task;
use serde_json::Value;

use crate::commands::models;
use crate::commands::models::TapeArguments;
use crate::commands::planning::VERSION;
use crate::context::Context;
use crate::failure::Failure;

/// Refuses a plan for Harbor that Harbor cannot carry out.
pub(crate) fn refuse(
    context: &Context,
    project: &Project,
    plan: &Plan,
    tasks: &[Task],
) -> Result<(), Failure> {
    if plan.conditions.backend == Backend::Harbor {
        check(context, project, plan, tasks)?;
    }
    Ok(())
}

/// What Harbor carries a plan out with.
fn check(
    context: &Context,
    project: &Project,
    plan: &Plan,
    tasks: &[Task],
) -> Result<(Environment, Vec<HarborAgent>), Failure> {
    let environment = plan.conditions.harbor_environment.as_deref().unwrap_or("docker");
    let environment = Environment::parse(environment).map_err(|problem| Failure::input(vec![problem]))?;
    let opened =
        models::open(context, project, &TapeArguments::default(), RetryPolicy::default(), Unpriced::Allow)?;
    let carried = Carried::find(VERSION)?;
    let agents = prepare(plan, tasks, &environment, opened.client.routes(), &carried)?;
    if plan.agents.iter().any(|agent| agent.model.is_some())
        && let Some(setting) = budget_of(project)
    {
        let what = format!("`{setting}` cannot be kept under Harbor");
        let problem = Problem::error(what).id(FAMILY.number(26));
        let why = "agents run inside separate environments, so nothing adds up what they spend";
        return Err(problem.why(why).fix("unset it for this run, or use another backend").into());
    }
    Ok((environment, agents))
}

/// The first budget setting that is set.
fn budget_of(project: &Project) -> Option<&'static str> {
    [
        (Setting::ExperimentDollars, Setting::ExperimentTokens),
        (Setting::TrialDollars, Setting::TrialTokens),
        (Setting::DayDollars, Setting::DayTokens),
    ]
    .into_iter()
    .find_map(|(dollars, tokens)| {
        let budget = models::budget(project, dollars, tokens);
        (budget != Budget::default())
            .then(|| if budget.money.is_some() { dollars } else { tokens }.spec().key)
    })
}

pub(crate) fn preview(
    context: &Context,
    project: &Project,
    plan: &Plan,
    tasks: &[Task],
    trials: &[PlannedTrial],
    rerun: &Rerun,
    terms: &Terms,
) -> Result<Vec<Value>, Failure> {
    let (environment, agents) = check(context, project, plan, tasks)?;
    let ledger = Ledger::new(project.settings.path(Setting::Ledger));
    let jobs = project.settings.path(Setting::Jobs);
    let past = past(&ledger, &jobs, &plan.experiment_id, &rerun.trials)?;
    let setup = JobSetup {
        plan,
        tasks,
        agents: &agents,
        trials,
        environment: &environment,
        concurrency: terms.concurrency(),
        model_concurrency: terms.model_concurrency(),
    };
    Ok(setup.preview(&to_do(trials, &past, rerun)))
}

pub(crate) fn open(
    context: &Context,
    project: &Project,
    plan: &Plan,
    tasks: &[Task],
    tape: &TapeArguments,
) -> Result<Harbor, Failure> {
    let (environment, agents) = check(context, project, plan, tasks)?;
    if tape.name() != "live" && plan.agents.iter().any(|agent| agent.model.is_some()) {
        let what = "model calls of a Harbor job cannot be recorded or replayed";
        let problem = Problem::error(what).id(FAMILY.number(26));
        let fix = "leave out --record, --replay and --cache, or use another backend";
        return Err(Failure::usage(problem.why("they are made inside environments").fix(fix)));
    }
    let program = Program::find(context.search_path().as_deref())
        .map_err(|error| Failure::environment(Problem::from(error)))?;
    let variables = variables(project, &plan.credentials)?;
    Ok(Harbor { program, environment, agents, env: project.env.clone(), variables })
}

/// Variables for services: those that files refer to, else those with the documented names.
pub(super) fn variables(
    project: &Project,
    credentials: &Credentials,
) -> Result<Vec<(String, String)>, Failure> {
    let Credentials { harbor_endpoint, harbor_token, modal_token_id, modal_token_secret } = credentials;
    let (harbor, modal) = (&project.harbor, &project.modal);
    let wanted = [
        ("HARBOR_REGISTRY_WEBSITE_URL", harbor_endpoint, &harbor.endpoint, Some("HARBOR_ENDPOINT")),
        ("HARBOR_API_KEY", harbor_token, &harbor.token, Some("HARBOR_TOKEN")),
        ("MODAL_TOKEN_ID", modal_token_id, &modal.token_id, None),
        ("MODAL_TOKEN_SECRET", modal_token_secret, &modal.token_secret, None),
    ];
    let mut variables = Vec::new();
    for (name, of_experiment, of_project, usual) in wanted {
        let value = match of_experiment.as_ref().or(of_project.as_ref()) {
            Some(reference) => Some(value_of(reference, &project.env)?),
            None => usual.and_then(|usual| project.env.get(usual)).map(str::to_owned),
        };
        variables.extend(value.map(|value| (name.to_owned(), value)));
    }
    Ok(variables)
}

fn value_of(reference: &Reference, env: &Env) -> Result<String, Failure> {
    let value = reference.value(env).map_err(|error| {
        let problem = Problem::error(format!("a key below `compute` {error}")).id(FAMILY.number(28));
        Failure::from(problem.fix(format!("set {} in the shell or in .env", reference.variable())))
    })?;
    Ok(value.reveal().to_owned())
}
