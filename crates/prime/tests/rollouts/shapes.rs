//! Every form of a message, a task, a reward, a time and a stop that some version writes.

use aec_ledger::transcript::chat::Role;
use aec_prime::rollouts::json;
use aec_prime::rollouts::message::{parsed, read_messages};
use aec_prime::rollouts::outcome;
use aec_prime::rollouts::problem::Note;
use aec_prime::rollouts::rollout::{Rollout, Submission};
use aec_prime::rollouts::rows::rollouts;
use aec_prime::rollouts::run::Run;
use aec_prime::rollouts::stop::StopKind;
use serde_json::{Value, json};

fn read(row: &Value) -> Rollout {
    let mut all = rollouts(json::parse(row.to_string().as_bytes()).unwrap()).unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// A sample with one completion and some more keys.
fn sample(completion: &Value, more: &Value) -> Rollout {
    let mut row = json!({"prompt": [{"role": "user", "content": "q"}], "completion": completion});
    row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    read(&row)
}

#[test]
fn tool_calls_of_every_spelling_are_the_same() {
    let arguments = r#"{"content":"42"}"#;
    let nested =
        json!({"id": "c", "type": "function", "function": {"name": "submit_answer", "arguments": arguments}});
    let flat = json!({"id": "c", "name": "submit_answer", "arguments": arguments});
    let object = json!({"id": "c", "name": "submit_answer", "arguments": {"content": "42"}});
    let calls = [
        json!([nested]),
        json!([flat]),
        json!([object]),
        json!([nested.to_string()]),
        json!([flat.to_string()]),
        json!(json!([flat]).to_string()),
        flat,
        json!([{"id": "c", "name": "submit_answer", "input": {"content": "42"}}]),
        json!([{"call_id": "c", "function": {"name": "submit_answer", "arguments": {"content": "42"}}}]),
    ];
    for calls in calls {
        let rollout = sample(
            &json!([{"role": "assistant", "content": null, "tool_calls": calls}, {"role": "tool", "tool_call_id": "c", "content": "ok"}]),
            &json!({}),
        );
        let call = &rollout.messages[1].tool_calls[0];
        assert_eq!(
            (call.id.as_str(), call.name.as_str(), call.arguments.as_str()),
            ("c", "submit_answer", arguments)
        );
        assert_eq!(rollout.submitted().unwrap().text.as_deref(), Some("42"), "{calls}");
        assert!(rollout.submitted().unwrap().is_accepted && rollout.final_environment_response);
        assert_eq!(rollout.notes, []);
    }
}

#[test]
fn arguments_that_are_no_json_stay_text() {
    let rollout = sample(
        &json!([{"role": "assistant", "tool_calls": [{"id": "c", "name": "f", "arguments": "{oops"}, {"name": "g"}]}]),
        &json!({}),
    );
    let calls = &rollout.messages[1].tool_calls;
    assert_eq!((calls[0].arguments.as_str(), parsed(&calls[0])), ("{oops", None));
    assert_eq!((calls[1].arguments.as_str(), calls[1].id.as_str()), ("", "call_2"));
    assert_eq!(rollout.tool_calls, 2);
}

#[test]
fn arguments_are_read_as_python_reads_them() {
    let arguments = r#"{"content": "half \ud835", "x": NaN, "trajectory": [1]}"#;
    let call = json!({"id": "c", "name": "submit_answer", "arguments": arguments});
    let rollout = sample(&json!([{"role": "assistant", "tool_calls": [call.to_string()]}]), &json!({}));
    let call = &rollout.messages[1].tool_calls[0];
    assert_eq!(call.arguments, arguments);
    assert_eq!(parsed(call), Some(json!({"content": "half \u{fffd}", "x": null, "trajectory": [1]})));
    assert_eq!(rollout.submitted().unwrap().text.as_deref(), Some("half \u{fffd}"));
}

#[test]
fn calls_that_are_none_are_noted() {
    let rollout =
        sample(&json!([{"role": "assistant", "tool_calls": ["{torn", 7, {"id": "x"}]}]), &json!({}));
    assert_eq!(rollout.tool_calls, 0);
    assert_eq!(rollout.notes.len(), 3);
    assert!(
        rollout.notes.iter().all(|note| matches!(note, Note::PassedOver { key, .. } if key == "tool_calls"))
    );
}

#[test]
fn results_without_an_id_answer_calls_in_order() {
    let rollout = sample(
        &json!([
            {"role": "assistant", "tool_calls": [{"name": "a"}, {"name": "b"}, {"id": "z", "name": "c"}]},
            {"role": "tool", "tool_call_id": "z", "content": "3"},
            {"role": "tool", "content": "1"},
            {"role": "tool", "content": "2"},
            {"role": "tool", "content": "4"},
        ]),
        &json!({}),
    );
    let ids: Vec<_> = rollout.messages[2..].iter().map(|message| message.tool_call_id.as_deref()).collect();
    assert_eq!(ids, [Some("z"), Some("call_1"), Some("call_2"), None]);
}

#[test]
fn content_of_every_spelling_is_text() {
    for (content, text, images) in [
        (json!("a"), "a", 0),
        (json!(null), "", 0),
        (json!([]), "", 0),
        (json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), "a\nb", 0),
        (
            json!([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "data:x"}}]),
            "a\n[image 1]",
            1,
        ),
        (json!(["a", {"text": "b"}]), "a\nb", 0),
        (json!({"type": "text", "text": "a"}), "a", 0),
        (json!(7), "7", 0),
    ] {
        let rollout = sample(&json!([{"role": "assistant", "content": content}]), &json!({}));
        let message = &rollout.messages[1];
        assert_eq!((message.text.as_str(), message.images), (text, images), "{content}");
    }
}

