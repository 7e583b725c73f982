//! Files that real programs wrote: verifiers 0.1.14 and 0.4.0, and the interface of hosted evaluations.

use std::path::{Path, PathBuf};

use aec_judge::settle::outcome::Boundary;
use aec_ledger::transcript::chat::Role;
use aec_prime::rollouts::message::parsed;
use aec_prime::rollouts::outcome;
use aec_prime::rollouts::problem::Note;
use aec_prime::rollouts::reader::{Source, open};
use aec_prime::rollouts::rollout::Rollout;
use aec_prime::rollouts::rows::Row;
use aec_prime::rollouts::run::Run;
use aec_prime::rollouts::stop::StopKind;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rollouts/fixtures").join(name)
}

fn source(name: &str) -> Source {
    open(&fixture(name)).unwrap()
}

fn rollouts(name: &str) -> Vec<Rollout> {
    let rows: Vec<Row> = source(name).rows.collect::<Result<_, _>>().unwrap();
    rows.into_iter().flat_map(|row| row.rollouts).collect()
}

#[test]
fn every_run_of_verifiers_0_1_14_is_read_completely() {
    for (name, count, kind, is_truncated) in [
        ("single", 6, StopKind::Completed, false),
        ("envargs", 3, StopKind::Completed, false),
        ("err500", 6, StopKind::Completed, false),
        ("rate429", 6, StopKind::Completed, false),
        ("replicas", 4, StopKind::Completed, false),
        ("resume", 6, StopKind::Completed, false),
        ("server-mode-single", 6, StopKind::Completed, false),
        ("passk", 16, StopKind::Completed, false),
        ("length", 1, StopKind::Completed, true),
        ("tools", 4, StopKind::NoToolsCalled, false),
        ("server-mode-tools", 1, StopKind::NoToolsCalled, false),
        ("maxturns", 1, StopKind::TurnLimit, false),
        ("empty", 1, StopKind::Error, false),
        ("empty-retry", 1, StopKind::Error, false),
        ("overlong", 1, StopKind::PromptTooLong, true),
        ("timeout", 1, StopKind::Timeout, false),
    ] {
        let name = format!("v014/{name}");
        let all = rollouts(&name);
        assert_eq!(all.len(), count, "{name}");
        for rollout in all {
            assert_eq!(rollout.stop.kind, kind, "{name}");
            assert_eq!(rollout.is_truncated, Some(is_truncated), "{name}");
            assert_eq!(rollout.is_completed, Some(true), "{name}");
            assert!(rollout.reward.is_some(), "{name}");
            assert!(rollout.task.task_id.as_deref().unwrap().starts_with("t/"), "{name}");
            assert_eq!(rollout.notes, [], "{name}");
            assert_eq!(rollout.is_empty_response, name.contains("empty"), "{name}");
            assert!(rollout.timing.total.unwrap() > 0.0, "{name}");
            assert!(
                rollout.timing.generation.unwrap() > 0.0 && rollout.timing.scoring.unwrap() > 0.0,
                "{name}"
            );
            let has_answer = !matches!(kind, StopKind::Error | StopKind::PromptTooLong | StopKind::Timeout);
            assert_eq!(rollout.tokens_in.is_some(), has_answer, "{name}");
            let counted = |metric: &str| rollout.metrics.get(metric).copied();
            let number = |count: usize| Some(f64::from(u32::try_from(count).unwrap()));
            assert_eq!(counted("num_turns"), number(rollout.turns), "{name}");
            if rollout.metrics.contains_key("total_tool_calls") {
                assert_eq!(counted("total_tool_calls"), number(rollout.tool_calls), "{name}");
            }
        }
    }
}

