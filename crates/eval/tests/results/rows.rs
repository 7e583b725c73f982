//! Rows have the format of verifiers.

use aec_eval::results::facts::RowFacts;
use aec_eval::results::number::Finite;
use aec_eval::results::row::{RolloutRow, RowError, TokenUsage, ToolDefs, adopt, example_column};
use aec_eval::results::timing::{Span, Timing};
use aec_ledger::transcript::chat::{Message, Role};
use aec_model::message::ToolCall;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::support::{errored, finite, fixtures, line, raw, row, span};

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn number(value: &Value) -> Finite {
    finite(value.as_f64().unwrap())
}

fn span_of(value: &Value) -> Span {
    span(value["start"].as_f64().unwrap(), value["end"].as_f64().unwrap())
}

fn message_of(value: &Value) -> Message {
    let role = match value["role"].as_str().unwrap() {
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        "user" => Role::User,
        other => panic!("no such role in the samples: {other}"),
    };
    let call = |call: &Value| {
        let call: Value = serde_json::from_str(call.as_str().unwrap()).unwrap();
        ToolCall { id: text(&call["id"]), name: text(&call["name"]), arguments: text(&call["arguments"]) }
    };
    Message {
        role,
        text: text(&value["content"]),
        reasoning: value["reasoning_content"].as_str().map(ToOwned::to_owned),
        tool_calls: value["tool_calls"].as_array().into_iter().flatten().map(call).collect(),
        tool_call_id: value["tool_call_id"].as_str().map(ToOwned::to_owned),
        ..Message::default()
    }
}

fn row_of(value: &Value) -> RolloutRow {
    let spans = |key: &str| value["timing"][key]["spans"].as_array().unwrap().iter().map(span_of).collect();
    let metrics: Vec<_> = value["metrics"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| (key.as_str().into(), number(value)))
        .collect();
    let is_state = |key: &str| ["trajectory_id", "usage"].contains(&key);
    let columns = value.as_object().unwrap().iter().filter(|(key, _)| is_state(key));
    RolloutRow {
        example_id: value["example_id"].as_i64().unwrap(),
        rollout_number: 7,
        attempt: 1,
        prompt: raw(&value["prompt"].to_string()),
        completion: value["completion"].as_array().unwrap().iter().map(message_of).collect(),
        answer: value["answer"].as_str().map(Into::into),
        info: value.get("info").map(|info| raw(&info.to_string())),
        reward: number(&value["reward"]),
        error: value["error"].as_object().map(|error| RowError {
            class: text(&error["error"]),
            chain: text(&error["error_chain_repr"]),
            classes: text(&error["error_chain_str"]),
        }),
        timing: Timing {
            start_time: number(&value["timing"]["start_time"]),
            setup: span_of(&value["timing"]["setup"]),
            generation: span_of(&value["timing"]["generation"]),
            scoring: span_of(&value["timing"]["scoring"]),
            model: spans("model"),
            env: spans("env"),
        },
        is_completed: value["is_completed"].as_bool().unwrap(),
        is_truncated: value["is_truncated"].as_bool().unwrap(),
        stop_condition: value["stop_condition"].as_str().map(Into::into),
        metrics: metrics.into_iter().collect(),
        tool_defs: ToolDefs::new(raw(&value["tool_defs"].to_string())),
        token_usage: value.get("token_usage").map(|usage| TokenUsage {
            input_tokens: usage["input_tokens"].as_f64().unwrap() as u64,
            output_tokens: usage["output_tokens"].as_f64().unwrap() as u64,
            final_output_tokens: usage["final_output_tokens"].as_u64().unwrap(),
            final_input_tokens: usage["final_input_tokens"].as_u64().unwrap(),
        }),
        columns: columns.map(|(key, value)| (key.as_str().into(), raw(&value.to_string()))).collect(),
    }
}

/// Env servers write nulls into messages, which mean nothing.
fn without_nulls(row: &mut Value) {
    for message in row["completion"].as_array_mut().unwrap() {
        message.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    }
}

