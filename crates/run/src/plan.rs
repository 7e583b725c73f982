//! A plan: exactly which trials an experiment has, and under which conditions. It is made before the first model call,
//! has a digest, and can be locked in a file. See `docs/running.md`.

use std::collections::HashMap;
use std::path::Path;

use aec_base::digest::{Digest, Hasher};
use aec_base::document::{Document, Shared, Syntax};
use aec_base::file::{Links, read_text};
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::secret::Reference;
use aec_base::settings::Backend;
use aec_judge::settle::order::AnswerOrder;
use aec_ledger::expected::{Expected, ExpectedAgent};
use aec_model::routing::ClientTable;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::experiment::{FAMILY, Harness};

pub const PLAN_VERSION: u32 = 1;

/// Most trials of a plan. Each takes memory in every report about it.
const MOST_TRIALS: usize = 5_000_000;

/// Bytes; a plan of a hundred thousand tasks is shorter.
const PLAN_LIMIT: u64 = 64 * 1024 * 1024;

/// Everything that is decided before the first trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Version of this format.
    pub schema_version: u32,
    /// The experiment.
    pub experiment_id: Name,
    /// Title.
    #[serde(default)]
    pub name: Option<String>,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// The dataset of the tasks.
    #[serde(default)]
    pub dataset: Option<PlannedDataset>,
    /// The tasks, sorted by id.
    pub tasks: Vec<PlannedTask>,
    /// The agents, in the order of the experiment.
    pub agents: Vec<PlannedAgent>,
    /// How often each agent does each task.
    pub repetitions: u32,
    /// Conditions of every trial.
    pub conditions: Conditions,
    /// References to the credentials of services.
    #[serde(default, skip_serializing_if = "Credentials::is_empty")]
    pub credentials: Credentials,
    /// Version of the program that made the plan.
    pub tool_version: String,
    /// Digest of everything that determines the trials: all but title, description, credentials and the program's
    /// version.
    pub digest: Digest,
}

/// References to the credentials of services: names of variables from the experiment, never values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    /// Address of Harbor's service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harbor_endpoint: Option<Reference>,
    /// Token of Harbor's service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harbor_token: Option<Reference>,
    /// Id of Modal's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modal_token_id: Option<Reference>,
    /// Secret of Modal's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modal_token_secret: Option<Reference>,
}

impl Credentials {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The dataset of the tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedDataset {
    /// `NAME@VERSION`.
    pub id: String,
    /// Digest of its tasks.
    pub content_hash: Digest,
}

/// A task of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedTask {
    /// Its id.
    pub task_id: String,
    /// Its directory below the project root.
    pub task_path: String,
    /// Digest of its files.
    pub revision: Digest,
}

/// An agent of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedAgent {
    /// Its name.
    pub name: Name,
    /// The harness.
    pub harness: Harness,
    /// The model.
    #[serde(default)]
    pub model: Option<String>,
    /// How the model is called.
    #[serde(default)]
    pub client: Option<ClientTable>,
    /// Parameters, defaults filled in.
    pub parameters: IndexMap<String, Value>,
    /// File with the system prompt, below the project root.
    #[serde(default)]
    pub system_prompt_file: Option<String>,
    /// The system prompt.
    #[serde(default)]
    pub system_prompt: Option<String>,
    /// Files of the agent, below the project root.
    #[serde(default)]
    pub files: Vec<PlannedFile>,
    /// Digest of all other fields.
    pub digest: Digest,
}

/// A file of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedFile {
    /// Path below the project root.
    pub path: String,
    /// Digest of its content.
    pub digest: Digest,
    /// Whether it may be run.
    pub executable: bool,
}

/// Conditions of every trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Conditions {
    /// Where trials run.
    pub backend: Backend,
    /// Whether commands run in sandboxes, `namespaces`, in sandboxes whose limits may hold less than they usually do on
    /// a machine, `weaker_limits`, or directly on the machine, `none`.
    pub sandbox: SandboxChoice,
    /// The agent's time limit in seconds, instead of the task's.
    #[serde(default)]
    pub timeout_override: Option<u32>,
    /// Memory in MiB, instead of the task's.
    #[serde(default)]
    pub memory_mb: Option<u32>,
    /// Keep submissions without scoring them.
    #[serde(default)]
    pub disable_verification: bool,
    /// Whether prompts and files of agents may contain answers of tasks.
    #[serde(default)]
    pub allow_leaks: bool,
    /// A prompt for every task, from `AGENT_INSTRUCTION`.
    #[serde(default)]
    pub instruction: Option<String>,
    /// Tools for every task, from `AGENT_TOOLS_JSON`.
    #[serde(default)]
    pub tools: Option<Vec<PlannedTool>>,
    /// Harbor's environment; absent on every other backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harbor_environment: Option<String>,
    /// Which of several answers counts.
    #[serde(default = "AnswerOrder::unnamed", skip_serializing_if = "AnswerOrder::is_unnamed")]
    pub answer_order: AnswerOrder,
}

