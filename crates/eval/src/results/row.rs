//! One rollout as one line of `results.jsonl`.
//!
//! The fields are those of verifiers 0.1.14 in its order. They are followed by `rollout_number`, the number of the
//! rollout within its example, and by `attempt` if it was run again after an error.
//!
//! Of the columns that the manual calls default, `completion`, `reward` and `error` are always present. `query` and
//! `expected_answer` are contained in `prompt` and `answer`; `-C` adds them as separate columns.

use std::sync::Arc;

use aec_base::json::{push_line, push_text};
use aec_base::problem::Problem;
use aec_ledger::transcript::chat::Message;
use serde_json::value::RawValue;

use crate::results::facts::{RowFacts, tool_names};
use crate::results::json::{push_key, push_number, push_raw, push_whole};
use crate::results::message;
use crate::results::number::Finite;
use crate::results::timing::Timing;

/// The fields of a row itself. No metric or state column overwrites them.
const OWN_KEYS: [&str; 18] = [
    "example_id",
    "prompt",
    "completion",
    "answer",
    "info",
    "reward",
    "error",
    "timing",
    "is_completed",
    "is_truncated",
    "stop_condition",
    "metrics",
    "tool_defs",
    "token_usage",
    "error_chain",
    "long_error_chain",
    "rollout_number",
    "attempt",
];

/// Why a rollout has no proper result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowError {
    /// The class of the error, such as `EmptyModelResponseError`.
    pub class: String,
    /// The chain of errors with their messages.
    pub chain: String,
    /// The chain of classes, joined by ` -> `.
    pub classes: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenUsage {
    /// Tokens read by the model, summed over all requests.
    pub input_tokens: u64,
    /// Tokens written by the model, summed over all requests.
    pub output_tokens: u64,
    /// Tokens in the conversation that the model wrote.
    pub final_output_tokens: u64,
    /// All other tokens of the conversation at its end.
    pub final_input_tokens: u64,
}

/// Tools that a model can call, as raw JSON that all rows share.
#[derive(Clone, Debug)]
pub struct ToolDefs {
    json: Arc<RawValue>,
    names: Arc<[Box<str>]>,
}

impl ToolDefs {
    /// From a list of `name`, `description` and `parameters`.
    pub fn new(json: Arc<RawValue>) -> Self {
        Self { names: tool_names(&json).into(), json }
    }

    pub fn names(&self) -> &Arc<[Box<str>]> {
        &self.names
    }
}

/// One rollout. Values that many rows share are raw JSON.
#[derive(Clone, Debug)]
pub struct RolloutRow {
    pub example_id: i64,
    /// Which rollout of its example it is, counted from 0.
    pub rollout_number: u32,
    /// 1, or more if it was run again after an error; then it replaces the earlier row.
    pub attempt: u32,
    /// Messages before the rollout.
    pub prompt: Arc<RawValue>,
    /// Messages of the rollout.
    pub completion: Vec<Message>,
    /// An empty one is not written.
    pub answer: Option<Arc<str>>,
    /// Further data of the example. An empty object is not written.
    pub info: Option<Arc<RawValue>>,
    pub reward: Finite,
    pub error: Option<RowError>,
    pub timing: Timing,
    pub is_completed: bool,
    /// Whether a limit cut the model off.
    pub is_truncated: bool,
    pub stop_condition: Option<Arc<str>>,
    /// Metrics, each name once. All except those named like a field of the row are also written beside `metrics`.
    pub metrics: Vec<(Arc<str>, Finite)>,
    pub tool_defs: ToolDefs,
    /// Absent if the service did not report tokens.
    pub token_usage: Option<TokenUsage>,
    /// State columns. One with the name of a field of the row or of a metric is not written.
    pub columns: Vec<(Arc<str>, Arc<RawValue>)>,
}

