//! The loop of turns: a model calls tools until it finishes or reaches a limit. `tool_loop` and the native executor of
//! evaluations both run it, so only this module decides what a turn is, what ends the work and how late calls end.

use std::time::{Duration, Instant};

use aec_judge::settle::order::{Submitted, last_word};
use aec_model::client::Called;
use aec_model::event::CallEvent;
use aec_model::failure::{Failure, FailureKind};
use aec_model::message::{Message, Part, Reply, Request, Role, Stop, ToolCall};

use super::tools::{Action, Allowed, Ran, SUBMIT, Toolset};
use super::{End, GRACE, Limit, model_end};
use crate::workspace::Workspace;

/// The result of a call that comes after the agent's time.
const TIME_IS_UP: &str = "your time is up; this call was not carried out";

/// The surroundings of the loop: it calls the model, has the workspace and records what happens.
pub trait Host: Send {
    fn ask(&mut self, request: &Request) -> impl Future<Output = Called> + Send;

    /// Receives a reply, in which each call has a unique id.
    fn hear(&mut self, reply: &Reply);

    /// The workspace, opened on first use.
    fn workspace(&mut self) -> impl Future<Output = Result<Workspace, End>> + Send;

    fn time_left(&self) -> Duration;

    /// Receives a call before it is executed or refused.
    fn begin_call(&mut self, call: &ToolCall);

    /// Receives the result of a call.
    fn end_call(&mut self, call: &ToolCall, ran: &Ran) -> impl Future<Output = ()> + Send;
}

/// The limits of the work, apart from its time.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub turns: u32,
    pub tool_calls: Option<u32>,
    pub input_tokens: Option<u64>,
    pub total_tokens: Option<u64>,
}

/// The result of the loop and its usage.
#[derive(Debug, Default)]
pub struct Turns {
    /// Model calls, including a failed last one.
    pub taken: u32,
    /// Executed tool calls, except submissions.
    pub tool_calls: u32,
    pub submitted: Option<Submitted>,
    /// The text with which the model ended the work by itself.
    pub final_text: Option<String>,
    /// Whether that text was cut by the limit of output tokens.
    pub is_cut: bool,
    /// The model as the provider names it.
    pub model: Option<String>,
    input_tokens: u64,
    all_tokens: u64,
}

/// Runs the model on `request`, to which the conversation is added.
pub async fn take<H: Host>(
    host: &mut H,
    toolbox: &mut Toolbox<'_>,
    request: &mut Request,
    bounds: &Bounds,
) -> (End, Turns) {
    let mut turns = Turns::default();
    let end = turns.take(host, toolbox, request, bounds).await;
    (end, turns)
}

impl Turns {
    async fn take<H: Host>(
        &mut self,
        host: &mut H,
        toolbox: &mut Toolbox<'_>,
        request: &mut Request,
        bounds: &Bounds,
    ) -> End {
        let mut is_answered = false;
        while self.taken < bounds.turns {
            if let Some(limit) = self.limit(bounds, host.time_left()) {
                return End::Limit(limit);
            }
            let called = host.ask(request).await;
            self.taken += 1;
            self.count(request, &called);
            let mut reply = match called.outcome {
                Ok(reply) => reply,
                // The first request was fine, so the provider refuses what the agent made of it.
                Err(failure) if is_answered && is_refusal(&failure) => return End::Refused(failure.message),
                Err(failure) => return model_end(failure, host.time_left()),
            };
            is_answered = true;
            self.model = reply.model.take().or_else(|| self.model.take());
            name_calls(&mut reply, self.taken);
            host.hear(&reply);
            let calls: Vec<ToolCall> = reply.tool_calls().cloned().collect();
            if calls.is_empty() {
                self.final_text = last_word(&reply.text(), false).map(str::to_owned);
                self.is_cut = self.final_text.is_some() && reply.stop == Stop::Length;
                return End::Done;
            }
            request.messages.push(reply.into_message());
            match self.work(host, toolbox, &calls, bounds).await {
                Ok((results, None)) => request.messages.push(Message { role: Role::User, parts: results }),
                Ok((_, Some(end))) | Err(end) => return end,
            }
        }
        End::Limit(Limit::Turns)
    }

