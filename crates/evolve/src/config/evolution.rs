//! `evolution.yaml`.

use std::path::{Path, PathBuf};

use aec_base::document::{Document, Shared, Syntax};
use aec_base::env::Env;
use aec_base::problem::Problem;
use aec_base::settings::Backend;
use aec_run::experiment::{Agent, AgentTable, Experiment, ResourceLimitsTable, is_below_root};
use aec_task::file::{Quantity, Seconds};
use aec_task::selection::SelectionTable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Acceptance, AcceptanceTable, DEFAULT_CONCURRENCY, DEFAULT_EVOLVER_TEMPERATURE, DEFAULT_EVOLVER_TOKENS,
    Generate, GenerateTable, HoldoutTable, amount, missing, model, own, tokens, workspace,
};
use crate::FAMILY;

/// `evolution.yaml`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EvolutionFile {
    /// The workspace, below the project root.
    pub workspace_path: Option<String>,
    /// Models that classify turns and propose changes.
    pub models: ModelsTable,
    /// The agent whose prompt is improved.
    pub solver: Option<AgentTable>,
    /// Tasks that are generated during the run.
    pub generate: Option<GenerateTable>,
    /// Tasks of the project.
    pub tasks: Option<SelectionTable>,
    /// Where trials run; the project's when absent.
    pub backend: Option<Backend>,
    /// Tasks of a batch (default 10).
    pub batch_size: Option<Quantity>,
    /// Most candidates to try (default 20).
    pub max_cycles: Option<Quantity>,
    /// By how much a candidate must be better (default 0.02).
    pub improvement_threshold: Option<f64>,
    /// Cycles without an acceptance after which the search is widened; after as many more, it ends (default 5).
    pub stagnation_window: Option<Quantity>,
    /// Seconds that an agent may take, instead of the tasks' own.
    pub timeout: Option<Seconds>,
    /// An experiment whose first agent, backend and limits fill in what is missing here.
    pub harness_config: Option<String>,
    /// How parents are chosen (default `hill_climb`).
    pub strategy: Option<Strategy>,
    /// When a candidate is accepted.
    pub acceptance: AcceptanceTable,
    /// Tasks that are reserved for the end.
    pub holdout: HoldoutTable,
    /// The budget of the whole run.
    pub budget: BudgetTable,
    /// Trials at once (default 4).
    pub concurrency: Option<Quantity>,
}

/// Models that classify turns and propose changes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModelsTable {
    /// Classifies the turns of failed trials; without it, only rules do.
    pub classifier: Option<String>,
    /// Its temperature (default 0).
    pub classifier_temperature: Option<f64>,
    /// Proposes changes.
    pub evolver: Option<String>,
    /// Its temperature (default 0.7).
    pub evolver_temperature: Option<f64>,
    /// Most tokens of its answer (default 16384).
    pub evolver_max_tokens: Option<Quantity>,
}

/// The budget of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetTable {
    /// Dollars, over all models and trials.
    pub max_cost_usd: Option<f64>,
    /// Tokens, likewise.
    pub max_tokens: Option<u64>,
}

/// How parents are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Always the best so far.
    #[default]
    HillClimb,
    /// From an archive of candidates that behave differently; skills may be crossed.
    #[serde(alias = "quality_diversity")]
    Qd,
}

impl Strategy {
    pub fn name(self) -> &'static str {
        match self {
            Self::HillClimb => "hill_climb",
            Self::Qd => "qd",
        }
    }
}

/// A model that proposes changes or classifies turns, with its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Voice {
    pub model: String,
    pub temperature: f64,
    pub max_tokens: u32,
}

/// An evolution, checked and with references resolved.
#[derive(Clone, Debug)]
pub struct Evolution {
    pub workspace: PathBuf,
    /// Classifies turns.
    pub classifier: Option<Voice>,
    /// Proposes changes.
    pub evolver: Voice,
    /// The agent whose prompt is improved; if absent, the workspace's harness with the evolver's model.
    pub solver: Option<Agent>,
    /// Tasks that are generated during the run.
    pub generate: Option<Generate>,
    pub tasks: Option<SelectionTable>,
    /// Where trials run; the project's backend if absent.
    pub backend: Option<Backend>,
    pub batch_size: u32,
    pub max_cycles: u32,
    /// Cycles without an acceptance before the search changes.
    pub stagnation_window: u32,
    /// Limits that replace the tasks' own.
    pub limits: ResourceLimitsTable,
    pub strategy: Strategy,
    pub acceptance: Acceptance,
    /// Tasks that are reserved for the end; a sensible number if absent.
    pub holdout: Option<u32>,
    pub max_cost_usd: Option<f64>,
    pub max_tokens: Option<u64>,
    pub concurrency: u32,
}

const CLASSIFIER_TOKENS: u32 = 4000;

