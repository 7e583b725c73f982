//! `command`: any program as the agent. It runs in the sandbox with the documented variables, and reaches its model
//! through the gateway with its own token; keys stay outside.

mod doorway;
mod record;

use std::sync::Arc;

use aec_model::failure::{Failure, FailureKind};
use aec_model::message::ToolCall;
use aec_sandbox::{Exit, OURSELVES};
use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use self::doorway::ModelDoorway;
use self::record::Record;
use super::oracle::{tail, told};
use super::tools::{Declared, built_in_names, kept, show};
use super::{End, Limit, Rollout, TRACEBACK, TrialContext};
use crate::room::ExtraFile;
use crate::workspace::Workspace;

/// The directory of the agent's files.
const AGENT: &str = "/agent";
/// The prompt as a file, in addition to the variable.
const INSTRUCTION_FILE: &str = "instruction.md";
const SYSTEM_PROMPT_FILE: &str = "system_prompt.md";
/// The program's optional report on its work.
const RESULT_FILE: &str = "agent_result.json";
const RESULT_LIMIT: u64 = 64 * 1024;
/// Longest value that the kernel accepts as one variable, minus some bytes for its name.
const LONGEST_VALUE: usize = 120_000;
/// Characters of a tool's description in a variable.
const LONGEST_DESCRIPTION: usize = 2000;

pub async fn run(context: &mut TrialContext) -> Rollout {
    let instruction = context.task.instruction.clone();
    context.begin(context.agent.system_prompt.clone(), &instruction);
    let record = Arc::new(Record::new(context));
    let mut result = IndexMap::new();
    let end = match work(context, &record, &mut result).await {
        Ok(end) | Err(end) => end,
    };
    let mut rollout = Rollout::new(end);
    rollout.resolved_model = record.model();
    rollout.result = result;
    rollout.with("model_calls", record.calls())
}

async fn work(
    context: &mut TrialContext,
    record: &Arc<Record>,
    result: &mut IndexMap<String, Value>,
) -> Result<End, End> {
    show_files(context);
    let argv = context.agent.parameters.command.clone();
    context.opener.ourselves = argv.first().is_some_and(|program| program == OURSELVES);
    let workspace = context.workspace().await?;
    if let Some(prompt) = context.agent.system_prompt.clone() {
        workspace.write(SYSTEM_PROMPT_FILE, prompt.into_bytes()).await?;
    }
    let link = ModelDoorway::open(context, &workspace, record).await?;
    let call = ToolCall {
        id: "program".to_owned(),
        name: "command".to_owned(),
        arguments: json!({ "command": argv.join(" ") }).to_string(),
    };
    context.trajectory.tool_call(&call);
    let mut command = workspace.command(argv);
    command.env = environment(context, command.env, link.as_ref());
    command.deadline = context.time_left();
    (command.stdout, command.stderr) = (kept(), kept());
    let allowed = command.deadline;
    let done = workspace.exec(command).await?;
    let hide = |text: String| match &link {
        Some(link) => link.hide(&text),
        None => text,
    };
    let budget = context.agent.parameters.tool_output as usize;
    let shown = show(&workspace, 1, &done.stdout, &done.stderr, budget).await;
    let (stdout, stderr) = (hide(shown.stdout), hide(shown.stderr));
    if let Some(link) = link {
        // Processes that the program left running can call no more models, and its open calls are settled.
        link.close().await;
    }
    let ran = told(done.exit, stdout, stderr, done.duration, allowed);
    context.trajectory.tool_result(&call, &ran.outcome(None));
    if let Some(code) = ran.exit_code {
        result.insert("exit_code".to_owned(), code.into());
    }
    if let Some(said) = own_result(context, &workspace).await {
        result.insert("agent_result".to_owned(), said);
    }
    // A program that gave up because its model did not answer did not fail itself, whatever it reports; unless it left
    // an answer nevertheless.
    let left = has_answer(context, &workspace).await;
    let failure = record.last_failure().filter(is_not_the_agents).filter(|_| !left);
    let how = match done.exit {
        Exit::Code(0) => return Ok(failure.map_or(End::Done, End::Model)),
        Exit::Deadline => return Ok(failure.map_or(End::Limit(Limit::Time), End::Model)),
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
    };
    match failure {
        Some(failure) => Ok(End::Model(failure)),
        None => {
            let message = format!("the program ended with {how}: {}", tail(&ran.stderr));
            if left {
                return Ok(End::Agent(message));
            }
            result.insert(TRACEBACK.to_owned(), last_lines(&ran.stderr).into());
            Ok(End::Crashed(message))
        }
    }
}

