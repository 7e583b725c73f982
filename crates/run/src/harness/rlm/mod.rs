//! `rlm`: the model drives a Python session and calls other models from it. Its data stays in variables, outside the
//! context window.
//!
//! The session runs in the trial's sandbox, without keys and network. Everything that must be trusted is in this
//! process: limits, notes, the report, model calls.

mod ask;
mod cell_requests;
mod compact;
mod given;
pub mod prompt;
mod session;
mod wire;

use std::time::Duration;

use aec_judge::settle::order::{Submitted, last_word};
use aec_model::client::Model;
use aec_model::failure::FailureKind;
use aec_model::message::{Message, Part, Reply, Request, Role, Tool, ToolCall, Tools};
use aec_model::meter::AccountKind;
use aec_model::money::MicroDollars;
use aec_task::long_documents::settings::Overrides;
use serde_json::{Map, Value, json};

use self::cell_requests::{CellRequests, Models, State, lock};
use self::given::Given;
use self::prompt::Surface;
use self::session::{Cell, Session, Setup, Variable};
use super::advisor::Advisor;
use super::guard::{Guard, Plane};
use super::tools::{kept, show};
use super::turns::name_calls;
use super::{End, Limit, PreparedAgent, Rollout, TrialContext};
use crate::affordable::{self, Opening};
use crate::parameters::Parameters;
use crate::task::PreparedTask;
use crate::trajectory::ToolOutcome;
use crate::workspace::{Workspace, blocking};

/// The tool that runs code.
const REPL: &str = "repl";

/// Consecutive replies without code after which the work ends.
const MOST_IDLE: u32 = 5;

/// How many sessions may be lost.
const MOST_SESSIONS: u32 = 10;

pub async fn run(context: &mut TrialContext) -> Rollout {
    match Work::prepare(context).await {
        Ok(work) => work.carry_out(context).await,
        Err(end) => Rollout::new(end),
    }
}

/// Checks the files that a task has for this harness.
pub(crate) fn check(task: &PreparedTask) -> Result<(), String> {
    Given::read(task).map(drop)
}

/// The first calls of an agent: of its main model with the first request, and of its other models.
pub(crate) fn opening(task: &PreparedTask, agent: &PreparedAgent, model: &Model) -> Result<Opening, String> {
    let mut given = Given::read(task)?;
    given.settings.tighten(&overrides(&agent.parameters));
    let settings = &given.settings;
    let advisor = settings.advisor.as_ref().filter(|advisor| advisor.enabled);
    let (_, _, mut request) = set_up(&given, task, agent, advisor.is_some());
    let most = u32::try_from(settings.guardrails.token_budget).unwrap_or(u32::MAX);
    request.sampling.max_tokens = Some(request.sampling.output_limit().min(most).max(1));
    let mut calls = vec![(model.clone(), request)];
    let execution = &settings.execution;
    let others = [execution.subcall_model.as_ref(), execution.compaction_model.as_ref()];
    for name in others.into_iter().flatten().chain(advisor.map(|advisor| &advisor.model)) {
        let other = model.other(name).map_err(|error| error.what)?;
        calls.push((other, affordable::smallest()));
    }
    let own = settings.guardrails.max_budget_usd.and_then(MicroDollars::from_dollars);
    Ok(Opening {
        calls,
        own: own.map(|money| (money, "`max_budget_usd` of rlm.toml or `max_cost_usd` of the agent")),
    })
}

/// The session's setup, the system prompt and the first request.
fn set_up(
    given: &Given,
    task: &PreparedTask,
    agent: &PreparedAgent,
    advisor: bool,
) -> (Setup, String, Request) {
    let mut setup = Setup {
        context: task.instruction.clone(),
        help: String::new(),
        workers: given.settings.execution.max_parallel_workers,
        subcalls: offered(given),
        custom: given.custom.clone(),
        inputs: given.inputs.clone(),
        report: given.report.is_some(),
        advisor,
    };
    setup.help = prompt::functions(&setup);
    let surface = agent.parameters.surface;
    let system = prompt::system(agent.system_prompt.as_deref(), &task.output_path, surface, given, &setup);
    let request = Request {
        messages: vec![
            Message::text(Role::System, system.clone()),
            Message::text(Role::User, task.instruction.clone()),
        ],
        tools: if surface == Surface::Tool { vec![tool()].into() } else { Tools::default() },
        sampling: agent.parameters.sampling.clone(),
        ..Request::default()
    };
    (setup, system, request)
}