#[test]
fn thoughts_of_every_spelling_are_reasoning() {
    for more in [
        json!({"reasoning_content": "t"}),
        json!({"reasoning": "t", "reasoning_content": null}),
        json!({"thinking_blocks": [{"type": "thinking", "thinking": "t", "signature": "s"}]}),
        json!({"reasoning_details": [{"text": "t"}]}),
        json!({"content": [{"type": "thinking", "thinking": "t"}]}),
    ] {
        let mut message = json!({"role": "assistant"});
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let rollout = sample(&json!([message]), &json!({}));
        assert_eq!(rollout.messages[1].reasoning.as_deref(), Some("t"), "{more}");
        assert!(!rollout.is_empty_response, "{more}");
    }
}

#[test]
fn prompts_and_completions_may_be_texts() {
    let rollout = read(&json!({"prompt": "q", "completion": "a"}));
    let said: Vec<_> = rollout.messages.iter().map(|message| (message.role, message.text.as_str())).collect();
    assert_eq!(said, [(Role::User, "q"), (Role::Assistant, "a")]);
    let list = json!([{"role": "system", "content": "s"}, {"role": "text", "content": "q"}]).to_string();
    let rollout = read(&json!({"prompt": list, "completion": null}));
    assert_eq!(
        rollout.prompt().iter().map(|message| message.role).collect::<Vec<_>>(),
        [Role::System, Role::User]
    );
    let rollout = read(
        &json!({"prompt": "[not a list] of messages", "completion": {"role": "assistant", "content": "a"}}),
    );
    assert_eq!(rollout.messages[0].text, "[not a list] of messages");
    assert_eq!(rollout.final_text.as_deref(), Some("a"));
}

#[test]
fn unknown_roles_and_shapes_are_noted() {
    let mut notes = Vec::new();
    let messages =
        read_messages(json!([{"role": "critic", "content": "x"}, 5, null]), Role::Assistant, &mut notes);
    assert_eq!((messages.len(), notes.len()), (1, 3));
    let rollout =
        read(&json!({"prompt": 5, "completion": true, "info": [1], "metrics": 3, "tool_defs": "x"}));
    assert_eq!(rollout.notes.len(), 5);
}

#[test]
fn a_task_is_named_by_the_surest_source() {
    let named = |more: Value| sample(&json!([]), &more).task.task_id;
    let info = json!({"task_id": "a/b"});
    assert_eq!(named(json!({"info": info, "answer": "x", "task": "y"})).as_deref(), Some("a/b"));
    assert_eq!(named(json!({"info": info.to_string(), "answer": "x"})).as_deref(), Some("a/b"));
    assert_eq!(named(json!({"info": {}, "answer": "x", "task": "y"})).as_deref(), Some("x"));
    assert_eq!(named(json!({"info": null, "answer": "", "task": "y"})).as_deref(), Some("y"));
    assert_eq!(named(json!({"task": {"id": "z"}})).as_deref(), Some("z"));
    assert_eq!(named(json!({"task": {}})), None);
    assert_eq!(named(json!({"info": "{torn"})), None);
}

