//! `experiment.yaml`: the file format of an experiment, and its meaning once references are resolved.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use aec_base::document::{Document, Family, Shared, Syntax};
use aec_base::env::Env;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::project::{HarborTable, ModalTokenTable};
use aec_base::secret::{ExpandError, expand_public};
use aec_base::settings::{Backend, Candidate, Origin, Setting};
use aec_model::routing::ClientTable;
use aec_task::file::{Quantity, Seconds};
use aec_task::selection::SelectionTable;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::Credentials;

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
    /// How to call the model when its name alone does not determine it.
    pub client: Option<ClientTable>,
    /// Settings of the harness and the model.
    pub parameters: IndexMap<String, serde_json::Value>,
    /// File with a system prompt, below the project root.
    pub system_prompt_file: Option<String>,
}

/// Where trials run and their limits.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ComputeTable {
    /// The backend; by default the project's.
    pub backend: Option<Backend>,
    /// Limits that replace those of the tasks.
    pub resource_limits: ResourceLimitsTable,
    /// How the `harbor` backend works.
    pub harbor: HarborTable,
    /// The Modal credentials.
    pub modal: ModalTokenTable,
}

/// Limits that replace those of the tasks.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResourceLimitsTable {
    /// The agent's time limit in seconds.
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
    #[serde(alias = "pydantic_ai")]
    ToolLoop,
    /// The model drives a Python session and may call sub-models.
    Rlm,
    /// A planned map and reduce over documents.
    #[serde(alias = "lambda-rlm")]
    LambdaRlm,
    /// Runs the task's reference solution.
    Oracle,
    /// Does nothing.
    Nop,
    /// Plays a recorded list of actions.
    Scripted,
    /// The reference solution with seeded faults.
    Sim,
    /// Any program of the user.
    Command,
}

impl Harness {
    pub const ALL: [Self; 9] = [
        Self::Direct,
        Self::ToolLoop,
        Self::Rlm,
        Self::LambdaRlm,
        Self::Oracle,
        Self::Nop,
        Self::Scripted,
        Self::Sim,
        Self::Command,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::ToolLoop => "tool_loop",
            Self::Rlm => "rlm",
            Self::LambdaRlm => "lambda_rlm",
            Self::Oracle => "oracle",
            Self::Nop => "nop",
            Self::Scripted => "scripted",
            Self::Sim => "sim",
            Self::Command => "command",
        }
    }

    /// The harness with this name; some have several names.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "lambda-rlm" => Some(Self::LambdaRlm),
            "pydantic_ai" => Some(Self::ToolLoop),
            _ => Self::ALL.into_iter().find(|harness| harness.name() == name),
        }
    }

    pub fn needs_model(self) -> bool {
        matches!(self, Self::Direct | Self::ToolLoop | Self::Rlm | Self::LambdaRlm)
    }

    /// Whether it works in a sandbox. Other harnesses read what they need and answer without one.
    pub fn needs_room(self) -> bool {
        !matches!(self, Self::Direct | Self::LambdaRlm | Self::Nop)
    }

    /// Whether a system prompt affects it.
    pub fn hears_prompts(self) -> bool {
        !matches!(self, Self::Oracle | Self::Nop | Self::Scripted)
    }
}

/// An experiment, checked and with its references resolved.
#[derive(Debug, Serialize)]
pub struct Experiment {
    /// Present if the file gives one.
    pub experiment_id: Option<Name>,
    /// Title.
    pub name: Option<String>,
    pub description: Option<String>,
    pub tasks: SelectionTable,
    pub agents: Vec<Agent>,
    /// Limits that replace those of the tasks.
    pub resource_limits: ResourceLimitsTable,
    /// How often each agent does each task.
    pub repetitions: u32,
    /// Keep submissions without scoring them.
    pub disable_verification: bool,
    /// The backend with its position in the file, for the settings ladder.
    #[serde(skip)]
    pub backend: Option<Candidate>,
    /// Harbor's environment, likewise.
    #[serde(skip)]
    pub harbor_environment: Option<Candidate>,
    /// References to credentials of services.
    #[serde(skip)]
    pub credentials: Credentials,
}

/// An agent: harness, model and parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// Its name in the results.
    pub name: Name,
    /// The program between model and task.
    pub harness: Harness,
    /// The model, with references resolved.
    pub model: Option<String>,
    /// How to call the model when its name alone does not determine it.
    pub client: Option<ClientTable>,
    /// Settings of the harness and the model.
    pub parameters: IndexMap<String, serde_json::Value>,
    /// File with a system prompt, below the project root.
    pub system_prompt_file: Option<String>,
}

impl Agent {
    /// Reads the agent at `key` in a document of another format; problems are reported at that key.
    pub fn from_table(
        table: &AgentTable,
        document: &Document,
        key: &str,
        env: &Env,
    ) -> Result<Self, Vec<Problem>> {
        let mut found = Vec::new();
        let agent = read_agent(table, env, |name| format!("{key}.{name}"), &mut found);
        let problems: Vec<Problem> = found
            .into_iter()
            .map(|(name, shared, what, fix)| {
                document.problem(shared, &format!("{key}.{name}"), what).fix(fix)
            })
            .collect();
        match agent {
            Some(agent) if problems.is_empty() => Ok(agent),
            _ => Err(problems),
        }
    }
}