#[test]
fn rows_of_verifiers_are_written_as_they_were() {
    let mut rows = 0;
    for directory in fixtures() {
        let results = std::fs::read_to_string(directory.join("results.jsonl")).unwrap();
        for sample in results.lines() {
            let mut expected: Value = serde_json::from_str(sample).unwrap();
            let ours = row_of(&expected);
            without_nulls(&mut expected);
            expected["rollout_number"] = json!(7);
            let written = String::from_utf8(line(&ours)).unwrap();
            // Compares the order of keys too, and tells 1 from 1.0.
            let read: Value = serde_json::from_str(&written).unwrap();
            assert_eq!(read.to_string(), expected.to_string(), "{}", directory.display());
            assert_eq!(written, format!("{}\n", written.trim_end()), "one line");

            let facts = RowFacts { rollout_number: Some(7), ..RowFacts::parse(sample.as_bytes()).unwrap() };
            assert_eq!(RowFacts::of(&ours), facts);
            assert_eq!(RowFacts::parse(written.as_bytes()).unwrap(), facts);
            rows += 1;
        }
    }
    assert_eq!(rows, 64);
}

#[test]
fn no_row_has_a_number_that_is_none() {
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(Finite::new(number), None);
        assert!(Finite::try_from(number).is_err());
    }
    let absurd = RolloutRow {
        timing: Timing { scoring: span(-1.7e308, 1.7e308), ..row(0, 0, 1.0).timing },
        ..row(0, 0, f64::MAX)
    };
    let read: Value = serde_json::from_slice(&line(&absurd)).unwrap();
    assert_eq!(read["reward"], json!(f64::MAX));
    assert_eq!(read["timing"]["scoring"]["duration"], json!(0.0));
}

#[test]
fn nothing_is_written_twice_under_one_key() {
    let mut clashing = errored(3, 1);
    clashing.attempt = 2;
    clashing.metrics.push(("reward".into(), finite(9.0)));
    clashing.columns = vec![
        ("reward".into(), raw("8")),
        ("exact".into(), raw("7")),
        ("rollout_number".into(), raw("6")),
        ("trace".into(), raw("{\"a\":\n[1,\r\n2]}")),
        ("trace".into(), raw("5")),
    ];
    let written = String::from_utf8(line(&clashing)).unwrap();
    assert_eq!(written.lines().count(), 1);
    let read: Map<String, Value> = serde_json::from_str(&written).unwrap();
    assert_eq!(read["reward"], json!(0.0));
    assert_eq!(read["metrics"]["reward"], json!(9.0));
    assert_eq!(read["trace"], json!({"a": [1, 2]}));
    let keys: Vec<_> = read.keys().map(String::as_str).collect();
    assert_eq!(keys[keys.len() - 5..], ["exact", "num_turns", "trace", "rollout_number", "attempt"]);
    for key in &keys {
        let times = written.matches(&format!(",\"{key}\":")).count();
        let nested = ["reward", "exact", "num_turns", "error"].contains(key);
        assert!(times <= 1 + usize::from(nested), "{key} {times}");
    }
}

#[test]
fn what_is_empty_is_not_written() {
    let empty = RolloutRow {
        answer: Some("".into()),
        info: Some(raw("{ }")),
        stop_condition: None,
        token_usage: None,
        completion: Vec::new(),
        ..row(0, 0, 0.0)
    };
    let read: Map<String, Value> = serde_json::from_slice(&line(&empty)).unwrap();
    assert!(["answer", "info", "token_usage", "error_chain"].iter().all(|key| !read.contains_key(*key)));
    assert_eq!(
        (&read["stop_condition"], &read["completion"], &read["error"]),
        (&json!(null), &json!([]), &json!(null))
    );
}

#[test]
fn tool_calls_are_texts_as_python_writes_them() {
    let call = ToolCall {
        id: "call\u{1}".to_owned(),
        name: "größe".to_owned(),
        arguments: "{\"a\": \"😀\\n\"}\n".to_owned(),
    };
    let mut message = Message::text(Role::Assistant, "");
    message.tool_calls = vec![call.clone(), call];
    let mut written = row(0, 0, 1.0);
    written.completion = vec![message];
    let read: Value = serde_json::from_slice(&line(&written)).unwrap();
    // `json.dumps({"id": "call\x01", "name": "größe", "arguments": '{"a": "😀\\n"}\n'})`
    let expected =
        r#"{"id": "call\u0001", "name": "gr\u00f6\u00dfe", "arguments": "{\"a\": \"\ud83d\ude00\\n\"}\n"}"#;
    assert_eq!(read["completion"][0]["tool_calls"], json!([expected, expected]));
}