impl Default for Conditions {
    /// In sandboxes on this machine, with the tasks' own limits, and judged.
    fn default() -> Self {
        Self {
            backend: Backend::Local,
            sandbox: SandboxChoice::Namespaces,
            timeout_override: None,
            memory_mb: None,
            disable_verification: false,
            allow_leaks: false,
            instruction: None,
            tools: None,
            harbor_environment: None,
            answer_order: AnswerOrder::PRESENT,
        }
    }
}

/// Whether commands run in sandboxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SandboxChoice {
    /// In sandboxes.
    Namespaces,
    /// In sandboxes, even if their limits hold less than they usually do on the machine.
    #[serde(rename = "weaker_limits")]
    WeakerLimits,
    /// Directly on the machine.
    None,
}

/// A tool that replaces those that the task declares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedTool {
    /// The name by which the agent calls it.
    pub name: String,
    /// File below the workspace.
    pub source: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// Whether its result is a picture.
    #[serde(default)]
    pub returns_image: bool,
}

impl PlannedTool {
    /// The tool in the form that tasks use.
    pub fn to_tool(&self) -> aec_task::task::Tool {
        let named = format!("Tool: {}", self.name);
        aec_task::task::Tool {
            name: self.name.clone(),
            source: self.source.clone(),
            description: if self.description.is_empty() { named } else { self.description.clone() },
            returns_image: self.returns_image,
        }
    }
}

/// One trial of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedTrial {
    /// Its id: a UUID made from the experiment and the key.
    pub id: Name,
    /// Digest of task revision, agent and repetition.
    pub key: Digest,
    /// The index of the task in the plan.
    pub task: usize,
    /// The index of the agent in the plan.
    pub agent: usize,
    /// From 1.
    pub repetition: u32,
}

impl PlannedAgent {
    /// The digest of its parts.
    pub fn compute_digest(&self) -> Digest {
        let mut hasher = Hasher::default();
        let mut part = |value: &dyn erased::Json| hasher.part(value.json().as_bytes());
        part(&self.name);
        part(&self.harness);
        part(&self.model);
        part(&self.client);
        part(&self.parameters);
        part(&self.system_prompt);
        part(&self.files);
        hasher.finish()
    }
}

/// Serialises values of several types through one reference.
mod erased {
    pub(super) trait Json {
        fn json(&self) -> String;
    }

    impl<T: serde::Serialize> Json for T {
        fn json(&self) -> String {
            // Plans contain nothing that JSON cannot express.
            serde_json::to_string(self).unwrap_or_default()
        }
    }
}

