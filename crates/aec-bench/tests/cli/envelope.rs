//! The JSON envelope, output modes, exit codes and usage errors.

use serde_json::json;

use crate::cli::{empty_project, world};

#[test]
fn json_before_or_after_any_subcommand() {
    let env = empty_project();
    let shapes: [&[&str]; 3] =
        [&["--json", "task", "list"], &["task", "--json", "list"], &["task", "list", "--json"]];
    for arguments in shapes {
        let envelope = env.run(arguments).envelope();
        assert_eq!(envelope["command"], "task list");
        assert_eq!(envelope["status"], "success");
        assert_eq!(envelope["errors"], json!([]));
        let keys: Vec<&String> = envelope.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["command", "status", "data", "errors", "version", "duration_seconds"]);
    }
}

#[test]
fn every_command_prints_nothing_but_the_envelope_in_json_mode() {
    let env = world();
    env.init();
    for (command, line) in [
        ("quickstart", "quickstart there"),
        ("init", "init elsewhere"),
        ("doctor", "doctor"),
        ("config view", "config view"),
        ("config set", "config set tasks_root t"),
        ("config reset", "config reset"),
        ("config check", "config check"),
        ("task list", "task list"),
        ("task show", "task show electrical/voltage-drop"),
        ("task validate", "task validate --all"),
        ("task new", "task new civil/x"),
        ("dataset create", "dataset create --name set --version 1.0.0"),
        ("dataset list", "dataset list"),
        ("dataset show", "dataset show set --near-duplicates"),
        ("dataset verify", "dataset verify set"),
        ("dataset diff", "dataset diff set set"),
        ("dataset create", "dataset create --name two --version 1.0.0 --lifecycle any"),
        ("dataset split", "dataset split two --seed 1"),
        ("dataset export", "dataset export set --output set.tar.zst"),
        ("dataset import", "dataset import set.tar.zst"),
        ("search", "search cable"),
        ("verify", "verify --all"),
        ("audit", "audit electrical/voltage-drop"),
        ("schema", "schema"),
        ("completions", "completions bash"),
        ("man", "man"),
    ] {
        let run = env.run(line.split(' ').chain(["--json"]));
        let envelope = run.envelope();
        assert_eq!(envelope["command"], command);
        assert_eq!(envelope["status"], "success", "{run:?}");
        assert_eq!(run.stderr, "", "{line}");
        assert!(!envelope["data"].is_null());
    }
}

#[test]
fn text_is_the_default_also_on_a_pipe() {
    let env = empty_project();
    let run = env.run(["config", "view"]);
    assert!(run.stdout.starts_with("SETTING"), "{run:?}");
    assert_eq!(env.run(["--text", "config", "view"]).stdout, run.stdout);
    let both = env.run(["--json", "config", "view", "--text"]);
    assert_eq!(both.code, Some(2));
    assert!(both.stderr.contains("--json and --text cannot be used together"), "{both:?}");
}

#[test]
fn usage_errors_in_both_modes() {
    let env = world();
    for (name, line) in [
        ("unknown_command", "taks list"),
        ("unknown_subcommand", "task lst"),
        ("unknown_flag", "task list --dificulty easy"),
        ("unknown_value", "task list --difficulty esy"),
        ("missing_argument", "task show"),
        ("nothing_to_validate", "task validate"),
        ("unknown_filter", "task list --filter difficult=easy"),
        ("unknown_schema", "schema taks"),
    ] {
        let text = env.run(line.split(' '));
        assert_eq!(text.code, Some(2), "{line}");
        assert_eq!(text.stdout, "");
        insta::assert_snapshot!(format!("usage_{name}_text"), text.snapshot());
        let json = env.run(["--json"].into_iter().chain(line.split(' ')));
        assert_eq!(json.code, Some(2));
        assert_eq!(json.envelope()["status"], "error");
        assert_eq!(json.envelope()["data"], json!(null));
        insta::assert_snapshot!(format!("usage_{name}_json"), json.snapshot());
    }
}

#[test]
fn quiet_keeps_data_and_errors_and_drops_the_rest() {
    let env = world();
    let run = env.run(["init", "--quiet"]);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
    assert!(env.run(["-q", "task", "list"]).stdout.contains("electrical/voltage-drop"));
    assert!(env.run(["--quiet", "init"]).stderr.contains("already a project"));
    assert_eq!(env.run(["--quiet", "--verbose", "task", "list"]).code, Some(2));
}

#[test]
fn verbose_says_what_happens_on_stderr_only() {
    let env = empty_project();
    let run = env.run(["--verbose", "--json", "task", "list"]);
    assert_eq!(run.envelope()["status"], "success");
    for word in ["project opened", ".env loaded", "peak_memory"] {
        assert!(run.stderr.contains(word), "{word}: {run:?}");
    }
}

#[test]
fn a_reader_that_goes_away_is_not_an_error() {
    let env = world();
    env.init();
    let script = format!("'{}' config view | true; echo ${{PIPESTATUS[0]}}", env!("CARGO_BIN_EXE_aec-bench"));
    let output =
        std::process::Command::new("bash").args(["-c", &script]).current_dir(env.dir()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn json_task_list_works_in_an_empty_project_a_full_one_and_outside() {
    let outside = world();
    let data = outside.run(["--json", "task", "list"]).data();
    assert_eq!(data["tasks"], json!([]));
    let empty = empty_project();
    assert_eq!(empty.run(["--json", "task", "list"]).data()["total"], 0);
    let full = world();
    full.init();
    assert_eq!(full.run(["--json", "task", "list"]).data()["total"], 1);
}