#[test]
fn a_package_says_everything_of_its_task() {
    let info = json!({
        "task_id": "e/v", "task_revision": "sha256:ab", "family": "template:e", "difficulty": "easy", "discipline": "electrical",
        "visibility": "public", "instruction": "Do.", "split": "eval", "overlap": 0, "seed": 3, "harness": "stateful",
        "max_turns": 12, "max_total_tokens": 4096, "isolation": "strong", "verifier_digest": "sha256:cd", "dataset": "d@1.0.0",
        "package": "aec_e", "package_version": "0.2.0", "tool_version": "0.1.0",
    });
    let rollout = sample(&json!([]), &json!({"info": info.to_string()}));
    let task = &rollout.task;
    assert_eq!(task.revision.as_deref(), Some("sha256:ab"));
    assert_eq!(task.package.name.as_deref(), Some("aec_e"));
    assert_eq!(task.package.version.as_deref(), Some("0.2.0"));
    assert_eq!(task.dataset.as_deref(), Some("d@1.0.0"));
    assert_eq!(task.isolation.as_deref(), Some("strong"));
    assert_eq!(rollout.instruction(), Some("Do."));
    let configuration = outcome::configuration(&rollout, &Run::default());
    assert_eq!(
        Value::Object(configuration.into_iter().collect()),
        json!({
            "environment": "aec_e", "split": "eval", "seed": 3, "harness": "stateful", "max_turns": 12,
            "max_total_tokens": 4096
        })
    );
}

#[test]
fn a_reward_is_a_number_or_there_is_none() {
    let reward = |more: Value| sample(&json!([]), &more).reward;
    assert_eq!(reward(json!({"reward": 0.5, "score": 1})), Some(0.5));
    assert_eq!(reward(json!({"score": 1})), Some(1.0));
    for other in [json!(null), json!("1"), json!(true), json!([1.0])] {
        let row = json!({"reward": other, "score": 1, "metrics": {"aec_bench_reward": 1.0}});
        let rollout = sample(&json!([]), &row);
        assert_eq!(rollout.reward, None, "{other}");
        assert!(rollout.unscored().starts_with("its `reward` is "), "{}", rollout.unscored());
    }
    assert_eq!(reward(json!({"metrics": {"aec_bench_reward": 0.25}})), None);
    assert_eq!(reward(json!({})), None);
}

#[test]
fn times_of_every_version_are_seconds() {
    for (more, expected) in [
        (
            json!({"timing": {"total": 3.0, "generation": {"duration": 2.0}, "scoring": {"start": 5.0, "end": 5.5}}}),
            (3.0, 2.0, 0.5),
        ),
        (json!({"timing": {"total_ms": 3000, "generation_ms": 2000.0, "scoring_ms": 500}}), (3.0, 2.0, 0.5)),
        (json!({"total_time": 3.0, "timing": {"generation": 2.0, "scoring": 0.5}}), (3.0, 2.0, 0.5)),
        (json!({"latency_ms": 3000, "timing": {"generation": 2.0, "scoring": 0.5}}), (3.0, 2.0, 0.5)),
    ] {
        let timing = sample(&json!([]), &more).timing;
        assert_eq!(
            (timing.total, timing.generation, timing.scoring),
            (Some(expected.0), Some(expected.1), Some(expected.2))
        );
    }
    let absent =
        sample(&json!([]), &json!({"timing": {"generation": {"start": 5.0}}, "token_usage": null})).timing;
    assert_eq!((absent.total, absent.generation), (None, None));
}

