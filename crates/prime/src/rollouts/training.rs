//! Rows to train on, from conversations and rewards: examples to imitate, and pairs of a better and a worse answer.
//!
//! The rows have the shape that trainers of chat models read. The same input gives the same bytes, in any order.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use aec_ledger::transcript::chat::{ChatMessage, ChatTool, Message, Role, Thoughts};
use aec_model::message::Tool;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::rollouts::conversation::lines;

/// A conversation and its reward. It may come from a rollout or from one of our own trajectories.
#[derive(Clone, Copy, Debug)]
pub struct Example<'a> {
    pub task_id: &'a str,
    /// Names the conversation; unique within its task.
    pub trial_id: &'a str,
    pub reward: Option<f64>,
    /// The whole conversation: the prompt, then what followed.
    pub messages: &'a [Message],
    /// How many of the messages are the prompt.
    pub prompt_messages: usize,
    pub tools: &'a [Tool],
    /// Further data for the row.
    pub metadata: &'a Map<String, Value>,
}

impl<'a> Example<'a> {
    fn prompt(&self) -> &'a [Message] {
        self.messages.get(..self.prompt_messages).unwrap_or(self.messages)
    }

    fn completion(&self) -> &'a [Message] {
        self.messages.get(self.prompt_messages..).unwrap_or_default()
    }

    /// The reward, if there is something to learn from: a prompt, and an answer that is not empty.
    fn learnable(&self) -> Option<f64> {
        let is_answered =
            self.completion().iter().any(|message| message.role == Role::Assistant && !message.is_empty());
        self.reward.filter(|reward| reward.is_finite() && is_answered && !self.prompt().is_empty())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// One row per line.
    pub lines: String,
    pub rows: usize,
    /// Examples without a reward, a prompt or an answer.
    pub unusable: usize,
    /// Examples that are not in any row for another reason: their reward is too low, or they have no counterpart.
    pub left_out: usize,
}

#[derive(Serialize)]
struct ExampleRow<'a> {
    messages: Vec<ChatMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ChatTool<'a>>,
    metadata: Map<String, Value>,
}

/// Examples to imitate, for supervised fine-tuning: those with at least `min_reward`, sorted by task and trial.
pub fn sft(examples: &[Example<'_>], min_reward: f64, thoughts: Thoughts) -> Written {
    let mut written = Written::default();
    let mut rows = Vec::new();
    for example in sorted(examples) {
        match example.learnable() {
            None => written.unusable += 1,
            Some(reward) if reward < min_reward => written.left_out += 1,
            Some(reward) => {
                let mut metadata = example.metadata.clone();
                metadata.insert("task_id".to_owned(), example.task_id.into());
                metadata.insert("trial_id".to_owned(), example.trial_id.into());
                metadata.insert("reward".to_owned(), reward.into());
                metadata.sort_keys();
                rows.push(ExampleRow {
                    messages: ChatMessage::all(example.messages, thoughts),
                    tools: ChatTool::all(example.tools),
                    metadata,
                });
            }
        }
    }
    written.rows = rows.len();
    written.lines = lines(&rows);
    written
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pairing {
    /// Least difference between the rewards of a pair; the difference is above 0 in any case.
    pub min_gap: f64,
    /// Most pairs of one task.
    pub max_pairs: usize,
    /// Whether reasoning is written.
    pub thoughts: Thoughts,
}

#[derive(Serialize)]
struct PairRow<'a> {
    prompt: Vec<ChatMessage<'a>>,
    chosen: Vec<ChatMessage<'a>>,
    rejected: Vec<ChatMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ChatTool<'a>>,
    metadata: PairMetadata<'a>,
}

#[derive(Serialize)]
struct PairMetadata<'a> {
    chosen_reward: f64,
    chosen_trial_id: &'a str,
    rejected_reward: f64,
    rejected_trial_id: &'a str,
    task_id: &'a str,
}

/// Pairs of a better and a worse answer to the same prompt of the same task: the best with the worst, the second best
/// with the second worst, and so on. Of equal ones, the trial that comes first by name is the better one.
pub fn preferences(examples: &[Example<'_>], pairing: Pairing) -> Written {
    let mut written = Written::default();
    let mut groups: BTreeMap<(&str, String), Vec<(f64, Example<'_>)>> = BTreeMap::new();
    for example in sorted(examples) {
        match example.learnable() {
            None => written.unusable += 1,
            Some(reward) => {
                // A pair compares two answers to one prompt, so the prompts must be the same.
                let prompt = lines(&ChatMessage::all(example.prompt(), Thoughts::Kept));
                groups.entry((example.task_id, prompt)).or_default().push((reward, example));
            }
        }
    }
    let mut rows = Vec::new();
    let mut pairs_of_task: BTreeMap<&str, usize> = BTreeMap::new();
    for ((task_id, _), mut group) in groups {
        group.sort_by(|(one, _), (other, _)| other.partial_cmp(one).unwrap_or(Ordering::Equal));
        let pairs = pairs_of_task.entry(task_id).or_default();
        let before = *pairs;
        for ((best, chosen), (worst, rejected)) in group.iter().zip(group.iter().rev()).take(group.len() / 2)
        {
            let gap = best - worst;
            if *pairs >= pairing.max_pairs || gap <= 0.0 || gap < pairing.min_gap {
                break;
            }
            *pairs += 1;
            rows.push(PairRow {
                prompt: ChatMessage::all(chosen.prompt(), pairing.thoughts),
                chosen: ChatMessage::all(chosen.completion(), pairing.thoughts),
                rejected: ChatMessage::all(rejected.completion(), pairing.thoughts),
                tools: ChatTool::all(chosen.tools),
                metadata: PairMetadata {
                    chosen_reward: *best,
                    chosen_trial_id: chosen.trial_id,
                    rejected_reward: *worst,
                    rejected_trial_id: rejected.trial_id,
                    task_id,
                },
            });
        }
        written.left_out += group.len() - 2 * (*pairs - before);
    }
    written.rows = rows.len();
    written.lines = lines(&rows);
    written
}

fn sorted<'a>(examples: &[Example<'a>]) -> Vec<Example<'a>> {
    let mut sorted = examples.to_vec();
    sorted.sort_by_key(|example| (example.task_id, example.trial_id));
    sorted
}
