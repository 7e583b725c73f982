//! `experiment.yaml` as a file: the documented example, references, names, secrets.

use crate::cli::{empty_project, world};
use crate::run::plan::DOCUMENTED;

#[test]
fn the_documented_example_is_read_in_full() {
    let env = empty_project();
    env.write("experiment.yaml", DOCUMENTED);
    let data = env.run(["--json", "config", "view", "--config", "experiment.yaml"]).data();
    insta::assert_json_snapshot!("experiment_documented", data["experiment"]);
    assert_eq!(data["settings"]["compute.backend"]["value"], "modal");
}

#[test]
fn model_references_are_filled_in_and_secrets_are_not() {
    let mut env = empty_project();
    env.write(".env", "MY_MODEL=gpt-4.1\nOPENAI_API_KEY=sk-canary-123456\n");
    let view = |env: &aec_xtest::TestEnv, model: &str| {
        env.write("e.yaml", format!("agents: [{{name: a, harness: direct, model: \"{model}\"}}]\n"));
        env.run(["--json", "config", "view", "--config", "e.yaml"])
    };
    for reference in ["$MY_MODEL", "${MY_MODEL}", "env:MY_MODEL"] {
        assert_eq!(view(&env, reference).data()["experiment"]["agents"][0]["model"], "gpt-4.1");
    }
    assert_eq!(view(&env, "x$MY_MODEL").data()["experiment"]["agents"][0]["model"], "x$MY_MODEL");
    let unset = view(&env, "$NOT_SET");
    assert_eq!(unset.code, Some(3));
    assert!(unset.errors()[0].1.contains("refers to the variable NOT_SET, which is not set"));
    let secret = view(&env, "$OPENAI_API_KEY");
    assert_eq!(secret.code, Some(3));
    assert!(secret.errors()[0].1.contains("holds a secret"), "{secret:?}");
    // A secret that reaches a value in another way is removed wherever it is printed.
    let copied = view(&env, "sk-canary-123456");
    assert_eq!(copied.data()["experiment"]["agents"][0]["model"], "[OPENAI_API_KEY redacted]");
    env.set("HARBOR_TOKEN", "token-canary-9");
    let named = env.run(["task", "show", "token-canary-9"]);
    assert!(
        !named.stderr.contains("token-canary-9") && named.stderr.contains("[HARBOR_TOKEN redacted]"),
        "{named:?}"
    );
}

#[test]
fn hostile_names_and_missing_parts_are_errors() {
    let env = empty_project();
    for (name, text) in [
        ("traversal", "agents: [{name: ../../x, harness: nop}]"),
        ("control_characters", "experiment_id: \"exp\\e[2J\"\nagents: [{name: a, harness: nop}]"),
        ("no_agents", "name: x"),
        ("no_harness", "agents: [{name: a}]"),
        ("no_model", "agents: [{name: a, harness: direct}]"),
        ("both_spellings", "agents: [{name: a, harness: nop, adapter: nop}]"),
        ("same_name", "agents: [{name: a, harness: nop}, {name: a, harness: oracle}]"),
        ("prompt_outside", "agents: [{name: a, harness: nop, system_prompt_file: ../../etc/passwd}]"),
        ("prompt_unheard", "agents: [{name: a, harness: nop, system_prompt_file: prompts/a.md}]"),
        ("unknown_limit", "agents: [{name: a, harness: nop}]\ncompute: {resource_limits: {memory: 5}}"),
        ("zero_repetitions", "agents: [{name: a, harness: nop}]\nrepetitions: 0"),
        ("yaml_boolean", "agents: [{name: a, harness: nop}]\ndisable_verification: yes"),
    ] {
        env.write("e.yaml", text);
        let run = env.run(["config", "check", "e.yaml"]);
        assert_eq!(run.code, Some(1), "{name}");
        assert!(!run.stdout.contains('\x1b'));
        insta::assert_snapshot!(format!("experiment_{name}"), run.stdout);
    }
    env.write("e.yaml", "agents: [{name: a, adapter: oracle}]\n");
    let data = env.run(["--json", "config", "view", "--config", "e.yaml"]).data();
    assert_eq!(data["experiment"]["agents"][0]["harness"], "oracle", "`adapter` is another spelling");
}

#[test]
fn every_filter_of_the_tasks_block_selects() {
    let env = empty_project();
    let task = |id: &str, text: &str| aec_xtest::tree::write_task(&env.path("tasks").join(id), text);
    task("civil/a", "[metadata]\ndifficulty = \"easy\"\nvisibility = \"public\"\ntags = [\"x\", \"y\"]\n");
    task("civil/b", "[metadata]\ndifficulty = \"hard\"\nvisibility = \"holdout\"\ntags = [\"x\"]\n");
    task("ground/c", "[metadata]\nlifecycle = \"deprecated\"\n");
    for (block, expected) in [
        ("{}", "civil/a civil/b"),
        ("{include_patterns: [\"*/b\"]}", "civil/b"),
        ("{exclude_patterns: [\"*/b\"]}", "civil/a"),
        ("{domains: [ground]}", ""),
        ("{difficulties: [easy]}", "civil/a"),
        ("{lifecycle: [deprecated]}", "ground/c"),
        ("{lifecycle_filter: [active, deprecated]}", "civil/a civil/b ground/c"),
        ("{visibility: [holdout]}", "civil/b"),
        ("{tags: [x, y]}", "civil/a"),
        ("{tags: [x], difficulties: [hard]}", "civil/b"),
    ] {
        env.write("e.yaml", format!("tasks: {block}\nagents: [{{name: a, harness: nop}}]\n"));
        let data = env.run(["--json", "task", "list", "--config", "e.yaml"]).data();
        let ids: Vec<&str> =
            data["tasks"].as_array().unwrap().iter().map(|task| task["task_id"].as_str().unwrap()).collect();
        assert_eq!(ids.join(" "), expected, "{block}");
    }
}

#[test]
fn an_experiment_selects_tasks() {
    let env = world();
    env.init();
    let task = |id: &str, text: &str| aec_xtest::tree::write_task(&env.path("tasks").join(id), text);
    task("electrical/cable/basic", aec_xtest::tree::TASK_TOML);
    task("electrical/cable/hard", "[metadata]\ndifficulty = \"hard\"\n");
    task("civil/drain", aec_xtest::tree::TASK_TOML);
    env.write(
        "artefacts/datasets/electrical-v1/1.0.0/manifest.json",
        r#"{"name":"electrical-v1","tasks":[{"task_id":"electrical.cable.basic"},{"task_id":"electrical/cable/hard"},{"task_id":"electrical.gone"}]}"#,
    );
    env.write("experiment.yaml", DOCUMENTED);
    let run = env.run(["--json", "task", "list", "--config", "experiment.yaml"]);
    assert_eq!(run.code, Some(1), "one task of the dataset is not here");
    let envelope = run.envelope();
    assert_eq!(envelope["data"]["total"], 1);
    assert_eq!(envelope["data"]["tasks"][0]["task_id"], "electrical/cable/basic");
    assert!(run.errors()[0].1.contains("electrical.gone"), "{run:?}");
}