/// A run in progress.
struct Work {
    given: Given,
    setup: Setup,
    surface: Surface,
    guard: Guard,
    models: Models,
    state: State,
    workspace: Workspace,
    session: Session,
    request: Request,
    variables: Vec<Variable>,
    cells: u32,
    sessions: u32,
    compactions: u32,
    /// Turns since a section of the report was last filled.
    idle_turns: u32,
    filled: usize,
    model: Option<String>,
    finale: Option<Finale>,
}

/// How the work was ended.
struct Finale {
    value: Value,
    text: String,
}

impl Work {
    async fn prepare(context: &mut TrialContext) -> Result<Self, End> {
        let task = std::sync::Arc::clone(&context.task);
        let mut given = blocking(move || Given::read(&task)).await?.map_err(End::Task)?;
        given.settings.tighten(&overrides(&context.agent.parameters));
        for note in &given.notes {
            context.trajectory.note(note.clone(), Map::new());
        }
        context.opener.extra.append(&mut given.files);
        let settings = &given.settings;
        let main =
            context.agent.model.clone().ok_or_else(|| End::Task("the agent has no model".to_owned()))?;
        let other = |name: Option<&String>| -> Result<Model, End> {
            name.map_or_else(
                || Ok(main.clone()),
                |name| main.other(name).map_err(|error| End::Task(error.what)),
            )
        };
        let models = Models {
            subcalls: other(settings.execution.subcall_model.as_ref())?,
            compaction: other(settings.execution.compaction_model.as_ref())?,
            advisor: Advisor::open(settings.advisor.as_ref(), &main)?,
        };
        let guard = Guard::new(settings.guardrails.clone(), &context.scope.account);
        context.scope.account = guard.account(Plane::Main).clone();
        let surface = context.agent.parameters.surface;
        let (setup, system, request) =
            set_up(&given, &context.task, &context.agent, models.advisor.is_some());
        let instruction = context.task.instruction.clone();
        context.begin(Some(system), &instruction);
        let workspace = context.workspace().await?;
        let (session, problems) = Session::start(&workspace, &setup).await?;
        if !problems.is_empty() {
            return Err(End::Task(format!("the session cannot be set up: {}", problems.join("; "))));
        }
        let state = State::new(given.report.take(), settings.execution.max_parallel_workers);
        Ok(Self {
            setup,
            surface,
            guard,
            models,
            state,
            workspace,
            session,
            request,
            variables: Vec::new(),
            cells: 0,
            sessions: 1,
            compactions: 0,
            idle_turns: 0,
            filled: 0,
            model: None,
            finale: None,
            given,
        })
    }

    async fn carry_out(mut self, context: &mut TrialContext) -> Rollout {
        let end = self.turns(context).await;
        let stop_reason = match &end {
            End::Done => "done",
            End::Limit(limit) => limit.name(),
            End::Model(_) => "provider_error",
            _ => "failed",
        };
        if let End::Limit(limit) = &end {
            context.trajectory.note(format!("a limit ended the work: {}", limit.name()), Map::new());
        }
        let finished = self.finale.is_some();
        let mut rollout = Rollout::new(end)
            .with("turns_used", self.guard.iterations())
            .with("max_turns", self.given.settings.guardrails.max_iterations)
            .with("cells", self.cells)
            .with("sessions", self.sessions)
            .with("subcalls", self.guard.subcalls())
            .with("compactions", self.compactions)
            .with("finished", finished)
            .with("stop_reason", stop_reason)
            .with("planes", self.guard.usage())
            .with("settings", self.given.settings.effective());
        rollout.resolved_model = self.model.take();
        (rollout.submitted, rollout.final_text) = self.handed_in(&context.task.output_path);
        rollout
    }