impl Plan {
    /// The records that it leads to.
    pub fn expected(&self) -> Expected<'_> {
        let agents = self.agents.iter().map(|agent| ExpectedAgent {
            name: agent.name.as_str(),
            harness: agent.harness.name(),
            model: agent.model.as_deref(),
            digest: agent.digest,
        });
        Expected {
            experiment_id: self.experiment_id.as_str(),
            tasks: self.tasks.iter().map(|task| (task.task_id.as_str(), task.revision)).collect(),
            agents: agents.collect(),
            repetitions: self.repetitions as usize,
        }
    }

    /// The digest of its parts.
    pub fn compute_digest(&self) -> Digest {
        let mut hasher = Hasher::default();
        let mut part = |value: &dyn erased::Json| hasher.part(value.json().as_bytes());
        part(&self.schema_version);
        part(&self.experiment_id);
        part(&self.dataset);
        part(&self.tasks);
        part(&self.agents);
        part(&self.repetitions);
        part(&self.conditions);
        hasher.finish()
    }

    /// A plan that no machine could carry out, or even list.
    pub(crate) fn too_many(&self) -> Option<Problem> {
        let count = [self.tasks.len(), self.agents.len(), self.repetitions as usize]
            .into_iter()
            .try_fold(1_usize, usize::checked_mul);
        if count.is_some_and(|count| count <= MOST_TRIALS) {
            return None;
        }
        let what = format!("a plan has at most {MOST_TRIALS} trials");
        Some(
            Problem::error(what)
                .id(FAMILY.number(56))
                .fix("lower `repetitions`, or make several experiments"),
        )
    }

    /// Every trial: by task, agent and repetition.
    pub fn trials(&self) -> Vec<PlannedTrial> {
        let mut trials = Vec::with_capacity(self.tasks.len() * self.agents.len() * self.repetitions as usize);
        for task in 0..self.tasks.len() {
            for agent in 0..self.agents.len() {
                for repetition in 1..=self.repetitions {
                    trials.push(self.trial(task, agent, repetition));
                }
            }
        }
        trials
    }

    pub fn trial(&self, task: usize, agent: usize, repetition: u32) -> PlannedTrial {
        let planned = &self.tasks[task];
        let key = trial_key(&planned.task_id, planned.revision, self.agents[agent].digest, repetition);
        PlannedTrial { id: trial_id(&self.experiment_id, key), key, task, agent, repetition }
    }

    /// The text of the plan file.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Reads a plan file. One whose digest does not match was changed by hand.
    pub fn read(path: &Path) -> Result<Self, Vec<Problem>> {
        let text = read_text(path, PLAN_LIMIT, Links::Follow).map_err(|error| {
            let problem = Problem::error(format!("the plan cannot be read: {error}"));
            vec![problem.id(FAMILY.number(31)).fix(error.fix()).in_file(path)]
        })?;
        let document = Document::parse(path, text, Syntax::Json, FAMILY)?;
        let decoded = document.decode::<Self>();
        let mut problems = decoded.problems;
        let Some(plan) = decoded.value else { return Err(problems) };
        if plan.schema_version != PLAN_VERSION {
            let what = format!(
                "the plan has version {}, this program reads version {PLAN_VERSION}",
                plan.schema_version
            );
            problems.push(
                document
                    .problem(Shared::BadValue, "schema_version", what)
                    .fix("use the program that made the plan"),
            );
        } else if plan.compute_digest() != plan.digest
            || plan.agents.iter().any(|agent| agent.compute_digest() != agent.digest)
        {
            let problem = Problem::error("the plan is not what it was when it was locked")
                .id(FAMILY.number(30))
                .why("its parts do not give its digest")
                .fix("restore the file, or make a new plan with `aec-bench plan --lock FILE`");
            problems.push(problem.in_file(path));
        }
        problems.extend(plan.too_many().map(|problem| problem.in_file(path)));
        if problems.is_empty() { Ok(plan) } else { Err(problems) }
    }
}

/// Identifies a trial in any experiment: task, agent and repetition.
pub fn trial_key(task_id: &str, revision: Digest, agent: Digest, repetition: u32) -> Digest {
    let mut hasher = Hasher::default();
    hasher.part(task_id.as_bytes());
    hasher.part(revision.bytes());
    hasher.part(agent.bytes());
    hasher.part(&repetition.to_le_bytes());
    hasher.finish()
}

/// The id of a trial: a UUID of version 8, made from a digest.
fn trial_id(experiment: &Name, key: Digest) -> Name {
    let mut hasher = Hasher::default();
    hasher.part(experiment.as_str().as_bytes());
    hasher.part(key.bytes());
    let digest = hasher.finish();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.bytes()[..16]);
    let id = uuid::Uuid::new_v8(bytes).hyphenated().to_string();
    // A UUID consists of hexadecimal digits and hyphens, which names may contain.
    Name::parse(&id).unwrap_or_else(|_| experiment.clone())
}