#[test]
fn query_and_expected_answer_can_be_asked_for() {
    let prompt = raw(
        r#"[{"role":"system","content":"s"},{"role":"user","content":"first"},{"role":"user","content":
           [{"type":"text","text":"one \"1\""},{"type":"image_url","image_url":{}},{"type":"text","text":"two"}]}]"#,
    );
    let column = |name: &str| example_column(name, &prompt, Some("42")).map(|raw| raw.get().to_owned());
    assert_eq!(column("query").as_deref(), Some(r#""one \"1\"\ntwo""#));
    assert_eq!(column("expected_answer").as_deref(), Some("\"42\""));
    assert_eq!(column("judge_response"), None);
    assert!(example_column("expected_answer", &prompt, None).is_none());
    assert_eq!(example_column("query", &raw("\"plain\""), None).unwrap().get(), "\"plain\"");
    for none in ["[]", "5", "[5]", r#"[{"role":"system","content":"s"}]"#, r#"[{"role":"user"}]"#] {
        assert!(example_column("query", &raw(none), None).is_none(), "{none}");
    }
}

#[test]
fn rows_of_a_worker_are_taken_with_our_numbers() {
    let given = b" {\"example_id\": 5, \"reward\": NaN,\n \"metrics\": {\"a\": 2}, \"rollout_number\": 9, \"x\": \"\\ud800\"}\n";
    let mut out = b"before\n".to_vec();
    let facts = adopt(given, 2, 3, &mut out).unwrap();
    assert_eq!((facts.example_id, facts.rollout_number, facts.attempt, facts.reward), (5, Some(2), 3, None));
    assert_eq!(RowFacts::parse(out.strip_prefix(b"before\n").unwrap()).unwrap(), facts);
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.lines().count(), 2);
    assert!(text.ends_with(",\"rollout_number\":2,\"attempt\":3}\n"), "{text}");
    let read: Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
    assert_eq!((&read["reward"], &read["x"]), (&json!(null), &json!("\u{fffd}")));

    for bad in [&b""[..], b"{}", b"[1]", b"{\"example_id\": 1", b"{\"example_id\": 1} {}", b"\xff"] {
        let mut out = Vec::new();
        assert!(adopt(bad, 0, 1, &mut out).is_err(), "{bad:?}");
        assert_eq!(out, b"", "nothing is written of what is refused");
    }
}

proptest! {
    #[test]
    fn any_text_comes_back(text in ".*", name in "\\PC*", value in proptest::num::f64::NORMAL) {
        let mut written = row(i64::MIN, u32::MAX, value);
        written.completion = vec![Message {
            reasoning: Some(text.clone()),
            tool_calls: vec![ToolCall { id: text.clone(), name: name.clone(), arguments: text.clone() }],
            ..Message::text(Role::Assistant, text.clone())
        }];
        written.stop_condition = Some(text.as_str().into());
        let name = format!("m {name}");
        written.metrics.push((name.as_str().into(), finite(value)));
        let bytes = line(&written);
        prop_assert_eq!(bytes.split(|byte| *byte == b'\n').count(), 2);
        let read: Value = serde_json::from_slice(&bytes).unwrap();
        let message = &read["completion"][0];
        prop_assert_eq!(message["content"].as_str(), Some(&*text));
        prop_assert_eq!(message["reasoning_content"].as_str(), Some(&*text));
        let call: Value = serde_json::from_str(message["tool_calls"][0].as_str().unwrap()).unwrap();
        prop_assert_eq!(call["arguments"].as_str(), Some(&*text));
        prop_assert_eq!(read[&name].as_f64(), Some(value));
        prop_assert_eq!(read["reward"].as_f64(), Some(value));
        prop_assert_eq!(RowFacts::parse(&bytes).unwrap(), RowFacts::of(&written));
    }
}
