//! `tool_loop`: the model calls tools, turn by turn, until it finishes or reaches a limit.

use std::time::Duration;

use aec_model::client::Called;
use aec_model::message::{Message, Reply, Request, Role, ToolCall};
use serde_json::Map;

use super::tools::{Allowed, Ran, Toolset};
use super::turns::{self, Bounds, Host, Toolbox};
use super::{End, PreparedAgent, Rollout, TrialContext, snapshot};
use crate::parameters::Parameters;
use crate::workspace::Workspace;

pub async fn run(context: &mut TrialContext) -> Rollout {
    let set = Toolset::new(&context.task.tools);
    let instruction = context.task.instruction.clone();
    let (system, mut request) = opening(&set, &context.agent, &instruction, &context.task.output_path);
    context.begin(Some(system), &instruction);
    let parameters = &context.agent.parameters;
    let bounds = Bounds {
        turns: parameters.max_turns,
        tool_calls: parameters.max_tool_calls,
        input_tokens: parameters.max_input_tokens,
        total_tokens: parameters.max_total_tokens,
    };
    let mut toolbox = Toolbox::new(&set, allowed(parameters));
    let (end, turns) = turns::take(context, &mut toolbox, &mut request, &bounds).await;
    if turns.is_cut {
        context.trajectory.note("the last answer ended at the limit of output tokens", Map::new());
    }
    let stop_reason = match &end {
        End::Done => "done",
        End::Limit(limit) => {
            context.trajectory.note(format!("a limit ended the work: {}", limit.name()), Map::new());
            limit.name()
        }
        End::Model(_) => "provider_error",
        _ => "failed",
    };
    let mut rollout = Rollout::new(end)
        .with("turns_used", turns.taken)
        .with("max_turns", bounds.turns)
        .with("tool_calls", turns.tool_calls)
        .with("submitted", turns.submitted.is_some())
        .with("stop_reason", stop_reason);
    rollout.submitted = turns.submitted;
    rollout.final_text = turns.final_text;
    rollout.resolved_model = turns.model;
    rollout
}

/// The first request of an agent.
pub(crate) fn request(
    agent: &PreparedAgent,
    tools: &[aec_task::task::Tool],
    instruction: &str,
    output_path: &str,
) -> Request {
    opening(&Toolset::new(tools), agent, instruction, output_path).1
}

/// The system prompt and the first request.
fn opening(set: &Toolset, agent: &PreparedAgent, instruction: &str, output_path: &str) -> (String, Request) {
    let system = set.system_prompt(agent.system_prompt.as_deref(), output_path);
    let request = Request {
        messages: vec![Message::text(Role::System, system.clone()), Message::text(Role::User, instruction)],
        tools: set.offers().clone(),
        sampling: agent.parameters.sampling.clone(),
        ..Request::default()
    };
    (system, request)
}

/// The limits of a tool call.
pub(super) fn allowed(parameters: &Parameters) -> Allowed {
    Allowed {
        output: parameters.tool_output as usize,
        time: Duration::from_secs(parameters.command_timeout.into()),
    }
}

impl Host for TrialContext {
    async fn ask(&mut self, request: &Request) -> Called {
        self.call_in_full(request).await
    }

    /// The trajectory already has the reply.
    fn hear(&mut self, _: &Reply) {}

    async fn workspace(&mut self) -> Result<Workspace, End> {
        Self::workspace(self).await
    }

    fn time_left(&self) -> Duration {
        Self::time_left(self)
    }

    fn begin_call(&mut self, call: &ToolCall) {
        self.trajectory.tool_call(call);
    }

    async fn end_call(&mut self, call: &ToolCall, ran: &Ran) {
        let state = keep_state(self).await;
        self.trajectory.tool_result(call, &ran.outcome(state));
    }
}

/// Takes a snapshot of the workspace, if requested. A failure is noted; the work continues.
async fn keep_state(context: &TrialContext) -> Option<aec_base::digest::Digest> {
    if !context.agent.parameters.snapshots {
        return None;
    }
    let (store, workspace) = (context.snapshots.as_ref()?, context.state.workspace.as_ref()?);
    match snapshot::take(workspace, store, &context.redactor).await {
        Ok(digest) => Some(digest),
        Err(error) => {
            context.trajectory.note(format!("the workspace was not kept: {error}"), Map::new());
            None
        }
    }
}
