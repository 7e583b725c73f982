//! Reading never panics, whatever the input; and what is written reads back unchanged.

use std::io::BufReader;
use std::path::Path;

use aec_ledger::transcript::chat::{Message, Role};
use aec_ledger::transcript::lines as event_lines;
use aec_model::message::ToolCall;
use aec_prime::rollouts::conversation::{conversation_lines, events};
use aec_prime::rollouts::message::read_messages;
use aec_prime::rollouts::rows::Rows;
use aec_prime::rollouts::run::Run;
use aec_prime::rollouts::{json, outcome};
use proptest::prelude::*;
use serde_json::Value;

/// Keys that readers look for, so that they meet values of any type there.
const KEYS: [&str; 44] = [
    "prompt",
    "completion",
    "info",
    "task",
    "answer",
    "reward",
    "score",
    "metrics",
    "rewards",
    "weight",
    "timing",
    "generation",
    "start",
    "end",
    "error",
    "errors",
    "type",
    "traces",
    "nodes",
    "parent",
    "sampled",
    "message",
    "role",
    "content",
    "text",
    "tool_calls",
    "tool_call_id",
    "id",
    "name",
    "function",
    "arguments",
    "tool_defs",
    "calls",
    "usage",
    "cost",
    "samples",
    "data",
    "env",
    "taskset",
    "agent",
    "config",
    "stop_condition",
    "idx",
    "path",
];

fn any_json() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "assistant",
        "tool",
        "user",
        "submit_answer",
        "has_final_env_response",
        "max_turns_reached",
        "image_url",
        "{",
        "[1]",
        "{\"name\": \"f\"}",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        words.prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        let key = prop::sample::select(KEYS.to_vec()).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Reads bytes in both forms, and converts every rollout completely.
fn read_all(bytes: &[u8]) -> usize {
    let name = Path::new("any");
    let lines = Rows::lines(BufReader::with_capacity(7, bytes), name);
    let document = Rows::document(BufReader::with_capacity(7, bytes), name);
    let mut count = 0;
    for row in lines.chain(document) {
        for rollout in row.map(|row| row.rollouts).unwrap_or_default() {
            count += 1;
            assert!(rollout.prompt().len() + rollout.completion().len() == rollout.messages.len());
            let _ =
                event_lines(&events(&rollout)).len() + outcome::agent_result(&rollout, &Run::default()).len();
            assert!(rollout.reward.is_none_or(f64::is_finite));
            assert!(rollout.submissions.len() <= rollout.tool_calls);
        }
    }
    count
}

fn any_message() -> impl Strategy<Value = Message> {
    let role = prop::sample::select(vec![Role::System, Role::User, Role::Assistant, Role::Tool]);
    let call = ("[a-z]{1,4}", "[a-z_]{1,8}", ".{0,20}").prop_map(|(id, name, arguments)| ToolCall {
        id,
        name,
        arguments,
    });
    let calls = prop::collection::vec(call, 0..3);
    (role, ".{0,40}", prop::option::of(".{1,20}"), calls, "[a-z]{1,4}").prop_map(
        |(role, text, reasoning, calls, id)| Message {
            role,
            text,
            reasoning,
            tool_calls: calls,
            tool_call_id: (role == Role::Tool).then_some(id),
            ..Message::default()
        },
    )
}

proptest! {
    #[test]
    fn any_json_is_read_without_panic(value in any_json()) {
        read_all(value.to_string().as_bytes());
        Run::from_metadata(&value);
        Run::from_config(&value);
        Run::from_evaluation(&value);
    }

    #[test]
    fn any_sample_is_a_rollout(completion in any_json(), info in any_json(), error in any_json()) {
        let row = serde_json::json!({"prompt": "q", "completion": completion, "info": info, "error": error});
        prop_assert_eq!(read_all(row.to_string().as_bytes()), 2);
    }

    #[test]
    fn any_trace_is_a_rollout(nodes in prop::collection::vec(any_json(), 0..6), calls in any_json()) {
        let row = serde_json::json!({"traces": [{"nodes": nodes, "calls": calls}]});
        prop_assert_eq!(read_all(row.to_string().as_bytes()), 2);
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_all(&bytes);
    }

    #[test]
    fn any_text_near_json_is_read_without_panic(text in r#"[\[\]{}",:\\a-u0-9 \n-]{0,80}"#) {
        read_all(text.as_bytes());
    }

    #[test]
    fn a_torn_page_loses_only_what_is_torn(cut in 0_usize..2000) {
        let sample = r#"{"example_id": 1, "prompt": "q \" ] }", "completion": [{"role": "assistant", "content": "a"}]}"#;
        let page = format!("{{\"samples\": [{sample}, {sample}, {sample}], \"total\": 3}}");
        let cut = cut.min(page.len());
        let rows: Vec<_> = Rows::document(&page.as_bytes()[..cut], Path::new("p")).collect();
        let whole = (0..3).filter(|at| 13 + (at + 1) * (sample.len() + 2) - 2 <= cut).count();
        prop_assert_eq!(rows.iter().filter(|row| row.is_ok()).count(), whole);
        prop_assert_eq!(rows.iter().filter(|row| row.is_err()).count(), usize::from(cut > 0 && cut < page.len()));
    }

    #[test]
    fn what_python_escapes_reads_as_it_was(text in ".{0,40}") {
        let mut escaped = String::from("{\"prompt\": \"");
        for unit in text.encode_utf16() {
            escaped.push_str(&format!("\\u{unit:04x}"));
        }
        escaped.push_str("\", \"reward\": NaN}");
        let parsed = json::parse(escaped.as_bytes()).unwrap();
        prop_assert_eq!(parsed.value["prompt"].as_str(), Some(text.as_str()));
        prop_assert_eq!(parsed.notes.len(), 1);
    }

    #[test]
    fn a_conversation_reads_as_it_was(messages in prop::collection::vec(any_message(), 0..8)) {
        let lines = conversation_lines(&messages);
        let values: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut notes = Vec::new();
        let read = read_messages(Value::from(values), Role::User, &mut notes);
        prop_assert_eq!(&read, &messages);
        prop_assert_eq!(notes, []);
        prop_assert_eq!(conversation_lines(&read), lines);
    }
}
