//! Rows to train on.

use aec_ledger::transcript::chat::{Message, Role, Thoughts};
use aec_model::message::{Tool, ToolCall};
use aec_prime::rollouts::training::{Example, Pairing, preferences, sft};
use serde_json::{Map, Value, json};

fn said(role: Role, text: &str) -> Message {
    Message { role, text: text.to_owned(), ..Message::default() }
}

fn conversation(prompt: &str, answer: &str) -> Vec<Message> {
    vec![said(Role::User, prompt), said(Role::Assistant, answer)]
}

fn example<'a>(
    task_id: &'a str,
    trial_id: &'a str,
    reward: Option<f64>,
    messages: &'a [Message],
) -> Example<'a> {
    static NOTHING: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    Example { task_id, trial_id, reward, messages, prompt_messages: 1, tools: &[], metadata: &NOTHING }
}

const PAIRING: Pairing = Pairing { min_gap: 0.5, max_pairs: 2, thoughts: Thoughts::LeftOut };

#[test]
fn an_example_is_a_chat_with_tools_and_metadata() {
    let call =
        ToolCall { id: "c".into(), name: "submit_answer".into(), arguments: r#"{"content": "42"}"#.into() };
    let messages = [
        said(Role::User, "q"),
        Message { tool_calls: vec![call], reasoning: Some("t".to_owned()), ..said(Role::Assistant, "") },
        Message { tool_call_id: Some("c".to_owned()), ..said(Role::Tool, "taken") },
    ];
    let tools = [Tool {
        name: "submit_answer".to_owned(),
        description: "Hand in.".to_owned(),
        parameters: json!({"type": "object"}),
    }];
    let metadata: Map<String, Value> = [("model".to_owned(), json!("m"))].into_iter().collect();
    let one = Example { tools: &tools, metadata: &metadata, ..example("t", "1", Some(1.0), &messages) };
    let written = sft(&[one], 0.5, Thoughts::LeftOut);
    let expected = concat!(
        r#"{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"submit_answer","arguments":"{\"content\": \"42\"}"}}]},{"role":"tool","content":"taken","tool_call_id":"c"}],"#,
        r#""tools":[{"type":"function","function":{"name":"submit_answer","description":"Hand in.","parameters":{"type":"object"}}}],"#,
        r#""metadata":{"model":"m","reward":1.0,"task_id":"t","trial_id":"1"}}"#,
        "\n"
    );
    assert_eq!(written.lines, expected);
    let kept = sft(&[one], 0.5, Thoughts::Kept).lines;
    assert!(kept.contains(r#""content":"","reasoning_content":"t","tool_calls""#));
}

#[test]
fn only_what_earned_enough_is_imitated() {
    let (good, empty) = (conversation("q", "a"), conversation("q", " "));
    let given = [
        example("t", "2", Some(0.5), &good),
        example("t", "1", Some(1.0), &good),
        example("t", "3", Some(0.4), &good),
        example("t", "4", None, &good),
        example("t", "5", Some(f64::NAN), &good),
        example("t", "6", Some(1.0), &empty),
        example("t", "7", Some(1.0), &good[..1]),
        example("t", "8", Some(1.0), &[]),
    ];
    let written = sft(&given, 0.5, Thoughts::LeftOut);
    assert_eq!((written.rows, written.left_out, written.unusable), (2, 1, 5));
    let first: Value = serde_json::from_str(written.lines.lines().next().unwrap()).unwrap();
    assert_eq!(first["metadata"]["trial_id"], "1");
    assert!(first.get("tools").is_none());
}

#[test]
fn the_best_is_paired_with_the_worst() {
    let chats: Vec<_> = ["a", "b", "c", "d", "e"].map(|answer| conversation("q", answer)).into();
    let rewards = [0.0, 1.0, 0.2, 0.9, 0.5];
    let names = ["1", "2", "3", "4", "5"];
    let mut given: Vec<Example<'_>> = names
        .iter()
        .zip(rewards)
        .zip(&chats)
        .map(|((name, reward), chat)| example("t", name, Some(reward), chat))
        .collect();
    let written = preferences(&given, PAIRING);
    assert_eq!((written.rows, written.left_out, written.unusable), (2, 1, 0));
    let first = written.lines.lines().next().unwrap();
    assert_eq!(
        first,
        r#"{"prompt":[{"role":"user","content":"q"}],"chosen":[{"role":"assistant","content":"b"}],"rejected":[{"role":"assistant","content":"a"}],"metadata":{"chosen_reward":1.0,"chosen_trial_id":"2","rejected_reward":0.0,"rejected_trial_id":"1","task_id":"t"}}"#
    );
    given.reverse();
    assert_eq!(preferences(&given, PAIRING), written);
    assert_eq!(preferences(&given, Pairing { max_pairs: 1, ..PAIRING }).rows, 1);
    assert_eq!(preferences(&given, Pairing { min_gap: 0.8, ..PAIRING }).rows, 1);
    assert_eq!(preferences(&given, Pairing { min_gap: 1.5, ..PAIRING }).rows, 0);
}

#[test]
fn only_answers_to_one_prompt_are_paired() {
    let (one, other) = (conversation("q", "a"), conversation("another", "b"));
    let given = [
        example("t", "1", Some(1.0), &one),
        example("t", "2", Some(0.0), &other),
        example("u", "3", Some(0.0), &one),
    ];
    let written = preferences(&given, PAIRING);
    assert_eq!((written.rows, written.left_out), (0, 3));
}

#[test]
fn equals_are_never_a_pair() {
    let (one, other) = (conversation("q", "a"), conversation("q", "b"));
    let given = [example("t", "1", Some(1.0), &one), example("t", "2", Some(1.0), &other)];
    assert_eq!(preferences(&given, Pairing { min_gap: 0.0, ..PAIRING }).rows, 0);
}
