//! Harnesses: the programs between model and task. Each turns a [`TrialContext`] into a [`Rollout`].
//!
//! A harness sees the prompt, its parameters, a workspace, a model and the trajectory. It never sees the verifier, the
//! ledger, a key or another trial. How it ends is data; only `trial` decides what that means for the trial.

mod advisor;
pub mod command;
pub mod direct;
mod guard;
pub mod lambda_rlm;
pub mod nop;
pub mod oracle;
pub mod rlm;
pub mod scripted;
mod settings_file;
pub mod sim;
pub(crate) mod snapshot;
pub mod tool_loop;
pub mod tools;
pub mod turns;

use std::sync::Arc;
use std::time::Duration;

use aec_base::content::ContentStore;
use aec_base::secret::Redactor;
use aec_judge::settle::freeze::TOO_MUCH_MEMORY;
use aec_judge::settle::order::{Handed, Submitted};
use aec_judge::settle::outcome::RoomFault;
use aec_model::client::{Called, Model, Scope, Source};
use aec_model::event::CallEvent;
use aec_model::failure::{Failure, FailureKind};
use aec_model::gateway::Gateway;
use aec_model::message::{Reply, Request};
use aec_model::meter::{Account, AccountKind};
use aec_sandbox::SandboxError;
use indexmap::IndexMap;
use serde_json::Value;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::experiment::Harness;
use crate::parameters::Parameters;
use crate::room::RoomOpener;
use crate::task::PreparedTask;
use crate::trajectory::Trajectory;
use crate::workspace::Workspace;

/// How long after its deadline a harness or a tool may take to end by itself.
pub const GRACE: Duration = Duration::from_secs(15);
/// The last lines that a crashed program printed, in the harness's report, as it wrote them.
pub const TRACEBACK: &str = "traceback";

/// An agent that is ready to work: its parameters and prompt are read, its model is found.
#[derive(Debug)]
pub struct PreparedAgent {
    pub name: String,
    pub harness: Harness,
    /// The model, for harnesses that call one and for agents that may.
    pub model: Option<Model>,
    /// Parameters, with defaults filled in.
    pub parameters: Parameters,
    /// The experiment's system prompt.
    pub system_prompt: Option<String>,
    /// Azure's API version for the agent's variables.
    pub api_version: String,
    /// Files of the agent, by the path in its parameters: scripts, programs.
    pub files: Vec<AgentFile>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentFile {
    /// Path below the project root.
    pub path: String,
    pub content: Arc<[u8]>,
    pub executable: bool,
}

/// Everything that a harness works with.
pub struct TrialContext {
    /// The task, without its verifier.
    pub task: Arc<PreparedTask>,
    pub agent: Arc<PreparedAgent>,
    /// The seed of random choices: the same for the same trial.
    pub seed: [u8; 32],
    pub deadline: Instant,
    pub trajectory: Trajectory,
    /// The context of model calls.
    pub scope: Scope,
    /// The gateway, for agents that call models themselves.
    pub gateway: Gateway,
    pub redactor: Arc<Redactor>,
    /// The store for snapshots of the workspace, if they are requested.
    pub snapshots: Option<ContentStore>,
    /// Opens the sandbox.
    pub opener: RoomOpener,
    pub state: TrialState,
}

/// The state of a [`TrialContext`] while its harness works. Initially no sandbox is open.
pub struct TrialState {
    pub(crate) workspace: Option<Workspace>,
    pub(crate) system_prompt: Option<String>,
    pub(crate) setup_seconds: f64,
    pub(crate) clock: Clock,
}

impl TrialState {
    pub fn new(deadline: Instant) -> Self {
        Self { workspace: None, system_prompt: None, setup_seconds: 0.0, clock: Clock::new(deadline) }
    }
}

/// How an agent's work ended, and its answers.
#[derive(Debug)]
pub struct Rollout {
    pub end: End,
    /// The submitted answer.
    pub submitted: Option<Submitted>,
    /// The text with which it ended by itself. A text before a limit is not an answer.
    pub final_text: Option<String>,
    /// The model as the provider names it.
    pub resolved_model: Option<String>,
    /// The harness's report on its work: `turns_used`, `max_turns`, `tool_calls` and so on. It contains no times.
    pub result: IndexMap<String, Value>,
}

impl Rollout {
    /// An empty rollout.
    pub fn new(end: End) -> Self {
        Self { end, submitted: None, final_text: None, resolved_model: None, result: IndexMap::new() }
    }

