//! A rollout as events and as lines of a conversation.

use aec_ledger::transcript::lines as event_lines;
use aec_prime::rollouts::conversation::{conversation_lines, events};
use aec_prime::rollouts::json;
use aec_prime::rollouts::rollout::Rollout;
use aec_prime::rollouts::rows::rollouts;
use serde_json::{Value, json};

fn read(row: &Value) -> Rollout {
    rollouts(json::parse(row.to_string().as_bytes()).unwrap()).unwrap().remove(0)
}

fn example() -> Rollout {
    let call = |id: &str, name: &str, arguments: Value| {
        json!({"id": id, "name": name, "arguments": arguments}).to_string()
    };
    read(&json!({
        "prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}],
        "completion": [
            {"role": "assistant", "content": "", "reasoning_content": "t", "tool_calls": [
                call("a", "run_command", json!("{\"command\": \"ls\"}")), call("b", "read_file", json!("{oops")),
            ]},
            {"role": "tool", "tool_call_id": "b", "content": "Expecting value: line 1 column 1 (char 0)"},
            {"role": "tool", "tool_call_id": "a", "content": "{'exit_code': 2, 'stdout': 'x', 'stderr': 'no'}"},
            {"role": "user", "content": [{"type": "text", "text": "go on"}, {"type": "image_url", "image_url": {"url": "u"}}]},
            {"role": "assistant", "content": "done"},
        ],
        "error": {"error": "ModelError", "message": "gone"}, "stop_condition": "has_error",
    }))
}

#[test]
fn events_are_those_of_a_trajectory() {
    let expected = [
        r#"{"step":0,"role":"system","content":"s"}"#,
        r#"{"step":0,"role":"user","content":"q"}"#,
        r#"{"step":1,"role":"assistant","content":"","reasoning":"t"}"#,
        r#"{"step":1,"role":"tool_call","tool_name":"run_command","tool_call_id":"a","command":"ls","arguments":{"command":"ls"}}"#,
        r#"{"step":1,"role":"tool_call","tool_name":"read_file","tool_call_id":"b","arguments":"{oops"}"#,
        r#"{"step":1,"role":"tool_result","tool_name":"read_file","tool_call_id":"b","stdout":"Expecting value: line 1 column 1 (char 0)","stderr":"","metadata":{"is_error":true}}"#,
        r#"{"step":1,"role":"tool_result","content":"{'exit_code': 2, 'stdout': 'x', 'stderr': 'no'}","tool_name":"run_command","tool_call_id":"a","stdout":"x","stderr":"no","exit_code":2}"#,
        r#"{"step":1,"role":"user","content":"go on\n[image 1]","metadata":{"images":1}}"#,
        r#"{"step":2,"role":"assistant","content":"done"}"#,
        r#"{"step":2,"role":"note","content":"ModelError: gone"}"#,
    ];
    assert_eq!(event_lines(&events(&example())).lines().collect::<Vec<_>>(), expected);
}

#[test]
fn long_outputs_have_a_summary() {
    let rollout = read(&json!({"prompt": "q", "completion": [
        {"role": "assistant", "tool_calls": [{"id": "a", "name": "f"}]},
        {"role": "tool", "tool_call_id": "a", "content": "é".repeat(201)},
    ]}));
    let events = events(&rollout);
    assert_eq!(events[3].output_summary.as_deref(), Some(format!("{}…", "é".repeat(200)).as_str()));
}

#[test]
fn a_conversation_has_tool_calls_as_objects() {
    let expected = [
        r#"{"role":"system","content":"s"}"#,
        r#"{"role":"user","content":"q"}"#,
        r#"{"role":"assistant","content":"","reasoning_content":"t","tool_calls":[{"id":"a","type":"function","function":{"name":"run_command","arguments":"{\"command\": \"ls\"}"}},{"id":"b","type":"function","function":{"name":"read_file","arguments":"{oops"}}]}"#,
        r#"{"role":"tool","content":"Expecting value: line 1 column 1 (char 0)","tool_call_id":"b"}"#,
        r#"{"role":"tool","content":"{'exit_code': 2, 'stdout': 'x', 'stderr': 'no'}","tool_call_id":"a"}"#,
        r#"{"role":"user","content":"go on\n[image 1]"}"#,
        r#"{"role":"assistant","content":"done"}"#,
    ];
    assert_eq!(conversation_lines(&example().messages).lines().collect::<Vec<_>>(), expected);
}