#[test]
fn stops_are_one_word_for_all() {
    let text = json!([{"role": "assistant", "content": "a"}]);
    let call = json!([{"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "f", "arguments": "{}"}]}]);
    let tools = json!([{"name": "f", "description": "", "parameters": {}}]);
    for (completion, stop, tools, kind, reason) in [
        (&text, json!("has_final_env_response"), &json!([]), StopKind::Completed, "done"),
        (&text, json!("no_tools_called"), &tools, StopKind::NoToolsCalled, "done"),
        (&text, json!("max_turns_reached"), &json!([]), StopKind::Completed, "done"),
        (&text, json!("max_turns_reached"), &tools, StopKind::NoToolsCalled, "done"),
        (&call, json!("max_turns_reached"), &tools, StopKind::TurnLimit, "turn_limit_reached"),
        (&call, json!("max_turns"), &json!([]), StopKind::TurnLimit, "turn_limit_reached"),
        (
            &call,
            json!("max_total_completion_tokens_reached"),
            &tools,
            StopKind::TokenLimit,
            "token_budget_reached",
        ),
        (&call, json!("token_budget_reached"), &tools, StopKind::TokenLimit, "token_budget_reached"),
        (&call, json!("prompt_too_long"), &tools, StopKind::PromptTooLong, "provider_error"),
        (&call, json!("timeout_reached"), &tools, StopKind::Timeout, "timeout"),
        (&call, json!("scoring_timeout"), &tools, StopKind::Timeout, "timeout"),
        (&call, json!("sandbox_error"), &tools, StopKind::Error, "failed"),
        (&call, json!("my_own_stop"), &tools, StopKind::Other, "other"),
        (&call, json!(null), &tools, StopKind::Unknown, "unknown"),
    ] {
        let rollout = sample(completion, &json!({"stop_condition": stop, "tool_defs": tools}));
        assert_eq!(rollout.stop.kind, kind, "{stop}");
        let result = outcome::agent_result(&rollout, &Run::default());
        assert_eq!(result["stop_reason"], reason, "{stop}");
        assert_eq!(result.get("stop_condition"), stop.is_string().then_some(&stop));
    }
}

#[test]
fn errors_of_every_version_have_kind_message_and_chain() {
    let error = |error: Value| sample(&json!([]), &json!({"error": error})).error;
    assert_eq!(error(json!(null)), None);
    let read = error(json!({"error": "ToolCallError", "error_chain_repr": "ToolCallError() -> KeyError('x')", "error_chain_str": "ToolCallError -> KeyError"})).unwrap();
    assert_eq!((read.kind.as_str(), read.chain.len()), ("ToolCallError", 2));
    assert!(read.is("KeyError"));
    let read = error(json!({"error": "ModelError", "message": "no", "error_chain_repr": "x"})).unwrap();
    assert_eq!(read.message.as_deref(), Some("no"));
    let read = error(json!("EmptyModelResponseError('nothing')")).unwrap();
    assert_eq!(read.kind, "EmptyModelResponseError");
    assert!(sample(&json!([]), &json!({"error": "EmptyModelResponseError('nothing')"})).is_empty_response);
}

#[test]
fn empty_answers_are_told_from_answers_that_never_came() {
    let empty = |completion: Value, more: Value| sample(&completion, &more).is_empty_response;
    assert!(empty(json!([{"role": "assistant", "content": " "}]), json!({})));
    assert!(empty(json!(""), json!({})));
    assert!(empty(json!([]), json!({"stop_condition": "max_turns_reached"})));
    assert!(!empty(json!([]), json!({"stop_condition": "timeout_reached"})));
    assert!(!empty(json!([]), json!({"stop_condition": "prompt_too_long"})));
    assert!(!empty(json!([]), json!({"error": {"error": "ModelError"}})));
    assert!(!empty(json!([]), json!({"is_completed": false})));
    assert!(!empty(json!([{"role": "assistant", "tool_calls": [{"name": "f"}]}]), json!({})));
}

#[test]
fn an_answer_goes_only_below_the_workspace() {
    for (path, expected) in [
        (Some("output.md"), Some("output.md")),
        (None, Some("output.md")),
        (Some("/workspace/a/b.md"), Some("a/b.md")),
        (Some("./a.md"), Some("a.md")),
        (Some("../a.md"), None),
        (Some("/etc/passwd"), None),
        (Some("a/../../b"), None),
        (Some("/workspace/"), None),
        (Some("."), None),
        (Some("a\\b"), None),
        (Some("a\0b"), None),
    ] {
        let submission = Submission { path: path.map(str::to_owned), ..Submission::default() };
        assert_eq!(submission.file().as_deref(), expected.map(std::path::Path::new), "{path:?}");
    }
}

#[test]
fn of_several_answers_the_last_one_counts_that_was_taken() {
    let submit = |id: &str, content: &str| json!({"id": id, "name": "submit_answer", "arguments": {"content": content}});
    let rollout = sample(
        &json!([
            {"role": "assistant", "tool_calls": [submit("a", "1")]},
            {"role": "tool", "tool_call_id": "a", "content": "ok"},
            {"role": "assistant", "tool_calls": [submit("a", "2")]},
            {"role": "tool", "tool_call_id": "a", "content": "Error: the path leaves the workspace"},
            {"role": "assistant", "tool_calls": [submit("a", "3")]},
        ]),
        &json!({"stop_condition": "max_turns_reached"}),
    );
    let taken: Vec<bool> = rollout.submissions.iter().map(|submission| submission.is_accepted).collect();
    assert_eq!(taken, [true, false, false]);
    assert_eq!(rollout.submitted().unwrap().text.as_deref(), Some("1"));
    assert!(!rollout.final_environment_response);
    let result = outcome::agent_result(&rollout, &Run { max_turns: Some(3), ..Run::default() });
    let expected = json!({
        "turns_used": 3, "max_turns": 3, "tool_calls": 3, "tool_errors": 1, "submit_calls": 3, "submitted": true,
        "final_environment_response": false, "stop_condition": "max_turns_reached", "stop_reason": "turn_limit_reached",
    });
    assert_eq!(Value::Object(result.into_iter().collect()), expected);
}
