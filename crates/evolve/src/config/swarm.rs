//! `swarm.yaml`.

use std::path::{Path, PathBuf};

use aec_base::document::{Document, Shared, Syntax};
use aec_base::env::Env;
use aec_base::problem::Problem;
use aec_base::settings::Backend;
use aec_run::experiment::{Agent, AgentTable};
use aec_task::file::{Quantity, Seconds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::evolution::read_solver;
use super::{
    Acceptance, AcceptanceTable, DEFAULT_CONCURRENCY, Generate, GenerateTable, HoldoutTable, amount, below,
    missing, model, tokens, workspace,
};
use crate::FAMILY;

const MOST_AGENTS: u32 = 64;

/// `swarm.yaml`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SwarmFile {
    /// What is improved, and on which tasks.
    pub task: TaskTable,
    /// The agents that improve it.
    pub agents: AgentsTable,
    /// The agent whose prompt is improved; if absent, the workspace's harness with `agents.default_model`.
    pub solver: Option<AgentTable>,
    /// The budget of the swarm.
    pub budget: SwarmBudgetTable,
    /// How candidates are measured.
    pub evaluation: EvaluationTable,
    /// When candidates are accepted.
    pub evolution: SwarmEvolutionTable,
    /// When agents change their way of working.
    pub heartbeat: HeartbeatTable,
    /// Tasks that are reserved for the end.
    pub holdout: HoldoutTable,
}

/// What is improved, and on which tasks.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TaskTable {
    /// The workspace, below the project root.
    pub workspace: Option<String>,
    /// A task or a directory of tasks, below the project root.
    pub task_path: Option<String>,
    /// Tasks that are generated during the run.
    pub generate: Option<GenerateTable>,
}

/// The agents that improve it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentsTable {
    /// How many (default 4).
    pub count: Option<Quantity>,
    /// The model of all agents without their own.
    pub default_model: Option<String>,
    /// Models of the first agents, in order.
    pub models: Vec<String>,
    /// A hint to each agent, in order, on what to look at.
    pub nudges: Vec<String>,
    /// Failures in a row after which an agent is retired (default 3).
    pub max_restarts: Option<u32>,
}

/// The budget of a swarm.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SwarmBudgetTable {
    /// Dollars in all.
    pub max_cost_usd: Option<f64>,
    /// Dollars for trials, as part of the total; all of it if absent.
    pub eval_budget_usd: Option<f64>,
    /// Tokens in all.
    pub max_tokens: Option<u64>,
    /// Share of the dollars after which agents only work on the best candidate (default 0.8).
    pub wind_down_threshold: Option<f64>,
    /// Share of the dollars after which no new cycle starts (default 0.95).
    pub final_threshold: Option<f64>,
}

/// How candidates are measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EvaluationTable {
    /// Seconds that an agent may take, instead of the tasks' own.
    pub timeout: Option<Seconds>,
    /// Where trials run; the project's when absent.
    pub backend: Option<Backend>,
    /// Trials at once (default 4).
    pub concurrency: Option<Quantity>,
}

/// When candidates are accepted.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SwarmEvolutionTable {
    /// Tasks of a batch (default 1).
    pub batch_size: Option<Quantity>,
    /// By how much a candidate must be better (default 0.01).
    pub improvement_threshold: Option<f64>,
    /// Most candidates that each agent tries (default 20).
    pub max_cycles: Option<Quantity>,
    /// Share of acceptances that may be wrong, over the whole swarm (default 0.05).
    pub error_rate: Option<f64>,
    /// Tasks of one test at most (default 100).
    pub max_tasks: Option<Quantity>,
}

/// When agents change their way of working.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HeartbeatTable {
    /// Cycles of an agent without progress after which it takes another parent and another way of working (default 5).
    pub pivot_after: Option<Quantity>,
}

/// A swarm, checked and with references resolved.
#[derive(Clone, Debug)]
pub struct Swarm {
    pub workspace: PathBuf,
    /// A task or a directory of tasks.
    pub task_path: Option<PathBuf>,
    /// Tasks that are generated during the run.
    pub generate: Option<Generate>,
    pub models: Vec<String>,
    /// The user's hint to each agent.
    pub nudges: Vec<Option<String>>,
    /// Failures in a row after which an agent is retired.
    pub max_restarts: u32,
    /// The agent whose prompt is improved.
    pub solver: Option<Agent>,
    pub max_cost_usd: f64,
    pub eval_budget_usd: Option<f64>,
    pub max_tokens: Option<u64>,
    /// Share of the dollars after which agents only work on the best candidate.
    pub wind_down_threshold: f64,
    /// Share of the dollars after which no new cycle starts.
    pub final_threshold: f64,
    /// Seconds that an agent may take.
    pub timeout: Option<Seconds>,
    pub backend: Option<Backend>,
    pub concurrency: u32,
    pub batch_size: u32,
    pub max_cycles: u32,
    pub acceptance: Acceptance,
    /// Cycles without progress before an agent changes its way of working.
    pub pivot_after: u32,
    /// Tasks that are reserved for the end.
    pub holdout: Option<u32>,
}

