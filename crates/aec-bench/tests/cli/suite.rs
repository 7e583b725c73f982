//! `generate suite`: every key of `suite.toml` has its effect, mixes are met over the whole suite.

use aec_xtest::TestEnv;
use serde_json::{Value, json};

use crate::cli::empty_project;
use crate::cli::generate::{contents, is_hidden};
use crate::cli::template::walk;

/// The file as documented.
pub(crate) const DOCUMENTED: &str = r#"name = "my-suite"
seed = 20260524

[coverage]
difficulties = { easy = 0.3333333333, medium = 0.3333333333, hard = 0.3333333334 }
min_tasks_per_discipline = 3

[templates]
include = ["electrical/*", "civil/*"]
user_dirs = []

[visibility]
mix = { all_given = 0.78, partial = 0.22 }

[tool_mode]
mix = { with_tool = 1.0 }

[instances]
per_task = 3
total_max = 200

[output]
dir = "tasks/generated/my-suite"
"#;

/// The plan of the documented file with one change.
fn plan(env: &TestEnv, from: &str, to: &str) -> Value {
    assert!(DOCUMENTED.contains(from), "{from}");
    env.write("suite.toml", DOCUMENTED.replace(from, to));
    env.run(["--json", "generate", "suite", "--dry-run"]).data()
}

fn count(plan: &Value, group: &str) -> Vec<u64> {
    plan[group].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).collect()
}

#[test]
fn the_documented_file_runs_as_written() {
    let env = empty_project();
    env.write("suite.toml", DOCUMENTED);
    insta::assert_snapshot!(
        "suite_dry_run",
        env.run(["generate", "suite", "--config", "suite.toml", "--dry-run"]).snapshot()
    );
    assert!(walk(&env.path("tasks")).is_empty());
    let data = env.run(["--json", "generate", "suite", "--config", "suite.toml"]).data();
    assert_eq!(
        (data["published"].as_str(), data["instances_generated"].as_u64()),
        (Some("created"), Some(66))
    );
    let listed = env.run(["--json", "task", "list", "--limit", "500"]).data();
    assert_eq!(listed["total"], 66);
    assert_eq!(env.run(["task", "validate", "--all"]).code, Some(0));
    let before = contents(&env.path("tasks"));
    assert_eq!(env.run(["--json", "generate", "suite"]).data()["published"], "unchanged");
    assert_eq!(contents(&env.path("tasks")), before);
    let replay =
        env.run(["--json", "generate", "replay", "tasks/generated/my-suite/generation-manifest.json"]).data();
    assert_eq!(replay["identical"], 66);
    let manifest: Value =
        serde_json::from_str(&env.read("tasks/generated/my-suite/generation-manifest.json")).unwrap();
    assert_eq!(
        (manifest["suite"]["name"].as_str(), manifest["suite"]["seed"].as_i64()),
        (Some("my-suite"), Some(20_260_524))
    );
    assert_eq!(manifest["suite"]["config"]["instances"]["per_task"], 3);
}

