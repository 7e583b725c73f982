//! `tool_loop`: the model calls tools, turn by turn, until it says that it is done or a limit is reached.

use std::time::Duration;

use aec_judge::settle::order::{Submitted, last_word};
use aec_model::client::Called;
use aec_model::event::CallEvent;
use aec_model::message::{Message, Part, Reply, Request, Role, Stop, ToolCall};
use serde_json::Map;

use super::tools::{Action, Allowed, Ran, SUBMIT, TIME_IS_UP, Toolset};
use super::{End, Limit, Rollout, TrialContext, snapshot};

/// Runs the loop.
pub async fn run(context: &mut TrialContext) -> Rollout {
    let mut toolbox = Toolbox::new(&context.task.tools);
    let instruction = context.task.instruction.clone();
    let own = context.agent.system_prompt.as_deref();
    let system = toolbox.set.system_prompt(own, &context.task.output_path);
    context.begin(Some(system.clone()), &instruction);
    let mut request = Request {
        messages: vec![Message::text(Role::System, system), Message::text(Role::User, instruction)],
        tools: toolbox.set.offers().clone(),
        sampling: context.agent.parameters.sampling.clone(),
        ..Request::default()
    };
    let mut tally = Tally::default();
    let end = turns(context, &mut toolbox, &mut request, &mut tally).await;
    let stop_reason = match &end {
        End::Done => "done",
        End::Limit(limit) => {
            context.trajectory.note(format!("a limit ended the work: {}", limit.name()), Map::new());
            limit.name()
        }
        End::Model(_) => "provider_error",
        _ => "failed",
    };
    let submitted = tally.submitted.is_some();
    let mut rollout = Rollout::new(end)
        .with("turns_used", tally.turns)
        .with("max_turns", context.agent.parameters.max_turns)
        .with("tool_calls", tally.tool_calls)
        .with("submitted", submitted)
        .with("stop_reason", stop_reason);
    rollout.submitted = tally.submitted;
    rollout.final_text = tally.final_text;
    rollout.resolved_model = tally.model;
    rollout
}

/// The tools of one agent at one task, at work.
pub(super) struct Toolbox {
    set: Toolset,
    /// Calls so far; outputs are numbered by it.
    calls: u32,
}

impl Toolbox {
    pub(super) fn new(tools: &[aec_task::task::Tool]) -> Self {
        Self { set: Toolset::new(tools), calls: 0 }
    }

    /// Calls a tool. Only a room that is gone is an error.
    async fn call(&mut self, call: &ToolCall, context: &mut TrialContext) -> Result<Ran, End> {
        self.calls += 1;
        let started = std::time::Instant::now();
        let mut ran = match self.set.read(call) {
            Ok(action) => self.carry_out(action, context).await?,
            Err(complaint) => Ran::refused(complaint),
        };
        if ran.duration.is_zero() {
            ran.duration = started.elapsed();
        }
        Ok(ran)
    }

    async fn carry_out(&mut self, action: Action, context: &mut TrialContext) -> Result<Ran, End> {
        if let Action::Submit { content, path: None } = action {
            // No room is opened for it.
            return Ok(Ran::submission(Submitted::Content(content.into_bytes())));
        }
        let workspace = context.workspace().await?;
        let parameters = &context.agent.parameters;
        let allowed = Allowed {
            output: parameters.tool_output as usize,
            time: Duration::from_secs(parameters.command_timeout.into()).min(context.time_left()),
        };
        Ok(action.carry_out(&workspace, self.calls, &allowed).await?)
    }
}

/// What the loop has done and used so far.
#[derive(Debug, Default)]
struct Tally {
    turns: u32,
    tool_calls: u32,
    input_tokens: u64,
    all_tokens: u64,
    submitted: Option<Submitted>,
    final_text: Option<String>,
    model: Option<String>,
}

async fn turns(
    context: &mut TrialContext,
    toolbox: &mut Toolbox,
    request: &mut Request,
    tally: &mut Tally,
) -> End {
    let max_turns = context.agent.parameters.max_turns;
    while tally.turns < max_turns {
        if let Some(limit) = tally.limit(context) {
            return End::Limit(limit);
        }
        let called = context.call_in_full(request).await;
        tally.turns += 1;
        tally.count(request, &called);
        let mut reply = match called.outcome {
            Ok(reply) => reply,
            Err(failure) => return context.failed(failure),
        };
        tally.model = reply.model.take().or_else(|| tally.model.take());
        name_calls(&mut reply, tally.turns);
        let calls: Vec<ToolCall> = reply.tool_calls().cloned().collect();
        if calls.is_empty() {
            return finish(context, &reply, tally);
        }
        request.messages.push(reply.into_message());
        let worked = work(context, toolbox, &calls, tally).await;
        match worked {
            Ok((results, None)) => request.messages.push(Message { role: Role::User, parts: results }),
            Ok((_, Some(end))) | Err(end) => return end,
        }
    }
    End::Limit(Limit::Turns)
}

