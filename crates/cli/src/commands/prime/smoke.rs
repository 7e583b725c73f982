//! `aec-bench prime smoke`.

use std::sync::Arc;

use aec_base::content::ContentStore;
use aec_base::decimal::rounded;
use aec_base::problem::Problem;
use aec_base::settings::Setting;
use aec_base::staging::Staging;
use aec_base::text::count;
use aec_model::check::Checking;
use aec_model::meter::Unpriced;
use aec_model::retry::RetryPolicy;
use aec_model::script::Script;
use aec_model_server::{Answers, Options, TestServer};
use aec_prime::FAMILY;
use aec_prime::service::hub::Package;
use aec_prime::smoke::{
    Loaded, Player, Seat, Trial, Venv, VenvError, Verdict, compare, nothing_script, play, reference_script,
    trials,
};
use aec_run::terms::Caps;
use aec_sandbox::python;
use aec_task::catalogue::Catalogue;
use clap::Args;
use serde::Serialize;

use crate::arguments::SandboxArgument;
use crate::commands::models;
use crate::commands::models::{EndpointsArgument, TapeArguments};
use crate::commands::prime::export::{PackageData, export_again};
use crate::commands::prime::{Narrator, PackageArguments, unusable};
use crate::commands::verify::judge;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::output::Outcome;
use crate::table::{Table, TableArguments};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench prime smoke --name aec-voltage-drop --task electrical/voltage-drop")]
pub(crate) struct PrimeSmokeArguments {
    #[command(flatten)]
    pub(crate) package: PackageArguments,
    /// Version of `verifiers` to load the package with
    #[arg(long, value_name = "VERSION", default_value = aec_prime::smoke::DEFAULT_VERIFIERS)]
    pub(crate) verifiers: String,
    /// Also run one example with this model; its endpoint is found as in `aec-bench run`
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Most tokens per answer of the model
    #[arg(long, value_name = "N", default_value_t = 2048)]
    pub(crate) max_tokens: u32,
    /// Number of tasks to try
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) num_examples: usize,
    #[command(flatten)]
    pub(crate) table: TableArguments,
    #[command(flatten)]
    pub(crate) endpoints: EndpointsArgument,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
}

const COLUMNS: [&str; 5] = ["PLAYER", "TASK", "REWARD", "EXPECTED", "STOP"];

#[derive(Serialize)]
struct Data {
    package: PackageData,
    verifiers: String,
    loaded: Loaded,
    rollouts: Vec<Verdict>,
}

pub(crate) fn smoke(context: &Context, arguments: &PrimeSmokeArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&COLUMNS])?;
    let mut narrator = Narrator::new(context)?;
    let exported = export_again(context, &arguments.package)?;
    let module = exported.manifest.name.clone();
    let package = Package::build(&exported.written.place)
        .map_err(|error| unusable(&error, "export the package again"))?;
    let judge = judge(context, &arguments.sandbox);
    let tasks = Catalogue::load(&exported.project.settings.path(Setting::Tasks)).tasks;
    let store = Staging::scratch()?;
    let most = arguments.num_examples.max(1);
    narrator.say("Playing the reference solutions here first …");
    let trials = trials(&exported.manifest, &tasks, &judge, &ContentStore::new(store.path()), most)
        .map_err(|why| unusable(&why, "run `aec-bench verify` on the task"))?;
    let python = python::find(context.search_path().as_deref()).ok_or_else(|| {
        let problem = Problem::error("there is no python3 on PATH").id(FAMILY.number(40));
        Failure::environment(problem.fix("install Python 3.11 or newer"))
    })?;
    let below = exported.project.settings.path(Setting::Prime).join("venvs");
    let venv = Venv::open(&below, &python.path, &arguments.verifiers, |line| narrator.say(line))
        .map_err(|error| venv_failed(&error))?;
    venv.install(&package).map_err(|error| venv_failed(&error))?;
    narrator.say(&format!(
        "Playing {} through verifiers {} …",
        count(trials.len(), "task"),
        arguments.verifiers
    ));
    let runtime = models::runtime()?;
    let serve = |script: Script| {
        let answers = Answers::Script(Arc::new(script));
        runtime.block_on(TestServer::start(Options { answers, ..Options::default() }))
    };
    let (reference, nothing) = (serve(reference_script(&trials))?, serve(nothing_script())?);
    let local = |player: Player, server: &TestServer| Seat {
        player,
        model: "local".to_owned(),
        url: format!("{}/v1", server.url()),
        key: None,
        num_examples: trials.len(),
        max_tokens: arguments.max_tokens,
    };
    let mut seats = vec![local(Player::Reference, &reference), local(Player::Nothing, &nothing)];
    if let Some(model) = &arguments.model {
        seats.push(real_model(context, arguments, model)?);
    }
    let (loaded, played) = play(&venv, &module, most, &seats).map_err(|error| venv_failed(&error))?;
    let rollouts = compare(&trials, played);
    let problems = problems(&trials, &rollouts, seats.len());
    let failed = problems.iter().any(Problem::counts);
    let data = Data { package: exported.data(), verifiers: arguments.verifiers.clone(), loaded, rollouts };
    let outcome = Outcome::new(context.format, &data, || table(&data))?.problems(problems);
    Ok(if failed {
        outcome.exit(Exit::Found)
    } else {
        outcome.remark(format!(
            "{} loads as {}, and every reward is the judge's.",
            data.package.name(),
            data.loaded.kind
        ))
    })
}

