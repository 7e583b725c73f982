//! The tool loop inside a container or sandbox: controlled by variables, with results in files.
//!
//! This is the contract of containers: seven `AGENT_` variables and `system_prompt.md` say what to do; the output file,
//! `conversation.jsonl`, `trajectory.jsonl` and `agent_result.json` hold the results.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aec_base::digest::Digest;
use aec_base::env::Env;
use aec_base::file::{Links, read_text};
use aec_base::problem::Problem;
use aec_base::secret::Redactor;
use aec_judge::judge::Isolation;
use aec_judge::settle::order::{AnswerOrder, Source, Submitted};
use aec_judge::submission::SubmissionLimits;
use aec_ledger::transcript::conversation::CONVERSATION_FILE;
use aec_ledger::transcript::{self, EventRole, TRAJECTORY_FILE};
use aec_model::client::{Client, Model, Scope, Setup};
use aec_model::gateway::Gateway;
use aec_model::meter::{Budget, Meter, Unpriced};
use aec_model::price::PriceList;
use aec_model::retry::RetryPolicy;
use aec_model::routing::Routes;
use aec_model::tape::Tape;
use aec_sandbox::{BareRoom, Limits};
use aec_task::id::TaskId;
use aec_task::task::{INSTRUCTION_LIMIT, Tool};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::experiment::{FAMILY, Harness};
use crate::harness::{End, PreparedAgent, Rollout, TrialContext, TrialState, tool_loop};
use crate::parameters::{DEFAULT_COMMAND_TIMEOUT, DEFAULT_MAX_TURNS, Parameters};
use crate::room::{MAX_PIDS, RoomOpener};
use crate::task::PreparedTask;
use crate::trajectory::Trajectory;
use crate::workspace::Workspace;

/// The file with [`EntryReport`].
pub const RESULT_FILE: &str = "agent_result.json";
pub const SYSTEM_PROMPT_FILE: &str = "system_prompt.md";
const SYSTEM_PROMPT_LIMIT: u64 = 1024 * 1024;
/// The process that starts this one normally ends it; this limit applies if it does not.
const LONGEST: Duration = Duration::from_hours(24);

/// The values of the variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// `AGENT_MODEL`.
    pub model: String,
    /// `AGENT_INSTRUCTION`.
    pub instruction: String,
    /// `AGENT_MAX_TOKENS`, `AGENT_MAX_TURNS` and `AGENT_COMMAND_TIMEOUT`.
    pub parameters: Parameters,
    /// `AGENT_TOOLS_JSON`.
    pub tools: Vec<Tool>,
    /// `AGENT_ANSWER_ORDER`.
    pub order: AnswerOrder,
}

/// The directories of the process.
#[derive(Clone, Debug)]
pub struct Place {
    pub workspace: PathBuf,
    /// `HOME` of commands.
    pub home: String,
}

/// The result of the loop.
#[derive(Clone, Debug, Serialize)]
pub struct EntryReport {
    /// `ok`, or `error` when the loop could not continue.
    pub status: &'static str,
    /// The model as requested.
    pub model: String,
    /// Tokens read; absent when the provider did not report them for every call.
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    /// Number of model calls.
    pub turns_used: u32,
    pub max_turns: u32,
    pub tool_calls: u64,
    /// `done`, or the limit or failure that ended the loop.
    pub stop_reason: String,
    /// The origin of the output: `agent_file`, `submitted_answer`, `final_text` or `none`.
    pub output_source: &'static str,
    /// Why the loop could not continue.
    pub error: Option<String>,
}

/// One tool of `AGENT_TOOLS_JSON`.
#[derive(Debug, Deserialize)]
struct ToolEntry {
    name: String,
    source: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    returns_image: bool,
}

