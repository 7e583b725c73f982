//! `aec-bench plan`, and the preview of a plan.

use std::collections::BTreeMap;
use std::path::PathBuf;

use aec_base::decimal::rounded;
use aec_base::file::write_atomic;
use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::{Backend, Setting};
use aec_base::text;
use aec_ledger::index::Filter;
use aec_ledger::layout::Ledger;
use aec_model::meter::Amount;
use aec_model::money::MicroDollars;
use aec_model::retry::RetryPolicy;
use aec_report::selection::Selection;
use aec_report::sizing::{self, Sizing};
use aec_report::stats::Goal;
use aec_run::affordable::unaffordable;
use aec_run::agents;
use aec_run::campaign::Waiting;
use aec_run::estimate::{Ceiling, ceilings};
use aec_run::forecast::{AgentForecast, forecasts};
use aec_run::plan::{Plan, PlannedTrial};
use aec_run::planning::make;
use aec_run::resume::{Past, Rerun, past, to_do};
use aec_run::terms::Caps;
use aec_task::task::Task;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::arguments::{LedgerRootArgument, SandboxArgument, SelectionArguments, TasksRootArgument};
use crate::commands::evolve::harness_names;
use crate::commands::ledger::{ask, find_experiment};
use crate::commands::models::{EndpointsArgument, TapeArguments};
use crate::commands::planning::{self, Asked, VERSION};
use crate::commands::{harbor, modal, models};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Outcome, STRONG};
use crate::table::{Table, TableArguments, paragraph};

/// What decides which trials there are: an experiment file, or equivalent flags.
#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    /// Tasks to run: ids, directories that contain ids, or patterns such as electrical/*
    #[arg(value_name = "TASK", conflicts_with = "config")]
    pub(crate) tasks: Vec<String>,
    /// Experiment file
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Task to run; the same as naming it without the flag
    #[arg(long = "task", value_name = "TASK", conflicts_with = "config")]
    pub(crate) more_tasks: Vec<String>,
    #[command(flatten)]
    pub(crate) selection: SelectionArguments,
    /// Model or endpoint id; each one becomes a separate agent
    #[arg(long, short, value_name = "MODEL", conflicts_with = "config")]
    pub(crate) model: Vec<String>,
    /// Program between model and task [default: `tool_loop`]
    #[arg(long, visible_alias = "adapter", value_name = "NAME", conflicts_with = "config", value_parser = harness_names())]
    pub(crate) harness: Option<String>,
    /// Parameter of the agents, such as `max_turns=12`; the value is parsed as JSON if possible
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "config")]
    pub(crate) parameter: Vec<String>,
    /// File with a system prompt for the agents, inside the project
    #[arg(long, value_name = "FILE", conflicts_with = "config", value_hint = ValueHint::FilePath)]
    pub(crate) system_prompt_file: Option<String>,
    /// How often each agent attempts each task
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) repetitions: Option<u32>,
    /// Id of the experiment, which names its directory in the ledger [default: made from the plan]
    #[arg(long, short = 'e', visible_alias = "experiment", value_name = "EXP")]
    pub(crate) experiment_id: Option<String>,
    /// Backend that runs the trials
    #[arg(long, short, value_name = "NAME", value_parser = Backend::NAMES)]
    pub(crate) backend: Option<String>,
    /// Where Harbor runs trials: docker, modal, daytona …, or module:Class [default: docker]
    #[arg(long, value_name = "TYPE")]
    pub(crate) harbor_environment: Option<String>,
    /// Seconds that an agent may take, instead of the task's limit
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) timeout: Option<u32>,
    /// Memory in MiB, instead of the task's limit
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) memory_mb: Option<u32>,
    /// Keep submissions without scoring them
    #[arg(long)]
    pub(crate) no_verify: bool,
    /// Run agents even if their prompts or files contain answers of the tasks; every record then says so
    #[arg(long)]
    pub(crate) allow_leaks: bool,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
    #[command(flatten)]
    pub(crate) endpoints: EndpointsArgument,
    #[command(flatten)]
    pub(crate) budget: Caps,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench plan --config experiment.yaml\n  \
                        aec-bench plan electrical --model gpt-4.1-mini --repetitions 3 --lock plan.json\n  \
                        aec-bench plan --config experiment.yaml --pilot pilot --detect 0.1")]
pub(crate) struct PlanCommandArguments {
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    /// Lock the plan in this file; `run --plan FILE` then refuses to run if anything has changed
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) lock: Option<PathBuf>,
    /// Replace an existing plan file
    #[arg(long, requires = "lock")]
    pub(crate) force: bool,
    /// Estimate how many trials, and how much money, it takes to detect this difference between two agents
    #[arg(long, value_name = "REWARD")]
    pub(crate) detect: Option<f64>,
    /// Estimate the variance of rewards and the cost of a trial from this experiment
    #[arg(long, value_name = "EXP", requires = "detect")]
    pub(crate) pilot: Option<String>,
    #[command(flatten)]
    pub(crate) table: TableArguments,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}