#[test]
fn tool_calls_of_verifiers_0_1_14_are_json_texts() {
    for name in ["v014/tools", "v014/server-mode-tools"] {
        let rollout = &rollouts(name)[0];
        assert_eq!(rollout.prompt_messages, 1);
        assert_eq!(rollout.turns, 3);
        assert_eq!(rollout.calls_by_name.iter().collect::<Vec<_>>().len(), 2);
        assert_eq!(parsed(&rollout.completion()[2].tool_calls[0]).unwrap()["content"], "0");
        let tools: Vec<&str> = rollout.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(tools, ["read_file", "write_file"]);
        assert_eq!(rollout.tokens_in, Some(840));
        assert_eq!(rollout.tokens_out, Some(25));
        assert_eq!(rollout.final_text.as_deref(), Some("0"));
        assert!(!rollout.final_environment_response);
    }
}

#[test]
fn a_run_says_how_it_was_made() {
    let run = source("v014/tools").run.unwrap();
    assert_eq!(run.environment.as_deref(), Some("tiny-tools"));
    assert_eq!(run.model.as_deref(), Some("mock-tools-2"));
    assert_eq!((run.num_examples, run.rollouts_per_example), (Some(2), Some(2)));
    assert_eq!(run.versions["vf_version"], "0.1.14");
    assert_eq!(run.max_tokens(), None);
    let run = source("workspace-0.1.14").run.unwrap();
    assert_eq!((run.split(), run.seed()), (Some("eval"), Some(&7.into())));
    assert_eq!(run.max_tokens(), Some(512));
    let run = source("v040").run.unwrap();
    assert_eq!(run.environment.as_deref(), Some("tiny-dual"));
    assert_eq!((run.num_examples, run.rollouts_per_example), (Some(2), Some(2)));
    assert_eq!(run.harness.as_deref(), Some("null"));
    assert_eq!(run.environment_args["num_examples"], 2000);
}

#[test]
fn a_hosted_evaluation_says_how_it_was_made() {
    let text = std::fs::read_to_string(fixture("hosted/evaluation.json")).unwrap();
    let run = Run::from_evaluation(&serde_json::from_str(&text).unwrap());
    assert_eq!(run.evaluation_id.as_deref(), Some("eval_1"));
    assert_eq!(run.environment.as_deref(), Some("aec_demo"));
    assert_eq!(run.model.as_deref(), Some("Qwen/Qwen3.5-4B"));
    assert_eq!((run.num_examples, run.total_samples), (Some(2), Some(250)));
}

#[test]
fn hosted_samples_are_read_from_a_page() {
    for (name, count) in [("hosted/samples.json", 6), ("hosted/training-rollouts.json", 1)] {
        let mut seen = 0;
        for row in source(name).rows {
            let rollout = row.unwrap().rollouts.pop().unwrap();
            seen += 1;
            assert!(rollout.sample_id.as_deref().unwrap().starts_with("hosted-"));
            assert_eq!(rollout.task.task_id.as_deref(), Some("electrical/x"));
            assert_eq!(rollout.submissions.len(), 1);
            assert!(rollout.final_environment_response);
            let submitted = rollout.submitted().unwrap();
            assert!(submitted.is_accepted);
            assert_eq!(submitted.text.as_deref(), Some("42"));
            assert_eq!(submitted.file().unwrap(), Path::new("output.md"));
            assert_eq!(rollout.messages.last().unwrap().role, Role::User);
            assert_eq!(rollout.timing.total, Some(1.5));
            assert_eq!(rollout.created_at.as_deref(), Some("2026-11-15T00:00:00Z"));
            assert_eq!(outcome::fault(&rollout), None);
        }
        assert_eq!(seen, count);
    }
}

#[test]
fn traces_of_verifiers_0_4_0_are_read() {
    let all = rollouts("v040");
    assert_eq!(all.len(), 4);
    for rollout in all {
        assert_eq!(rollout.stop.given.as_deref(), Some("agent_completed"));
        assert_eq!(rollout.stop.kind, StopKind::Completed);
        assert_eq!(rollout.reward, Some(1.0));
        assert_eq!((rollout.prompt_messages, rollout.messages.len(), rollout.branches), (1, 2, 1));
        assert_eq!((rollout.tokens_in, rollout.tokens_out), (Some(37), Some(1)));
        assert_eq!((rollout.model.as_deref(), rollout.verifiers.as_deref()), (Some("mock"), Some("0.4.0")));
        assert_eq!(rollout.task.harness.as_deref(), Some("null"));
        assert!(rollout.task.task_id.as_deref().unwrap().starts_with("t/"));
        assert_eq!(rollout.is_truncated, Some(false));
        assert!(rollout.timing.total.unwrap() >= rollout.timing.generation.unwrap());
        assert_eq!(rollout.notes, []);
    }
}