impl RolloutRow {
    /// Appends the row as one line with its line break.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_example(out);
        self.write_outcome(out);
        self.write_columns(out);
        push_number_keys(out, self.rollout_number, self.attempt);
        out.extend_from_slice(b"}\n");
    }

    fn write_example(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"example_id\":");
        push_whole(out, self.example_id);
        push_key(out, "prompt");
        push_raw(out, &self.prompt);
        push_key(out, "completion");
        out.push(b'[');
        for (index, message) in self.completion.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            message::write(message, out);
        }
        out.push(b']');
        if let Some(answer) = self.answer.as_deref().filter(|answer| !answer.is_empty()) {
            push_key(out, "answer");
            push_text(out, answer);
        }
        if let Some(info) = self.info.as_deref().filter(|info| !is_empty(info)) {
            push_key(out, "info");
            push_raw(out, info);
        }
    }

    fn write_outcome(&self, out: &mut Vec<u8>) {
        push_key(out, "reward");
        push_number(out, self.reward);
        push_key(out, "error");
        match &self.error {
            None => out.extend_from_slice(b"null"),
            Some(error) => {
                out.extend_from_slice(b"{\"error\":");
                push_text(out, &error.class);
                push_key(out, "error_chain_repr");
                push_text(out, &error.chain);
                push_key(out, "error_chain_str");
                push_text(out, &error.classes);
                out.push(b'}');
            }
        }
        push_key(out, "timing");
        self.timing.write(out);
        for (key, value) in [("is_completed", self.is_completed), ("is_truncated", self.is_truncated)] {
            push_key(out, key);
            out.extend_from_slice(if value { b"true" } else { b"false" });
        }
        push_key(out, "stop_condition");
        match &self.stop_condition {
            None => out.extend_from_slice(b"null"),
            Some(condition) => push_text(out, condition),
        }
        push_key(out, "metrics");
        out.push(b'{');
        for (index, (name, value)) in self.metrics.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            push_text(out, name);
            out.push(b':');
            push_number(out, *value);
        }
        out.push(b'}');
        push_key(out, "tool_defs");
        push_raw(out, &self.tool_defs.json);
        if let Some(usage) = self.token_usage {
            write_usage(out, usage);
        }
    }

    fn write_columns(&self, out: &mut Vec<u8>) {
        if let Some(error) = &self.error {
            push_key(out, "error_chain");
            push_text(out, &error.chain);
            push_key(out, "long_error_chain");
            push_text(out, &error.classes);
        }
        for (name, value) in &self.metrics {
            if !OWN_KEYS.contains(&&**name) {
                push_key(out, name);
                push_number(out, *value);
            }
        }
        for (index, (name, value)) in self.columns.iter().enumerate() {
            let is_there = OWN_KEYS.contains(&&**name)
                || self.metrics.iter().any(|(metric, _)| metric == name)
                || self.columns[..index].iter().any(|(earlier, _)| earlier == name);
            if !is_there {
                push_key(out, name);
                push_raw(out, value);
            }
        }
    }
}

fn write_usage(out: &mut Vec<u8>, usage: TokenUsage) {
    push_key(out, "token_usage");
    out.extend_from_slice(b"{\"input_tokens\":");
    push_whole(out, usage.input_tokens);
    // Verifiers sums these two as floats.
    out.extend_from_slice(b".0,\"output_tokens\":");
    push_whole(out, usage.output_tokens);
    out.extend_from_slice(b".0,\"final_output_tokens\":");
    push_whole(out, usage.final_output_tokens);
    push_key(out, "final_input_tokens");
    push_whole(out, usage.final_input_tokens);
    out.push(b'}');
}

fn push_number_keys(out: &mut Vec<u8>, rollout_number: u32, attempt: u32) {
    push_key(out, "rollout_number");
    push_whole(out, rollout_number);
    if attempt > 1 {
        push_key(out, "attempt");
        push_whole(out, attempt);
    }
}

fn is_empty(object: &RawValue) -> bool {
    object.get().bytes().filter(|byte| !byte.is_ascii_whitespace()).eq(*b"{}")
}

/// Adopts a row that another program, such as a Python worker, wrote as one JSON object: appends it as a line with its
/// numbers, and returns the facts for aggregates. `NaN`, `Infinity` and lone surrogates are corrected.
pub fn adopt(row: &[u8], rollout_number: u32, attempt: u32, out: &mut Vec<u8>) -> Result<RowFacts, Problem> {
    let read = crate::results::facts::read(row)?;
    let mut facts = read.facts;
    facts.rollout_number = Some(rollout_number);
    facts.attempt = attempt;
    // The object was parsed, so its last non-blank character is its closing brace.
    let text = read.text.trim_end();
    push_line(out, text.strip_suffix('}').unwrap_or(text).trim());
    // Our keys come last, and the last of two equal keys wins.
    push_number_keys(out, rollout_number, attempt);
    out.extend_from_slice(b"}\n");
    Ok(facts)
}

/// Columns that the user can request besides those of the state: `query`, the text of the prompt's last user message,
/// and `expected_answer`, the answer. They are the same for all rows of an example, so they are made once.
pub fn example_column(name: &str, prompt: &RawValue, answer: Option<&str>) -> Option<Arc<RawValue>> {
    let text = match name {
        "query" => crate::results::value::query(prompt)?,
        "expected_answer" => answer?.to_owned(),
        _ => return None,
    };
    serde_json::value::to_raw_value(&text).ok().map(Arc::from)
}