/// Trials shown as text; JSON has all of them.
const SHOWN: usize = 20;

const COLUMNS: [&str; 5] = ["TRIAL", "TASK", "AGENT", "REP", "STATE"];

/// A plan, and how much of it is done.
#[derive(Serialize)]
pub(crate) struct Preview {
    experiment_id: String,
    plan: aec_base::digest::Digest,
    backend: &'static str,
    dataset: Option<String>,
    selected_tasks: usize,
    agents: Vec<PreviewAgent>,
    repetitions: u32,
    planned_trials: usize,
    done_trials: usize,
    trials_to_run: usize,
    /// Trials with a record, by the outcome of their latest attempt.
    outcomes: BTreeMap<&'static str, usize>,
    cost_ceiling: Option<MicroDollars>,
    cost_ceilings: Vec<Ceiling>,
    /// Forecasts for agents that work by plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    forecasts: Vec<AgentForecast>,
    locked: Option<String>,
    /// The jobs that Harbor would be given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) harbor_jobs: Vec<serde_json::Value>,
    /// What would be created at Modal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) modal: Option<modal::Preview>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sizing: Option<Sizing>,
    trials: Vec<PreviewTrial>,
}

#[derive(Serialize)]
struct PreviewAgent {
    name: String,
    harness: &'static str,
    model: Option<String>,
    digest: aec_base::digest::Digest,
}

#[derive(Serialize)]
struct PreviewTrial {
    trial_id: String,
    task_id: String,
    agent: String,
    repetition: u32,
    /// The number of the next attempt; absent if the trial is done.
    attempt: Option<u32>,
    outcome: Option<&'static str>,
}

pub(crate) fn plan(context: &Context, arguments: &PlanCommandArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&COLUMNS])?;
    let roots = [(Setting::Ledger, arguments.ledger_root.ledger_root.as_deref(), "--ledger-root")];
    let Asked { project, request, variables } = planning::read(context, &arguments.plan, &roots)?;
    let made = make(&planning::places(&project), request, VERSION)?;
    harbor::refuse(context, &project, &made.plan, &made.tasks)?;
    let trials = made.plan.trials();
    let caps = &arguments.plan.budget;
    let mut preview =
        Preview::new(context, &project, &made.plan, &made.tasks, &trials, &Rerun::default(), caps)?;
    if let Some(file) = &arguments.lock {
        let path = context.absolute(file)?;
        if path.symlink_metadata().is_ok() && !arguments.force {
            let problem =
                Problem::error("there is a plan file already").fix("choose another name, or pass --force");
            return Err(problem.in_file(path).into());
        }
        write_atomic(&path, made.plan.to_json().as_bytes())?;
        preview.locked = Some(file.to_string_lossy().into_owned());
    }
    if let Some(detect) = arguments.detect {
        preview.sizing = Some(sizing(&project, &preview, detect, arguments.pilot.as_deref())?);
    }
    let outcome = preview.outcome(context)?.problems(made.problems);
    Ok(variables_remark(outcome, &variables))
}

/// What it takes to detect a difference. Without a pilot, the cost of a trial is taken from its ceiling.
#[expect(clippy::cast_precision_loss, reason = "counts of trials and millionths of dollars are small")]
fn sizing(project: &Project, preview: &Preview, detect: f64, pilot: Option<&str>) -> Result<Sizing, Failure> {
    if !(detect > 0.0 && detect < 1.0) {
        let problem = Problem::error(format!("--detect {detect} is not a difference of rewards"));
        return Err(Failure::usage(problem.fix("give a number between 0 and 1")));
    }
    let ledger = Ledger::new(project.settings.path(Setting::Ledger));
    let pilot = match pilot {
        None => None,
        Some(id) => {
            let experiment = find_experiment(&ledger, id)?;
            let filter = Filter { experiments: vec![experiment.to_string()], ..Filter::default() };
            Some(ask(project, &ledger, |index| Selection::read(index, &filter))?.0)
        }
    };
    let ceiling = preview.cost_ceiling.filter(|_| preview.trials_to_run > 0);
    let planned = sizing::Planned {
        tasks: preview.selected_tasks,
        repetitions: preview.repetitions as usize,
        agents: preview.agents.len(),
        cost_per_trial: ceiling.map(|ceiling| ceiling.0 as f64 / 1e6 / preview.trials_to_run as f64),
    };
    Ok(sizing::size(&planned, pilot.as_ref(), detect, Goal::default()))
}