impl Settings {
    /// Reads the variables; reports everything wrong. A variable holds at most 128 KiB, so the instruction may instead
    /// be in the file that `AGENT_INSTRUCTION_FILE` names.
    pub fn read(env: &Env) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let from_file = match (env.get("AGENT_INSTRUCTION"), env.get("AGENT_INSTRUCTION_FILE")) {
            (None, Some(file)) => Some(read_instruction(Path::new(file))?),
            _ => None,
        };
        let mut needed = |name: &str, what: &str| {
            let value = env.get(name).filter(|value| !value.trim().is_empty());
            if value.is_none() {
                let problem = Problem::error(format!("{name} is not set or empty"));
                problems.push(problem.id(FAMILY.number(50)).fix(format!("set it to {what}")));
            }
            value.unwrap_or_default().to_owned()
        };
        let instruction = match from_file {
            Some(instruction) => instruction,
            None => needed("AGENT_INSTRUCTION", "the task's instruction"),
        };
        let model = needed("AGENT_MODEL", "the model to call");
        let mut number = |name: &str, default: u32| match env.get(name).map(str::trim) {
            None => default,
            Some(text) => text.parse().ok().filter(|number| *number > 0).unwrap_or_else(|| {
                let problem = Problem::error(format!("{name} is not a whole number above 0"));
                problems.push(problem.id(FAMILY.number(51)).fix(format!("unset it, or set it to {default}")));
                default
            }),
        };
        let mut parameters = Parameters::default();
        let default = parameters.sampling.output_limit();
        parameters.sampling.max_tokens = Some(number("AGENT_MAX_TOKENS", default));
        parameters.max_turns = number("AGENT_MAX_TURNS", DEFAULT_MAX_TURNS);
        parameters.command_timeout = number("AGENT_COMMAND_TIMEOUT", DEFAULT_COMMAND_TIMEOUT);
        let tools =
            match aec_base::json::from_str::<Vec<ToolEntry>>(env.get("AGENT_TOOLS_JSON").unwrap_or("[]")) {
                Ok(tools) => tools.into_iter().map(Tool::from).collect(),
                Err(error) => {
                    let what = format!("AGENT_TOOLS_JSON is not a JSON array of tools: {error}");
                    let fix = "write [{\"name\": …, \"source\": …, \"description\": …}]";
                    problems.push(Problem::error(what).id(FAMILY.number(52)).fix(fix));
                    Vec::new()
                }
            };
        let order = match env.get("AGENT_ANSWER_ORDER").map(str::trim) {
            None => AnswerOrder::PRESENT,
            Some(name) => AnswerOrder::parse(name).unwrap_or_else(|| {
                let problem = Problem::error("AGENT_ANSWER_ORDER is not an order of answers");
                let fix = "unset it, or set it to `submitted_first` or `file_first`";
                problems.push(problem.id(FAMILY.number(51)).fix(fix));
                AnswerOrder::PRESENT
            }),
        };
        if problems.is_empty() {
            Ok(Self { model, instruction, parameters, tools, order })
        } else {
            Err(problems)
        }
    }
}

fn read_instruction(file: &Path) -> Result<String, Vec<Problem>> {
    read_text(file, INSTRUCTION_LIMIT, Links::Refuse).map_err(|error| {
        let problem = Problem::error(format!("the file that AGENT_INSTRUCTION_FILE names: {error}"));
        vec![problem.id(FAMILY.number(50)).fix(error.fix()).in_file(file)]
    })
}

impl From<ToolEntry> for Tool {
    fn from(entry: ToolEntry) -> Self {
        let description =
            if entry.description.is_empty() { format!("Tool: {}", entry.name) } else { entry.description };
        Self { name: entry.name, source: entry.source, description, returns_image: entry.returns_image }
    }
}

impl EntryReport {
    /// The report in one line.
    pub fn line(&self) -> String {
        let turns = aec_base::text::count(self.turns_used as usize, "turn");
        format!("{}: {} ({turns})", self.status, self.stop_reason)
    }
}

/// The model that the variables name, at the address that they name.
pub fn model(settings: &Settings, env: &Env) -> Result<Model, Problem> {
    let routes = Routes::of_agent(env.clone(), &settings.model).map_err(Problem::from)?;
    let client = Client::new(Setup {
        routes,
        prices: PriceList::builtin(),
        retry: RetryPolicy::default(),
        tape: Tape::Live,
        redactor: Redactor::from_env(env),
    });
    client.model(&settings.model, None).map_err(Problem::from)
}

