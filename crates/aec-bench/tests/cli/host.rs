//! `doctor`: its findings, and its advice about missing parts.

use crate::cli::world;

#[test]
fn doctor_reports_python_isolation_and_keys_by_name_only() {
    let mut env = world();
    env.init();
    env.set("ANTHROPIC_API_KEY", "sk-canary-123456");
    let run = env.run(["--json", "doctor"]);
    let envelope = run.envelope();
    let checks = envelope["data"]["checks"].as_array().unwrap();
    let names: Vec<&str> = checks.iter().map(|check| check["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "project",
            "python",
            "git",
            "rooms",
            "limits",
            "landlock",
            "seccomp",
            "cgroups",
            "view",
            "slurm",
            "containers",
            "modal",
            "harbor"
        ]
    );
    assert_eq!(checks[0]["status"], "ok");
    assert_eq!(checks[1]["status"], "ok", "tests need Python: {run:?}");
    assert!(!checks[1]["detail"].as_str().unwrap().contains("shims"), "the interpreter itself: {run:?}");
    let text = env.run(["doctor"]);
    assert!(text.stdout.contains("ANTHROPIC_API_KEY"));
    for run in [&run, &text] {
        assert!(!run.stdout.contains("sk-canary") && !run.stderr.contains("sk-canary"), "{run:?}");
    }
}

#[test]
fn doctor_says_how_to_fix_a_missing_python() {
    let mut env = world();
    env.set("PATH", "/nonexistent");
    let run = env.run(["doctor"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("install Python 3.9 or newer"), "{run:?}");
}

#[test]
fn doctor_still_speaks_when_the_project_is_broken() {
    let env = world();
    env.write("aec-bench.toml", "nonsense");
    let run = env.run(["--json", "doctor"]);
    assert_eq!(run.code, Some(1));
    assert_eq!(run.envelope()["data"]["checks"][0]["status"], "missing");
    assert!(run.errors().iter().any(|(id, _)| id == "C002"), "{run:?}");
}
