//! The precedence of settings, the user file, `.env`, and `config check`.

use serde_json::{Value, json};

use crate::cli::{empty_project, world};

fn setting(data: &Value, key: &str) -> (String, String) {
    let setting = &data["settings"][key];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&setting["value"]), text(&setting["origin"]["rung"]))
}

const EXPERIMENT: &str = "agents: [{name: a, harness: nop}]\ncompute: {backend: harbor}\n";

#[test]
fn every_rung_of_the_ladder_for_the_backend() {
    let env = world();
    env.write("aec-bench.toml", "");
    env.write("experiment.yaml", EXPERIMENT);
    let view = |arguments: &[&str]| {
        let data = env.run(["--json", "config", "view"].iter().chain(arguments)).data();
        setting(&data, "compute.backend")
    };
    assert_eq!(view(&[]), ("local".into(), "default".into()));
    env.write("aec-bench.toml", "[compute]\nbackend = \"modal\"\n");
    assert_eq!(view(&[]), ("modal".into(), "project".into()));
    assert_eq!(view(&["--config", "experiment.yaml"]), ("harbor".into(), "experiment".into()));
    assert_eq!(
        view(&["--config", "experiment.yaml", "--backend", "docker"]),
        ("docker".into(), "flag".into())
    );
    assert_eq!(view(&["--backend", "docker"]), ("docker".into(), "flag".into()));
}

#[test]
fn every_rung_of_the_ladder_for_paths() {
    let env = world();
    env.write("aec-bench.toml", "");
    let keys = [
        ("paths.tasks", Some("tasks_root"), "tasks"),
        ("paths.templates", None, "templates"),
        ("paths.seeds", None, "seeds"),
        ("paths.ledger", Some("ledger_root"), "artefacts/ledger"),
        ("paths.feedback", Some("feedback_root"), "artefacts/feedback"),
        ("paths.datasets", Some("datasets_root"), "artefacts/datasets"),
        ("paths.jobs", Some("jobs_root"), "jobs"),
        ("paths.workspaces", None, "workspaces"),
        ("paths.prime", None, "prime-rl"),
    ];
    let data = env.run(["--json", "config", "view"]).data();
    for (key, _, default) in keys {
        assert_eq!(setting(&data, key), (default.into(), "default".into()));
    }
    for (key, user_key, _) in keys {
        if let Some(user_key) = user_key {
            assert_eq!(env.run(["config", "set", user_key, &format!("user/{key}")]).code, Some(0));
            let data = env.run(["--json", "config", "view"]).data();
            assert_eq!(setting(&data, key), (format!("user/{key}"), "user".into()));
        }
        let name = key.strip_prefix("paths.").unwrap();
        env.write("aec-bench.toml", format!("[paths]\n{name} = \"project/{name}\"\n"));
        let data = env.run(["--json", "config", "view"]).data();
        assert_eq!(setting(&data, key), (format!("project/{name}"), "project".into()));
        assert_eq!(data["settings"][key]["origin"]["line"], 2);
    }
    env.write("aec-bench.toml", "[paths]\ntasks = \"project\"\n");
    let data = env.run(["--json", "config", "view", "--tasks-root", "flag"]).data();
    assert_eq!(setting(&data, "paths.tasks"), ("[TEST]/work/flag".into(), "flag".into()));
}