/// Runs the loop and writes the files of the contract.
pub async fn run(
    settings: Settings,
    model: Model,
    place: &Place,
    redactor: Arc<Redactor>,
) -> io::Result<EntryReport> {
    let workspace = open(place)?;
    let (max_turns, order) = (settings.parameters.max_turns, settings.order);
    let name = model.name().to_owned();
    let mut context = context(settings, model, place, workspace.clone(), redactor)?;
    let given = found(&workspace, context.task.output_place()).await.ok();
    let rollout = tool_loop::run(&mut context).await;
    let finished = context.trajectory.finish()?;
    let events = transcript::read(&fs_err::read(&finished.path)?);
    workspace.write(CONVERSATION_FILE, finished.conversation.into_bytes()).await?;
    let source = publish(&workspace, context.task.output_place(), order, given, &rollout).await;
    let usages: Vec<_> =
        events.iter().filter(|event| event.role == EventRole::Assistant).map(|event| event.usage).collect();
    let sum = |count: fn(&aec_model::message::Usage) -> u64| -> Option<u64> {
        usages.iter().map(|usage| usage.as_ref().map(count)).sum()
    };
    let number = |key: &str| rollout.result.get(key).and_then(serde_json::Value::as_u64).unwrap_or(0);
    let stop_reason = rollout.result.get("stop_reason").and_then(|reason| reason.as_str());
    let error = error_of(&rollout.end);
    let report = EntryReport {
        status: if error.is_none() { "ok" } else { "error" },
        model: rollout.resolved_model.clone().unwrap_or(name),
        input_tokens: sum(aec_model::message::Usage::all_input),
        output_tokens: sum(aec_model::message::Usage::all_output),
        turns_used: u32::try_from(number("turns_used")).unwrap_or(u32::MAX),
        max_turns,
        tool_calls: number("tool_calls"),
        stop_reason: stop_reason.unwrap_or_default().to_owned(),
        output_source: source_word(source),
        error,
    };
    let mut bytes = serde_json::to_vec_pretty(&report).map_err(io::Error::other)?;
    bytes.push(b'\n');
    workspace.write(RESULT_FILE, bytes).await?;
    Ok(report)
}

fn open(place: &Place) -> io::Result<Workspace> {
    let room = BareRoom::here(&place.workspace).map_err(|error| io::Error::other(error.to_string()))?;
    let root =
        place.workspace.to_str().ok_or_else(|| io::Error::other("the workspace's path is not text"))?;
    Ok(Workspace::at(Box::new(room), root.trim_end_matches('/'), &place.home))
}

