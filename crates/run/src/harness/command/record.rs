//! Writes a program's conversation with its model into the trajectory, in the form that our own harnesses use.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use aec_base::digest::Digest;
use aec_model::failure::Failure;
use aec_model::message::{Message, Part, Reply, Request, Role, ToolCall, join_text};
use serde_json::Map;

use crate::harness::TrialContext;
use crate::harness::tools::cut_text;
use crate::trajectory::{ToolOutcome, Trajectory};

/// Bytes of one message to write.
const LONGEST: usize = 50_000;
/// Bytes of all messages together: a program must not fill the disk.
const MOST: usize = 16 * 1024 * 1024;

/// The conversation of a program.
pub(super) struct Record {
    trajectory: Trajectory,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Messages that are already written: programs send all of them with each call.
    seen: HashSet<Digest>,
    /// Tools by the ids of their calls.
    tools: HashMap<String, String>,
    calls: u32,
    model: Option<String>,
    last_failure: Option<Failure>,
    written: usize,
}

impl Record {
    /// Starts with the prompt as already written.
    pub(super) fn new(context: &TrialContext) -> Self {
        let mut state = State::default();
        state.is_new(&Message::text(Role::User, context.task.instruction.clone()));
        if let Some(system) = &context.agent.system_prompt {
            state.is_new(&Message::text(Role::System, system.clone()));
        }
        Self { trajectory: context.trajectory.clone(), state: Mutex::new(state) }
    }

    /// Writes a call: new messages of the request, then the answer.
    pub(super) fn call(&self, request: &Request, outcome: &Result<Reply, Failure>) {
        let mut state = self.state();
        state.calls += 1;
        for message in &request.messages {
            if message.role != Role::Assistant
                && state.is_new(message)
                && state.may_write(message, &self.trajectory)
            {
                self.message(message, &state.tools);
            }
        }
        match outcome {
            Err(failure) => state.last_failure = Some(failure.clone()),
            Ok(reply) => {
                state.last_failure = None;
                state.model = reply.model.clone().or_else(|| state.model.take());
                self.trajectory.next_step();
                self.trajectory.assistant(reply);
                for call in reply.tool_calls() {
                    self.trajectory.tool_call(call);
                    state.tools.insert(call.id.clone(), call.name.clone());
                }
            }
        }
    }

    fn message(&self, message: &Message, tools: &HashMap<String, String>) {
        let text = cut_text(&message.joined_text(), LONGEST);
        if !text.is_empty() {
            match message.role {
                Role::System => self.trajectory.system(&text),
                _ => self.trajectory.user(&text),
            }
        }
        for part in &message.parts {
            if let Part::ToolResult { call_id, parts, .. } = part {
                let call = ToolCall {
                    id: call_id.clone(),
                    name: tools.get(call_id).cloned().unwrap_or_default(),
                    arguments: String::new(),
                };
                let told = cut_text(&join_text(parts), LONGEST);
                let outcome = ToolOutcome { stdout: told.clone(), told, ..ToolOutcome::default() };
                self.trajectory.tool_result(&call, &outcome);
            }
        }
    }

    pub(super) fn calls(&self) -> u32 {
        self.state().calls
    }

    /// The model as the provider names it.
    pub(super) fn model(&self) -> Option<String> {
        self.state().model.clone()
    }

    pub(super) fn last_failure(&self) -> Option<Failure> {
        self.state().last_failure.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_new(&mut self, message: &Message) -> bool {
        let digest = Digest::of(&serde_json::to_vec(message).unwrap_or_default());
        self.seen.insert(digest)
    }

    /// Whether another message may be written; notes once when none may.
    fn may_write(&mut self, message: &Message, trajectory: &Trajectory) -> bool {
        if self.written > MOST {
            return false;
        }
        let size: usize = message.parts.iter().map(part_size).sum();
        self.written += size;
        if self.written > MOST {
            trajectory.note("the program says more than is written down", Map::new());
        }
        self.written <= MOST
    }
}

fn part_size(part: &Part) -> usize {
    match part {
        Part::Text { text } | Part::Reasoning { text, .. } => text.len().min(LONGEST),
        Part::ToolResult { parts, .. } => parts.iter().map(part_size).sum::<usize>() + 64,
        _ => 64,
    }
}