/// The model calls no tool: what it says is its last word.
fn finish(context: &TrialContext, reply: &Reply, tally: &mut Tally) -> End {
    if let Some(text) = last_word(&reply.text(), false) {
        tally.final_text = Some(text.to_owned());
        if reply.stop == Stop::Length {
            context.trajectory.note("the last answer ended at the limit of output tokens", Map::new());
        }
    }
    End::Done
}

/// Carries out all calls of a turn, in order. What came out of them, and the end if this was the last turn.
async fn work(
    context: &mut TrialContext,
    toolbox: &mut Toolbox,
    calls: &[ToolCall],
    tally: &mut Tally,
) -> Result<(Vec<Part>, Option<End>), End> {
    let most = context.agent.parameters.max_tool_calls.unwrap_or(u32::MAX);
    let mut results = Vec::with_capacity(calls.len());
    let mut limit = None;
    for call in calls {
        let refusal = if context.time_left().is_zero() {
            limit = Some(Limit::Time);
            Some(TIME_IS_UP.to_owned())
        } else if call.name == SUBMIT {
            // In its time an agent can always hand in: that costs nothing and ends the work.
            None
        } else if tally.tool_calls >= most {
            limit = limit.or(Some(Limit::ToolCalls));
            Some(format!("this call was not carried out: more than {most} calls of tools are not allowed"))
        } else {
            tally.tool_calls += 1;
            None
        };
        let mut ran = execute(context, toolbox, call, refusal).await?;
        if let Some(answer) = ran.submitted.take() {
            tally.submitted = Some(answer);
        }
        results.push(ran.part(&call.id));
    }
    let end = match (&tally.submitted, limit) {
        (Some(_), _) => Some(End::Done),
        (None, Some(limit)) => Some(End::Limit(limit)),
        (None, None) => None,
    };
    Ok((results, end))
}

/// Calls one tool, or refuses it, and writes down both the call and its result.
pub(super) async fn execute(
    context: &mut TrialContext,
    toolbox: &mut Toolbox,
    call: &ToolCall,
    refusal: Option<String>,
) -> Result<Ran, End> {
    context.trajectory.tool_call(call);
    let ran = match refusal {
        Some(complaint) => Ran::refused(complaint),
        None => toolbox.call(call, context).await?,
    };
    let state = keep_state(context).await;
    context.trajectory.tool_result(call, &ran.outcome(state));
    Ok(ran)
}

/// Keeps the workspace as it is, when that is asked for. A state that cannot be kept is noted; the work goes on.
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

impl Tally {
    /// The limit that forbids another call of the model.
    fn limit(&self, context: &TrialContext) -> Option<Limit> {
        let parameters = &context.agent.parameters;
        let reached = |used: u64, most: Option<u64>| most.is_some_and(|most| used >= most);
        if context.time_left().is_zero() {
            Some(Limit::Time)
        } else if reached(self.input_tokens, parameters.max_input_tokens)
            || reached(self.all_tokens, parameters.max_total_tokens)
        {
            Some(Limit::Tokens)
        } else {
            None
        }
    }

    /// Counts what a call took, attempts that failed included. What nobody counted counts as much as it can be.
    fn count(&mut self, request: &Request, called: &Called) {
        for event in &called.events {
            let (usage, at_most) = match event {
                CallEvent::Answered { usage, tokens_at_most, .. } => (*usage, *tokens_at_most),
                CallEvent::Failed { charged: Some(charged), .. } => (charged.usage, Some(charged.tokens)),
                _ => continue,
            };
            let (input, all) = match (usage, at_most) {
                (Some(usage), _) => (usage.all_input(), usage.total()),
                (None, Some(tokens)) => {
                    (tokens.saturating_sub(request.sampling.output_limit().into()), tokens)
                }
                (None, None) => {
                    let bytes = serde_json::to_vec(&request.messages).map_or(0, |text| text.len() as u64);
                    (bytes / 4, bytes / 4)
                }
            };
            self.input_tokens = self.input_tokens.saturating_add(input);
            self.all_tokens = self.all_tokens.saturating_add(all);
        }
    }
}

/// Gives a name to every call that has none or shares one: results are told apart by it.
pub fn name_calls(reply: &mut Reply, turn: u32) {
    let mut seen: Vec<String> = Vec::new();
    for (index, part) in reply.parts.iter_mut().enumerate() {
        if let Part::ToolCall(call) = part {
            if call.id.is_empty() || seen.contains(&call.id) {
                call.id = format!("call_{turn}_{}", index + 1);
            }
            seen.push(call.id.clone());
        }
    }
}