/// The last lines of a text, as they are written.
fn last_lines(text: &str) -> String {
    const LINES: usize = 30;
    const CHARACTERS: usize = 4000;
    let text = text.trim_end();
    let start = text.rmatch_indices('\n').nth(LINES - 1).map_or(0, |(at, _)| at + 1);
    let lines = &text[start..];
    let start = lines.char_indices().rev().nth(CHARACTERS - 1).map_or(0, |(at, _)| at);
    lines[start..].to_owned()
}

/// Whether the task's output exists.
async fn has_answer(context: &TrialContext, workspace: &Workspace) -> bool {
    let place = std::path::PathBuf::from(context.task.output_place());
    workspace.with_tree(move |tree| tree.open_file(&place).map(|_| ())).await.is_ok()
}

/// Whether a failure is the provider's or ours.
fn is_not_the_agents(failure: &Failure) -> bool {
    failure.retryable
        || matches!(
            failure.kind,
            FailureKind::Auth
                | FailureKind::Rate
                | FailureKind::Server
                | FailureKind::Network
                | FailureKind::Protocol
                | FailureKind::Budget
                | FailureKind::Replay
        )
}

/// Makes the agent's files and the prompt visible under `/agent`, read-only.
fn show_files(context: &mut TrialContext) {
    let mut files: Vec<ExtraFile> = context
        .agent
        .files
        .iter()
        .map(|file| ExtraFile {
            directory: AGENT,
            place: file.path.clone(),
            content: Arc::clone(&file.content),
            executable: file.executable,
        })
        .collect();
    if !files.iter().any(|file| file.place == INSTRUCTION_FILE) {
        files.push(ExtraFile {
            directory: AGENT,
            place: INSTRUCTION_FILE.to_owned(),
            content: context.task.instruction.as_bytes().into(),
            executable: false,
        });
    }
    context.opener.extra.extend(files);
}

/// The program's variables: the sandbox's, the experiment's, and the documented ones, which always win.
fn environment(
    context: &TrialContext,
    room: Vec<(String, String)>,
    link: Option<&ModelDoorway>,
) -> Vec<(String, String)> {
    let parameters = &context.agent.parameters;
    let mut all: IndexMap<String, String> = room.into_iter().chain(parameters.env.clone()).collect();
    let mut set = |name: &str, value: String| all.insert(name.to_owned(), value);
    if let Some(model) = &context.agent.model {
        set("AGENT_MODEL", model.name().to_owned());
    }
    if context.task.instruction.len() <= LONGEST_VALUE && !context.task.instruction.contains('\0') {
        set("AGENT_INSTRUCTION", context.task.instruction.clone());
    }
    set("AGENT_MAX_TOKENS", parameters.sampling.output_limit().to_string());
    set("AGENT_MAX_TURNS", parameters.max_turns.to_string());
    set("AGENT_COMMAND_TIMEOUT", parameters.command_timeout.to_string());
    set("AGENT_TOOLS_JSON", tools_json(context));
    set("AGENT_API_VERSION", context.agent.api_version.clone());
    for (name, value) in link.map(ModelDoorway::environment).unwrap_or_default() {
        all.insert(name, value);
    }
    all.into_iter().collect()
}

/// The task's tools, with the paths of their files below the workspace.
fn tools_json(context: &TrialContext) -> String {
    let tools: Vec<Value> = Declared::all(&context.task.tools, &built_in_names())
        .into_iter()
        .map(|tool| {
            let description: String = tool.description.chars().take(LONGEST_DESCRIPTION).collect();
            json!({
                "name": tool.name,
                "source": tool.place,
                "description": description,
                "returns_image": tool.returns_image,
            })
        })
        .collect();
    let text = Value::from(tools).to_string();
    // A variable that is too long would prevent the program from starting.
    if text.len() <= LONGEST_VALUE { text } else { "[]".to_owned() }
}

/// The program's report on its work, if it is an object of reasonable size.
async fn own_result(context: &TrialContext, workspace: &Workspace) -> Option<Value> {
    let bytes = match workspace.read(RESULT_FILE, RESULT_LIMIT).await {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => {
            context.trajectory.note(format!("{RESULT_FILE} was not read: {error}"), Map::new());
            return None;
        }
    };
    match aec_base::json::from_slice::<Map<String, Value>>(&bytes) {
        Ok(said) => Some(Value::Object(said)),
        Err(_) => {
            context.trajectory.note(format!("{RESULT_FILE} is not a JSON object"), Map::new());
            None
        }
    }
}
