//! The native executor: tools, workspaces, verdicts, selections.

use aec_model::script::{Script, ScriptedConversation};
use aec_model_server::Answers;
use serde_json::{Value, json};
use std::sync::Arc;

use crate::eval::world::{World, calls, only, rows, says};

/// A test project whose model works in a workspace, with these replies.
fn workspace(replies: Vec<aec_model::script::ScriptedReply>) -> World {
    let world = World::with(|options| {
        let conversation = ScriptedConversation { when: String::new(), replies };
        let script = Script { replies: vec![says("x")], conversations: vec![conversation] };
        options.answers = Answers::Script(Arc::new(script));
    });
    world.workspace_environment("my-env");
    world
}

fn only_row(world: &World) -> Value {
    let run = world.saved("my_env", "my-env");
    rows(&run).remove(0)
}

#[test]
fn files_are_written_read_and_listed_without_a_room() {
    let world = workspace(vec![
        calls("write_file", json!({"path": "notes/a.txt", "content": "seven"})),
        calls("read_file", json!({"path": "/workspace/notes/a.txt"})),
        calls("list_files", json!({})),
        calls("read_file", json!({"path": "../etc/passwd"})),
        calls("read_file", json!({"path": "notes"})),
        calls("fly", json!({})),
        calls("read_file", json!({"paths": "x"})),
        says("done"),
    ]);
    world.eval("eval run my-env -n 1 -r 1 -s");
    let row = only_row(&world);
    let said: Vec<&str> = row["completion"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert_eq!(
        said,
        [
            "wrote 5 bytes to notes/a.txt",
            "seven",
            "         5 notes/a.txt\n",
            "error: cannot read `../etc/passwd`: it is not a path below /workspace",
            "error: cannot read `notes`: it is a directory",
            "error: there is no tool `fly`; the tools are bash, read_file, write_file, edit_file, list_files, submit_answer",
            "error: there is no argument `paths`; `read_file` takes {\"path\": string, \"offset\": integer?, \"limit\": integer?}",
        ]
    );
    assert_eq!(row["stop_condition"], "no_tools_called");
    let counts =
        only(&row["metrics"], &["num_turns", "total_tool_calls", "read_file_calls", "submit_answer_calls"]);
    assert_eq!(
        counts,
        json!({"num_turns": 8.0, "total_tool_calls": 7.0, "read_file_calls": 4.0, "submit_answer_calls": 0.0})
    );
    let tools: Vec<&str> =
        row["tool_defs"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(tools, ["bash", "read_file", "write_file", "edit_file", "list_files", "submit_answer"]);
}

#[test]
fn commands_run_in_a_room_that_has_the_files() {
    let world = workspace(vec![
        calls("write_file", json!({"path": "a.txt", "content": "seven\n"})),
        calls("bash", json!({"command": "cat a.txt; echo eight > b.txt; echo oops >&2; exit 3"})),
        calls("read_file", json!({"path": "b.txt"})),
        calls("bash", json!({"command": "cat /etc/shadow /workspace/../tests/* 2>&1 | head -c 200; true"})),
        calls("submit_answer", json!({"content": "{}", "path": "answer.json"})),
        says("never said"),
    ]);
    world.eval("eval run my-env -n 1 -r 1 -s");
    let row = only_row(&world);
    let said: Vec<&str> = row["completion"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert_eq!(said[1], "seven\n\nSTDERR: oops\n\n[exit code: 3]");
    assert_eq!(said[2], "eight\n");
    assert!(!said[3].contains("root:"), "{}", said[3]);
    assert_eq!(
        (&row["stop_condition"], &row["metrics"]["submitted"]),
        (&json!("has_final_env_response"), &json!(1.0))
    );
}

#[test]
fn limits_of_turns_stop_after_the_last_calls() {
    let world = workspace(vec![calls("list_files", json!({}))]);
    let run =
        world.env.run(["eval", "run", "my-env", "-n", "1", "-r", "1", "-s", "-x", r#"{"max_turns": 3}"#]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let row = only_row(&world);
    assert_eq!(
        (&row["stop_condition"], &row["metrics"]["num_turns"]),
        (&json!("max_turns_reached"), &json!(3.0))
    );
    assert_eq!(row["metrics"]["total_tool_calls"], 3.0);
    let run = world.env.run([
        "--json",
        "eval",
        "run",
        "my-env",
        "-n",
        "1",
        "-r",
        "1",
        "-a",
        r#"{"max_total_tokens": 10}"#,
    ]);
    assert_eq!(run.data()["evaluations"][0]["stop_conditions"], json!({"token_budget_reached": 1}));
}

#[test]
fn datasets_and_selections_need_no_package() {
    let world = World::new();
    let run = world.run("--json eval run --task electrical -n -1 -r 1");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.data()["evaluations"][0]["num_examples"], 6);
    crate::eval::world::ok(&world.env, "dataset create --name small --version 1.0.0 --pattern mechanical/*");
    let data = world.eval("eval run small@1.0.0 -n -1 -r 1 -s");
    assert_eq!(data["num_examples"], 4);
    assert!(world.env.path("outputs/evals/small@1.0.0--gpt-4.1-mini").is_dir());
    let run = world.run("eval run my-env --task electrical");
    assert_eq!(run.code, Some(2), "{run:?}");
}

#[test]
fn a_failing_service_is_an_error_of_the_row_not_of_the_run() {
    let world = World::with(|options| options.faults = vec!["overlong=1.0".parse().unwrap()]);
    world.environment("my-env");
    let data = world.eval("eval run my-env -n 1 -r 2 -s");
    assert_eq!(data["stop_conditions"], json!({"prompt_too_long": 2}));
    assert_eq!((&data["truncated"], &data["errored"]), (&json!(2), &json!(0)));
}

#[test]
fn rollouts_can_go_to_the_ledger() {
    let world = World::new();
    world.environment("my-env");
    let data = world.eval("eval run my-env -n 3 -r 2 -s --ledger evaluation-one");
    assert_eq!(data["rows"], 6);
    let run = world.run("--json evaluate -e evaluation-one");
    assert_eq!(run.code, Some(0), "{run:?}");
    let verified = world.run("ledger verify -e evaluation-one");
    assert_eq!(verified.code, Some(0), "{verified:?}");
}