impl Evolution {
    /// Reads and checks an evolution file; every problem is reported.
    pub fn read(path: &Path, root: &Path, env: &Env) -> Result<Self, Vec<Problem>> {
        let document = Document::read(path, Syntax::Yaml, FAMILY)?;
        let mut decoded = document.decode::<EvolutionFile>();
        let mut problems = std::mem::take(&mut decoded.problems);
        let Some(file) = decoded.value.as_ref() else { return Err(problems) };
        let borrowed = borrow_from(file, &document, path, env, &mut problems);
        let solver = match &file.solver {
            Some(table) => read_solver(table, &document, env, &mut problems),
            None => borrowed.as_ref().and_then(|experiment| experiment.agents.first().cloned()),
        };
        let evolver = model(file.models.evolver.as_ref(), &document, "models.evolver", env, &mut problems);
        let classifier =
            model(file.models.classifier.as_ref(), &document, "models.classifier", env, &mut problems);
        if file.models.evolver.is_none() && !decoded.is_faulty("models.evolver") {
            let fix = "name the model that proposes changes, such as env:EVOLVER_MODEL";
            problems.push(missing(&document, "models.evolver", fix));
        }
        if file.workspace_path.is_none() && !decoded.is_faulty("workspace_path") {
            problems.push(missing(&document, "workspace_path", "name the workspace to be improved"));
        }
        if file.generate.is_none() && file.tasks.is_none() {
            let what = "there are no tasks: neither `generate` nor `tasks` is given";
            let problem = document.problem(Shared::MissingKey, "tasks", what);
            problems.push(problem.fix("add `generate` with a template, or `tasks` with a selection"));
        }
        for (key, value) in [
            ("models.evolver_temperature", file.models.evolver_temperature),
            ("models.classifier_temperature", file.models.classifier_temperature),
        ] {
            if value.is_some_and(|value| !(0.0..=10.0).contains(&value)) {
                let what = format!("`{key}` must lie between 0 and 10");
                problems.push(document.problem(Shared::BadValue, key, what).fix("write, say, 0.7"));
            }
        }
        amount(file.budget.max_cost_usd, &document, "budget.max_cost_usd", &mut problems);
        tokens(file.budget.max_tokens, &document, "budget.max_tokens", &mut problems);
        let generate =
            file.generate.as_ref().and_then(|table| table.check(&document, "generate", &mut problems));
        let acceptance = file.acceptance.check(
            file.improvement_threshold,
            &document,
            ("acceptance", "improvement_threshold"),
            &mut problems,
        );
        let mut limits =
            borrowed.as_ref().map(|experiment| experiment.resource_limits.clone()).unwrap_or_default();
        limits.timeout_override = file.timeout.or(limits.timeout_override);
        let workspace =
            workspace(root, file.workspace_path.as_ref(), &document, "workspace_path", &mut problems);
        let (Some(workspace), Some(evolver), true) = (workspace, evolver, problems.is_empty()) else {
            return Err(problems);
        };
        Ok(Self {
            workspace,
            classifier: classifier.map(|model| Voice {
                model,
                temperature: file.models.classifier_temperature.unwrap_or(0.0),
                max_tokens: CLASSIFIER_TOKENS,
            }),
            evolver: Voice {
                model: evolver,
                temperature: file.models.evolver_temperature.unwrap_or(DEFAULT_EVOLVER_TEMPERATURE),
                max_tokens: file.models.evolver_max_tokens.map_or(DEFAULT_EVOLVER_TOKENS, Quantity::get),
            },
            solver,
            generate,
            tasks: file.tasks.clone(),
            backend: file.backend.or_else(|| {
                let backend = borrowed.as_ref().and_then(|experiment| experiment.backend.as_ref());
                backend.and_then(|candidate| Backend::parse(&candidate.value))
            }),
            batch_size: file.batch_size.map_or(10, Quantity::get),
            max_cycles: file.max_cycles.map_or(20, Quantity::get),
            stagnation_window: file.stagnation_window.map_or(5, Quantity::get),
            limits,
            strategy: file.strategy.unwrap_or_default(),
            acceptance,
            holdout: file.holdout.tasks,
            max_cost_usd: file.budget.max_cost_usd,
            max_tokens: file.budget.max_tokens,
            concurrency: file.concurrency.map_or(DEFAULT_CONCURRENCY, Quantity::get),
        })
    }
}

/// The agent whose prompt is improved; its prompt comes from the workspace.
pub(super) fn read_solver(
    table: &AgentTable,
    document: &Document,
    env: &Env,
    problems: &mut Vec<Problem>,
) -> Option<Agent> {
    if table.system_prompt_file.is_some() {
        let what = "`solver.system_prompt_file` contradicts the workspace";
        let problem = document.problem(Shared::Conflict, "solver.system_prompt_file", what);
        problems.push(
            problem
                .why("the prompt that is improved is prompts/system.md of the workspace")
                .fix("remove it, and put its text there"),
        );
    }
    Agent::from_table(table, document, "solver", env).map_err(|found| problems.extend(found)).ok()
}

/// The experiment that fills in missing values.
fn borrow_from(
    file: &EvolutionFile,
    document: &Document,
    path: &Path,
    env: &Env,
    problems: &mut Vec<Problem>,
) -> Option<Experiment> {
    let name = file.harness_config.as_ref()?;
    if !is_below_root(name) {
        let what = "`harness_config` must name a file beside this one, or below";
        problems.push(own(document, 20, "harness_config", what).fix("write, say, experiment.yaml"));
        return None;
    }
    let place = path.parent().unwrap_or_else(|| Path::new(".")).join(name);
    match Experiment::read(&place, env) {
        Ok(experiment) => {
            // If there is a solver, no agent is taken from the experiment.
            let first = experiment.agents.first().filter(|_| file.solver.is_none());
            if first.is_some_and(|agent| agent.system_prompt_file.is_some()) {
                let what = format!("the first agent of {name} has its own system prompt");
                let problem = own(document, 21, "harness_config", what);
                let why = "the prompt that is improved is prompts/system.md of the workspace";
                problems.push(problem.why(why).fix("take it out of the experiment, or add `solver`"));
                return None;
            }
            Some(experiment)
        }
        Err(found) => {
            problems.extend(found);
            None
        }
    }
}