#[test]
fn the_rungs_change_what_commands_read() {
    let env = empty_project();
    for root in ["by-user", "by-project", "by-flag"] {
        aec_xtest::tree::write_task(&env.path(root).join("civil").join(root), aec_xtest::tree::TASK_TOML);
    }
    let ids = |arguments: &[&str]| {
        let data = env.run(["--json", "task", "list"].iter().chain(arguments)).data();
        data["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|task| task["task_id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    env.write("aec-bench.toml", "");
    assert!(ids(&[]).is_empty());
    assert_eq!(env.run(["config", "set", "tasks-root", "by-user"]).code, Some(0));
    assert_eq!(ids(&[]), ["civil/by-user"]);
    env.write("aec-bench.toml", "[paths]\ntasks = \"by-project\"\n");
    assert_eq!(ids(&[]), ["civil/by-project"]);
    let set = env.run(["config", "set", "tasks-root", "by-user"]);
    assert!(set.stderr.contains("This project overrides it in aec-bench.toml:2."), "{set:?}");
    assert_eq!(ids(&["--tasks-root", "by-flag"]), ["civil/by-flag"]);
    let absolute = env.path("by-flag");
    env.write("aec-bench.toml", format!("[paths]\ntasks = {:?}\n", absolute.to_str().unwrap()));
    assert_eq!(ids(&[]), ["civil/by-flag"], "an absolute path");
}

#[test]
fn the_project_is_found_upwards_or_named() {
    let env = world();
    env.init();
    let deep = env.path("tasks/electrical");
    let data = env.run_in(&deep, ["--json", "config", "view"]).data();
    assert_eq!(data["root"], "[TEST]/work");
    let data = env.run_in(&env.home(), ["--json", "config", "view"]).data();
    assert_eq!((&data["root"], &data["project_file"]), (&json!("[TEST]/home"), &Value::Null));
    let project = env.dir();
    let data =
        env.run_in(&env.home(), ["--json", "--project", project.to_str().unwrap(), "config", "view"]).data();
    assert_eq!(data["root"], "[TEST]/work");
    let none = env.run(["config", "view", "--project", "nowhere"]);
    assert_eq!(none.code, Some(3));
    insta::assert_snapshot!("no_such_project", none.snapshot());
}

#[test]
fn view_shows_values_and_origins() {
    let env = world();
    env.write("aec-bench.toml", "[project]\nname = \"demo\"\n\n[paths]\njobs = \"runs\"\n");
    env.write_user_file("{\"ledger_root\": \"records\"}");
    env.write("experiment.yaml", EXPERIMENT);
    insta::assert_snapshot!("config_view", env.run(["config", "view"]).snapshot());
    insta::assert_snapshot!("config_view_json", env.run(["--json", "config", "view"]).snapshot());
    insta::assert_snapshot!(
        "config_view_experiment",
        env.run(["config", "view", "--config", "experiment.yaml"]).snapshot()
    );
    insta::assert_snapshot!("config_view_outside", world().run(["config", "view"]).snapshot());
}

#[test]
fn set_and_reset_edit_the_user_file() {
    let env = world();
    let set = env.run(["config", "set", "tasks_root", "catalogue"]);
    insta::assert_snapshot!("config_set", set.snapshot());
    for (name, value) in
        [("ledger-root", "l"), ("paths.jobs", "j"), ("datasets_root", "d"), ("feedback_root", "f")]
    {
        assert_eq!(env.run(["config", "set", name, value]).code, Some(0));
    }
    let content = std::fs::read_to_string(env.user_file()).unwrap();
    insta::assert_snapshot!("user_file", content);
    assert_eq!(env.run(["config", "reset", "ledger_root"]).code, Some(0));
    let content: Value = serde_json::from_str(&std::fs::read_to_string(env.user_file()).unwrap()).unwrap();
    assert_eq!(content.as_object().unwrap().len(), 4);
    assert_eq!(env.run(["config", "reset"]).code, Some(0));
    assert!(!env.user_file().exists());
    assert_eq!(env.run(["config", "reset"]).code, Some(0), "resetting twice is fine");
}

#[test]
fn killing_set_at_any_moment_leaves_a_whole_file() {
    let env = world();
    assert_eq!(env.run(["config", "set", "tasks_root", "start"]).code, Some(0));
    let rounds = if aec_xtest::full() { 2000 } else { 100 };
    let (mut kept, mut replaced) = (0, 0);
    for round in 0..rounds {
        let before = std::fs::read_to_string(env.user_file()).unwrap();
        let value = format!("value-{round}");
        let mut child = env.start(["config", "set", "tasks_root", &value]);
        // Spreads the kills over the few milliseconds that a run takes.
        std::thread::sleep(std::time::Duration::from_micros(round * 37 % 4000));
        child.kill().unwrap();
        child.wait().unwrap();
        let after = std::fs::read_to_string(env.user_file()).unwrap();
        if after == before {
            kept += 1;
        } else {
            replaced += 1;
            assert_eq!(serde_json::from_str::<Value>(&after).unwrap(), json!({ "tasks_root": value }));
        }
    }
    assert_eq!(env.run(["config", "view"]).code, Some(0));
    assert!(kept > 0, "no kill came early enough ({replaced} replaced)");
}

#[test]
fn the_user_file_follows_xdg() {
    let mut env = world();
    let config = env.path("xdg");
    env.set("XDG_CONFIG_HOME", config.to_str().unwrap());
    assert_eq!(env.run(["config", "set", "tasks_root", "t"]).code, Some(0));
    assert!(config.join("aec-bench/config.json").exists());
    assert!(!env.user_file().exists());
    let data = env.run(["--json", "config", "view"]).data();
    assert_eq!(setting(&data, "paths.tasks"), ("t".into(), "user".into()));
}

#[test]
fn settings_that_are_not_the_users_are_refused_with_the_reason() {
    let env = world();
    for (name, key, value) in [
        ("backend", "compute.backend", "docker"),
        ("templates", "paths.templates", "x"),
        ("unknown", "task_root", "x"),
        ("empty", "tasks_root", ""),
        ("control", "tasks_root", "a\x1b[2Jb"),
    ] {
        let run = env.run(["config", "set", key, value]);
        assert_eq!(run.code, Some(2), "{key}");
        insta::assert_snapshot!(format!("config_set_{name}"), run.snapshot());
    }
    assert!(!env.user_file().exists());
}

#[test]
fn a_broken_user_file_is_kept_until_reset() {
    let env = world();
    env.write_user_file("{\"tasks_root\": 5, \"backend\": \"modal\"}");
    let before = std::fs::read_to_string(env.user_file()).unwrap();
    let set = env.run(["config", "set", "jobs_root", "j"]);
    assert_eq!(set.code, Some(3));
    insta::assert_snapshot!("config_set_broken", set.snapshot());
    assert_eq!(std::fs::read_to_string(env.user_file()).unwrap(), before);
    assert_eq!(env.run(["task", "list"]).code, Some(3));
    assert_eq!(env.run(["config", "reset"]).code, Some(0));
    assert_eq!(env.run(["task", "list"]).code, Some(0));
}

#[test]
fn check_reports_every_problem_of_every_file_at_once() {
    let env = world();
    env.init();
    env.write("aec-bench.toml", "[path]\ntasks = \"t\"\n[compute]\nbackend = \"modl\"\n[paths]\njobs = 5\n");
    env.write("suite.toml", "name = \"a b\"\n[coverage]\ndifficulties = { easy = 0.5, hard = 2 }\n");
    env.write("experiment.yaml", "agents:\n  - name: ../../x\n    harness: tool_lop\n");
    env.write(".env", "NOT A LINE\n");
    env.write_user_file("{\"tasks_rot\": \"x\"}");
    let run = env.run(["config", "check"]);
    assert_eq!(run.code, Some(1));
    insta::assert_snapshot!("config_check", run.snapshot());
    let envelope = env.run(["--json", "config", "check"]).envelope();
    assert_eq!(envelope["status"], "partial");
    assert_eq!(envelope["data"]["files"].as_array().unwrap().len(), 5);
}

/// The project file and the suite file of the configuration reference, word for word.
const DOCUMENTED_PROJECT: &str = r#"[project]
name = "my-bench"

[paths]
tasks      = "tasks"
templates  = "templates"
seeds      = "seeds"
ledger     = "artefacts/ledger"
feedback   = "artefacts/feedback"
datasets   = "artefacts/datasets"
jobs       = "jobs"

[compute]
backend = "modal"
"#;

#[test]
fn the_documented_files_are_read_as_written() {
    let env = world();
    env.write("aec-bench.toml", DOCUMENTED_PROJECT);
    env.write("suite.toml", crate::cli::suite::DOCUMENTED);
    assert_eq!(env.run(["config", "check"]).code, Some(0));
    let data = env.run(["--json", "config", "view"]).data();
    for (key, value) in [
        ("project.name", "my-bench"),
        ("paths.tasks", "tasks"),
        ("paths.templates", "templates"),
        ("paths.seeds", "seeds"),
        ("paths.ledger", "artefacts/ledger"),
        ("paths.feedback", "artefacts/feedback"),
        ("paths.datasets", "artefacts/datasets"),
        ("paths.jobs", "jobs"),
        ("compute.backend", "modal"),
    ] {
        assert_eq!(setting(&data, key), (value.to_owned(), "project".to_owned()), "{key}");
    }
    for (line, wrong, id) in [
        ("name = \"my-suite\"", "name = \"my suite\"", "S005"),
        ("seed = 20260524", "seed = \"x\"", "S004"),
        ("hard = 0.3333333334", "hard = 0.5", "S005"),
        ("min_tasks_per_discipline = 3", "min_tasks_per_discipline = -3", "S004"),
        ("include = [\"electrical/*\", \"civil/*\"]", "include = \"electrical/*\"", "S004"),
        ("user_dirs = []", "user_dirs = 1", "S004"),
        ("all_given = 0.78", "all = 0.78", "S003"),
        ("mix = { with_tool = 1.0 }", "mixes = { with_tool = 1.0 }", "S003"),
        ("per_task = 3", "per_task = 0", "S005"),
        ("total_max = 200", "total_max = 0", "S005"),
        ("dir = \"tasks/generated/my-suite\"", "dir = 1", "S004"),
    ] {
        let text = crate::cli::suite::DOCUMENTED.replace(line, wrong);
        assert_ne!(text, crate::cli::suite::DOCUMENTED);
        env.write("suite.toml", text);
        let errors = env.run(["--json", "config", "check"]).errors();
        assert_eq!(errors[0].0, id, "{wrong}: {errors:?}");
    }
}

#[test]
fn check_reads_task_files_and_named_files() {
    let env = world();
    env.init();
    env.write("tasks/civil/broken/task.toml", "[metadata]\ndificulty = \"easy\"\n");
    env.write("tasks/civil/broken/instruction.md", "x");
    assert_eq!(
        env.run(["--json", "config", "check"]).errors(),
        [("T003".to_owned(), "unknown key `dificulty` in `metadata`".to_owned())]
    );
    for (file, code) in [
        ("tasks/civil/broken/task.toml", 1),
        ("tasks/electrical/voltage-drop/task.toml", 0),
        ("suite.toml", 0),
        ("aec-bench.toml", 0),
        ("missing.yaml", 1),
        ("README", 2),
    ] {
        assert_eq!(env.run(["config", "check", file]).code, Some(code), "{file}");
    }
}

#[test]
fn dotenv_fills_gaps_and_the_shell_wins() {
    let mut env = world();
    env.init();
    env.write(".env", "OPENAI_API_KEY=from-file\nANTHROPIC_API_KEY=from-file\n");
    env.set("ANTHROPIC_API_KEY", "from-shell");
    let data = env.run_in(&env.path("tasks"), ["--json", "doctor"]).envelope()["data"].clone();
    let origin = |name: &str| {
        let credentials = data["credentials"].as_array().unwrap();
        credentials.iter().find(|credential| credential["name"] == name).unwrap()["origin"].clone()
    };
    assert_eq!(origin("OPENAI_API_KEY"), "file");
    assert_eq!(origin("ANTHROPIC_API_KEY"), "shell");
    assert_eq!(origin("TOGETHER_API_KEY"), Value::Null);
}