fn sizing_text(sizing: &Sizing) -> String {
    let from = match sizing.pilot_trials {
        0 => "by the usual scatter of rewards; --pilot EXP learns it from an experiment".to_owned(),
        trials => format!("by the scatter of {trials} trials"),
    };
    let mut text = format!("To see a difference of {} ({from}):\n", rounded(sizing.detect, 3));
    if let Some(smallest) = sizing.minimal_detectable_effect {
        let enough = if sizing.is_enough { "enough" } else { "not enough" };
        text.push_str(&format!("  this plan sees {}, which is {enough}\n", rounded(smallest, 3)));
    }
    text.push_str(&match sizing.repetitions_needed {
        Some(count) => format!("  {} of these tasks\n", text::count(count, "repetition")),
        None => "  no number of repetitions of these tasks is enough\n".to_owned(),
    });
    if let Some(count) = sizing.tasks_needed {
        text.push_str(&format!("  or {} with as many repetitions\n", text::count(count, "task")));
    }
    if let Some(trials) = sizing.trials_needed {
        let money =
            sizing.cost_needed.map(|cost| format!(", at most ${}", rounded(cost, 2))).unwrap_or_default();
        text.push_str(&format!("  that is {}{money}\n", text::count(trials, "trial")));
    }
    text
}

/// Says which environment variables influenced the plan.
pub(crate) fn variables_remark(outcome: Outcome, variables: &[&str]) -> Outcome {
    if variables.is_empty() {
        return outcome;
    }
    outcome.remark(format!("{} from the environment influenced the plan.", variables.join(", ")))
}

impl Preview {
    pub(crate) fn new(
        context: &Context,
        project: &Project,
        plan: &Plan,
        tasks: &[Task],
        trials: &[PlannedTrial],
        rerun: &Rerun,
        caps: &Caps,
    ) -> Result<Self, Failure> {
        let ledger = Ledger::new(project.settings.path(Setting::Ledger));
        let jobs = project.settings.path(Setting::Jobs);
        let past = past(&ledger, &jobs, &plan.experiment_id, &rerun.trials)?;
        let number = |Waiting { trial, attempt }| (trial, attempt);
        let next: BTreeMap<usize, u32> = to_do(trials, &past, rerun).into_iter().map(number).collect();
        let wanted: Vec<&PlannedTrial> = next.keys().map(|index| &trials[*index]).collect();
        let (ceilings, forecasts) = expected(context, project, plan, tasks, &wanted, caps)?;
        let cap = caps.budget(models::experiment_budget(project)).money;
        let cap = cap.map(|cap| cap.minus(past.spent.money));
        let sum = ceilings.iter().map(|ceiling| ceiling.at_most).collect::<Option<Vec<_>>>();
        let sum = sum.map(|parts| parts.into_iter().fold(MicroDollars::ZERO, MicroDollars::plus));
        let mut outcomes: BTreeMap<&'static str, usize> = BTreeMap::new();
        for trial in trials {
            if let Some(found) = past.trials.get(&trial.id) {
                *outcomes.entry(found.outcome.name()).or_default() += 1;
            }
        }
        Ok(Self {
            experiment_id: plan.experiment_id.to_string(),
            plan: plan.digest,
            backend: plan.conditions.backend.name(),
            dataset: plan.dataset.as_ref().map(|dataset| dataset.id.clone()),
            selected_tasks: plan.tasks.len(),
            agents: plan
                .agents
                .iter()
                .map(|agent| PreviewAgent {
                    name: agent.name.to_string(),
                    harness: agent.harness.name(),
                    model: agent.model.clone(),
                    digest: agent.digest,
                })
                .collect(),
            repetitions: plan.repetitions,
            planned_trials: trials.len(),
            done_trials: trials.len() - next.len(),
            trials_to_run: next.len(),
            outcomes,
            cost_ceiling: match (sum, cap) {
                (Some(sum), Some(cap)) => Some(sum.min(cap)),
                (sum, cap) => sum.or(cap),
            },
            cost_ceilings: ceilings,
            forecasts,
            locked: None,
            harbor_jobs: Vec::new(),
            modal: None,
            sizing: None,
            trials: trials
                .iter()
                .enumerate()
                .map(|(index, trial)| row(plan, trial, next.get(&index), &past))
                .collect(),
        })
    }

