//! Harnesses: the programs between model and task. Each turns a [`TrialContext`] into a [`Rollout`].
//!
//! A harness sees the prompt, its parameters, a workspace, a model and the trajectory. It never sees the verifier, the
//! ledger, a key or another trial. How it ends is data; what that means for the trial is decided in `trial` alone.

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

/// An agent that is ready to work: parameters read, prompt read, model found.
#[derive(Debug)]
pub struct PreparedAgent {
    /// Its name in the experiment.
    pub name: String,
    pub harness: Harness,
    /// The model, for harnesses that call one and for agents that may.
    pub model: Option<Model>,
    /// Parameters, defaults filled in.
    pub parameters: Parameters,
    /// The system prompt that the experiment gives.
    pub system_prompt: Option<String>,
    /// The API version of Azure that agents are told.
    pub api_version: String,
    /// Files of the agent, by the path that its parameters name: scripts, programs.
    pub files: Vec<AgentFile>,
}

/// A file that belongs to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentFile {
    /// Path below the project root.
    pub path: String,
    pub content: Arc<[u8]>,
    /// Whether it may be run.
    pub executable: bool,
}

/// What a harness works with.
pub struct TrialContext {
    /// The task, without its verifier.
    pub task: Arc<PreparedTask>,
    pub agent: Arc<PreparedAgent>,
    /// What chance is drawn from: the same for the same trial.
    pub seed: [u8; 32],
    /// When the agent's time is up.
    pub deadline: Instant,
    /// Where events go.
    pub trajectory: Trajectory,
    /// On whose behalf models are called.
    pub scope: Scope,
    /// The gateway, for agents that call models themselves.
    pub gateway: Gateway,
    /// Keeps secrets out of what is written.
    pub redactor: Arc<Redactor>,
    /// Where states of the workspace are kept, when they are asked for.
    pub snapshots: Option<ContentStore>,
    /// How the room is opened.
    pub opener: RoomOpener,
    pub state: TrialState,
}

/// What happens to a [`TrialContext`] while its harness works. Nothing is opened at first.
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

/// How an agent's work ended, and what it said.
#[derive(Debug)]
pub struct Rollout {
    pub end: End,
    /// What it submitted as its answer.
    pub submitted: Option<Submitted>,
    /// What it said when it ended by itself. What it said on the way to a limit is no answer.
    pub final_text: Option<String>,
    /// The model as the provider names it.
    pub resolved_model: Option<String>,
    /// What the harness says of its work: `turns_used`, `max_turns`, `tool_calls` and the like. No times.
    pub result: IndexMap<String, Value>,
}

impl Rollout {
    /// A rollout that says nothing.
    pub fn new(end: End) -> Self {
        Self { end, submitted: None, final_text: None, resolved_model: None, result: IndexMap::new() }
    }

    /// What it handed over beside its files.
    pub fn handed(&self) -> Handed {
        Handed { submitted: self.submitted.clone(), said: self.final_text.clone() }
    }

    /// With something to say.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.result.insert(key.to_owned(), value.into());
        self
    }
}

/// How an agent's work ended.
#[derive(Debug)]
pub enum End {
    /// The agent was done.
    Done,
    /// A limit ended it; what it left until then counts.
    Limit(Limit),
    /// A model gave no answer.
    Model(Failure),
    /// The agent itself failed, say its program crashed; what it left until then counts.
    Agent(String),
    /// The room failed.
    Room(RoomFault),
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
    /// A budget in dollars that the harness has.
    Cost,
    /// `billable_input_budget`.
    BillableInput,
    /// The model's window.
    Context,
    /// The agent's time.
    Time,
}

impl Limit {
    /// The name as written in records.
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
        Self::Room(error.to_string().into())
    }
}

impl TrialContext {
    /// The room in use, if one was opened.
    pub fn opened(&self) -> Option<&Workspace> {
        self.state.workspace.as_ref()
    }

    /// The room, opened and filled when it is first asked for. That takes nothing of the agent's time.
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

    /// Says which system prompt is really sent, and writes it down.
    pub fn begin(&mut self, system_prompt: Option<String>, prompt: &str) {
        if let Some(text) = &system_prompt {
            self.trajectory.system(text);
        }
        self.trajectory.user(prompt);
        self.state.system_prompt = system_prompt;
    }

    /// Calls the agent's model. What happens is in the trajectory before this returns.
    pub async fn call(&self, request: &Request) -> Result<Reply, Failure> {
        self.call_in_full(request).await.outcome
    }

    /// Calls the agent's model, and tells everything about it. The call ends with the agent's time.
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

    /// What a failed call means.
    pub fn failed(&self, failure: Failure) -> End {
        model_end(failure, self.time_left())
    }

    /// Time that the agent has left.
    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

/// Calls a model for an agent. The failure of it names who is to blame.
pub async fn call(model: &Model, request: &Request, scope: &Scope) -> Called {
    let mut called = model.call(request, scope).await;
    called.outcome = called.outcome.map_err(|failure| blame(failure, &called.events));
    called
}

/// What a failed call means: a call that was being answered when the agent's time ended is the end of that time.
pub fn model_end(failure: Failure, time_left: Duration) -> End {
    if failure.kind == FailureKind::Cancelled && time_left.is_zero() {
        End::Limit(Limit::Time)
    } else {
        End::Model(failure)
    }
}

/// What the end of a room means: one that its own commands brought down did not fail by itself.
pub fn room_end(end: End, workspace: Option<&Workspace>) -> End {
    match end {
        End::Room(_) if workspace.is_some_and(Workspace::is_out_of_memory) => {
            End::Agent(TOO_MUCH_MEMORY.to_owned())
        }
        end => end,
    }
}

/// Who is to blame for a call that ended with the agent's time. A model that was answering was too slow for this agent.
/// But a provider that failed before, or a call that never got its turn, is nothing that an agent did.
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

/// Lets a harness work. It must end by itself soon after the deadline; the caller sees to it if it does not.
pub async fn run(context: &mut TrialContext) -> Rollout {
    let rollout = carry_out(context).await;
    Rollout { end: room_end(rollout.end, context.opened()), ..rollout }
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
