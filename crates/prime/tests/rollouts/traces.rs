//! Episodes and traces of verifiers from 0.4 on.

use aec_judge::settle::outcome::Boundary;
use aec_prime::rollouts::json;
use aec_prime::rollouts::outcome;
use aec_prime::rollouts::problem::Note;
use aec_prime::rollouts::rollout::Rollout;
use aec_prime::rollouts::rows::rollouts;
use aec_prime::rollouts::stop::StopKind;
use serde_json::{Value, json};

fn read(row: &Value) -> Vec<Rollout> {
    rollouts(json::parse(row.to_string().as_bytes()).unwrap()).unwrap()
}

fn node(parent: Option<usize>, role: &str, content: &str, is_sampled: bool) -> Value {
    json!({"parent": parent, "message": {"role": role, "content": content}, "sampled": is_sampled, "token_ids": [1, 2], "logprobs": [-0.5]})
}

#[test]
fn a_rollout_is_the_path_to_the_last_message() {
    let trace = json!({"nodes": [
        node(None, "user", "q", false),
        node(Some(0), "assistant", "an example", false),
        node(Some(1), "user", "now you", false),
        node(Some(2), "assistant", "a dead end", true),
        node(Some(2), "assistant", "a", true),
    ]});
    let rollout = &read(&trace)[0];
    let texts: Vec<&str> = rollout.messages.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(texts, ["q", "an example", "now you", "a"]);
    assert_eq!((rollout.prompt_messages, rollout.turns, rollout.branches), (3, 1, 2));
}

#[test]
fn a_tree_that_goes_in_circles_is_cut_and_noted() {
    for parents in [[Some(1), Some(0)], [Some(9), Some(1)], [None, Some(1)]] {
        let trace = json!({"nodes": [node(parents[0], "user", "q", false), node(parents[1], "assistant", "a", true)]});
        let rollout = &read(&trace)[0];
        assert_eq!(rollout.final_text.as_deref(), Some("a"), "{parents:?}");
        assert!(
            rollout.notes.iter().any(|note| matches!(note, Note::PassedOver { key, .. } if key == "parent"))
        );
    }
}

#[test]
fn a_reward_is_the_sum_by_weight() {
    let reward = |rewards: Value| read(&json!({"nodes": [], "rewards": rewards}))[0].reward;
    assert_eq!(reward(json!({"a": {"score": 1.0, "weight": 0.25}, "b": {"score": 0.5}})), Some(0.75));
    assert_eq!(reward(json!({"a": 0.5})), Some(0.5));
    assert_eq!(reward(json!({})), None);
    assert_eq!(reward(json!(null)), None);
    for odd in
        [json!({"score": "x"}), json!({"score": 1, "weight": "2"}), json!(null), json!(true), json!("1")]
    {
        let odd = &read(&json!({"nodes": [], "rewards": {"a": odd, "b": {"score": 1}}}))[0];
        assert_eq!((odd.reward, odd.notes.len()), (None, 1), "a part of a sum is not the sum");
    }
    assert_eq!(reward(json!(1.0)), None);
}

#[test]
fn an_episode_has_as_many_rollouts_as_took_part() {
    let trace = |id: &str| json!({"id": id, "nodes": [node(None, "user", "q", false)], "task": {"data": {"idx": 4, "id": "t"}, "key": "k"}});
    let all = read(&json!({"traces": [trace("a"), trace("b")], "errors": []}));
    assert_eq!(
        all.iter().map(|rollout| rollout.sample_id.as_deref()).collect::<Vec<_>>(),
        [Some("a"), Some("b")]
    );
    assert_eq!(all[0].example_id.as_deref(), Some("4"));
    assert_eq!(all[0].task.task_id.as_deref(), Some("t"));
}

#[test]
fn an_episode_that_failed_before_it_began_is_a_rollout() {
    let errors = json!([{"type": "SandboxError", "message": "no room"}, {"type": "EnvError", "message": "setup: no room"}]);
    let all = read(
        &json!({"id": "e", "traces": [], "errors": errors, "task": {"data": {"idx": 1, "task_id": "t"}}}),
    );
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].task.task_id.as_deref(), Some("t"));
    assert_eq!(all[0].error.as_ref().unwrap().chain, ["EnvError", "SandboxError"]);
    assert!(!all[0].is_empty_response);
    assert_eq!(all[0].stop.kind, StopKind::Error);
    assert_eq!(outcome::fault(&all[0]).unwrap().boundary, Boundary::Sandbox);
    assert_eq!((all[0].reward, all[0].tokens_in, all[0].turns), (None, None, 0));
}

