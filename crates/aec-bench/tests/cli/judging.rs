//! `verify` and `audit` from the command line.

use aec_xtest::lock::{self, HOST_PLACES};
use serde_json::Value;

use crate::cli::{empty_project, world};

#[test]
fn golden_answers_of_the_example_are_judged() {
    let env = world();
    env.init();
    let data = env.run(["--json", "verify", "--all"]).data();
    assert_eq!((data["judged"].as_u64(), data["as_expected"].as_u64()), (Some(2), Some(2)));
    for verdict in data["verdicts"].as_array().unwrap() {
        assert_eq!(verdict["verdict"]["level"], "namespaces");
        assert_eq!(verdict["verdict"]["outcome"], "scored");
    }
    let text = env.run(["verify", "electrical/voltage-drop"]);
    assert_eq!(text.code, Some(0));
    assert!(
        text.stdout.contains("golden_pass.json  1") && text.stdout.contains("golden_fail.json  0"),
        "{text:?}"
    );
}

#[test]
fn a_submission_is_a_file_or_a_workspace() {
    let env = world();
    env.init();
    env.write("answer.json", r#"{"cable_size_mm2": 25, "voltage_drop_v": 9, "voltage_drop_percent": 2.035}"#);
    env.write(
        "left/output.json",
        r#"{"cable_size_mm2": 25, "voltage_drop_v": 8.14, "voltage_drop_percent": 2.035}"#,
    );
    env.write("empty/notes.txt", "");
    let reward = |path: &str| {
        let data = env.run(["--json", "verify", "electrical.voltage-drop", "--submission", path]).data();
        data["verdicts"][0]["verdict"]["reward"].as_f64().unwrap()
    };
    assert!((reward("answer.json") - 2.0 / 3.0).abs() < 1e-9);
    assert!((reward("left") - 1.0).abs() < 1e-9);
    assert!(reward("empty").abs() < 1e-9);
    let fields = env.run(["verify", "electrical/voltage-drop", "--submission", "answer.json"]);
    assert!(fields.stdout.contains("voltage_drop_v        value: 9.0  met: false"), "{fields:?}");
    assert_eq!(env.run(["verify", "electrical/voltage-drop", "--submission", "none"]).code, Some(3));
    assert_eq!(env.run(["verify"]).code, Some(2));
    assert_eq!(env.run(["verify", "nothing"]).code, Some(3));
    assert_eq!(env.run(["verify", "--all", "--submission", "answer.json"]).code, Some(2));
}

#[test]
fn unexpected_verdicts_are_problems() {
    let env = world();
    env.init();
    env.write("tasks/electrical/voltage-drop/tests/fixtures/golden_pass.json", "{}");
    let run = env.run(["verify", "--all"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("golden_pass.json earns 0, expected 1"), "{run:?}");
    env.write("tasks/electrical/voltage-drop/tests/test.sh", "#!/bin/sh\necho broken >&2\nexit 5\n");
    let run = env.run(["--json", "verify", "--all"]);
    assert_eq!(run.code, Some(1));
    assert!(run.errors()[0].1.contains("has no reward (verifier_fault): it exited with 5"), "{run:?}");
    let why: Value = run.envelope()["errors"][0]["why"].clone();
    assert_eq!(why, "the verifier said: broken");
}

#[test]
fn an_audit_reports_and_writes_a_page() {
    let env = world();
    env.init();
    let data = env.run(["--json", "audit", "--all", "--report", "audit.html"]).data();
    let audit = &data["audits"][0];
    assert_eq!(audit["mutants"]["good"], audit["mutants"]["all"]);
    assert_eq!(audit["floor"], 0.0);
    assert!(env.read("audit.html").contains("electrical/voltage-drop"));
    env.write(
        "tasks/electrical/voltage-drop/tests/verify.py",
        "open('/logs/verifier/reward.json', 'w').write('{\"reward\": 1}')",
    );
    let run = env.run(["audit", "electrical", "--report", "audit.html"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stdout.contains("[A010]") && run.stdout.contains("[A030]"), "{run:?}");
    assert!(env.read("audit.html").contains("A010"));
    assert_eq!(env.run(["audit"]).code, Some(2));
    let none = empty_project();
    assert_eq!(none.run(["--json", "audit", "--all"]).data()["audited"], 0);
}

#[test]
#[cfg_attr(
    not(all(root, free_places)),
    ignore = "needs root, and a host without its own /workspace, /logs and /tests"
)]
fn without_rooms_judging_is_refused_and_none_is_recorded() {
    let _places = lock::hold(HOST_PLACES);
    let env = world();
    env.init();
    let run = env.run(["--json", "verify", "--all", "--sandbox", "none"]);
    let envelope = run.envelope();
    assert_eq!(envelope["data"]["verdicts"][0]["verdict"]["level"], "none");
    assert_eq!(envelope["data"]["verdicts"][0]["verdict"]["held"]["memory"], "no");
    assert!(env.run(["verify", "--all", "--sandbox", "none"]).stderr.contains("without isolation"));
    assert!(!std::path::Path::new("/workspace").exists(), "nothing is left behind");
}
