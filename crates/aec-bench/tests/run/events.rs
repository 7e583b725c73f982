//! `--events`: events for other programs.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::run::world::Project;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn names(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["event"].as_str().unwrap()).collect()
}

#[test]
fn a_run_tells_every_trial_and_sessions_add_up() {
    let world = Project::with_tasks(3);
    let line = "run civil --harness nop --repetitions 2 -e x --events events.jsonl --quiet";
    assert_eq!(world.run(line).code, Some(0));
    let told = lines(&world.env.read("events.jsonl"));
    let of = |name: &str| told.iter().filter(|line| line["event"] == name).collect::<Vec<_>>();
    assert_eq!((told[0]["event"].as_str(), told[0]["version"].as_u64()), (Some("opened"), Some(1)));
    assert_eq!(told[1]["event"], "run_started");
    assert_eq!(told.last().unwrap()["event"], "run_ended");
    assert_eq!((of("trial_started").len(), of("trial_ended").len()), (6, 6));
    assert!(of("trial_ended").iter().all(|ended| ended["outcome"] == "scored" && ended["reward"] == 0.0));
    let trials: BTreeSet<&str> =
        of("trial_ended").iter().filter_map(|ended| ended["trial_id"].as_str()).collect();
    assert_eq!(trials.len(), 6);
    assert!(told.iter().all(|line| line["at"].as_str().is_some_and(|at| at.ends_with('Z'))), "{told:?}");
    // Every key is documented.
    let page = include_str!("../../../../docs/progress.md");
    for line in &told {
        for key in line.as_object().unwrap().keys() {
            assert!(page.contains(&format!("`{key}`")), "{key} of {line}");
        }
    }
    assert_eq!(world.run(line).code, Some(0));
    let again = lines(&world.env.read("events.jsonl"));
    assert_eq!(
        names(&again[told.len()..]),
        ["opened", "run_started", "run_ended"],
        "everything is there already"
    );
}

#[test]
fn standard_output_takes_events_before_the_envelope_and_only_as_json() {
    let world = Project::with_tasks(1);
    let run = world.run("--json run civil --harness nop -e x --events -");
    let (events, envelope) = run.stdout.trim_end().rsplit_once('\n').unwrap();
    assert!(envelope.starts_with(r#"{"command":"run""#), "{envelope}");
    let events = lines(events);
    assert_eq!(names(&events).first(), Some(&"opened"));
    assert_eq!(names(&events).last(), Some(&"run_ended"));
    let text = world.run("run civil --harness nop -e y --events -");
    assert_eq!(text.code, Some(2), "{text:?}");
    assert!(text.stderr.contains("--json"), "{text:?}");
}

#[test]
fn a_dry_run_has_no_events() {
    let world = Project::with_tasks(1);
    let run = world.run("run civil --harness nop -e x --dry-run --events events.jsonl");
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(!world.env.path("events.jsonl").exists());
}

#[test]
fn a_file_that_cannot_be_written_is_said_before_anything_runs() {
    let world = Project::with_tasks(1);
    let run = world.run("run civil --harness nop -e x --events no/such/directory/events.jsonl");
    assert!(matches!(run.code, Some(3 | 4)), "{run:?}");
    assert!(!world.ledger("x").exists(), "nothing ran");
}
