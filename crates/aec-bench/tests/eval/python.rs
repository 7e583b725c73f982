//! Environments that `verifiers` loads in workers, and the library's own reader on our results.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use aec_model::script::{Script, ScriptedConversation};
use aec_model_server::{Answers, Options};
use aec_xtest::files::copy;
use aec_xtest::venv::{run, with_verifiers};
use serde_json::{Value, json};

use crate::eval::world::{World, calls, metadata, only, rows, says};

/// A project with the environments of the worker tests, and a model that knows some sums.
pub(crate) fn world(replies: &[(&str, &str)]) -> World {
    world_with(replies, |_| {})
}

/// Like `world`, with changed options of the server.
pub(crate) fn world_with(replies: &[(&str, &str)], change: impl FnOnce(&mut Options)) -> World {
    let world = World::with(|options| {
        change(options);
        let conversation = |(when, reply): &(&str, &str)| ScriptedConversation {
            when: (*when).to_owned(),
            replies: vec![says(*reply)],
        };
        let conversations = replies.iter().map(conversation).collect();
        options.answers = Answers::Script(Arc::new(Script { replies: vec![says("7")], conversations }));
    });
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../eval/tests/worker/environments");
    copy(&fixtures, &world.env.path("environments"));
    world
}

/// Runs an evaluation in an interpreter and returns its data.
pub(crate) fn eval(world: &World, python: &Path, words: &[&str]) -> Value {
    let flag = python.to_str().unwrap();
    let run = world.env.run(["--json", "eval", "run"].iter().chain(words).chain(&["--python", flag]));
    assert!(matches!(run.code, Some(0 | 1)), "{words:?}: {run:?}");
    run.envelope()["data"]["evaluations"][0].clone()
}

