//! Job directories of every kind: of real jobs, and malicious ones.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harbor::told;
use crate::run::world::Project;

/// Directories of real jobs, without the paths of the machine that they ran on.
fn left(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/harbor/jobs").join(name)
}

fn counts(data: &Value) -> [u64; 5] {
    ["found", "imported", "skipped", "refused", "unfinished"].map(|key| data[key].as_u64().unwrap())
}

#[test]
fn every_way_to_end_has_its_place() {
    let project = Project::empty();
    let run = project.json(&format!("import {} -e ways --trust-rewards", left("ways").display()));
    assert_eq!(run.code, Some(0), "{run:?}");
    let mut lines: Vec<String> = project
        .records("ways")
        .values()
        .map(|record| {
            let fault = record.fault.as_ref();
            format!(
                "{}: {} {:?} {} {}",
                record.task.task_id,
                record.outcome.name(),
                record.reward(),
                fault.map_or("-", |fault| fault.boundary.name()),
                told(record, "source_exception")
            )
        })
        .collect();
    lines.sort();
    insta::assert_snapshot!(lines.join("\n"));
    project.assert_sound("ways");
}

#[test]
fn what_a_job_did_not_finish_is_counted_and_not_made_up() {
    let project = Project::empty();
    for (name, expected) in [("interrupted", [3, 3, 0, 0, 0]), ("crashed", [2, 0, 0, 0, 2])] {
        let run = project.json(&format!("import {} -e {name}", left(name).display()));
        let data = run.envelope()["data"].clone();
        assert_eq!(counts(&data), expected, "{run:?}");
        let is_whole = expected[4] == 0;
        assert_eq!(run.errors().iter().any(|(id, _)| id == "H039"), !is_whole, "{run:?}");
        assert_eq!(project.record_names(name).len() as u64, expected[1]);
    }
    let older = project.data(&format!("import {} -e older", left("older").display()));
    assert_eq!((counts(&older), &older["version"]), ([2, 2, 0, 0, 0], &Value::from("0.24.0")));
}

#[test]
fn hostile_directories_do_no_harm() {
    let project = Project::with_tasks(1);
    let job = project.env.path("job");
    let write = |name: &str, text: &str| project.env.write(format!("job/{name}"), text);
    write("result.json", r#"{"id": "../../up", "n_total_trials": -1, "finished_at": 7, "stats": []}"#);
    write("lock.json", "[");
    let result = |name: &str, more: Value| {
        let mut result = json!({
            "id": format!("id-{name}"), "trial_name": "../../../escape", "task_name": "\u{1b}[31mred",
            "config": {"task": {"path": "/etc/passwd", "source": "rep-1"}, "agent": {"kwargs": {"aec_agent": "x"}}},
            "agent_info": {"name": "a/../b", "version": null, "model_info": {"name": "m", "provider": "p"}},
            "verifier_result": {"rewards": {"reward": 0.25}},
        });
        for (key, value) in more.as_object().unwrap() {
            result[key] = value.clone();
        }
        write(&format!("{name}/result.json"), &result.to_string());
    };
    result("plain", json!({}));
    result("seven", json!({"verifier_result": {"rewards": {"reward": 7.5}}}));
    result("same-id", json!({"id": "id-plain"}));
    result("path-id", json!({"id": "../../../../etc/cron.d/x"}));
    result("linked", json!({}));
    write("half/result.json", "{\"trial_name\": \"half");
    write("nothing/config.json", "{}");
    std::fs::create_dir_all(job.join("linked/agent")).unwrap();
    symlink("/etc/passwd", job.join("linked/agent/passwd")).unwrap();
    symlink("/etc", job.join("linked/verifier")).unwrap();
    symlink("plain", job.join("twin")).unwrap();
    symlink("/dev/zero", job.join("half/trial.log")).unwrap();
    let fifo = std::process::Command::new("mkfifo").arg(job.join("plain/exception.txt")).status().unwrap();
    assert!(fifo.success());
    let run = project.json("import job -e hostile");
    assert_eq!(run.code, Some(1), "{run:?}");
    let data = run.envelope()["data"].clone();
    assert_eq!(counts(&data), [7, 4, 1, 1, 1], "{run:?}");
    assert!(!run.stdout.contains('\u{1b}'));
    for record in project.records("hostile").values() {
        assert!(record.trial_id.as_str().starts_with("harbor-"));
        for artefact in record.all_artefacts() {
            assert!(artefact.path.starts_with("harbor/"), "{artefact:?}");
            assert!(!artefact.path.contains("passwd"), "{artefact:?}");
        }
        assert!(!record.task.task_id.contains('\u{1b}'));
    }
    project.assert_sound("hostile");
    assert!(!project.env.path("escape").exists());
    let (id, _) = project.refusal("import tasks", 3);
    assert_eq!(id, "H022", "a directory without a job is reported as before");
}
