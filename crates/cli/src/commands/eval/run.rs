//! `aec-bench eval run`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::staging::Staging;
use aec_base::text::{count, printable};
use aec_eval::FAMILY;
use aec_eval::config::{EvalOptions, EvalSettings, ModelChoice, read_eval_file};
use aec_eval::engine::Stopped;
use aec_eval::evaluation::{Ended, Evaluation, run_all};
use aec_eval::event::EvalEvent;
use aec_eval::heartbeat::{Heartbeat, HeartbeatOptions};
use aec_eval::model_choice::choose;
use aec_http::Proxies;
use aec_model::client::Model;
use aec_model::meter::{Amount, Budget};
use aec_model::retry::RetryPolicy;
use aec_run::affordable::unpayable;
use aec_run::control::Control;
use aec_run::terms::{Caps, over};
use clap::{Args, ValueHint};
use serde::Serialize;
use tokio::runtime::Runtime;

use crate::arguments::SandboxArgument;
use crate::commands::eval::EvalTaskArguments;
use crate::commands::eval::after::After;
use crate::commands::eval::environment::{EnvironmentGateway, EvaluationOpener, PreparedEvaluation, prepare};
use crate::commands::models::{self, EndpointsArgument, Models, TapeArguments};
use crate::commands::verify::judge_later;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::output::Outcome;
use crate::progress::eval::{EvalProgress, Shown, summary_text};
use crate::progress::events::{EventLog, EventsArguments};
use crate::signals::Signals;

/// Arguments of `aec-bench eval run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench eval run configs/eval/cables.toml\n  \
                        aec-bench eval run aec-voltage-drop -m offline/scripted:careful.yaml -r 4 -s\n  \
                        aec-bench eval run --task electrical -m offline/echo -n 3 -r 1 --ledger echo")]
pub(crate) struct EvalRunArguments {
    /// Environment, dataset NAME@VERSION, package directory, or TOML file of evaluations; omit it with --task or
    /// --pattern
    #[arg(value_name = "ENV")]
    pub(crate) env: Option<String>,
    #[command(flatten)]
    pub(crate) options: EvalOptions,
    /// Show the evaluation on the full screen
    #[arg(long, short = 'u', visible_aliases = ["fullscreen"], conflicts_with_all = ["disable_tui", "quiet"])]
    #[arg(help_heading = "Pace")]
    pub(crate) tui: bool,
    /// Continue an evaluation: the newest incomplete one, or the one at PATH
    #[arg(long, short = 'R', value_name = "PATH", num_args = 0..=1, value_hint = ValueHint::DirPath)]
    #[arg(help_heading = "Results")]
    #[expect(clippy::option_option, reason = "absent, alone, and with a path are three things")]
    pub(crate) resume: Option<Option<PathBuf>>,
    /// With --resume: also rerun rollouts that ended in an error
    #[arg(long, requires = "resume", help_heading = "Results")]
    pub(crate) rerun_errors: bool,
    #[command(flatten)]
    pub(crate) tasks: EvalTaskArguments,
    #[command(flatten)]
    pub(crate) events: EventsArguments,
    #[command(flatten)]
    pub(crate) tape: TapeArguments,
    #[command(flatten)]
    pub(crate) budget: Caps,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
}

#[derive(Serialize)]
struct Data<'a> {
    evaluations: Vec<EvaluationData<'a>>,
    duration_seconds: f64,
}

#[derive(Serialize)]
struct EvaluationData<'a> {
    env_id: &'a str,
    model: &'a str,
    lane: &'a str,
    directory: Option<&'a Path>,
    num_examples: usize,
    rollouts_per_example: u32,
    complete: bool,
    stopped: Option<String>,
    #[serde(flatten)]
    summary: &'a aec_eval::results::summary::Summary,
    /// Cost of all sessions, in dollars.
    cost_usd: Option<f64>,
    /// Cost of this session, in dollars.
    session_cost_usd: Option<f64>,
}

