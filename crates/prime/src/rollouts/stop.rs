//! What ended a rollout: the writer's word for it, and one word for all writers.

use serde::Serialize;

/// What ended a rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    /// The writer's word, if it gave one.
    pub given: Option<String>,
    /// What it means.
    pub kind: StopKind,
}

/// What ended a rollout, in one word for all writers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StopKind {
    /// The work was done: the environment gave its final response, or the only answer that was asked for was given.
    Completed,
    /// The model called no tool any more.
    NoToolsCalled,
    /// The model might take no more turns.
    TurnLimit,
    /// The model might take no more tokens.
    TokenLimit,
    /// The conversation did not fit into the model.
    PromptTooLong,
    /// The time was over.
    Timeout,
    Error,
    /// Something that only the environment knows.
    Other,
    /// Nobody said.
    #[default]
    Unknown,
}

impl StopKind {
    /// What a writer's word means, whatever happened in the rollout.
    pub fn read(word: &str) -> Self {
        match word {
            "has_final_env_response"
            | "final_env_response"
            | "agent_completed"
            | "completed"
            | "submitted" => Self::Completed,
            "no_tools_called" => Self::NoToolsCalled,
            "max_turns_reached" | "max_turns" => Self::TurnLimit,
            "max_total_completion_tokens_reached"
            | "max_input_tokens"
            | "max_output_tokens"
            | "max_total_tokens"
            | "token_budget_reached" => Self::TokenLimit,
            "prompt_too_long" => Self::PromptTooLong,
            "timeout_reached" | "timeout" => Self::Timeout,
            "has_error" | "error" => Self::Error,
            word if word.ends_with("_timeout") => Self::Timeout,
            word if word.ends_with("_error") => Self::Error,
            _ => Self::Other,
        }
    }
}