#[test]
fn every_key_has_its_effect() {
    let env = empty_project();
    let usual = plan(&env, "", "");
    assert_eq!(usual["suite_name"], "my-suite");
    assert_eq!(count(&usual, "by_difficulty"), [22, 22, 22]);
    assert_eq!(usual["by_visibility"], json!({"all_given": 51, "partial": 15}));
    assert_eq!(usual["by_tool_mode"], json!({"no-tool": 6, "with-tool": 60}));
    assert_eq!(usual["by_discipline"], json!({"civil": 33, "electrical": 33}));

    assert_eq!(plan(&env, "name = \"my-suite\"", "name = \"other\"")["suite_name"], "other");
    assert_eq!(plan(&env, "seed = 20260524", "seed = 5")["seed"], 5);
    let mix = plan(
        &env,
        "easy = 0.3333333333, medium = 0.3333333333, hard = 0.3333333334",
        "easy = 0.5, hard = 0.5",
    );
    assert_eq!(mix["by_difficulty"], json!({"easy": 33, "hard": 33}));
    let few = plan(&env, "total_max = 200", "total_max = 20");
    assert_eq!(count(&few, "by_difficulty"), [7, 7, 6]);
    assert_eq!(few["total_instances"], 20);
    let thirds = plan(
        &env,
        "easy = 0.3333333333, medium = 0.3333333333, hard = 0.3333333334",
        "easy = 0.34, medium = 0.33, hard = 0.33",
    );
    assert_eq!(thirds["total_instances"], 66);
    let least = plan(&env, "[\"electrical/*\", \"civil/*\"]", "[\"electrical/*\", \"civil/culvert-flow\"]\n");
    assert_eq!(least["by_discipline"], json!({"civil": 3, "electrical": 33}));
    env.write(
        "suite.toml",
        DOCUMENTED
            .replace("[\"electrical/*\", \"civil/*\"]", "[\"electrical/*\", \"civil/culvert-flow\"]")
            .replace("total_max = 200", "total_max = 10")
            .replace("min_tasks_per_discipline = 3", "min_tasks_per_discipline = 2"),
    );
    let guaranteed = env.run(["--json", "generate", "suite", "--dry-run"]).data();
    assert!(guaranteed["by_discipline"]["civil"].as_u64() >= Some(2), "{guaranteed}");
    assert_eq!(plan(&env, "[\"electrical/*\", \"civil/*\"]", "[\"*/voltage-drop\"]")["total_instances"], 3);
    let half = plan(&env, "with_tool = 1.0", "with_tool = 0.5, no_tool = 0.5");
    assert_eq!(half["by_tool_mode"], json!({"no-tool": 33, "with-tool": 33}));
    assert_eq!(plan(&env, "per_task = 3", "per_task = 1")["total_instances"], 22);
    let shown = plan(&env, "all_given = 0.78, partial = 0.22", "all_given = 0.9, partial = 0.1");
    assert_eq!(shown["by_visibility"], json!({"all_given": 59, "partial": 7}));
    let place = plan(&env, "tasks/generated/my-suite", "tasks/other/place");
    assert_eq!(place["output"], "[TEST]/work/tasks/other/place");

    assert_eq!(env.run(["template", "new", "structural/beam"]).code, Some(0));
    std::fs::rename(env.path("templates"), env.path("mine")).unwrap();
    let own = plan(
        &env,
        "include = [\"electrical/*\", \"civil/*\"]\nuser_dirs = []",
        "include = [\"structural/beam\"]\nuser_dirs = [\"mine\"]",
    );
    assert_eq!(own["by_discipline"], json!({"structural": 3}));
}

#[test]
fn the_flags_come_before_the_file() {
    let env = empty_project();
    env.write(
        "suite.toml",
        DOCUMENTED.replace("[\"electrical/*\", \"civil/*\"]", "[\"electrical/voltage-drop\"]"),
    );
    let data = env.run(["--json", "generate", "suite", "--seed", "-3", "--output", "there"]).data();
    assert_eq!((data["seed"].as_i64(), data["output"].as_str()), (Some(-3), Some("[TEST]/work/there")));
    assert!(env.path("there/generation-manifest.json").exists());
    let checked = env.run(["--json", "generate", "suite", "--validate-only"]).data();
    assert_eq!((checked["valid"].as_bool(), checked["matched_templates"].as_u64()), (Some(true), Some(1)));
    assert_eq!(
        env.run(["generate", "suite", "--seed", "4", "--output", "there"]).code,
        Some(3),
        "it is another one"
    );
    assert_eq!(
        env.run(["--json", "generate", "suite", "--seed", "4", "--output", "there", "--replace"]).data()["published"],
        "written"
    );
    for place in [".", "tasks", ".."] {
        assert_eq!(env.run(["generate", "suite", "--output", place]).code, Some(3), "{place}");
    }
}

