//! Conversations of the ledger as data to train on. Tasks that are held out are never included.

use aec_base::content::ContentStore;
use aec_ledger::record::TrialRecord;
use aec_ledger::transcript::chat::{Message, Role};
use aec_ledger::transcript::{self, messages};
use serde_json::{Map, Value};

use crate::rollouts::training::Example;

#[derive(Clone, Debug)]
pub struct Conversation {
    task_id: String,
    trial_id: String,
    reward: Option<f64>,
    messages: Vec<Message>,
    prompt_messages: usize,
    metadata: Map<String, Value>,
}

/// Why a trial cannot be used for training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// Its task is held out, or is not marked as public.
    NotPublic,
    NoConversation,
}

impl Conversation {
    pub fn read(record: &TrialRecord, contents: &ContentStore) -> Result<Self, Unfit> {
        if record.task.visibility.as_deref() != Some("public") {
            return Err(Unfit::NotPublic);
        }
        let messages = messages(&transcript::of_record(record, contents).ok_or(Unfit::NoConversation)?);
        let prompt_messages = messages.iter().take_while(|message| message.role != Role::Assistant).count();
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

    /// The conversation as an example. Its calls tell which tools there were.
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