fn check_version(version: &str) {
    let python = with_verifiers(version);
    let world = world(&[("1 + 1", "2"), ("2 + 2", "4"), ("3 + 3", "5")]);
    let data = eval(&world, &python, &["gsm8k", "-n", "3", "-r", "2", "-s", "-C", "nothing"]);
    assert_eq!((&data["rows"], &data["errored"]), (&json!(6), &json!(0)), "{data}");
    assert!((data["reward"]["mean"].as_f64().unwrap() - 2.0 / 3.0).abs() < 1e-12, "{data}");
    let saved = world.saved("gsm8k", "gsm8k");
    let told = metadata(&saved);
    assert_eq!(told["version_info"]["vf_version"], version);
    assert_eq!(told["avg_metrics"]["exact"], told["avg_reward"]);
    for row in rows(&saved) {
        assert_eq!(row["stop_condition"], "max_turns_reached");
        assert_eq!(row["prompt"][0]["role"], "user");
        assert!(row["token_usage"]["input_tokens"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["answer"].is_string() && row["info"]["n"].is_u64(), "{row}");
    }
    let requests = world.requests();
    assert!(requests.iter().all(|request| request["model"] == "gpt-4.1-mini"));
    // Groups, all at once, and one by one.
    let data = eval(&world, &python, &["reverse-text", "-n", "2", "-r", "3"]);
    assert_eq!(data["rows"], 6, "{data}");
    let flag = python.to_str().unwrap();
    let run = world.env.run(["eval", "run", "reverse-text", "-i", "--python", flag]);
    assert!(run.code == Some(3) && run.stderr.contains("R052"), "rewards compare rollouts: {run:?}");
    let data = eval(&world, &python, &["gsm8k", "-n", "3", "-r", "2", "-N"]);
    assert_eq!(data["rows"], 6);
    // A crash costs its own rollouts only.
    let crash = r#"{"misbehave": "crash", "at": "7"}"#;
    let data = eval(&world, &python, &["my-env", "-n", "3", "-r", "1", "-a", crash, "-i"]);
    assert_eq!((&data["rows"], &data["errored"]), (&json!(3), &json!(3)), "{data}");
    let broken = world.env.run(["eval", "run", "my-env", "-a", r#"{"misbehave": "load"}"#, "--python", flag]);
    assert_eq!(broken.code, Some(3), "{broken:?}");
    assert!(broken.stderr.contains("the data of this environment is not there"), "{broken:?}");
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn environments_of_verifiers_0_1_14_run() {
    check_version("0.1.14");
}

#[test]
#[cfg_attr(
    not(all(packages, full)),
    ignore = "needs the Python package index, and AEC_TEST=full: it is long"
)]
fn environments_of_verifiers_0_3_1_run() {
    check_version("0.3.1");
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn tasksets_of_verifiers_0_4_0_run() {
    let python = with_verifiers("0.4.0");
    let world = world(&[]);
    let data = eval(&world, &python, &["word-tasks", "-n", "2", "-r", "1", "-s"]);
    assert_eq!((&data["rows"], &data["errored"]), (&json!(2), &json!(0)), "{data}");
    assert!(data["lane"].as_str().unwrap().contains("0.4.0"), "{data}");
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn a_package_of_ours_comes_to_the_same_in_both_lanes() {
    let python = with_verifiers("0.1.14");
    let world = World::new();
    world.environment("my-env");
    let line = ["my-env", "-n", "-1", "-r", "1", "-s", "-o"];
    let native = world.env.run(["--json", "eval", "run"].iter().chain(&line).chain(&["native"]));
    assert_eq!(native.code, Some(0), "{native:?}");
    let words: Vec<&str> = line.iter().copied().chain(["python"]).collect();
    eval(&world, &python, &words);
    compare(&world, "my-env");
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn a_workspace_comes_to_the_same_in_both_lanes() {
    let python = with_verifiers("0.1.14");
    let replies = vec![
        calls("write_file", json!({"path": "notes/a.txt", "content": "seven"})),
        calls("read_file", json!({"path": "notes/a.txt"})),
        calls("list_files", json!({})),
        calls("read_file", json!({"path": "../x"})),
        calls("read_file", json!({"path": "notes"})),
        calls("bash", json!({"command": "cat notes/a.txt; ls; echo oops >&2; exit 3"})),
        calls("fly", json!({})),
        calls("submit_answer", json!({"content": "{}"})),
    ];
    let world = World::with(|options| {
        let script = Script { replies, conversations: Vec::new() };
        options.answers = Answers::Script(Arc::new(script));
    });
    world.workspace_environment("my-env");
    let line = ["my-env", "-n", "2", "-r", "1", "-s", "-o"];
    let native = world.env.run(["--json", "eval", "run"].iter().chain(&line).chain(&["native"]));
    assert_eq!(native.code, Some(0), "{native:?}");
    let words: Vec<&str> = line.iter().copied().chain(["python"]).collect();
    eval(&world, &python, &words);
    compare(&world, "my-env");
}

/// The rows in two directories must be equal.
fn compare(world: &World, name: &str) {
    let saved = |base: &str| -> PathBuf {
        let group = world.env.path(format!("{base}/evals/{name}--gpt-4.1-mini"));
        std::fs::read_dir(group).unwrap().next().unwrap().unwrap().path()
    };
    let (native, python) = (rows(&saved("native")), rows(&saved("python")));
    assert_eq!(native.len(), python.len());
    let keys = [
        "example_id",
        "prompt",
        "completion",
        "answer",
        "info",
        "reward",
        "error",
        "is_completed",
        "is_truncated",
        "stop_condition",
        "metrics",
        "tool_defs",
        "token_usage",
    ];
    for (native, python) in native.iter().zip(&python) {
        for key in keys {
            let (mut native, mut python) = (only(native, &[key]), only(python, &[key]));
            // The model draws the ids of calls.
            for messages in [&mut native, &mut python] {
                forget_ids(&mut messages["completion"]);
            }
            assert_eq!(native, python, "{key}");
        }
    }
    let order = |row: &Value| row.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(order(&native[0]), order(&python[0]), "also the order of the keys");
}

fn forget_ids(messages: &mut Value) {
    for message in messages.as_array_mut().into_iter().flatten() {
        if let Some(id) = message.get_mut("tool_call_id") {
            *id = json!("id");
        }
        for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
            let mut parsed: Value = serde_json::from_str(call.as_str().unwrap()).unwrap();
            parsed["id"] = json!("id");
            *call = parsed;
        }
    }
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn the_library_reads_what_we_write() {
    const READ: &str = "
import json, sys
from pathlib import Path
from verifiers.utils.path_utils import find_latest_incomplete_eval_results_path, is_valid_eval_results_path
from verifiers.utils.save_utils import load_outputs
run = Path(sys.argv[1])
assert is_valid_eval_results_path(run)
rows = load_outputs(run)
found = find_latest_incomplete_eval_results_path('my-env', 'gpt-4.1-mini', 4, 3)
print(json.dumps([len(rows), sum(row['reward'] for row in rows) / len(rows), str(found)]))
";
    let python = with_verifiers("0.1.14");
    let world = World::new();
    world.environment("my-env");
    world.eval("eval run my-env -n 3 -r 3 -s");
    let saved = world.saved("my_env", "my-env");
    let said = run(Command::new(python).args(["-c", READ]).arg(&saved).current_dir(world.env.dir())).unwrap();
    let said: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert_eq!((&said[0], &said[1]), (&json!(9), &metadata(&saved)["reward"]));
    let found = said[2].as_str().unwrap();
    assert!(found.ends_with(saved.file_name().unwrap().to_str().unwrap()), "it would go on with it: {found}");
}