    /// The answers besides the output file: the report is submitted; the value of `FINAL`, or else the text with it, is
    /// the final text.
    fn handed_in(&self, output_path: &str) -> (Option<Submitted>, Option<String>) {
        if let Some(report) = &self.state.report
            && *lock(&self.state.submitted)
        {
            return (Some(Submitted::Content(lock(report).assemble().into_bytes())), None);
        }
        let Some(finale) = &self.finale else { return (None, None) };
        let value = match &finale.value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other if output_path.ends_with(".md") => {
                Some(format!("```json\n{}\n```\n", serde_json::to_string_pretty(other).unwrap_or_default()))
            }
            other => serde_json::to_string_pretty(other).ok(),
        };
        let text = Some(finale.text.clone());
        (None, [value, text].into_iter().flatten().find(|text| last_word(text, false).is_some()))
    }

    async fn turns(&mut self, context: &mut TrialContext) -> End {
        let mut idle = 0;
        let mut was_overlong = false;
        loop {
            if context.time_left().is_zero() {
                return End::Limit(Limit::Time);
            }
            if let Err(limit) = self.guard.enter(Plane::Main) {
                return End::Limit(limit);
            }
            let wanted = context.agent.parameters.sampling.output_limit();
            self.request.sampling.max_tokens = Some(self.guard.output_limit(wanted));
            let mut reply = match context.call(&self.request).await {
                Ok(reply) => reply,
                Err(failure) if failure.account == Some(AccountKind::Harness) => {
                    return End::Limit(Limit::Cost);
                }
                // The provider knows its window best. A conversation that was just shortened cannot become shorter.
                Err(failure) if failure.kind == FailureKind::Overlong => {
                    if was_overlong {
                        return End::Limit(Limit::Context);
                    }
                    was_overlong = true;
                    self.shorten(context).await;
                    continue;
                }
                Err(failure) => return context.failed(failure),
            };
            was_overlong = false;
            self.model = reply.model.take().or_else(|| self.model.take());
            name_calls(&mut reply, u32::try_from(self.guard.iterations()).unwrap_or(u32::MAX));
            let input = reply.usage.map_or(0, |usage| usage.all_input());
            let ended = match self.turn(context, reply).await {
                Ok(ended) => ended,
                Err(end) => return end,
            };
            match ended {
                Turn::Final => return End::Done,
                Turn::Worked => idle = 0,
                Turn::Idle => idle += 1,
            }
            if idle >= MOST_IDLE {
                return End::Agent(format!("the model gave no code {MOST_IDLE} times in a row"));
            }
            if let Some(end) = self.fit(context, input).await {
                return end;
            }
        }
    }

    /// Executes a reply.
    async fn turn(&mut self, context: &mut TrialContext, mut reply: Reply) -> Result<Turn, End> {
        let text = reply.text();
        let calls: Vec<ToolCall> = reply.tool_calls().cloned().collect();
        if calls.is_empty() {
            let Some((code, end)) = fenced(&text) else {
                self.request.messages.push(reply.into_message());
                let nudge = match self.surface {
                    Surface::Tool => "Nothing was run. Call `repl`, and FINAL in it when the work is done.",
                    Surface::Text => {
                        "Nothing was run. Write a block with the info string `repl`, and call FINAL in it when the work is done."
                    }
                };
                self.say(context, nudge.to_owned());
                return Ok(Turn::Idle);
            };
            // Text after the code is dropped: the model could not know the result yet.
            let code = code.to_owned();
            reply.parts = vec![Part::text(&text[..end])];
            let call = ToolCall {
                id: format!("cell_{}", self.cells + 1),
                name: REPL.to_owned(),
                arguments: json!({ "code": code }).to_string(),
            };
            self.request.messages.push(reply.into_message());
            let (observed, is_final) = self.cell(context, &call, &text).await?;
            self.say(context, observed);
            return Ok(if is_final { Turn::Final } else { Turn::Worked });
        }
        self.request.messages.push(reply.into_message());
        let mut results = Vec::with_capacity(calls.len());
        let mut is_final = false;
        for call in &calls {
            let observed = if is_final {
                "this call was not carried out: the work is ended".to_owned()
            } else {
                let (observed, ended) = self.cell(context, call, &text).await?;
                is_final = ended;
                observed
            };
            let parts = vec![Part::text(observed)];
            results.push(Part::ToolResult { call_id: call.id.clone(), parts, is_error: false });
        }
        self.request.messages.push(Message { role: Role::User, parts: results });
        Ok(if is_final { Turn::Final } else { Turn::Worked })
    }

    fn say(&mut self, context: &TrialContext, text: String) {
        context.trajectory.user(&text);
        self.request.messages.push(Message::text(Role::User, text));
    }

    /// Runs the code of a call; returns what the model reads of it, and whether it ended the work.
    async fn cell(
        &mut self,
        context: &mut TrialContext,
        call: &ToolCall,
        said: &str,
    ) -> Result<(String, bool), End> {
        context.trajectory.tool_call(call);
        let code = call.object().and_then(|object| Some(object.get("code")?.as_str()?.to_owned()));
        let code = match code {
            Some(code) if call.name == REPL => code,
            _ => {
                let complaint = format!("there is one tool, `{REPL}`, and its argument `code` is a text");
                let (stderr, told) = (complaint.clone(), complaint.clone());
                let outcome = ToolOutcome { stderr, told, ..ToolOutcome::default() };
                context.trajectory.tool_result(call, &outcome);
                return Ok((complaint, false));
            }
        };
        self.cells += 1;
        let limit = Duration::from_secs(context.agent.parameters.command_timeout.into());
        let requests = CellRequests {
            context,
            guard: &self.guard,
            settings: &self.given.settings,
            models: &self.models,
            state: &self.state,
        };
        let cell = self.session.run(&code, limit, context.deadline, kept(), &requests).await?;
        let budget = context.agent.parameters.tool_output as usize;
        let shown =
            show(&self.workspace, self.cells, &cell.output, &aec_sandbox::Captured::default(), budget).await;
        let mut observed = prompt::observed(&shown.stdout, &cell, &self.variables, budget);
        self.after(&cell, &mut observed);
        let outcome = ToolOutcome {
            stdout: observed.clone(),
            stderr: cell.error.as_ref().map(|error| error.kind.clone()).unwrap_or_default(),
            exit_code: Some(i32::from(cell.error.is_some())),
            duration: cell.duration,
            told: observed.clone(),
            ..ToolOutcome::default()
        };
        context.trajectory.tool_result(call, &outcome);
        if let Some(advisor) = &self.models.advisor {
            advisor.remember(&format!("code:\n{code}\noutput:\n{observed}"));
        }
        self.variables = cell.variables;
        if cell.lost {
            self.renew(context).await?;
        }
        let is_final = cell.finale.is_some();
        if let Some(value) = cell.finale {
            self.finale = Some(Finale { value, text: said.to_owned() });
        }
        Ok((observed, is_final))
    }

    /// Adds the progress of the report, and a warning when a limit is near.
    fn after(&mut self, cell: &Cell, observed: &mut String) {
        let status = self.state.report.as_ref().map(|report| lock(report).status());
        let filled = status.as_ref().map_or(0, |status| status.completed.len());
        self.idle_turns = if filled > self.filled { 0 } else { self.idle_turns + 1 };
        self.filled = filled;
        if cell.finale.is_some() {
            return;
        }
        let footer = prompt::footer(&self.given.settings, status.as_ref(), self.idle_turns);
        for line in footer.into_iter().chain(self.guard.warning()) {
            observed.push('\n');
            observed.push_str(&line);
        }
    }

    /// Replaces a lost session.
    async fn renew(&mut self, context: &TrialContext) -> Result<(), End> {
        if self.sessions >= MOST_SESSIONS {
            return Err(End::Agent(format!("{MOST_SESSIONS} sessions were lost to the agent's code")));
        }
        self.sessions += 1;
        context.trajectory.note("the session was lost and a new one was started", Map::new());
        let (session, _) = Session::start(&self.workspace, &self.setup).await?;
        self.session = session;
        self.variables.clear();
        Ok(())
    }

    /// Keeps the conversation within the window: the ceiling ends the work, the threshold shortens it.
    async fn fit(&mut self, context: &mut TrialContext, input: u64) -> Option<End> {
        let execution = &self.given.settings.execution;
        #[expect(clippy::cast_precision_loss, reason = "shares of a window")]
        let share = input as f64 / self.window(context) as f64;
        if share >= execution.hard_ceiling_pct {
            return Some(End::Limit(Limit::Context));
        }
        if share >= execution.compaction_threshold_pct {
            self.shorten(context).await;
        }
        None
    }

    /// Tokens of the model's window. Settings may lower it, but not raise it.
    fn window(&self, context: &TrialContext) -> u64 {
        let real = context.agent.model.as_ref().and_then(Model::context_window);
        self.given.settings.execution.context_limit.min(real.unwrap_or(u64::MAX)).max(1)
    }

    /// Replaces everything except the beginning and the last turn by a summary.
    async fn shorten(&mut self, context: &TrialContext) {
        let requests = CellRequests {
            context,
            guard: &self.guard,
            settings: &self.given.settings,
            models: &self.models,
            state: &self.state,
        };
        let most = self.window(context);
        let compacted = compact::compact(&requests, &mut self.request.messages, &self.variables, most).await;
        self.compactions += 1;
        let mut metadata = Map::new();
        metadata.insert("plane".to_owned(), Plane::Compaction.name().into());
        metadata.insert("number".to_owned(), self.compactions.into());
        metadata.insert("messages_before".to_owned(), compacted.messages.into());
        metadata.insert("messages_after".to_owned(), self.request.messages.len().into());
        metadata.insert("model".to_owned(), self.models.compaction.name().into());
        metadata.insert("fault".to_owned(), compacted.fault.into());
        context.trajectory.note(format!("the conversation was shortened:\n{}", compacted.summary), metadata);
    }
}

