//! `task.toml`: the effect of every documented key, and the spellings of older tools.

use serde_json::{Value, json};

use crate::cli::empty_project;

/// The example of the configuration reference, word for word.
const DOCUMENTED: &str = r#"version = "1.0"

[metadata]
difficulty = "easy"              # easy | medium | hard
visibility = "public"            # public | holdout
category   = "reasoning"
tags       = ["electrical", "AS-NZS-3008"]

[agent]
timeout_sec = 600.0

[verifier]
timeout_sec = 300.0

[environment]
extensions         = []
build_timeout_sec  = 600.0
cpus               = 2
memory_mb          = 4096
storage_mb         = 10240
allow_internet     = true
"#;

fn show(task_toml: &str) -> Result<Value, String> {
    let env = empty_project();
    aec_xtest::tree::write_task(&env.path("tasks/demo/x"), task_toml);
    let run = env.run(["--json", "task", "show", "demo/x"]);
    match run.code {
        Some(0) => Ok(run.data()["task"].clone()),
        _ => Err(run.errors().iter().map(|(id, what)| format!("{id} {what}")).collect::<Vec<_>>().join("; ")),
    }
}

#[test]
fn the_documented_file_is_read_as_written() {
    let task = show(DOCUMENTED).unwrap();
    insta::assert_json_snapshot!("task_documented", task, { ".path" => "[PATH]" });
}

#[test]
fn every_key_has_its_effect() {
    let cases = [
        ("[metadata]\ndifficulty = \"hard\"", "/difficulty", json!("hard")),
        ("[metadata]\nvisibility = \"holdout\"", "/visibility", json!("holdout")),
        ("[metadata]\ncategory = \"design\"", "/category", json!("design")),
        ("[metadata]\ntags = [\"a\", \"b\"]", "/tags", json!(["a", "b"])),
        ("[metadata]\nlifecycle = \"deprecated\"", "/lifecycle", json!("deprecated")),
        ("[metadata]\ndomain = \"ground\"", "/domain", json!("ground")),
        ("[metadata]\nstandard = \"AS 4100\"", "/standard", json!("AS 4100")),
        ("[metadata]\ngeneration_difficulty = \"expert\"", "/generation_difficulty", json!("expert")),
        ("[agent]\ntimeout_sec = 12.5", "/agent/timeout_sec", json!(12.5)),
        ("[agent]\noutputs = [\"report.md\"]", "/agent/outputs", json!(["report.md"])),
        ("[verifier]\ntimeout_sec = 7", "/verifier/timeout_sec", json!(7.0)),
        ("[environment]\nextensions = [\"ocr\"]", "/environment/extensions", json!(["ocr"])),
        ("[environment]\nbuild_timeout_sec = 60", "/environment/build_timeout_sec", json!(60.0)),
        ("[environment]\ncpus = 4", "/environment/cpus", json!(4)),
        ("[environment]\nmemory_mb = 512", "/environment/memory_mb", json!(512)),
        ("[environment]\nstorage_mb = 64", "/environment/storage_mb", json!(64)),
        ("[environment]\nallow_internet = true", "/environment/allow_internet", json!(true)),
        ("[environment]\nnetwork_mode = \"public\"", "/environment/allow_internet", json!(true)),
        ("[environment]\nnetwork_mode = \"none\"", "/environment/allow_internet", json!(false)),
        ("[generation]\ntemplate = \"t\"\nseed = 42", "/generation/seed", json!(42)),
    ];
    let defaults = show("").unwrap();
    for (text, pointer, expected) in cases {
        let task = show(text).unwrap();
        assert_eq!(task.pointer(pointer), Some(&expected), "{text}");
        if pointer != "/environment/allow_internet" {
            assert_ne!(defaults.pointer(pointer), Some(&expected), "{text} differs from the default");
        }
    }
}

#[test]
fn absent_keys_have_documented_meanings() {
    let task = show("").unwrap();
    insta::assert_json_snapshot!("task_defaults", task, { ".path" => "[PATH]" });
    assert_eq!(task["visibility"], Value::Null, "unknown, never public");
    assert_eq!(task["environment"]["allow_internet"], false);
}