    /// Executes all calls of a turn, in order. Returns their results, and the end if this was the last turn.
    async fn work<H: Host>(
        &mut self,
        host: &mut H,
        toolbox: &mut Toolbox<'_>,
        calls: &[ToolCall],
        bounds: &Bounds,
    ) -> Result<(Vec<Part>, Option<End>), End> {
        let most = bounds.tool_calls.unwrap_or(u32::MAX);
        let mut results = Vec::with_capacity(calls.len());
        let mut limit = None;
        for call in calls {
            let refusal = if host.time_left().is_zero() {
                limit = Some(Limit::Time);
                Some(TIME_IS_UP.to_owned())
            } else if call.name == SUBMIT {
                // Within its time an agent can always submit: that costs nothing and ends the work.
                None
            } else if self.tool_calls >= most {
                limit = limit.or(Some(Limit::ToolCalls));
                Some(format!(
                    "this call was not carried out: more than {most} calls of tools are not allowed"
                ))
            } else {
                self.tool_calls += 1;
                None
            };
            let mut ran = toolbox.call(host, call, refusal).await?;
            if let Some(answer) = ran.submitted.take() {
                self.submitted = Some(answer);
            }
            results.push(ran.part(&call.id));
        }
        let end = match (&self.submitted, limit) {
            (Some(_), _) => Some(End::Done),
            (None, Some(limit)) => Some(End::Limit(limit)),
            (None, None) => None,
        };
        Ok((results, end))
    }

    /// The limit that forbids another model call.
    fn limit(&self, bounds: &Bounds, time_left: Duration) -> Option<Limit> {
        let reached = |used: u64, most: Option<u64>| most.is_some_and(|most| used >= most);
        if time_left.is_zero() {
            Some(Limit::Time)
        } else if reached(self.input_tokens, bounds.input_tokens)
            || reached(self.all_tokens, bounds.total_tokens)
        {
            Some(Limit::Tokens)
        } else {
            None
        }
    }

    /// Counts the usage of a call, including failed attempts. Unknown usage counts at its upper bound.
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

/// The tools of one agent at one task, in use.
pub struct Toolbox<'a> {
    set: &'a Toolset,
    allowed: Allowed,
    /// Calls so far, which number the outputs.
    calls: u32,
}

impl<'a> Toolbox<'a> {
    pub fn new(set: &'a Toolset, allowed: Allowed) -> Self {
        Self { set, allowed, calls: 0 }
    }

    /// Calls a tool, or refuses the call; the host receives both the call and its result. Only a lost sandbox is an
    /// error.
    pub async fn call<H: Host>(
        &mut self,
        host: &mut H,
        call: &ToolCall,
        refusal: Option<String>,
    ) -> Result<Ran, End> {
        self.calls += 1;
        host.begin_call(call);
        let started = Instant::now();
        let read = refusal.map_or_else(|| self.set.read(call), Err);
        let mut ran = match read {
            // No sandbox is opened for it.
            Ok(Action::Submit { content, path: None }) => {
                Ran::submission(Submitted::Content(content.into_bytes()))
            }
            Ok(action) => {
                let workspace = host.workspace().await?;
                let left = host.time_left();
                let allowed = Allowed { time: self.allowed.time.min(left), ..self.allowed };
                let carried_out = action.carry_out(&workspace, self.calls, &allowed);
                match tokio::time::timeout(left.saturating_add(GRACE), carried_out).await {
                    Ok(ran) => ran?,
                    // Whatever the tool waits for, the agent's time is over.
                    Err(_) => {
                        workspace.stop();
                        return Err(End::Limit(Limit::Time));
                    }
                }
            }
            Err(complaint) => Ran::refused(complaint),
        };
        if ran.duration.is_zero() {
            ran.duration = started.elapsed();
        }
        host.end_call(call, &ran).await;
        Ok(ran)
    }
}

/// Whether the provider refused the request itself, and would refuse it again.
fn is_refusal(failure: &Failure) -> bool {
    failure.kind == FailureKind::Request && !failure.retryable
}

/// Gives every call a unique id, if it has none or shares one: ids match results to calls.
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