fn context(
    settings: Settings,
    model: Model,
    place: &Place,
    workspace: Workspace,
    redactor: Arc<Redactor>,
) -> io::Result<TrialContext> {
    // Files of an earlier process do not belong to this one.
    for file in [TRAJECTORY_FILE, CONVERSATION_FILE, RESULT_FILE] {
        match fs_err::remove_file(place.workspace.join(file)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let trajectory = Trajectory::create(&place.workspace, Arc::clone(&redactor), None)?;
    let account = Meter::new(Unpriced::Allow).open(None, "agent", Budget::default());
    let mut scope = Scope::new("agent", account);
    let events = trajectory.clone();
    scope.observer = Some(Arc::new(move |event| events.model_call(event)));
    let id = TaskId::parse("agent/entry").map_err(|error| io::Error::other(error.to_string()))?;
    let agent = PreparedAgent {
        name: "agent".to_owned(),
        harness: Harness::ToolLoop,
        model: Some(model),
        parameters: settings.parameters,
        system_prompt: system_prompt(&place.workspace)?,
        api_version: String::new(),
        files: Vec::new(),
    };
    let deadline = Instant::now() + LONGEST;
    let mut context = TrialContext {
        task: Arc::new(PreparedTask::of_prompt(id, settings.instruction, settings.tools)),
        agent: Arc::new(agent),
        seed: [0; 32],
        deadline,
        trajectory,
        scope,
        gateway: Gateway::new(),
        redactor,
        snapshots: None,
        // The sandbox already exists; nothing is opened.
        opener: RoomOpener {
            isolation: Isolation::None,
            containers: None,
            python: None,
            limits: Limits { cpus: 1, memory_mb: 1, storage_mb: 1, pids: MAX_PIDS },
            extra: Vec::new(),
            ourselves: false,
        },
        state: TrialState::new(deadline),
    };
    context.state.workspace = Some(workspace);
    Ok(context)
}

fn system_prompt(workspace: &Path) -> io::Result<Option<String>> {
    let path = workspace.join(SYSTEM_PROMPT_FILE);
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let text = read_text(&path, SYSTEM_PROMPT_LIMIT, Links::Refuse)
        .map_err(|error| io::Error::other(format!("{SYSTEM_PROMPT_FILE}: {error}")))?;
    Ok(Some(text).filter(|text| !text.trim().is_empty()))
}

/// The digest of the file at the answer's path, or why there is none.
async fn found(workspace: &Workspace, place: &str) -> io::Result<Digest> {
    let place = place.to_owned();
    let limit = SubmissionLimits::default().file_bytes;
    workspace
        .with_tree(move |tree| {
            let file = tree.open_file(Path::new(&place))?;
            aec_base::digest::copy(file, limit, |_| Ok(())).map(|(digest, _)| digest)
        })
        .await
}

/// Writes the answer into the output file and returns its origin. `given` is the file that was there before.
async fn publish(
    workspace: &Workspace,
    place: &str,
    order: AnswerOrder,
    given: Option<Digest>,
    rollout: &Rollout,
) -> Option<Source> {
    let written = match found(workspace, place).await {
        Ok(digest) => Some(digest) != given,
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    };
    let source = order.choose(rollout.submitted.is_some(), written, rollout.final_text.is_some());
    let content = match (source, &rollout.submitted) {
        (Some(Source::Submitted), Some(Submitted::Content(content))) => Some(content.clone()),
        (Some(Source::Submitted), Some(Submitted::File(path))) if path != place => {
            workspace.read(path, SubmissionLimits::default().file_bytes).await.ok()
        }
        (Some(Source::FinalText), _) => rollout.final_text.clone().map(String::into_bytes),
        _ => None,
    };
    if let Some(content) = content {
        // If the agent put a directory or a link there, this fails, and the judge reports the missing answer.
        workspace.write(place, content).await.ok();
    }
    source
}

/// The word for a source in [`EntryReport`].
fn source_word(source: Option<Source>) -> &'static str {
    match source {
        Some(Source::File) => "agent_file",
        Some(Source::Submitted) => "submitted_answer",
        Some(Source::FinalText) => "final_text",
        None => "none",
    }
}

/// The source for a word of [`EntryReport`].
pub fn source_of_word(word: &str) -> Option<Source> {
    [Source::File, Source::Submitted, Source::FinalText]
        .into_iter()
        .find(|source| source_word(Some(*source)) == word)
}

fn error_of(end: &End) -> Option<String> {
    match end {
        End::Done | End::Limit(_) => None,
        End::Model(failure) => Some(failure.to_string()),
        End::Agent(what) | End::Crashed(what) | End::Refused(what) | End::Task(what) => Some(what.clone()),
        End::Room(room) | End::RoomLost(room) => Some(room.message.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, Vec<Problem>> {
        Settings::read(&Env::from_shell(variables.iter().map(|(k, v)| ((*k).into(), (*v).into()))))
    }

    #[test]
    fn absent_variables_have_the_documented_defaults() {
        let settings = read(&[("AGENT_MODEL", "m"), ("AGENT_INSTRUCTION", "do")]).unwrap();
        assert_eq!(settings.parameters.sampling.max_tokens, Some(16_384));
        assert_eq!((settings.parameters.max_turns, settings.parameters.command_timeout), (10, 120));
        assert!(settings.tools.is_empty());
    }

    #[test]
    fn everything_wrong_is_reported() {
        let problems = read(&[
            ("AGENT_INSTRUCTION", "  "),
            ("AGENT_MAX_TOKENS", "many"),
            ("AGENT_MAX_TURNS", "0"),
            ("AGENT_COMMAND_TIMEOUT", "-1"),
            ("AGENT_TOOLS_JSON", "{}"),
        ])
        .unwrap_err();
        let ids: Vec<String> = problems.iter().filter_map(|problem| problem.id.clone()).collect();
        assert_eq!(ids, ["E050", "E050", "E051", "E051", "E051", "E052"]);
    }
}