pub(crate) fn run(context: &Context, arguments: &EvalRunArguments) -> Result<Outcome, Failure> {
    let begun = Instant::now();
    let (options, mut problems) = options(context, arguments)?;
    let project = open_project(context, arguments, &options)?;
    let runtime = models::runtime()?;
    let mut prepared = Vec::with_capacity(options.len());
    for one in options {
        let (one, noticed) = prepare(context, arguments, &project, &runtime, one)?;
        problems.extend(noticed);
        prepared.push(one);
    }
    let (opened, names) = open_models(context, arguments, &project, &prepared)?;
    problems.extend(opened.problems.iter().cloned());
    let after =
        prepared.iter().map(|one| After::of(&project, &one.settings)).collect::<Result<Vec<_>, _>>()?;
    let signals = Signals::catch_in(&runtime)?;
    let control = Control::default();
    let shown = Shown {
        full_screen: arguments.tui,
        plain: prepared.iter().any(|one| one.settings.said.disable_tui.is_on()),
        verbose: prepared.iter().any(|one| one.settings.said.verbose.is_on()),
    };
    let events = EventLog::open(context, &arguments.events, "eval run")?;
    let mut progress = EvalProgress::new(context, shown, events, control.clone())?;
    let heart = start_heart(&project, &runtime, &prepared, &progress)?;
    let scratch = Staging::scratch()?;
    let mut opener = EvaluationOpener {
        context,
        arguments,
        opened: &opened,
        runtime: &runtime,
        judge: judge_later(context, &arguments.sandbox),
        scratch: scratch.path(),
        gateway: EnvironmentGateway::default(),
    };
    let mut evaluations = Vec::with_capacity(prepared.len());
    for (number, (one, name)) in prepared.into_iter().zip(&names).enumerate() {
        let evaluation = opener.open(number, one, name, &progress)?;
        problems.extend(evaluation.notes.iter().cloned());
        evaluations.push(evaluation);
    }
    limit(&opened, models::experiment_budget(&project), &arguments.budget, &evaluations);
    let unpayable: Vec<Problem> = opened_models(&opened, &names)?
        .iter()
        .filter_map(|model| unpayable(model, None, &opened.run))
        .collect();
    if !unpayable.is_empty() {
        return Err(unpayable.into());
    }
    progress.on(&EvalEvent::Started(evaluations.iter().map(|one| one.started.clone()).collect()));
    let ended = runtime.block_on(async {
        tokio::spawn(crate::commands::run::listen(signals, control.clone()));
        let ended = run_all(evaluations, &control).await;
        if let Some(heart) = heart {
            heart.finish().await;
        }
        ended
    });
    progress.finish();
    problems.extend(progress.warnings());
    problems.extend(found(&ended));
    for (one, after) in ended.iter().zip(&after) {
        problems.extend(after.carry_out(context, arguments, &project, &runtime, one)?);
    }
    // The program does not wait for a judge whose result is no longer needed.
    runtime.shutdown_background();
    let data = data(&ended, begun);
    let outcome = Outcome::new(context.format, &data, || summary_text(&ended))?.problems(problems);
    let places = ended.iter().filter_map(|one| one.started.directory.as_deref());
    let outcome = places.fold(outcome, |outcome, place| {
        outcome.remark(format!("Results in {}", printable(&project.shown(place).to_string_lossy())))
    });
    Ok(match ended.iter().find_map(|one| one.stopped.as_ref()) {
        Some(Stopped::Asked) => outcome.exit(Exit::Interrupted),
        Some(Stopped::Fatal(_) | Stopped::Storage(_)) => outcome.exit(Exit::Environment),
        None => outcome,
    })
}

/// Limits the total cost of the evaluations, counting what their earlier sessions spent.
fn limit(opened: &Models, settings: Budget, said: &Caps, evaluations: &[Evaluation]) {
    let tills = || evaluations.iter().map(Evaluation::till);
    let caps = tills().fold(said.clone(), |caps, till| over(&caps, &till.budget.caps));
    let spent = tills().fold(Amount::default(), |sum, till| sum.plus(till.spent_before()));
    opened.meter.decide_on_unpriced(caps.unpriced());
    opened.run.limit(caps.budget(settings), spent);
}

