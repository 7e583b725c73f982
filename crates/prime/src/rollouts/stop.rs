//! What ended a rollout: the writer's word for it, and a common one for all writers.

use serde::Serialize;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    /// The writer's word, if it gave one.
    pub given: Option<String>,
    pub kind: StopKind,
}

/// What ended a rollout, in terms common to all writers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StopKind {
    /// The work was done: the environment gave its final response, or the model gave its only answer.
    Completed,
    /// The model stopped calling tools.
    NoToolsCalled,
    TurnLimit,
    TokenLimit,
    /// The conversation did not fit into the model's context.
    PromptTooLong,
    Timeout,
    Error,
    /// A reason specific to the environment.
    Other,
    /// The writer did not tell.
    #[default]
    Unknown,
}

impl StopKind {
    /// The meaning of a writer's word, whatever happened in the rollout.
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
