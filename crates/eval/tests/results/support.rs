//! Rows and runs for tests.

use std::path::PathBuf;
use std::sync::Arc;

use aec_base::timestamp::Timestamp;
use aec_eval::results::facts::RowFacts;
use aec_eval::results::metadata::{Description, VersionInfo};
use aec_eval::results::number::Finite;
use aec_eval::results::row::{RolloutRow, RowError, TokenUsage, ToolDefs};
use aec_eval::results::till::Till;
use aec_eval::results::timing::{Span, Timing};
use aec_eval::results::writer::ReadyRow;
use aec_ledger::transcript::chat::{Message, Role};
use serde_json::value::RawValue;
use serde_json::{Map, json};

/// A directory of the samples that verifiers 0.1.14 wrote.
pub(crate) fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../prime/tests/rollouts/fixtures/v014").join(name)
}

pub(crate) fn fixtures() -> Vec<PathBuf> {
    let mut found: Vec<_> =
        std::fs::read_dir(fixture("")).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    assert_eq!(found.len(), 16);
    found
}

pub(crate) fn raw(json: &str) -> Arc<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap().into()
}

pub(crate) fn finite(number: f64) -> Finite {
    Finite::new(number).unwrap()
}

pub(crate) fn span(start: f64, end: f64) -> Span {
    Span { start: finite(start), end: finite(end) }
}

pub(crate) fn row(example_id: i64, rollout_number: u32, reward: f64) -> RolloutRow {
    RolloutRow {
        example_id,
        rollout_number,
        attempt: 1,
        prompt: raw(&json!([{"role": "user", "content": format!("question {example_id}")}]).to_string()),
        completion: vec![Message::text(Role::Assistant, format!("answer \"{rollout_number}\"\n"))],
        answer: Some("42".into()),
        info: Some(raw(r#"{"difficulty":"easy"}"#)),
        reward: finite(reward),
        error: None,
        timing: Timing {
            start_time: finite(100.0),
            setup: span(100.0, 100.25),
            generation: span(100.0, 102.0),
            scoring: span(102.0, 102.5),
            model: vec![span(100.5, 101.0), span(101.0, 101.5)],
            env: vec![span(101.5, 101.75)],
        },
        is_completed: true,
        is_truncated: false,
        stop_condition: Some("max_turns_reached".into()),
        metrics: [("exact".into(), finite(reward)), ("num_turns".into(), finite(1.0))].into_iter().collect(),
        tool_defs: ToolDefs::new(raw("[]")),
        token_usage: Some(TokenUsage {
            input_tokens: 40,
            output_tokens: 2,
            final_output_tokens: 2,
            final_input_tokens: 40,
        }),
        columns: Vec::new(),
    }
}

pub(crate) fn errored(example_id: i64, rollout_number: u32) -> RolloutRow {
    RolloutRow {
        error: Some(RowError {
            class: "ModelError".to_owned(),
            chain: "ModelError('no') -> APIError('gone')".to_owned(),
            classes: "ModelError -> APIError".to_owned(),
        }),
        stop_condition: Some("has_error".into()),
        token_usage: None,
        ..row(example_id, rollout_number, 0.0)
    }
}

pub(crate) fn line(row: &RolloutRow) -> Vec<u8> {
    let mut line = Vec::new();
    row.write(&mut line);
    line
}

pub(crate) fn ready(row: &RolloutRow) -> ReadyRow {
    ReadyRow { line: line(row), facts: RowFacts::of(row).into() }
}

pub(crate) fn description(num_examples: u64, rollouts_per_example: u32) -> Description {
    let mut configuration = Map::new();
    configuration.insert("model".to_owned(), json!("some/model"));
    configuration.insert("num_examples".to_owned(), json!(num_examples));
    configuration.insert("env_args".to_owned(), json!({"difficulty": "hard"}));
    Description {
        env_id: "my-env".to_owned(),
        env_args: Map::new(),
        model: "some/model".to_owned(),
        base_url: "https://models.example/v1".to_owned(),
        num_examples,
        rollouts_per_example,
        sampling_args: Map::new(),
        pass_threshold: 0.5,
        version_info: VersionInfo::default(),
        state_columns: Vec::new(),
        tools: None,
        name: None,
        shuffle: false,
        shuffle_seed: None,
        till: Till::default(),
        date: Timestamp::from_seconds(1_800_000_000),
        configuration,
    }
}