/// The differences between two plans of one experiment, for display.
pub fn differences(before: &Plan, after: &Plan) -> Vec<String> {
    let mut found = Vec::new();
    let revisions = |plan: &Plan| -> HashMap<String, Digest> {
        plan.tasks.iter().map(|task| (task.task_id.clone(), task.revision)).collect()
    };
    let (old, new) = (revisions(before), revisions(after));
    let count = |what: &str, n: usize| {
        if n > 0 { vec![format!("{} {what}", aec_base::text::count(n, "task"))] } else { Vec::new() }
    };
    let added = new.keys().filter(|id| !old.contains_key(*id)).count();
    let removed = old.keys().filter(|id| !new.contains_key(*id)).count();
    let changed =
        new.iter().filter(|(id, revision)| old.get(*id).is_some_and(|old| old != *revision)).count();
    found.extend(count("added", added));
    found.extend(count("removed", removed));
    found.extend(count("changed", changed));
    for agent in &after.agents {
        match before.agents.iter().find(|old| old.name == agent.name) {
            None => found.push(format!("agent `{}` added", agent.name)),
            Some(old) if old.digest != agent.digest => found.push(format!("agent `{}` changed", agent.name)),
            Some(_) => {}
        }
    }
    for agent in &before.agents {
        if !after.agents.iter().any(|new| new.name == agent.name) {
            found.push(format!("agent `{}` removed", agent.name));
        }
    }
    if before.repetitions != after.repetitions {
        found.push(format!("repetitions {} instead of {}", after.repetitions, before.repetitions));
    }
    if before.conditions != after.conditions {
        found.push("other conditions (backend, sandbox, limits or verification)".to_owned());
    }
    if before.dataset != after.dataset {
        found.push("another dataset".to_owned());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(experiment: &str) -> Plan {
        let name = |text: &str| Name::parse(text).unwrap();
        let agent = |text: &str| {
            let mut agent = PlannedAgent {
                name: name(text),
                harness: Harness::Nop,
                model: None,
                client: None,
                parameters: IndexMap::new(),
                system_prompt_file: None,
                system_prompt: None,
                files: Vec::new(),
                digest: Digest::of(b""),
            };
            agent.digest = agent.compute_digest();
            agent
        };
        let task = |id: &str| PlannedTask {
            task_id: id.to_owned(),
            task_path: format!("tasks/{id}"),
            revision: Digest::of(id.as_bytes()),
        };
        let mut plan = Plan {
            schema_version: PLAN_VERSION,
            experiment_id: name(experiment),
            name: None,
            description: None,
            dataset: None,
            tasks: vec![task("civil/a"), task("civil/b")],
            agents: vec![agent("one"), agent("two")],
            repetitions: 2,
            conditions: Conditions::default(),
            credentials: Credentials::default(),
            tool_version: "0.1.0".to_owned(),
            digest: Digest::of(b""),
        };
        plan.digest = plan.compute_digest();
        plan
    }

    #[test]
    fn ids_follow_from_what_trials_are() {
        let ids = |plan: &Plan| plan.trials().into_iter().map(|trial| trial.id).collect::<Vec<_>>();
        let keys = |plan: &Plan| plan.trials().into_iter().map(|trial| trial.key).collect::<Vec<_>>();
        let first = plan("exp");
        let all = ids(&first);
        assert_eq!(all.len(), 8);
        assert_eq!(all.iter().collect::<std::collections::HashSet<_>>().len(), 8, "no two are the same");
        assert_eq!(all, ids(&plan("exp")));
        // Pinned: if ids change, every ledger breaks.
        assert_eq!(all[0].as_str(), "5a58b519-ebd2-8cfa-ab64-1d8bbc868aac");
        assert_ne!(all, ids(&plan("other")));
        assert_eq!(keys(&first), keys(&plan("other")), "keys are the same in every experiment");
        let mut changed = plan("exp");
        changed.tasks[0].revision = Digest::of(b"changed");
        assert_eq!(ids(&changed)[4..], all[4..]);
        assert!(ids(&changed)[..4].iter().zip(&all).all(|(new, old)| new != old));
        assert_ne!(changed.compute_digest(), first.digest);
        assert_eq!(differences(&first, &changed), ["1 task changed"]);
    }

    #[test]
    fn an_edited_plan_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("plan.json");
        let plan = plan("exp");
        fs_err::write(&path, plan.to_json()).unwrap();
        assert_eq!(Plan::read(&path).unwrap(), plan);
        for (from, to) in [
            ("\"repetitions\": 2", "\"repetitions\": 1"),
            ("\"timeout_override\": null", "\"timeout_override\": 9000"),
            ("civil/b", "civil/c"),
            ("\"two\"", "\"2\""),
        ] {
            fs_err::write(&path, plan.to_json().replacen(from, to, 1)).unwrap();
            assert_eq!(Plan::read(&path).unwrap_err()[0].id.as_deref(), Some("E030"), "{from}");
        }
        fs_err::write(
            &path,
            plan.to_json().replace("\"tool_version\": \"0.1.0\"", "\"tool_version\": \"9\""),
        )
        .unwrap();
        assert!(Plan::read(&path).is_ok(), "the version is told, not part of the plan");
        for broken in ["", "{}", "[]", "{\"schema_version\": 1}"] {
            fs_err::write(&path, broken).unwrap();
            assert!(Plan::read(&path).is_err(), "{broken}");
        }
    }
}