#[test]
fn wrong_values_are_rejected_with_the_key() {
    for (text, expected) in [
        ("version = \"2.0\"", "T005 `version` \"2.0\" is not known"),
        ("version = 1.0", "T004 `version` must be text in quotes, not 1.0"),
        ("difficulty = \"easy\"", "T003 unknown key `difficulty` here"),
        ("[metadata]\ndifficulty = \"extreme\"", "T005 `metadata.difficulty` cannot be \"extreme\""),
        ("[metadata]\nvisibility = \"private\"", "T005 `metadata.visibility` cannot be \"private\""),
        ("[metadata]\nlifecycle = \"done\"", "T005 `metadata.lifecycle` cannot be \"done\""),
        ("[metadata]\ntags = \"a\"", "T004 `metadata.tags` must be a list, not the text \"a\""),
        (
            "[agent]\ntimeout_sec = 0",
            "T005 `agent.timeout_sec` must be more than 0 and at most 604800 seconds, not 0",
        ),
        (
            "[agent]\ntimeout_sec = inf",
            "T005 `agent.timeout_sec` must be more than 0 and at most 604800 seconds, not inf",
        ),
        ("[agent]\ntimeout_sec = \"10\"", "T004 `agent.timeout_sec` must be a number, not the text \"10\""),
        ("[agent]\noutputs = [\"../x\"]", "T005 `agent.outputs[0]` is not a file below /workspace"),
        ("[verifier]\ntimeout = 5", "T003 unknown key `timeout` in `verifier`"),
        ("[environment]\ncpus = 1.5", "T004 `environment.cpus` must be a whole number, not 1.5"),
        (
            "[environment]\nmemory_mb = -1",
            "T005 `environment.memory_mb` must be a whole number from 1 to 4294967295, not -1",
        ),
        (
            "[environment]\nallow_internet = \"no\"",
            "T004 `environment.allow_internet` must be true or false, not the text \"no\"",
        ),
        (
            "[environment]\nallow_internet = true\nnetwork_mode = \"none\"",
            "T007 `environment.network_mode` and `environment.allow_internet` say the same thing",
        ),
        ("[[environment.tools]]\nname = \"t\"", "T006 `environment.tools[0].source` is missing"),
    ] {
        assert_eq!(show(text).unwrap_err(), expected, "{text}");
    }
}

#[test]
fn tools_are_declared_in_two_ways_or_found() {
    let env = empty_project();
    let tools = |task_toml: &str| {
        aec_xtest::tree::write_task(&env.path("tasks/demo/x"), task_toml);
        env.run(["--json", "task", "show", "demo/x"]).data()["tools"].clone()
    };
    assert_eq!(tools(""), json!([]));
    env.write("tasks/demo/x/tools/b_calc.py", "");
    env.write("tasks/demo/x/tools/a.py", "");
    env.write("tasks/demo/x/tools/data.csv", "");
    env.write("tasks/demo/x/environment/c_calc.py", "");
    let names = |tools: Value| -> Vec<String> {
        tools
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| format!("{}={}", tool["name"].as_str().unwrap(), tool["source"].as_str().unwrap()))
            .collect()
    };
    assert_eq!(names(tools("")), ["a=tools/a.py", "b-calc=tools/b_calc.py"]);
    let scripts = tools("[tools]\nscripts = [\"c_calc.py\", \"b_calc.py\"]\n");
    assert_eq!(scripts[0]["description"], "Calculator tool: c calc");
    assert_eq!(names(scripts), ["c-calc=environment/c_calc.py", "b-calc=tools/b_calc.py"]);
    let declared =
        tools("[[environment.tools]]\nname = \"plot\"\nsource = \"tools/a.py\"\nreturns_image = true\n");
    assert_eq!(
        declared,
        json!([{"name": "plot", "source": "tools/a.py", "description": "Tool: plot", "returns_image": true}])
    );
}
