//! `rlm` when things go wrong: providers, windows, endless output.

use aec_model::failure::FailureKind;
use aec_model::retry::RetryPolicy;
use aec_run::harness::{End, Limit};
use serde_json::json;

use super::rlm::{bench, scripted};
use super::{bodies, served};

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_fails_is_the_providers_fault_and_what_was_done_is_kept() {
    let cell = |code: &str| json!({"tool_calls": [{"name": "repl", "arguments": {"code": code}}]});
    let script = json!({"replies": [cell("1"), cell("FINAL(2)")]});
    let mut down = bench(json!({}), &["FINAL(1)"], &[]);
    let server = served(&mut down, &script, &["mine"], &["server"]).await;
    let left = down.run().await;
    assert!(
        matches!(&left.rollout.end, End::Model(failure) if failure.kind == FailureKind::Server),
        "{:?}",
        left.rollout
    );
    assert_eq!(
        (left.result("turns_used"), left.result("stop_reason")),
        (&json!(1), &json!("provider_error"))
    );
    drop(server);
    // A provider that recovers is asked again, without a trace in the result.
    let mut flaky = bench(json!({}), &["FINAL(1)"], &[]);
    let server = served(&mut flaky, &script, &["mine"], &["unavailable=0.4"]).await;
    flaky.retry = RetryPolicy { attempts: 20, ..RetryPolicy::default() };
    let left = flaky.run().await;
    assert!(matches!(left.rollout.end, End::Done), "{:?}", left.rollout);
    assert!(bodies(&server).len() >= 2);
    // A failed sub-call is an error in the cell, without the provider's message.
    let mut other = bench(json!({}), &["FINAL(1)"], &[]);
    let script = json!({"replies": [cell("try:\n    summarise('a')\nexcept Exception as error:\n    print(error)"), cell("FINAL(2)")]});
    let _server = served(&mut other, &script, &["mine"], &[]).await;
    let down = served(&mut bench(json!({}), &["1"], &[]), &script, &["small"], &["auth"]).await;
    other.endpoints.push_str(&format!(
        "[[endpoint]]\nendpoint_id = \"small\"\nmodel = \"small\"\nurl = \"{}/v1\"\n",
        down.url()
    ));
    other.task_file("rlm.toml", "[execution]\nsubcall_model = 'small'\n");
    let left = other.run().await;
    assert!(left.stdout(0).starts_with("the model gave no answer (auth)"), "{}", left.stdout(0));
    assert!(matches!(left.rollout.end, End::Done), "{:?}", left.rollout);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_the_provider_finds_too_long_is_shortened_once() {
    let mut overlong = bench(json!({}), &["FINAL(1)"], &[]);
    let cell = json!({"tool_calls": [{"name": "repl", "arguments": {"code": "1"}}]});
    let _server = served(&mut overlong, &json!({"replies": [cell]}), &["mine"], &["overlong"]).await;
    let left = overlong.run().await;
    assert!(matches!(left.rollout.end, End::Limit(Limit::Context)), "{:?}", left.rollout);
    assert_eq!(left.result("compactions"), 1);
}

#[tokio::test]
async fn a_gigabyte_of_output_is_read_and_not_kept() {
    let gigabyte = "import os\nblock = b'y' * (1 << 20)\nfor _ in range(1024):\n    os.write(1, block)\nprint('the end')";
    let loud = bench(
        json!({"tool_output": 3000}),
        &[gigabyte, "raise ValueError('x' * 5_000_000)", "FINAL(open('/logs/tool-output/1.txt').read()[:3])"],
        &[],
    );
    let left = loud.run().await;
    assert!(matches!(left.rollout.end, End::Done), "{:?}", left.rollout);
    assert!(left.stdout(0).len() < 4000 && left.stdout(0).contains("the end"), "{}", left.stdout(0).len());
    assert!(left.stdout(1).len() < 7000, "{}", left.stdout(1).len());
    assert_eq!(left.rollout.final_text.as_deref(), Some("yyy"));
}

#[tokio::test]
async fn models_that_never_hand_over_code_are_stopped() {
    let idle = scripted(json!({}), &[json!({"text": "I think about FINAL."})], &[]).run().await;
    assert!(
        matches!(&idle.rollout.end, End::Agent(why) if why.contains("5 times in a row")),
        "{:?}",
        idle.rollout
    );
    // The model is told if its reply is not a call of the tool, and no turn is lost.
    let replies = [
        json!({"tool_calls": [{"name": "bash", "arguments": {"command": "ls"}}]}),
        json!({"tool_calls": [{"name": "repl", "arguments": {"code": 7}}]}),
        json!({"tool_calls": [{"name": "repl", "arguments": {"code": "x = 1"}}, {"name": "repl", "arguments": {"code": "FINAL(x)"}}]}),
    ];
    let left = scripted(json!({}), &replies, &[]).run().await;
    assert!(matches!(left.rollout.end, End::Done), "{:?}", left.rollout);
    assert!(left.stderr(0).contains("there is one tool, `repl`"), "{}", left.stderr(0));
    assert_eq!(left.rollout.final_text.as_deref(), Some("1"));
}

#[tokio::test]
async fn what_a_model_says_beside_its_code_and_how_cells_end_are_recorded() {
    let replies = [
        json!({"text": "I divide.", "tool_calls": [{"name": "repl", "arguments": {"code": "1 / 0"}}]}),
        json!({"text": "Done: 7.", "tool_calls": [{"name": "repl", "arguments": {"code": "FINAL()"}}]}),
    ];
    let left = scripted(json!({}), &replies, &[]).run().await;
    let said: Vec<&str> = left.events.iter().filter_map(|event| event.content.as_deref()).collect();
    assert!(said.contains(&"I divide.") && said.contains(&"Done: 7."), "{said:?}");
    assert_eq!(left.results().iter().map(|event| event.exit_code).collect::<Vec<_>>(), [Some(1), Some(0)]);
    // Without a file, a report and a value, the answer is the text with FINAL.
    assert_eq!((left.rollout.submitted, left.rollout.final_text.as_deref()), (None, Some("Done: 7.")));
}

#[tokio::test]
async fn names_of_the_session_come_back_when_code_replaces_them() {
    let cells =
        ["FINAL = NOTE = context = None\nimport builtins\nprint = 5\n1", "NOTE('a', 1)\nFINAL(context[:9])"];
    let left = bench(json!({}), &cells, &[]).run().await;
    assert_eq!(left.rollout.final_text.as_deref(), Some("# Channel"), "{:?}", left.rollout);
}