/// Starts heartbeats to a monitor, if one was named.
fn start_heart(
    project: &Project,
    runtime: &Runtime,
    prepared: &[PreparedEvaluation],
    progress: &EvalProgress,
) -> Result<Option<Heartbeat>, Failure> {
    let Some(url) = prepared.iter().find_map(|one| one.settings.said.heartbeat_url.as_deref()) else {
        return Ok(None);
    };
    let _entered = runtime.enter();
    let options = HeartbeatOptions { proxies: Proxies::of(&project.env), ..HeartbeatOptions::default() };
    let heart = Heartbeat::start(url, options, progress.warn())?;
    progress.beat(heart.pulse());
    Ok(Some(heart))
}

/// The evaluations to run: those of the file, or the single one of the command line.
fn options(
    context: &Context,
    arguments: &EvalRunArguments,
) -> Result<(Vec<EvalOptions>, Vec<Problem>), Failure> {
    let said = said(context, arguments)?;
    let Some(file) = arguments.env.as_deref().filter(|env| env.ends_with(".toml")) else {
        return Ok((vec![said], Vec::new()));
    };
    let path = context.absolute(Path::new(file))?;
    let evaluations = read_eval_file(&path)?.evaluations;
    let display = ["env_id", "verbose", "disable_tui", "heartbeat_url", "ledger", "python"];
    let ignored: Vec<String> = said
        .said()
        .into_iter()
        .filter(|name| !display.contains(name))
        .map(|name| format!("--{}", name.replace('_', "-")))
        .collect();
    let mut problems = Vec::new();
    if !ignored.is_empty() {
        let what =
            format!("{} {} ignored beside a file of evaluations", ignored.join(", "), are(ignored.len()));
        let problem = Problem::note(what).id(FAMILY.number(95)).in_file(&path);
        problems.push(problem.fix("write them into the file, at its top for all evaluations"));
    }
    // Display options apply to all evaluations of the run.
    let shown = EvalOptions {
        heartbeat_url: said.heartbeat_url,
        ledger: said.ledger,
        disable_tui: said.disable_tui,
        verbose: said.verbose,
        ..EvalOptions::default()
    };
    // A file cannot know this machine's interpreter, so the flag applies unless the file names one.
    let here = EvalOptions { python: said.python, ..EvalOptions::default() };
    let evaluations = evaluations.into_iter().map(|one| shown.clone().over(one.over(here.clone())));
    Ok((evaluations.collect(), problems))
}

fn are(number: usize) -> &'static str {
    if number == 1 { "is" } else { "are" }
}

/// The options on the command line.
fn said(context: &Context, arguments: &EvalRunArguments) -> Result<EvalOptions, Failure> {
    let path = |path: &Option<PathBuf>| path.as_deref().map(|path| context.absolute(path)).transpose();
    let said = &arguments.options;
    Ok(EvalOptions {
        env_id: arguments.env.clone(),
        env_dir_path: path(&said.env_dir_path)?,
        endpoints_path: path(&said.endpoints_path)?,
        output_dir: path(&said.output_dir)?,
        resume: arguments.resume.is_some().into(),
        resume_path: path(&arguments.resume.clone().flatten())?,
        verbose: context.is_verbose().into(),
        ..said.clone()
    })
}

/// The project, with the endpoints file of the evaluations; all evaluations of a run share one.
fn open_project(
    context: &Context,
    arguments: &EvalRunArguments,
    options: &[EvalOptions],
) -> Result<Project, Failure> {
    let mut files: Vec<&PathBuf> = options.iter().filter_map(|one| one.endpoints_path.as_ref()).collect();
    files.dedup();
    if files.len() > 1 {
        let problem = Problem::error("the evaluations of this run name different endpoints files");
        return Err(problem
            .id(FAMILY.number(96))
            .fix("write `endpoints_path` once, at the top of the file")
            .into());
    }
    let file =
        files.first().map(|path| if path.is_dir() { path.join("endpoints.toml") } else { (*path).clone() });
    let endpoints = EndpointsArgument { endpoints: file };
    let tasks = arguments.tasks.tasks_root.overrides(context)?;
    models::project_with(context, &endpoints, &arguments.budget, tasks)
}