/// The result of a turn.
enum Turn {
    Worked,
    Idle,
    Final,
}

/// The limits in the agent's parameters; they can only lower those of the task.
fn overrides(parameters: &Parameters) -> Overrides {
    Overrides {
        max_turns: parameters.given_turns,
        token_budget: parameters.token_budget,
        context_limit: parameters.context_budget_tokens,
        max_cost_usd: parameters.max_cost_usd,
        ..Overrides::default()
    }
}

fn offered(given: &Given) -> Vec<session::Subcall> {
    let settings = &given.settings;
    settings
        .offered_subcalls()
        .into_iter()
        .filter(|name| given.custom.iter().all(|custom| custom.name != *name))
        .filter_map(|name| {
            let description = settings.subcalls.get(name).map_or("", |subcall| subcall.description.as_str());
            ask::offer(name, description)
        })
        .collect()
}

fn tool() -> Tool {
    Tool {
        name: REPL.to_owned(),
        description:
            "Runs Python code in a session that keeps its variables. What it prints is returned, and the \
                      value of its last expression."
                .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {"code": {"type": "string", "description": "Python code"}},
            "required": ["code"],
        }),
    }
}

/// The code of the first block with the info string `repl`, and where that block ends.
fn fenced(text: &str) -> Option<(&str, usize)> {
    let mut at = 0;
    let mut begin = None;
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        match begin {
            None if line.trim_end() == "```repl" => begin = Some(end),
            Some(begin) if line.trim_end() == "```" => return Some((&text[begin..at], end)),
            _ => {}
        }
        at = end;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::fenced;

    #[test]
    fn the_first_block_is_code_and_what_follows_is_not() {
        let text = "First.\n```repl\nx = 1\nprint(x)\n```\nIt printed 1.\n```repl\ny\n```\n";
        let (code, end) = fenced(text).unwrap();
        assert_eq!(code, "x = 1\nprint(x)\n");
        assert!(text[..end].ends_with("```\n") && !text[..end].contains("It printed"));
        for other in ["```python\nx\n```\n", "```repl x\ny\n```", "```repl\nnever closed", "FINAL", ""] {
            assert_eq!(fenced(other), None, "{other}");
        }
        assert_eq!(fenced("```repl\n```").unwrap().0, "");
    }
}