impl Experiment {
    /// Reads and checks an experiment file; every problem is reported.
    pub fn read(path: &Path, env: &Env) -> Result<Self, Vec<Problem>> {
        let document = Document::read(path, Syntax::Yaml, FAMILY)?;
        let mut decoded = document.decode::<ExperimentFile>();
        let mut problems = std::mem::take(&mut decoded.problems);
        let Some(file) = &decoded.value else { return Err(problems) };
        let (agents, found) = read_agents(file, &document, env, |key| decoded.is_faulty(key));
        problems.extend(found);
        if !problems.is_empty() {
            return Err(problems);
        }
        let Some(file) = decoded.value else { return Err(problems) };
        let backend = file.compute.backend.map(|backend| Candidate {
            setting: Setting::Backend,
            value: backend.name().to_owned(),
            origin: Origin::Experiment(document.place("compute.backend")),
        });
        let harbor_environment = file.compute.harbor.environment.clone().map(|value| Candidate {
            setting: Setting::HarborEnvironment,
            value,
            origin: Origin::Experiment(document.place("compute.harbor.environment")),
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
            harbor_environment,
            credentials: Credentials {
                harbor_endpoint: file.compute.harbor.endpoint,
                harbor_token: file.compute.harbor.token,
                modal_token_id: file.compute.modal.token_id,
                modal_token_secret: file.compute.modal.token_secret,
            },
        })
    }
}

/// The agents, and problems that serde cannot detect. A faulty key already has its problem.
fn read_agents(
    file: &ExperimentFile,
    document: &Document,
    env: &Env,
    faulty: impl Fn(&str) -> bool,
) -> (Vec<Agent>, Vec<Problem>) {
    let mut problems = Vec::new();
    if file.agents.is_empty() && !faulty("agents") {
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
        let key = |name: &str| format!("agents[{index}].{name}");
        let mut found = Vec::new();
        if let Some(agent) = read_agent(table, env, key, &mut found) {
            if !names.insert(agent.name.clone()) {
                let what = format!("two agents are called `{}`", agent.name);
                found.push(("name", Shared::Conflict, what, "give each agent its own name".to_owned()));
            }
            agents.push(agent);
        }
        for (name, shared, what, fix) in found {
            if !faulty(&key(name)) {
                let place = document.place_in_list("agents", index);
                problems.push(Problem::error(what).id(FAMILY.id(shared)).fix(fix).at(place));
            }
        }
    }
    (agents, problems)
}

/// Key, kind, problem and fix.
type Complaint = (&'static str, Shared, String, String);

fn read_agent(
    table: &AgentTable,
    env: &Env,
    key: impl Fn(&str) -> String,
    complaints: &mut Vec<Complaint>,
) -> Option<Agent> {
    let mut missing = |name: &'static str, why: &str| {
        complaints.push((
            name,
            Shared::MissingKey,
            format!("`{}` is missing{why}", key(name)),
            "add the key".to_owned(),
        ));
    };
    if table.name.is_none() {
        missing("name", "");
    }
    let harness = table.harness.or(table.adapter);
    match harness {
        None => missing("harness", ""),
        Some(harness) if harness.needs_model() && table.model.is_none() => {
            missing("model", "; this harness needs a model");
        }
        Some(_) => {}
    }
    if table.harness.is_some() && table.adapter.is_some() {
        let what = format!("`{}` and `{}` say the same thing", key("harness"), key("adapter"));
        complaints.push(("harness", Shared::Conflict, what, "keep `harness`".to_owned()));
    }
    let model = match table.model.as_deref().map(|model| expand_public(model, env)).transpose() {
        Ok(model) => model,
        Err(error) => {
            let fix = match &error {
                ExpandError::Unset(name) => format!("set {name} in the shell or in .env"),
                ExpandError::Secret(_) => "write the model's name, or a variable that holds it".to_owned(),
            };
            complaints.push(("model", Shared::BadValue, format!("`{}` {error}", key("model")), fix));
            None
        }
    };
    if table.client.as_ref().is_some_and(|client| client.kind.is_none()) {
        complaints.push((
            "client",
            Shared::MissingKey,
            format!("`{}` is missing", key("client.kind")),
            "say whose interface the model is called through, such as `bedrock`, or remove `client`"
                .to_owned(),
        ));
    }
    if let Some(file) = &table.system_prompt_file
        && !is_below_root(file)
    {
        let what = format!("`{}` must be a path below the project root", key("system_prompt_file"));
        let fix = "write a path such as prompts/electrical.md".to_owned();
        complaints.push(("system_prompt_file", Shared::BadValue, what, fix));
    } else if table.system_prompt_file.is_some()
        && let Some(deaf) = harness.filter(|harness| !harness.hears_prompts())
    {
        let what = format!(
            "`{}` has no effect: the harness `{}` asks no model",
            key("system_prompt_file"),
            deaf.name()
        );
        complaints.push(("system_prompt_file", Shared::BadValue, what, "remove it".to_owned()));
    }
    Some(Agent {
        name: table.name.clone()?,
        harness: harness?,
        model,
        client: table.client.clone(),
        parameters: table.parameters.clone(),
        system_prompt_file: table.system_prompt_file.clone(),
    })
}

/// Whether a path stays below a root, whatever the root is.
pub fn is_below_root(path: &str) -> bool {
    !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}
