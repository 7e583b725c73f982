//! One set of tools: a policy gets the same tools, texts and results in a trial of `tool_loop`, in the native executor
//! and in an exported package, under each generation of `verifiers`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aec_model::script::{Script, ScriptedCall, ScriptedReply};
use aec_model_server::Answers;
use aec_xtest::venv::with_verifiers;
use serde_json::{Value, json};

use crate::eval::python::eval;
use crate::eval::world::{World, ok, says};

/// A project with one task that has a file and its own tool, and a model that makes these calls in one turn.
fn world(calls: Vec<(&str, Value)>) -> World {
    let world = World::with(|options| {
        let tool_calls =
            calls.into_iter().map(|(name, arguments)| ScriptedCall { name: name.to_owned(), arguments });
        let reply = ScriptedReply { tool_calls: tool_calls.collect(), ..ScriptedReply::default() };
        let script = Script { replies: vec![reply, says("done")], conversations: Vec::new() };
        options.answers = Answers::Script(Arc::new(script));
    });
    let survey =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/prime/python/fixtures/tasks/civil/culvert-survey");
    std::fs::create_dir_all(world.env.path("tasks/civil")).unwrap();
    aec_xtest::files::copy(&survey, &world.env.path("tasks/civil/culvert-survey"));
    ok(
        &world.env,
        "prime export --quiet --name my-env --output-dir environments --task civil/culvert-survey",
    );
    world
}

/// The requests in each way of running: a trial, the native executor, and the package in these interpreters.
fn requests(world: &World, pythons: &[PathBuf]) -> Vec<(String, Vec<Value>)> {
    let mut seen = 0;
    let mut take = |way: &str| {
        let all = world.requests();
        let new = all[seen..].to_vec();
        seen = all.len();
        (way.to_owned(), new)
    };
    let run = world.run(
        "run civil/culvert-survey --model gpt-4.1-mini --harness tool_loop --parameter command_timeout=5 \
         --parameter max_tokens=1000000 -e x",
    );
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    let mut ways = vec![take("run")];
    let arguments = r#"{"command_timeout_sec": 5, "split": "all"}"#;
    let native =
        world.env.run(["eval", "run", "my-env", "-n", "1", "-r", "1", "-t", "1000000", "-a", arguments]);
    assert_eq!(native.code, Some(0), "{native:?}");
    ways.push(take("native"));
    for python in pythons {
        eval(world, python, &["my-env", "-n", "1", "-r", "1", "-t", "1000000", "-a", arguments]);
        ways.push(take(&python.display().to_string()));
    }
    ways
}

/// The interpreters of both generations. Tests with them need the part `packages`.
fn pythons() -> Vec<PathBuf> {
    ["0.1.14", "0.4.0"].into_iter().map(with_verifiers).collect()
}