    /// The answers that it gave outside its files.
    pub fn handed(&self) -> Handed {
        Handed { submitted: self.submitted.clone(), said: self.final_text.clone() }
    }

    /// Adds to the report.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.result.insert(key.to_owned(), value.into());
        self
    }
}

/// How an agent's work ended.
#[derive(Debug)]
pub enum End {
    /// The agent finished.
    Done,
    /// A limit ended it; the files left until then count.
    Limit(Limit),
    /// A model gave no answer.
    Model(Failure),
    /// The provider answered before, but refuses the conversation that the agent made.
    Refused(String),
    /// The agent itself failed, for example its program crashed; the files left until then count.
    Agent(String),
    /// The agent's program ended with an error and left no answer.
    Crashed(String),
    /// The sandbox failed before the agent worked in it, or in a way that the agent could not have caused.
    Room(RoomFault),
    /// The sandbox failed in a way that the agent could have caused; the files left until then count.
    RoomLost(RoomFault),
    /// The task lacks what the harness needs.
    Task(String),
}

/// A limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// `max_turns`.
    Turns,
    /// `max_tool_calls`.
    ToolCalls,
    /// `max_input_tokens` or `max_total_tokens`.
    Tokens,
    /// `max_subcalls`.
    Subcalls,
    /// A budget in dollars within the harness.
    Cost,
    /// `billable_input_budget`.
    BillableInput,
    /// The model's context window.
    Context,
    /// The agent's time.
    Time,
}

impl Limit {
    pub fn name(self) -> &'static str {
        match self {
            Self::Turns => "turn_limit_reached",
            Self::ToolCalls => "tool_call_limit_reached",
            Self::Tokens => "token_budget_reached",
            Self::Subcalls => "subcall_limit_reached",
            Self::Cost => "cost_budget_reached",
            Self::BillableInput => "billable_input_budget_reached",
            Self::Context => "context_limit_reached",
            Self::Time => "timeout",
        }
    }
}

impl From<SandboxError> for End {
    fn from(error: SandboxError) -> Self {
        Self::Room(error.into())
    }
}

impl From<std::io::Error> for End {
    fn from(error: std::io::Error) -> Self {
        Self::Room(error.into())
    }
}

impl TrialContext {
    /// The sandbox, if one was opened.
    pub fn opened(&self) -> Option<&Workspace> {
        self.state.workspace.as_ref()
    }

    /// The sandbox, which is opened and filled on first use. That does not count as the agent's time.
    pub async fn workspace(&mut self) -> Result<Workspace, End> {
        if let Some(workspace) = &self.state.workspace {
            return Ok(workspace.clone());
        }
        let begun = Instant::now();
        self.state.clock.stop();
        let opened = self.opener.open(&self.task).await;
        let took = begun.elapsed();
        self.state.setup_seconds += took.as_secs_f64();
        self.deadline += took;
        self.scope.deadline = self.scope.deadline.map(|deadline| deadline + took);
        self.state.clock.go_on(self.deadline);
        let workspace = opened?;
        self.state.workspace = Some(workspace.clone());
        Ok(workspace)
    }

    /// Records the system prompt that is actually sent.
    pub fn begin(&mut self, system_prompt: Option<String>, prompt: &str) {
        if let Some(text) = &system_prompt {
            self.trajectory.system(text);
        }
        self.trajectory.user(prompt);
        self.state.system_prompt = system_prompt;
    }

    /// Calls the agent's model. The events are in the trajectory before this returns.
    pub async fn call(&self, request: &Request) -> Result<Reply, Failure> {
        self.call_in_full(request).await.outcome
    }

    /// Calls the agent's model and returns everything about the call. The call ends with the agent's time.
    pub async fn call_in_full(&self, request: &Request) -> Called {
        let refused =
            |failure: Failure| Called { source: Source::Live, outcome: Err(failure), events: Vec::new() };
        let Some(model) = &self.agent.model else {
            return refused(Failure::lasting(FailureKind::Request, "the agent has no model"));
        };
        let mut scope = self.scope.clone();
        let deadline = scope.deadline.map_or(self.deadline, |own| own.min(self.deadline));
        scope.deadline = Some(deadline);
        let called = call(model, request, &scope).await;
        if let Ok(reply) = &called.outcome {
            self.trajectory.next_step();
            self.trajectory.assistant(reply);
        }
        called
    }