#[test]
fn an_episode_that_failed_fails_its_rollouts() {
    let trace = json!({"nodes": [node(None, "user", "q", false), node(Some(0), "assistant", "a", true)]});
    let all = read(&json!({"traces": [trace, 5], "errors": [{"type": "EnvError", "message": "scoring"}]}));
    assert_eq!((all.len(), all[0].stop.kind), (1, StopKind::Error));
    assert_eq!(all[0].error.as_ref().unwrap().kind, "EnvError");
    assert_eq!(all[0].notes.len(), 1);
}

#[test]
fn tokens_and_cost_are_absent_when_no_provider_told_them() {
    let silent = &read(
        &json!({"nodes": [], "calls": [{"usage": null}], "num_input_tokens": 0, "num_output_tokens": 0}),
    )[0];
    assert_eq!((silent.tokens_in, silent.tokens_out, silent.cost_usd), (None, None, None));
    let usage = |cost: Value| json!({"usage": {"prompt_tokens": 5, "completion_tokens": 2, "cached_input_tokens": 3, "cost": cost}});
    let told = &read(&json!({"nodes": [], "calls": [usage(json!(0.5)), usage(json!(null))]}))[0];
    assert_eq!((told.tokens_in, told.tokens_out, told.cost_usd), (Some(16), Some(4), Some(0.5)));
}

#[test]
fn stops_of_verifiers_are_limits_timeouts_and_errors() {
    let base = json!({"nodes": [node(None, "user", "q", false), node(Some(0), "assistant", "", true)]});
    for (stop, kind, is_truncated) in [
        ("max_turns", StopKind::TurnLimit, true),
        ("max_total_tokens", StopKind::TokenLimit, true),
        ("agent_timeout", StopKind::Timeout, false),
        ("provider_error", StopKind::Error, false),
        ("agent_completed", StopKind::Completed, false),
    ] {
        let mut trace = base.clone();
        trace["stop_condition"] = stop.into();
        let rollout = &read(&trace)[0];
        assert_eq!((rollout.stop.kind, rollout.is_truncated), (kind, Some(is_truncated)), "{stop}");
    }
    let cut = json!({"nodes": [], "calls": [{"finish_reason": "length"}, {"finish_reason": "stop", "error": {"type": "x"}}]});
    assert_eq!(read(&cut)[0].is_truncated, Some(true));
}

#[test]
fn a_providers_status_gives_the_kind_of_fault() {
    for (status, kind) in [(401, "auth"), (429, "rate"), (503, "server"), (400, "request")] {
        let errors = json!([{"type": "ProviderError", "message": "no\nmore", "status_code": status}]);
        let rollout = &read(&json!({"nodes": [], "errors": errors, "stop_condition": "provider_error"}))[0];
        let fault = outcome::fault(rollout).unwrap();
        assert_eq!(
            (fault.boundary, fault.kind.as_deref(), fault.message.as_str()),
            (Boundary::Provider, Some(kind), "ProviderError: no")
        );
    }
}

#[test]
fn tools_of_a_server_are_known_by_their_last_name() {
    let call = json!({"id": "c", "type": "function", "name": "aec__submit_answer", "arguments": "{\"content\": \"42\"}"});
    let trace = json!({"nodes": [
        node(None, "user", "q", false),
        {"parent": 0, "sampled": true, "message": {"role": "assistant", "content": null, "tool_calls": [call]}},
        {"parent": 1, "message": {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "taken"}]}},
    ]});
    let rollout = &read(&trace)[0];
    assert_eq!(rollout.submitted().unwrap().text.as_deref(), Some("42"));
    assert!(rollout.final_environment_response);
}

#[test]
fn numbers_of_tokens_are_passed_over_and_arguments_are_not() {
    let trace = json!({"nodes": [
        {"message": {"role": "assistant", "tool_calls": [{"name": "f", "arguments": {"nodes": [{"mask": [1]}]}}]},
         "sampled": true, "mask": vec![1; 1000]},
    ]});
    let parsed = json::parse(trace.to_string().as_bytes()).unwrap();
    assert!(parsed.value["nodes"][0].get("mask").is_none());
    let rollout = &rollouts(parsed).unwrap()[0];
    assert_eq!(rollout.messages[0].tool_calls[0].arguments, r#"{"nodes":[{"mask":[1]}]}"#);
}