    /// The trials that would be run now. They must be the trials that this preview was made for.
    pub(crate) fn to_run<'a>(&self, trials: &'a [PlannedTrial]) -> Vec<&'a PlannedTrial> {
        let rows = trials.iter().zip(&self.trials);
        rows.filter(|(_, row)| row.attempt.is_some()).map(|(trial, _)| trial).collect()
    }

    pub(crate) fn outcome(&self, context: &Context) -> Result<Outcome, Failure> {
        Outcome::new(context.format, self, || self.text())
    }

    fn text(&self) -> String {
        let mut text = format!("{STRONG}{}{STRONG:#}  plan {}\n", self.experiment_id, self.plan);
        let dataset = self.dataset.as_ref().map(|dataset| format!(" of {dataset}")).unwrap_or_default();
        text.push_str(&format!(
            "{}{dataset} × {} × {} = {} on {}\n",
            text::count(self.selected_tasks, "task"),
            text::count(self.agents.len(), "agent"),
            text::count(self.repetitions as usize, "repetition"),
            text::count(self.planned_trials, "trial"),
            self.backend,
        ));
        for agent in &self.agents {
            let model = agent.model.as_deref().map(|model| format!(" with {model}")).unwrap_or_default();
            text.push_str(&format!("  {}: {}{model}\n", agent.name, agent.harness));
        }
        let done: Vec<String> =
            self.outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
        let done = if done.is_empty() { String::new() } else { format!(" (recorded: {})", done.join(", ")) };
        text.push_str(&format!("To run: {} of {}{done}\n", self.trials_to_run, self.planned_trials));
        text.push_str(&match self.cost_ceiling {
            Some(ceiling) => format!("Cost at most: {ceiling}\n"),
            None => "Cost at most: no bound\n".to_owned(),
        });
        let unbounded = |ceiling: &&Ceiling| self.cost_ceiling.is_none() && ceiling.at_most.is_none();
        for ceiling in self.cost_ceilings.iter().filter(unbounded) {
            text.push_str(&format!("  {}: {}\n", ceiling.agent, ceiling.why.unwrap_or_default()));
        }
        for forecast in &self.forecasts {
            text.push_str(&format!("Expected of {}: {}\n", forecast.agent, forecast.all));
        }
        for job in &self.harbor_jobs {
            text.push_str(&format!("Harbor job:\n{job:#}\n"));
        }
        if let Some(modal) = &self.modal {
            text.push_str(&modal.text());
        }
        if let Some(sizing) = &self.sizing {
            text.push_str(&sizing_text(sizing));
        }
        if let Some(file) = &self.locked {
            text.push_str(&format!("Locked in {file}; carry it out with `aec-bench run --plan {file}`\n"));
        }
        let mut table = Table::new(COLUMNS).cut_front(["TASK"]).cut(["AGENT"]);
        for trial in self.trials.iter().take(SHOWN) {
            let state = match (trial.attempt, trial.outcome) {
                (None, outcome) => outcome.unwrap_or("done").to_owned(),
                (Some(1), _) => "to run".to_owned(),
                (Some(attempt), outcome) => format!("attempt {attempt} after {}", outcome.unwrap_or("none")),
            };
            let repetition = trial.repetition.to_string();
            table.row([
                trial.trial_id.clone(),
                trial.task_id.clone(),
                trial.agent.clone(),
                repetition,
                state,
            ]);
        }
        table.label_trials("TRIAL");
        table.label_tasks("TASK");
        let mut text = paragraph(&text);
        text.push('\n');
        text.push_str(&table.render());
        if self.trials.len() > SHOWN {
            text.push_str(&format!("and {} more; --json has all of them\n", self.trials.len() - SHOWN));
        }
        text
    }
}

fn row(plan: &Plan, trial: &PlannedTrial, attempt: Option<&u32>, past: &Past) -> PreviewTrial {
    PreviewTrial {
        trial_id: trial.id.to_string(),
        task_id: plan.tasks[trial.task].task_id.clone(),
        agent: plan.agents[trial.agent].name.to_string(),
        repetition: trial.repetition,
        attempt: attempt.copied(),
        outcome: past.trials.get(&trial.id).map(|found| found.outcome.name()),
    }
}

/// The most that the trials to be run can cost, and the forecasts of agents that work by plan. No model is called.
fn expected(
    context: &Context,
    project: &Project,
    plan: &Plan,
    tasks: &[Task],
    trials: &[&PlannedTrial],
    caps: &Caps,
) -> Result<(Vec<Ceiling>, Vec<AgentForecast>), Failure> {
    let opened =
        models::open(context, project, &TapeArguments::default(), RetryPolicy::default(), caps.unpriced())?;
    let agents = agents::prepare(plan, &project.root, &opened.client)?;
    let budget = planning::trial_budget(project);
    opened.run.limit(caps.budget(models::experiment_budget(project)), Amount::default());
    let unaffordable = unaffordable(tasks, &plan.conditions, &agents, &opened.run, budget);
    if !unaffordable.is_empty() {
        return Err(unaffordable.into());
    }
    let ceilings = ceilings(plan, &agents, &planning::prompts(plan, tasks), trials, budget.money);
    Ok((ceilings, forecasts(plan, tasks, &agents, trials)))
}