/// The model client of the run, and the name of each evaluation's model.
fn open_models(
    context: &Context,
    arguments: &EvalRunArguments,
    project: &Project,
    prepared: &[PreparedEvaluation],
) -> Result<(Models, Vec<String>), Failure> {
    let name = |settings: &EvalSettings| match &settings.model {
        ModelChoice::Model(name) | ModelChoice::Endpoint(name) => name.clone(),
    };
    let mut names = Vec::with_capacity(prepared.len());
    let unpriced = arguments.budget.unpriced();
    let opened =
        models::open_with(context, project, &arguments.tape, RetryPolicy::default(), unpriced, |registry| {
            for (number, one) in prepared.iter().enumerate() {
                let own = name(&one.settings);
                let same = prepared.iter().filter(|other| name(&other.settings) == own).count();
                let others = (same > 1).then_some(number);
                names.push(choose(&one.settings, registry, &project.env, others)?);
            }
            Ok(())
        })?;
    Ok((opened, names))
}

/// The models of these names.
fn opened_models(opened: &Models, names: &[String]) -> Result<Vec<Model>, Failure> {
    let model = |name: &String| opened.client.model(name, None).map_err(|error| Problem::from(error).into());
    names.iter().map(model).collect()
}

fn data(ended: &[Ended], begun: Instant) -> Data<'_> {
    let evaluations = ended.iter().map(|one| EvaluationData {
        env_id: &one.started.env_id,
        model: &one.started.model,
        lane: &one.started.lane,
        directory: one.started.directory.as_deref(),
        num_examples: one.started.num_examples,
        rollouts_per_example: one.started.rollouts_per_example,
        complete: one.is_complete(),
        stopped: one.stopped.as_ref().map(|stopped| match stopped {
            Stopped::Asked => "asked".to_owned(),
            Stopped::Fatal(why) | Stopped::Storage(why) => why.clone(),
        }),
        summary: &one.summary,
        cost_usd: one.cost.map(|cost| cost.total_usd),
        session_cost_usd: (one.spent.unpriced_calls == 0).then(|| one.spent.spent.dollars()),
    });
    Data { evaluations: evaluations.collect(), duration_seconds: begun.elapsed().as_secs_f64() }
}

/// The problems of ended evaluations, for the exit code and the envelope.
fn found(ended: &[Ended]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for one in ended {
        let env = &one.started.env_id;
        problems.extend(one.problem.clone());
        let missing = (one.started.total() as u64).saturating_sub(one.summary.rows);
        match &one.stopped {
            Some(Stopped::Asked) => {
                let what = format!(
                    "`{env}` was stopped; {} missing",
                    count(usize::try_from(missing).unwrap_or(0), "rollout")
                );
                problems.push(Problem::error(what).id(FAMILY.number(99)).fix("go on with --resume"));
            }
            Some(Stopped::Fatal(why) | Stopped::Storage(why)) => {
                let what = format!("`{env}` stopped before its end: {why}");
                problems.push(
                    Problem::error(what).id(FAMILY.number(100)).fix("fix that, then continue with --resume"),
                );
            }
            None => {}
        }
        if one.summary.errored > 0 {
            let what = format!(
                "{} of {} rollouts of `{env}` ended in an error",
                one.summary.errored, one.summary.rows
            );
            let problem =
                Problem::warning(what).id(FAMILY.number(101)).why("their reward of 0 is part of the mean");
            problems.push(problem.fix(match one.started.directory {
                Some(_) => "run them again with --resume --rerun-errors",
                None => "see why with -v; with -s they can be run again by --resume --rerun-errors",
            }));
        }
    }
    problems
}