#[test]
fn every_native_door_offers_the_same_tools_and_prompts() {
    check_offers(&[]);
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn every_door_offers_the_same_tools_and_prompts() {
    check_offers(&pythons());
}

fn check_offers(pythons: &[PathBuf]) {
    let world = world(vec![("submit_answer", json!({"content": "{}"}))]);
    let told: Vec<(String, Value)> = requests(&world, pythons)
        .into_iter()
        .map(|(way, requests)| {
            let tools = requests[0]["tools"].as_array().unwrap().iter().map(|tool| {
                let function = &tool["function"];
                json!([function["name"], function["description"], function["parameters"]])
            });
            let tools: Vec<Value> = tools.collect();
            (way, json!({"tools": tools, "messages": requests[0]["messages"]}))
        })
        .collect();
    let names: Vec<&str> =
        told[0].1["tools"].as_array().unwrap().iter().map(|tool| tool[0].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["bash", "read_file", "write_file", "edit_file", "list_files", "submit_answer", "grade"]
    );
    for (way, what) in &told[1..] {
        assert_eq!(what, &told[0].1, "{way}");
    }
}

/// Calls that are right, wrong, large, empty, outside and in conflict with each other. None submits an answer: that
/// would end the work, and the results of the calls beside it would not be sent.
fn calls() -> Vec<(&'static str, Value)> {
    let command = |command: &str| ("bash", json!({"command": command}));
    let read = |path: &str| ("read_file", json!({"path": path}));
    let write = |path: &str, content: &str| ("write_file", json!({"path": path, "content": content}));
    let edit = |old: &str, new: &str| ("edit_file", json!({"path": "a.txt", "old": old, "new": new}));
    let lines = |offset: Value, limit: Value| {
        ("read_file", json!({"path": "a.txt", "offset": offset, "limit": limit}))
    };
    let list = |path: &str| ("list_files", json!({"path": path}));
    vec![
        // In memory, if the executor has that.
        ("list_files", json!({})),
        list("data"),
        list("nowhere"),
        list("data/survey.csv"),
        list("/"),
        write("a.txt", "one\ntwo\nthree"),
        write("./b//c.txt", "ü→😀"),
        write("data", "x"),
        write("a.txt/x", "x"),
        write("../x", "x"),
        write("/etc/x", "x"),
        write("", "x"),
        write(&"n".repeat(300), "x"),
        write("empty", ""),
        read("a.txt"),
        read("/workspace/b/c.txt"),
        read("empty"),
        read("missing"),
        read("data"),
        read("a.txt/x"),
        read("\u{1b}[2J\u{202e}"),
        lines(json!(2), json!(1)),
        lines(json!(3), Value::Null),
        lines(json!(4), Value::Null),
        lines(Value::Null, json!(2)),
        lines(json!(0), Value::Null),
        lines(json!(1.5), Value::Null),
        lines(json!("2"), Value::Null),
        edit("two", "2"),
        edit("absent", "2"),
        edit("e", "E"),
        edit("", "E"),
        read("a.txt"),
        ("fly", json!({"to": "x"})),
        ("read_file", json!({})),
        ("read_file", json!({"path": 7})),
        ("read_file", json!({"path": "a.txt", "mode": "r"})),
        ("read_file", json!("[1]")),
        ("read_file", json!("{\"path\": NaN}")),
        ("read_file", json!("{")),
        ("bash", json!("")),
        ("submit_answer", json!({})),
        ("submit_answer", json!({"content": {"a": 1}})),
        ("submit_answer", json!({"path": "missing"})),
        command(" "),
        command("echo \u{0}"),
        command(&"#".repeat(120_001)),
        // In a room.
        command("cat a.txt b/c.txt; echo oops >&2; exit 3"),
        command("true"),
        command("echo only >&2"),
        command("kill -9 $$"),
        command("no-such-program"),
        command("env | grep -v '^PATH=' | sort; pwd"),
        command("echo begun; sleep 60"),
        command("seq 100000; seq 10 >&2"),
        command("sort -n /logs/tool-output/55.txt | tail -n 1"),
        command("printf 'a\\377\\0b' > binary; mkdir hollow; ln -s /etc out; ln -s a.txt link; mkfifo pipe"),
        read("binary"),
        read("link"),
        read("out/passwd"),
        read("pipe"),
        write("link", "x"),
        write("out/made/x", "x"),
        write("pipe", "x"),
        write("hollow", "x"),
        list("hollow"),
        list("out"),
        ("list_files", json!({})),
        command("head -c 60000 /dev/zero | tr '\\0' x > wide; head -c 11000000 /dev/zero > huge"),
        read("wide"),
        read("huge"),
        ("grade", json!({"command": "2 1 50"})),
        ("grade", json!({"line": "2 1 50"})),
        ("submit_answer", json!({"path": "hollow"})),
    ]
}

#[test]
fn every_native_door_answers_every_call_alike() {
    check_answers(&[]);
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn every_door_answers_every_call_alike() {
    check_answers(&[with_verifiers("0.1.14")]);
}

fn check_answers(pythons: &[PathBuf]) {
    let calls = calls();
    let world = world(calls.clone());
    let ways: Vec<(String, Vec<String>)> = requests(&world, pythons)
        .into_iter()
        .map(|(way, requests)| {
            let messages = requests.last().unwrap()["messages"].as_array().unwrap().clone();
            let results = messages.iter().filter(|message| message["role"] == "tool");
            (way, results.map(|message| message["content"].as_str().unwrap().to_owned()).collect())
        })
        .collect();
    assert_eq!(ways[0].1.len(), calls.len());
    for (way, results) in &ways[1..] {
        assert_eq!(results.len(), calls.len(), "{way}");
        for ((call, expected), found) in calls.iter().zip(&ways[0].1).zip(results) {
            let call: String = format!("{call:?}").chars().take(200).collect();
            assert_eq!(found, expected, "{way}: {call}");
        }
    }
}