#[test]
fn a_run_with_workspace_tools_tells_what_happened() {
    let all = rollouts("workspace-0.1.14");
    let [good, errors, empty, odd, nan] = all.try_into().unwrap();
    assert_eq!(good.reward, Some(1.0));
    assert_eq!(good.messages[1].reasoning.as_deref(), Some("look first"));
    assert!(good.messages[0].text.contains('𝑥'));
    assert_eq!((good.task.max_turns, good.task.max_total_tokens), (Some(6), Some(4096)));
    assert_eq!(good.task.discipline.as_deref(), Some("electrical"));
    assert_eq!(good.task.revision.as_deref().map(str::len), Some(64));
    assert!(good.final_environment_response);

    assert_eq!(errors.tool_errors, 5);
    assert_eq!((errors.tool_calls, errors.submissions.len()), (5, 1));
    assert!(!errors.submitted().unwrap().is_accepted);
    assert_eq!(outcome::agent_result(&errors, &Run::default())["submitted"], false);
    assert_eq!(errors.stop.kind, StopKind::NoToolsCalled);

    assert!(empty.is_empty_response);
    assert_eq!(outcome::fault(&empty).unwrap().kind.as_deref(), Some("empty"));
    assert_eq!(empty.error.unwrap().chain, ["EmptyModelResponseError"]);

    assert_eq!(odd.notes, [Note::HalfSurrogate { count: 1 }]);
    assert_eq!(odd.final_text.as_deref(), Some("half a pair \u{fffd} and a whole one 😀"));
    assert_eq!(odd.submitted().unwrap().file().unwrap(), Path::new("answer.md"));

    assert_eq!(nan.reward, None);
    let passed_over = Note::PassedOver { key: "reward".to_owned(), found: "null".to_owned() };
    assert_eq!(nan.notes, [Note::NotANumber { count: 3 }, passed_over]);
    assert_eq!(nan.metrics.get("num_turns"), Some(&2.0));
    assert!(source("workspace-0.1.14").run_problem.is_none());
}

#[test]
fn verifiers_0_3_1_writes_rows_in_any_order_and_errors_with_a_message() {
    let mut all = rollouts("workspace-0.3.1");
    all.sort_by(|one, other| one.example_id.cmp(&other.example_id));
    let [good, errors, empty, failed, nan] = all.try_into().unwrap();
    assert_eq!((good.reward, good.submissions.len()), (Some(1.0), 1));
    assert_eq!((errors.tool_errors, errors.tool_calls), (5, 5));
    assert!(empty.is_empty_response);
    assert_eq!(
        empty.error.unwrap().message.as_deref(),
        Some("Model returned no content and did not call any tools")
    );
    let error = failed.error.as_ref().unwrap();
    assert_eq!(error.chain, ["ModelError", "ValidationError"]);
    assert!(outcome::fault(&failed).unwrap().message.starts_with("ModelError() -> 1 validation error"));
    assert_eq!(failed.tokens_in, None);
    assert_eq!(nan.reward, None);
    let run = source("workspace-0.3.1").run.unwrap();
    assert_eq!(run.versions["vf_version"], "0.3.1");
}