#[test]
fn what_cannot_be_had_is_explained() {
    let env = empty_project();
    env.write(
        "suite.toml",
        DOCUMENTED.replace(
            "all_given = 0.78, partial = 0.22",
            "all_given = 0.2, partial = 0.5, scenario_only = 0.3",
        ),
    );
    insta::assert_snapshot!("suite_infeasible", env.run(["generate", "suite", "--dry-run"]).snapshot());
    let errors = |from: &str, to: &str| {
        env.write("suite.toml", DOCUMENTED.replace(from, to));
        let run = env.run(["--json", "generate", "suite", "--dry-run"]);
        assert_eq!(run.code, Some(3), "{from} -> {to}: {run:?}");
        run.errors()
    };
    for (from, to, id) in [
        ("\"civil/*\"", "\"civics/*\"", "S010"),
        ("\"civil/*\"", "\"civil/[\"", "S010"),
        ("easy = 0.3333333333, medium = 0.3333333333, hard = 0.3333333334", "extreme = 1.0", "S011"),
        ("with_tool = 1.0", "with_tool = 0.5", "S005"),
        ("per_task = 3", "per_task = 0", "S005"),
        ("name = \"my-suite\"", "", "S006"),
        ("seed = 20260524", "", "S006"),
        ("total_max", "total_maximum", "S003"),
        ("user_dirs = []", "user_dirs = [\"nowhere\"]", ""),
    ] {
        let found = errors(from, to);
        assert!(found.iter().any(|(found, _)| found == id), "{from} -> {to}: {found:?}");
    }
    // A broken template of the project does not affect the others.
    env.write("suite.toml", DOCUMENTED);
    env.write("templates/broken/params.toml", "[meta]\n");
    let run = env.run(["--json", "generate", "suite", "--dry-run"]);
    assert_eq!((run.code, run.envelope()["data"]["total_instances"].as_u64()), (Some(1), Some(66)));
}

#[test]
fn a_suite_becomes_a_dataset_with_the_same_hashes() {
    let env = empty_project();
    env.write("suite.toml", DOCUMENTED.replace("[\"electrical/*\", \"civil/*\"]", "[\"ground/*\"]"));
    assert_eq!(env.run(["generate", "suite"]).code, Some(0));
    let source = "tasks/generated/my-suite/generation-manifest.json";
    let created = env.run([
        "dataset",
        "create",
        "--name",
        "ground",
        "--version",
        "1.0.0",
        "--from-suite-output",
        source,
    ]);
    assert_eq!(created.code, Some(0), "{created:?}");
    let made: Value = serde_json::from_str(&env.read(source)).unwrap();
    let frozen: Value =
        serde_json::from_str(&env.read("artefacts/datasets/ground/1.0.0/manifest.json")).unwrap();
    let hashes = |manifest: &Value, list: &str| {
        let mut hashes: Vec<String> = manifest[list]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["content_hash"].as_str().unwrap().to_owned())
            .collect();
        hashes.sort();
        hashes
    };
    assert_eq!(hashes(&made, "instances"), hashes(&frozen, "tasks"));
    assert_eq!(frozen["source"]["seed"], 20_260_524);
    let split = env.run(["dataset", "split", "ground@1.0.0", "--train-share", "0.7", "--seed", "1"]);
    assert_eq!(split.code, Some(0), "{split:?}");
    for name in ["ground", "ground-train", "ground-eval"] {
        assert_eq!(env.run(["dataset", "verify", name]).code, Some(0), "{name}");
        assert_eq!(env.run(["task", "list", "--dataset", &format!("{name}@1.0.0")]).code, Some(0), "{name}");
    }
}

#[test]
fn a_kill_leaves_no_half_a_suite() {
    let env = empty_project();
    env.write("suite.toml", DOCUMENTED.replace("[\"electrical/*\", \"civil/*\"]", "[\"ground/*\"]"));
    let expected = {
        let other = empty_project();
        other.write("suite.toml", env.read("suite.toml"));
        assert_eq!(other.run(["generate", "suite"]).code, Some(0));
        contents(&other.path("tasks"))
    };
    let kills = if aec_xtest::full() { 100 } else { 15 };
    for round in 0..kills {
        let mut child = env.start(["generate", "suite"]);
        // Kills are spread over the duration of a run; the result must be right at any moment.
        std::thread::sleep(std::time::Duration::from_millis(60 * round % 1500));
        child.kill().unwrap();
        child.wait().unwrap();
        let visible: Vec<_> =
            contents(&env.path("tasks")).into_iter().filter(|(path, _)| !is_hidden(path)).collect();
        if !visible.is_empty() {
            assert_eq!(visible.len(), expected.len(), "round {round}");
            assert!(visible == expected);
            std::fs::remove_dir_all(env.path("tasks/generated/my-suite")).unwrap();
        }
    }
    assert_eq!(env.run(["generate", "suite"]).code, Some(0));
    assert!(contents(&env.path("tasks")) == expected);
}