/// A real model, which must answer in the chat completions format.
fn real_model(context: &Context, arguments: &PrimeSmokeArguments, model: &str) -> Result<Seat, Failure> {
    let project = models::project(context, &arguments.endpoints, &Caps::default())?;
    let tape = TapeArguments::default();
    let opened = models::open(context, &project, &tape, RetryPolicy::once(), Unpriced::Allow)?;
    let runtime = models::runtime()?;
    let found =
        runtime.block_on(opened.client.check(model, Checking::Look, &opened.run)).map_err(Problem::from)?;
    let endpoint = found.into_iter().find_map(|checked| checked.endpoint).ok_or_else(|| {
        unusable(&format!("`{model}` is a model inside this program"), "name one that answers at an address")
    })?;
    if endpoint.format.name() != "openai_chat_completions" {
        let what = format!(
            "`{model}` answers in the format {}, which `prime smoke` does not use with verifiers",
            endpoint.format.name()
        );
        return Err(unusable(&what, "name a model that speaks OpenAI's chat completions"));
    }
    let key = endpoint.credential.variables().into_iter().find_map(|name| {
        let value = project.env.get(&name)?.to_owned();
        Some((name, value))
    });
    Ok(Seat {
        player: Player::Model,
        model: endpoint.model.clone(),
        url: endpoint.base_url.as_str().trim_end_matches('/').to_owned(),
        key,
        num_examples: 1,
        max_tokens: arguments.max_tokens,
    })
}

fn problems(trials: &[Trial], rollouts: &[Verdict], players: usize) -> Vec<Problem> {
    let mut problems: Vec<Problem> = trials
        .iter()
        .filter_map(|trial| {
            let why = trial.without.as_ref()?;
            let what = format!("`{}` has no reference solution to play: {why}", trial.task_id);
            Some(Problem::note(what).id(FAMILY.number(41)).about(trial.task_id.clone()))
        })
        .collect();
    for rollout in rollouts.iter().filter(|rollout| !rollout.is_right) {
        let shown =
            |reward: Option<f64>| reward.map_or_else(|| "no reward".to_owned(), |reward| reward.to_string());
        let what = format!(
            "`{}`: verifiers gives {}, the judge here {}",
            rollout.task_id,
            shown(rollout.reward),
            shown(rollout.expected)
        );
        let problem = Problem::error(what).id(FAMILY.number(42)).about(rollout.task_id.clone());
        problems.push(match &rollout.error {
            Some(error) => problem.why(error.clone()),
            None => problem.fix("do not train on this package before the two agree"),
        });
    }
    let at_least = trials.len() * players.min(2);
    if rollouts.len() < at_least {
        let what = format!("{} of {at_least} rollouts came back", rollouts.len());
        problems.push(Problem::error(what).id(FAMILY.number(43)).fix("run it again with --verbose"));
    }
    problems
}

fn table(data: &Data) -> String {
    let mut table = Table::new(COLUMNS).spare(["STOP"]).cut_front(["TASK"]).cut(["STOP"]);
    for rollout in &data.rollouts {
        let player = match rollout.player {
            Player::Reference => "reference",
            Player::Nothing => "nothing",
            Player::Model => "model",
        };
        let number = |reward: Option<f64>| reward.map_or_else(|| "-".to_owned(), |reward| rounded(reward, 3));
        table.row([
            player.to_owned(),
            rollout.task_id.clone(),
            number(rollout.reward),
            number(rollout.expected),
            rollout.stop_condition.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table.label_tasks("TASK");
    table.render()
}

fn venv_failed(error: &VenvError) -> Failure {
    match error {
        VenvError::Version(_) => unusable(error, "write a version such as 0.3.1"),
        _ => Failure::environment(
            Problem::error(error.to_string())
                .id(FAMILY.number(44))
                .fix("check that Python and a package index can be reached; the package itself was written"),
        ),
    }
}
