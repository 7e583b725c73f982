//! JSON Schemas: they accept the documented files and reject what the program rejects.

use serde_json::{Value, json};

use crate::cli::world;

fn validator(noun: &str) -> jsonschema::Validator {
    let run = world().run(["schema", noun]);
    assert_eq!(run.code, Some(0));
    let schema: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(world().run(["--json", "schema", noun]).data(), schema);
    jsonschema::validator_for(&schema).unwrap()
}

#[test]
fn schemas_accept_what_the_program_accepts() {
    let project = validator("project");
    assert!(project.is_valid(
        &json!({"project": {"name": "x"}, "paths": {"tasks": "t"}, "compute": {"backend": "modal"}})
    ));
    assert!(!project.is_valid(&json!({"paths": {"task": "t"}})));
    assert!(!project.is_valid(&json!({"compute": {"backend": "cloud"}})));
    let task = validator("task");
    assert!(task.is_valid(&json!({
        "version": "1.0",
        "metadata": {"difficulty": "easy", "visibility": "public", "category": "reasoning", "tags": ["electrical"]},
        "agent": {"timeout_sec": 600.0}, "verifier": {"timeout_sec": 300.0},
        "environment": {"extensions": [], "build_timeout_sec": 600.0, "cpus": 2, "memory_mb": 4096,
                        "storage_mb": 10240, "allow_internet": true}
    })));
    assert!(!task.is_valid(&json!({"metadata": {"difficulty": "extreme"}})));
    assert!(!task.is_valid(&json!({"agent": {"timeout_sec": 0}})));
    assert!(!task.is_valid(&json!({"environment": {"cpus": 0}})));
    let suite = validator("suite");
    assert!(suite.is_valid(&json!({"name": "s", "seed": 1, "coverage": {"difficulties": {"easy": 1.0}}})));
    assert!(!suite.is_valid(&json!({"coverage": {"difficulties": {"easy": 2}}})));
    let experiment = validator("experiment");
    assert!(experiment.is_valid(&json!({"agents": [{"name": "a", "harness": "tool_loop", "model": "m"}]})));
    assert!(!experiment.is_valid(&json!({"agents": [{"name": "../x", "harness": "tool_loop"}]})));
    let script = validator("script");
    assert!(script.is_valid(
        &json!({"replies": [{"text": "a", "tool_calls": [{"name": "f", "arguments": {}}], "stop": "length"}]})
    ));
    assert!(!script.is_valid(&json!({"replies": [{"says": "a"}]})));
    let user = validator("user-config");
    assert!(user.is_valid(&json!({"tasks_root": "tasks"})));
    assert!(!user.is_valid(&json!({"backend": "modal"})));
}

#[test]
fn schemas_can_be_listed_and_written() {
    let env = world();
    insta::assert_snapshot!("schema_list", env.run(["schema"]).stdout);
    assert_eq!(env.run(["schema", "--output", "schemas"]).code, Some(0));
    for noun in
        ["dataset", "endpoints", "experiment", "prices", "project", "script", "suite", "task", "user-config"]
    {
        let written = env.read(format!("schemas/{noun}.json"));
        assert_eq!(written, env.run(["schema", noun]).stdout);
        insta::assert_snapshot!(format!("schema_{noun}"), written);
    }
}

#[test]
fn the_schema_of_templates_accepts_the_library() {
    let schema = validator("template");
    let library = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../library");
    let mut count = 0;
    for path in crate::cli::template::walk(&library).into_iter().filter(|path| path.ends_with("params.toml"))
    {
        let table: toml::Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
        let value = serde_json::to_value(table).unwrap();
        let errors: Vec<String> = schema.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", path.display());
        count += 1;
    }
    assert!(count >= 66);
    assert!(!schema.is_valid(&json!({"meta": {"nam": "x"}})));
}