impl Swarm {
    /// Reads and checks a swarm file; every problem is reported.
    pub fn read(path: &Path, root: &Path, env: &Env) -> Result<Self, Vec<Problem>> {
        let document = Document::read(path, Syntax::Yaml, FAMILY)?;
        let mut decoded = document.decode::<SwarmFile>();
        let mut problems = std::mem::take(&mut decoded.problems);
        let Some(file) = decoded.value.as_ref() else { return Err(problems) };
        let agents = &file.agents;
        for (key, absent, fix) in [
            ("task.workspace", file.task.workspace.is_none(), "name the workspace to be improved"),
            ("agents.default_model", agents.default_model.is_none(), "name the model that proposes changes"),
            ("budget.max_cost_usd", file.budget.max_cost_usd.is_none(), "set what the swarm may cost"),
        ] {
            if absent && !decoded.is_faulty(key) {
                problems.push(missing(&document, key, fix));
            }
        }
        if file.task.task_path.is_none() && file.task.generate.is_none() {
            let what = "there are no tasks: neither `task.task_path` nor `task.generate` is given";
            let problem = document.problem(Shared::MissingKey, "task.task_path", what);
            problems.push(problem.fix("name a task, a directory of tasks, or a template"));
        }
        let count = agents.count.map_or(4, Quantity::get);
        for (key, length) in [
            ("agents.count", count),
            ("agents.models", length(&agents.models)),
            ("agents.nudges", length(&agents.nudges)),
        ] {
            let most = if key == "agents.count" { MOST_AGENTS } else { count };
            if length > most {
                let what = format!("`{key}` is more than {most}");
                problems
                    .push(document.problem(Shared::BadValue, key, what).fix("have fewer, or more agents"));
            }
        }
        let default =
            model(agents.default_model.as_ref(), &document, "agents.default_model", env, &mut problems);
        let named: Vec<Option<String>> = agents
            .models
            .iter()
            .map(|name| model(Some(name), &document, "agents.models", env, &mut problems))
            .collect();
        let budget = &file.budget;
        let (wind_down, last) = check_budget(budget, &document, &mut problems);
        let solver = file.solver.as_ref().and_then(|table| read_solver(table, &document, env, &mut problems));
        let generate = file
            .task
            .generate
            .as_ref()
            .and_then(|table| table.check(&document, "task.generate", &mut problems));
        let told = &file.evolution;
        let table = AcceptanceTable { error_rate: told.error_rate, max_tasks: told.max_tasks };
        let threshold = Some(told.improvement_threshold.unwrap_or(0.01));
        let keys = ("evolution", "evolution.improvement_threshold");
        let acceptance = table.check(threshold, &document, keys, &mut problems);
        let workspace =
            workspace(root, file.task.workspace.as_ref(), &document, "task.workspace", &mut problems);
        let (Some(workspace), Some(default), Some(max_cost_usd), true) =
            (workspace, default, budget.max_cost_usd, problems.is_empty())
        else {
            return Err(problems);
        };
        let seats = 0..count as usize;
        Ok(Self {
            workspace,
            task_path: file.task.task_path.as_ref().map(|path| below(root, path)),
            generate,
            models: seats
                .clone()
                .map(|seat| named.get(seat).cloned().flatten().unwrap_or_else(|| default.clone()))
                .collect(),
            nudges: seats.map(|seat| agents.nudges.get(seat).cloned()).collect(),
            max_restarts: agents.max_restarts.unwrap_or(3),
            solver,
            max_cost_usd,
            eval_budget_usd: budget.eval_budget_usd,
            max_tokens: budget.max_tokens,
            wind_down_threshold: wind_down,
            final_threshold: last,
            timeout: file.evaluation.timeout,
            backend: file.evaluation.backend,
            concurrency: file.evaluation.concurrency.map_or(DEFAULT_CONCURRENCY, Quantity::get),
            batch_size: told.batch_size.map_or(1, Quantity::get),
            max_cycles: told.max_cycles.map_or(20, Quantity::get),
            acceptance,
            pivot_after: file.heartbeat.pivot_after.map_or(5, Quantity::get),
            holdout: file.holdout.tasks,
        })
    }
}

/// Checks the budget of a swarm and its two thresholds.
fn check_budget(budget: &SwarmBudgetTable, document: &Document, problems: &mut Vec<Problem>) -> (f64, f64) {
    amount(budget.max_cost_usd, document, "budget.max_cost_usd", problems);
    amount(budget.eval_budget_usd, document, "budget.eval_budget_usd", problems);
    tokens(budget.max_tokens, document, "budget.max_tokens", problems);
    if let (Some(all), Some(part)) = (budget.max_cost_usd, budget.eval_budget_usd)
        && part > all
    {
        let what = "`budget.eval_budget_usd` is more than `budget.max_cost_usd`, of which it is a part";
        problems.push(
            document
                .problem(Shared::Conflict, "budget.eval_budget_usd", what)
                .fix("lower it, or leave it out"),
        );
    }
    let wind_down = budget.wind_down_threshold.unwrap_or(0.8);
    let last = budget.final_threshold.unwrap_or(0.95);
    if !(wind_down > 0.0 && wind_down <= last && last <= 1.0) {
        let what = "`wind_down_threshold` and `final_threshold` are shares, in this order";
        let problem = document.problem(Shared::BadValue, "budget.wind_down_threshold", what);
        problems.push(problem.fix("write, say, 0.8 and 0.95"));
    }
    (wind_down, last)
}

fn length<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}