    /// How the work ends after a failed call.
    pub fn failed(&self, failure: Failure) -> End {
        model_end(failure, self.time_left())
    }

    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

/// Calls a model for an agent. The failure shows who is to blame.
pub async fn call(model: &Model, request: &Request, scope: &Scope) -> Called {
    let mut called = model.call(request, scope).await;
    called.outcome = called.outcome.map_err(|failure| blame(failure, &called.events));
    called
}

/// How the work ends after a failed call: if the agent's time ended during the call, it is a time limit.
pub fn model_end(failure: Failure, time_left: Duration) -> End {
    if failure.kind == FailureKind::Cancelled && time_left.is_zero() {
        End::Limit(Limit::Time)
    } else {
        End::Model(failure)
    }
}

/// How the work ends with a sandbox: one that the agent's own commands brought down did not fail by itself.
pub fn room_end(end: End, workspace: Option<&Workspace>) -> End {
    let (fault, workspace) = match (end, workspace) {
        (End::Room(fault), Some(workspace)) => (fault, workspace),
        (end, _) => return end,
    };
    if !workspace.has_worked() {
        return End::Room(fault);
    }
    if workspace.is_out_of_memory() {
        return End::Agent(TOO_MUCH_MEMORY.to_owned());
    }
    // A provider of sandboxes knows more than the call that failed.
    let known = if fault.kind.is_none() { workspace.lost() } else { None };
    let fault = known.map_or(fault, RoomFault::from);
    if fault.commands_could { End::RoomLost(fault) } else { End::Room(fault) }
}

/// Decides who is to blame for a call that ended with the agent's time. A model that was answering was too slow for
/// this agent. But a provider that failed before, or a call that was never sent, is not the agent's fault.
fn blame(failure: Failure, events: &[CallEvent]) -> Failure {
    if failure.kind != FailureKind::Cancelled {
        return failure;
    }
    let last_failure = events.iter().rev().find_map(|event| match event {
        CallEvent::Failed { failure, .. } if failure.kind != FailureKind::Cancelled => Some(failure.clone()),
        _ => None,
    });
    let sent = events.iter().any(|event| matches!(event, CallEvent::Attempt { .. }));
    match last_failure {
        Some(failure) => failure,
        None if sent => failure,
        None => Failure::passing(
            FailureKind::Rate,
            "the call did not get its turn before the agent's time was up",
        ),
    }
}

/// Runs a harness. It must end soon after the deadline; otherwise the caller ends it.
pub async fn run(context: &mut TrialContext) -> Rollout {
    let rollout = carry_out(context).await;
    let end = match context.agent.harness {
        // A program chooses itself how much it asks for.
        Harness::Command => rollout.end,
        _ => unpaid(rollout.end, &context.scope.account),
    };
    Rollout { end: room_end(end, context.opened()), ..rollout }
}

/// A trial whose first call did not fit into its limits says nothing about the agent. Planning refuses such limits, as far
/// as it knows the first call.
fn unpaid(end: End, account: &Account) -> End {
    let refused = match &end {
        End::Limit(Limit::Cost) => true,
        End::Model(failure) => {
            failure.kind == FailureKind::Budget
                && matches!(failure.account, Some(AccountKind::Trial | AccountKind::Harness))
        }
        _ => false,
    };
    let all = account.totals().all;
    if !refused || all.calls > 0 || all.unbilled_calls > 0 {
        return end;
    }
    let why = match &end {
        End::Model(failure) => failure.message.clone(),
        _ => "the limit in money does not cover it".to_owned(),
    };
    End::Task(format!("the agent's first call was not made: {why}"))
}

async fn carry_out(context: &mut TrialContext) -> Rollout {
    match context.agent.harness {
        Harness::Direct => direct::run(context).await,
        Harness::ToolLoop => tool_loop::run(context).await,
        Harness::Oracle => oracle::run(context).await,
        Harness::Nop => nop::run(context),
        Harness::Scripted => scripted::run(context).await,
        Harness::Sim => sim::run(context).await,
        Harness::Command => command::run(context).await,
        Harness::Rlm => rlm::run(context).await,
        Harness::LambdaRlm => lambda_rlm::run(context).await,
    }
}
