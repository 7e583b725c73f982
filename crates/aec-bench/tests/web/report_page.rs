//! The HTML report in a real browser, opened from disk, with hostile text wherever an agent or a task can put it.

use std::path::Path;
use std::process::Command;

use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_ledger::example;
use aec_ledger::layout::Ledger;
use aec_ledger::record::Artefact;
use aec_xtest::TestEnv;
use serde_json::json;

use crate::web::browser::{chromium, interpreter};

/// Text that must not become markup.
const HOSTILE: &str =
    "</script><script>hacked=1</script><img src=x onerror=hacked=1>\u{202e}=HYPERLINK(\"http://x\")";

/// A ledger of 300 trials with traces.
fn project() -> TestEnv {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_aec-bench"));
    assert_eq!(env.run(["init", "--no-example", "--quiet"]).code, Some(0));
    let ledger = Ledger::new(env.path("artefacts/ledger"));
    for number in 0..300_u32 {
        let mut record = example::record("x", &format!("trial-{number:04}"), 1);
        if number % 2 == 1 {
            record.agent.name = Name::parse("other").unwrap();
            record.agent.digest = Digest::of(b"other");
        }
        record.task.task_id = format!("generated/s/structural/beam-{:02}", number / 2 % 30);
        record.task.task_revision = Digest::of(record.task.task_id.as_bytes());
        record.task.family = HOSTILE.into();
        record.task.difficulty = Some(["easy", "medium", "hard"][number as usize / 2 % 3].to_owned());
        record.repetition = number / 60 + 1;
        record.inputs.instruction = HOSTILE.into();
        let mut evaluation = example::evaluation(f64::from(number % 5) / 4.0);
        evaluation.breakdown = Some(json!({"fields": {
            HOSTILE: {"score": 0.0, "status": "wrong", "expected": "1", "got": HOSTILE, "message": HOSTILE},
            "moment": {"score": 1.0, "status": "correct", "expected": "1", "got": "1", "message": ""},
        }}));
        record.evaluation = Some(evaluation);
        let events = [
            json!({"step": 1, "role": "assistant", "content": HOSTILE}),
            json!({"step": 1, "role": "tool_call", "tool_name": HOSTILE, "tool_call_id": "a", "arguments": {"command": HOSTILE}}),
            json!({"step": 1, "role": "tool_result", "tool_call_id": "a", "stdout": HOSTILE, "stderr": HOSTILE, "exit_code": 1}),
        ];
        let text: String = events.iter().flat_map(|event| [event.to_string(), "\n".to_owned()]).collect();
        let digest = ledger.contents().put(text.as_bytes()).unwrap();
        let path = "trajectory.jsonl".to_owned();
        record.timing.artefacts.push(Artefact { path, digest, size: text.len() as u64 });
        example::write(&ledger, &record);
    }
    env
}

#[test]
#[cfg_attr(
    not(all(chromium, packages)),
    ignore = "needs Chromium and the Python package index: apt-get install chromium"
)]
fn the_report_works_in_a_browser() {
    let (browser, python) = (chromium(), interpreter());
    let env = project();
    let run = env.run(["evaluate", "-e", "x", "--report", "report.html"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser-pictures");
    let done = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/web/report.py"))
        .arg(env.path("report.html"))
        .args([browser, pictures])
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
