//! Conversations of the ledger as data to train on. What is held out is never among them.

use aec_base::content::ContentStore;
use aec_ledger::record::TrialRecord;
use aec_report::trace::events;
use aec_run::conversation::returned;
use aec_run::trajectory::{Event, EventRole};
use serde_json::{Map, Value};

use crate::rollouts::message::{Message, Role, ToolCall};
use crate::rollouts::training::Example;

/// The conversation of a trial, and what it earned.
#[derive(Clone, Debug)]
pub struct Conversation {
    task_id: String,
    trial_id: String,
    reward: Option<f64>,
    messages: Vec<Message>,
    prompt_messages: usize,
    metadata: Map<String, Value>,
}

/// Why a trial is no data to train on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// Its task is held out, or does not say that it is public.
    NotPublic,
    /// Its conversation cannot be read.
    NoConversation,
}

impl Conversation {
    /// Reads the conversation of a trial.
    pub fn read(record: &TrialRecord, contents: &ContentStore) -> Result<Self, Unfit> {
        if record.task.visibility.as_deref() != Some("public") {
            return Err(Unfit::NotPublic);
        }
        let events = events(record, contents).ok_or(Unfit::NoConversation)?;
        let (messages, prompt_messages) = messages(&events);
        let mut metadata = Map::new();
        let mut put = |key: &str, value: Value| drop(metadata.insert(key.to_owned(), value));
        put("experiment_id", record.experiment_id.as_str().into());
        put("task_revision", record.task.task_revision.to_string().into());
        put("agent", record.agent.name.as_str().into());
        put("model", record.agent.model.clone().into());
        Ok(Self {
            task_id: record.task.task_id.clone(),
            trial_id: record.trial_id.as_str().to_owned(),
            reward: record.reward(),
            messages,
            prompt_messages,
            metadata,
        })
    }

    /// The conversation as an example. Which tools there were is told by its calls.
    pub fn example(&self) -> Example<'_> {
        Example {
            task_id: &self.task_id,
            trial_id: &self.trial_id,
            reward: self.reward,
            messages: &self.messages,
            prompt_messages: self.prompt_messages,
            tools: &[],
            metadata: &self.metadata,
        }
    }
}

/// The messages of a trajectory, and how many of them are the prompt.
fn messages(events: &[Event]) -> (Vec<Message>, usize) {
    let mut messages: Vec<Message> = Vec::new();
    for event in events {
        let said = || event.content.clone().unwrap_or_default();
        match event.role {
            EventRole::System => {
                messages.push(Message { role: Role::System, text: said(), ..Message::default() });
            }
            EventRole::User => {
                messages.push(Message { role: Role::User, text: said(), ..Message::default() });
            }
            EventRole::Assistant => messages.push(Message {
                role: Role::Assistant,
                text: said(),
                reasoning: event.reasoning.clone(),
                ..Message::default()
            }),
            EventRole::ToolCall => {
                if messages.last().is_none_or(|last| last.role != Role::Assistant) {
                    messages.push(Message { role: Role::Assistant, ..Message::default() });
                }
                if let Some(last) = messages.last_mut() {
                    last.tool_calls.push(called(event));
                }
            }
            EventRole::ToolResult => messages.push(Message {
                role: Role::Tool,
                text: returned(event),
                tool_call_id: event.tool_call_id.clone(),
                ..Message::default()
            }),
            EventRole::ModelCall | EventRole::Note => {}
        }
    }
    let prompt = messages.iter().take_while(|message| message.role != Role::Assistant).count();
    (messages, prompt)
}

fn called(event: &Event) -> ToolCall {
    let arguments = match &event.arguments {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    ToolCall::new(text(&event.tool_call_id), text(&event.tool_name), arguments)
}
