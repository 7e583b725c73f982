//! `experiment.yaml`: the file format of an experiment, and what it means once references are filled in.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use aec_base::document::{Decoded, Document, Family, Shared, Syntax};
use aec_base::env::Env;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::secret::{ExpandError, expand_public};
use aec_base::settings::{Backend, Candidate, Origin, Setting};
use aec_task::file::{Quantity, Seconds};
use aec_task::selection::SelectionTable;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Problems of experiments are `E…`.
pub const FAMILY: Family = Family('E');

/// `experiment.yaml`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExperimentFile {
    /// Id of the experiment; names its directory in the ledger.
    pub experiment_id: Option<Name>,
    /// Title.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Which tasks.
    pub tasks: SelectionTable,
    /// Which agents.
    pub agents: Vec<AgentTable>,
    /// Where trials run.
    pub compute: ComputeTable,
    /// How often each agent does each task (default 1).
    pub repetitions: Option<Quantity>,
    /// Keep submissions without scoring them.
    pub disable_verification: bool,
}

/// One agent of an experiment.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentTable {
    /// Its name in the results.
    pub name: Option<Name>,
    /// The program between model and task.
    pub harness: Option<Harness>,
    /// Another spelling of `harness`.
    pub adapter: Option<Harness>,
    /// The model; may refer to an environment variable as `$NAME`.
    pub model: Option<String>,
    /// Settings of the harness and the model.
    pub parameters: IndexMap<String, serde_json::Value>,
    /// File with a system prompt, below the project root.
    pub system_prompt_file: Option<String>,
}

/// Where trials run and how much they may take.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ComputeTable {
    /// The backend; the project's when absent.
    pub backend: Option<Backend>,
    /// Limits that replace those of the tasks.
    pub resource_limits: ResourceLimitsTable,
}

/// Limits that replace those of the tasks.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResourceLimitsTable {
    /// Seconds an agent may take.
    pub timeout_override: Option<Seconds>,
    /// Memory in MiB.
    pub memory_mb: Option<Quantity>,
}

/// The program between model and task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Harness {
    /// One prompt, one answer.
    Direct,
    /// The model calls tools in turns.
    ToolLoop,
    /// The model drives a Python session and may call sub-models.
    Rlm,
    /// A planned map and reduce over documents.
    LambdaRlm,
    /// Runs the task's reference solution.
    Oracle,
    /// Does nothing.
    Nop,
    /// Plays a recorded list of actions.
    Scripted,
    /// The reference solution with seeded faults.
    Sim,
    /// Any program of the user's.
    Command,
}

impl Harness {
    /// Whether it cannot work without a model.
    pub fn needs_model(self) -> bool {
        matches!(self, Self::Direct | Self::ToolLoop | Self::Rlm | Self::LambdaRlm)
    }
}

/// An experiment, checked and with its references filled in.
#[derive(Debug, Serialize)]
pub struct Experiment {
    /// Id, when the file gives one.
    pub experiment_id: Option<Name>,
    /// Title.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Which tasks.
    pub tasks: SelectionTable,
    /// Which agents.
    pub agents: Vec<Agent>,
    /// Limits that replace those of the tasks.
    pub resource_limits: ResourceLimitsTable,
    /// How often each agent does each task.
    pub repetitions: u32,
    /// Keep submissions without scoring them.
    pub disable_verification: bool,
    /// The backend with its place in the file, for the settings ladder.
    #[serde(skip)]
    pub backend: Option<Candidate>,
}

/// An agent: harness, model and parameters.
#[derive(Clone, Debug, Serialize)]
pub struct Agent {
    /// Its name in the results.
    pub name: Name,
    /// The program between model and task.
    pub harness: Harness,
    /// The model, references filled in.
    pub model: Option<String>,
    /// Settings of the harness and the model.
    pub parameters: IndexMap<String, serde_json::Value>,
    /// File with a system prompt, below the project root.
    pub system_prompt_file: Option<String>,
}

impl Experiment {
    /// Reads and checks an experiment file; every problem is reported.
    pub fn read(path: &Path, env: &Env) -> Result<Self, Vec<Problem>> {
        let document = Document::read(path, Syntax::Yaml, FAMILY)?;
        let Decoded { value, mut problems } = document.decode::<ExperimentFile>();
        let Some(file) = value else { return Err(problems) };
        let agents = read_agents(&file, &document, env, &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        let backend = file.compute.backend.map(|backend| Candidate {
            setting: Setting::Backend,
            value: backend.name().to_owned(),
            origin: Origin::Experiment(document.place("compute.backend")),
        });
        Ok(Self {
            experiment_id: file.experiment_id,
            name: file.name,
            description: file.description,
            tasks: file.tasks,
            agents,
            resource_limits: file.compute.resource_limits,
            repetitions: file.repetitions.map_or(1, Quantity::get),
            disable_verification: file.disable_verification,
            backend,
        })
    }
}

fn read_agents(file: &ExperimentFile, document: &Document, env: &Env, problems: &mut Vec<Problem>) -> Vec<Agent> {
    if file.agents.is_empty() && problems.is_empty() {
        problems.push(
            document
                .problem(Shared::MissingKey, "agents", "`agents` is missing or empty")
                .why("an experiment needs at least one agent to run")
                .fix("add an agent with name, harness and model"),
        );
    }
    let mut names = BTreeSet::new();
    let mut agents = Vec::new();
    for (index, table) in file.agents.iter().enumerate() {
        let mut complain = |shared, what: String, fix: &str| {
            let place = document.place_in_list("agents", index);
            problems.push(Problem::error(what).id(FAMILY.id(shared)).fix(fix).at(place));
        };
        let key = |name: &str| format!("agents[{index}].{name}");
        let harness = match (table.harness, table.adapter) {
            (Some(_), Some(_)) => {
                let what = format!("`{}` and `{}` say the same thing", key("harness"), key("adapter"));
                complain(Shared::Conflict, what, "keep `harness`");
                continue;
            }
            (Some(harness), None) | (None, Some(harness)) => harness,
            (None, None) => {
                complain(Shared::MissingKey, format!("`{}` is missing", key("harness")), "add the key");
                continue;
            }
        };
        let Some(name) = table.name.clone() else {
            complain(Shared::MissingKey, format!("`{}` is missing", key("name")), "add the key");
            continue;
        };
        if !names.insert(name.clone()) {
            let what = format!("two agents are called `{name}`");
            complain(Shared::Conflict, what, "give each agent a name of its own");
        }
        let model = match &table.model {
            Some(model) => match expand_public(model, env) {
                Ok(model) => Some(model),
                Err(error) => {
                    let fix = match &error {
                        ExpandError::Unset(name) => format!("set {name} in the shell or in .env"),
                        ExpandError::Secret(_) => "write the model's name, or a variable that holds it".to_owned(),
                    };
                    complain(Shared::BadValue, format!("`{}` {error}", key("model")), &fix);
                    continue;
                }
            },
            None if harness.needs_model() => {
                let what = format!("`{}` is missing; this harness needs a model", key("model"));
                complain(Shared::MissingKey, what, "add the key");
                continue;
            }
            None => None,
        };
        if let Some(file) = &table.system_prompt_file
            && (file.is_empty() || !Path::new(file).components().all(|part| matches!(part, Component::Normal(_))))
        {
            let what = format!("`{}` must be a path below the project root", key("system_prompt_file"));
            complain(Shared::BadValue, what, "write a path such as prompts/electrical.md");
        }
        agents.push(Agent {
            name,
            harness,
            model,
            parameters: table.parameters.clone(),
            system_prompt_file: table.system_prompt_file.clone(),
        });
    }
    agents
}