#[test]
fn verifiers_0_1_9_has_times_and_metrics_beside_the_reward_and_no_ids_of_calls() {
    let [good, empty] = rollouts("workspace-0.1.9").try_into().unwrap();
    assert_eq!((good.turns, good.tool_calls, good.reward), (3, 2, Some(1.0)));
    assert_eq!(good.messages[2].tool_call_id.as_deref(), Some("call_0"));
    assert!(good.submitted().unwrap().is_accepted && good.final_environment_response);
    assert_eq!(good.metrics.len(), 5);
    assert_eq!(good.metrics.get("total_tool_calls"), Some(&2.0));
    assert!((good.timing.total.unwrap() - 0.362_573_862_075_8).abs() < 1e-9);
    assert!(good.timing.generation.is_some() && good.timing.scoring.is_some());
    assert_eq!((good.stop.kind, good.tokens_in), (StopKind::Unknown, None));
    assert!(empty.is_empty_response && empty.error.is_none());
    assert_eq!(source("workspace-0.1.9").run.unwrap().max_tokens(), Some(512));
}

#[test]
fn verifiers_0_1_10_and_0_1_12_have_times_in_milliseconds_and_tasks_as_labels() {
    for version in ["0.1.10", "0.1.12"] {
        let name = format!("workspace-{version}");
        let [good, empty] = rollouts(&name).try_into().unwrap();
        assert_eq!((good.turns, good.tool_calls, good.reward), (3, 2, Some(1.0)), "{name}");
        assert_eq!(good.task.task_id.as_deref(), Some("electrical/old"), "{name}");
        assert!(good.submitted().unwrap().is_accepted && good.final_environment_response, "{name}");
        assert_eq!(good.stop.kind, StopKind::NoToolsCalled, "{name}");
        assert_eq!(
            good.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(),
            ["run_command", "submit_answer"]
        );
        assert_eq!((good.tokens_in, good.tokens_out), (Some(300), Some(30)), "{name}");
        assert!(good.timing.total.is_some_and(|seconds| seconds > 0.0 && seconds < 60.0), "{name}");
        assert!(empty.is_empty_response && empty.error.is_some(), "{name}");
        let run = source(&name).run.unwrap();
        assert_eq!((run.versions["vf_version"].as_str(), run.max_tokens()), (version, Some(512)));
    }
}

#[test]
fn traces_with_tools_of_a_server_are_read() {
    let mut all = rollouts("v040-tools");
    all.sort_by(|one, other| one.example_id.cmp(&other.example_id));
    let [good, empty] = all.try_into().unwrap();
    assert_eq!(good.task.task_id.as_deref(), Some("electrical/v1good"));
    assert_eq!(good.submitted().unwrap().text.as_deref(), Some("42"));
    assert!(good.final_environment_response);
    assert_eq!((good.turns, good.tool_calls, good.tool_errors), (3, 2, 1));
    assert_eq!(good.messages[1].reasoning.as_deref(), Some("look"));
    assert_eq!((good.tokens_in, good.reward), (Some(300), Some(1.0)));
    assert_eq!(good.tools.len(), 2);
    assert!(empty.is_empty_response);
    assert_eq!(outcome::fault(&empty).unwrap().kind.as_deref(), Some("empty"));
    let run = source("v040-tools").run.unwrap();
    assert_eq!((run.split(), run.seed()), (Some("eval"), Some(&7.into())));
    for rollout in rollouts("v040-provider-error") {
        let fault = outcome::fault(&rollout).unwrap();
        assert_eq!((fault.boundary, fault.kind.as_deref()), (Boundary::Provider, Some("server")));
        assert_eq!((rollout.reward, rollout.tokens_in, rollout.timing.scoring), (None, None, None));
        assert!(rollout.messages.is_empty() && !rollout.is_empty_response);
        assert_eq!(rollout.instruction().map(|text| text.starts_with("CASE=")), Some(true));
    }
}

#[test]
fn the_raw_row_is_kept_as_it_was_written() {
    let text = std::fs::read_to_string(fixture("v014/tools/results.jsonl")).unwrap();
    let rows: Vec<Row> = source("v014/tools").rows.collect::<Result<_, _>>().unwrap();
    for (row, line) in rows.iter().zip(text.lines()) {
        assert_eq!(row.raw, line.as_bytes());
    }
    assert_eq!(rows.iter().map(|row| row.line).collect::<Vec<_>>(), [1, 2, 3, 4]);
}
