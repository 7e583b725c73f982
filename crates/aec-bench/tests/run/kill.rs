//! Killed at any moment, again and again: every planned trial ends with exactly one result, no reader ever sees a torn
//! file, and every call is counted once.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use aec_base::digest::Digest;
use aec_judge::verdict::Outcome;
use aec_ledger::record::TrialRecord;
use aec_ledger::transcript;
use aec_model::event::CallEvent;
use aec_xtest::chance::Chance;
use aec_xtest::files::{files_below, names_in};
use aec_xtest::running::Running;
use aec_xtest::wait::until;
use rustix::process::Signal;
use serde_json::Value;

use crate::run::world::right;
use crate::run::{Project, Server};

const TRIALS: usize = 500;

/// The quantity that is watched to find the moment.
fn seen(project: &Project, server: &Server, what: u64) -> u64 {
    match what {
        // Beginnings of sessions, when locks, recovery and salvage happen.
        0 => names_in(&project.ledger("x").join("_run")).len() as u64,
        1 => project.record_names("x").len() as u64,
        _ => server.count(),
    }
}

/// Kills a run a moment after the watched quantity has reached its goal. Returns whether it was still running.
fn kill(project: &Project, server: &Server, run: Running, chance: &mut Chance, step: u64) -> bool {
    let what = chance.up_to(5);
    let before = seen(project, server, what);
    let wanted = before + if what == 0 { 1 + chance.up_to(1) } else { chance.up_to(step) };
    let mut run = run;
    until("what is watched", || seen(project, server, what) >= wanted || run.is_over());
    let spin = Duration::from_micros(chance.up_to(if what == 0 { 60_000 } else { 4_000 }));
    let begun = Instant::now();
    while begun.elapsed() < spin {
        std::hint::spin_loop();
    }
    let alive = run.signal_if_alive(Signal::KILL);
    run.end();
    alive
}

/// Every file with its final name is complete.
fn nothing_is_torn(project: &Project) {
    for directory in [project.ledger("x"), project.ledger("x").join("_run")] {
        for name in names_in(&directory) {
            if name.ends_with(".json") && !name.starts_with('.') {
                let bytes = std::fs::read(directory.join(&name)).unwrap();
                serde_json::from_slice::<Value>(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
            }
        }
    }
}

#[test]
fn killed_at_any_moment_every_trial_ends_up_with_one_result() {
    let kills = if aec_xtest::full() { 200 } else { 20 };
    let mut chance = Chance(20_260_412);
    let mut killed = 0;
    while killed < kills {
        let project = Project::with_tasks(25);
        let server = Server::start(right());
        project.endpoints(&server.url(), &["mine"]);
        let line = "run civil --model mine --harness direct -n 20 -e x --concurrency 8";
        let step = if aec_xtest::full() { 12 } else { 60 };
        let mut resumed = false;
        loop {
            let complete = project.record_names("x").len() >= TRIALS
                && project.data("runs status x")["state"] == "complete";
            if killed >= kills || complete {
                break;
            }
            // The first kills may come before there is a plan to continue.
            let has_plan = project.ledger("x").join("_run/plan.json").is_file();
            let run =
                project.start(if has_plan && resumed { "run --resume x --concurrency 8" } else { line });
            resumed = true;
            killed += u32::from(kill(&project, &server, run, &mut chance, step));
            nothing_is_torn(&project);
        }
        let last = project.json(line);
        assert_eq!(last.code, Some(0), "{last:?}");
        every_trial_has_one_result(&project);
        every_call_is_accounted_for(&project, &server);
        jobs_are_what_records_say(&project);
        project.assert_sound("x");
        eprintln!(
            "{killed} kills: {} records of {TRIALS} trials, {} requests",
            project.record_names("x").len(),
            server.count()
        );
    }
}

fn every_trial_has_one_result(project: &Project) {
    let plan = project.data("run --resume x --dry-run");
    assert_eq!((plan["planned_trials"].as_u64(), plan["trials_to_run"].as_u64()), (Some(500), Some(0)));
    let records = project.records("x");
    let mut attempts: BTreeMap<String, Vec<&TrialRecord>> = BTreeMap::new();
    for record in records.values() {
        attempts.entry(record.trial_id.to_string()).or_default().push(record);
    }
    assert_eq!(attempts.len(), TRIALS);
    for trial in plan["trials"].as_array().unwrap() {
        let of_trial = attempts.get_mut(trial["trial_id"].as_str().unwrap()).unwrap();
        of_trial.sort_by_key(|record| record.attempt);
        let numbers: Vec<u32> = of_trial.iter().map(|record| record.attempt).collect();
        assert_eq!(numbers, (1..=u32::try_from(of_trial.len()).unwrap()).collect::<Vec<_>>());
        let outcomes: Vec<Outcome> = of_trial.iter().map(|record| record.outcome).collect();
        let (last, before) = outcomes.split_last().unwrap();
        assert_eq!(*last, Outcome::Scored, "{trial}");
        assert!(before.iter().all(|outcome| *outcome == Outcome::Cancelled), "one result: {outcomes:?}");
    }
}

/// Records, trajectories and the server agree on the number of calls.
fn every_call_is_accounted_for(project: &Project, server: &Server) {
    let (mut settled, mut unsettled, mut ended, mut open) = (0, 0, 0, 0);
    for record in project.records("x").values() {
        settled += record.cost.model_calls + record.cost.unbilled_calls;
        unsettled += record.cost.unsettled_calls;
        let events = transcript::read(project.job_file(record, "trajectory.jsonl").as_bytes());
        let calls: Vec<&CallEvent> = events.iter().filter_map(|event| event.call.as_ref()).collect();
        let begun = calls.iter().filter(|call| matches!(call, CallEvent::Attempt { .. })).count() as u64;
        let over = calls.len() as u64 - begun;
        ended += over;
        open += begun - over;
    }
    assert_eq!((settled, unsettled), (ended, open), "records say what trajectories say");
    let count = server.count();
    assert!(
        settled <= count && count <= settled + unsettled,
        "{settled} settled, {unsettled} not, {count} requests"
    );
    assert!(settled >= TRIALS as u64);
}

fn jobs_are_what_records_say(project: &Project) {
    let mut expected: HashMap<String, Digest> = HashMap::new();
    for (name, record) in project.records("x") {
        let stem = name.trim_end_matches(".json");
        for artefact in record.all_artefacts() {
            expected.insert(format!("{stem}/{}", artefact.path), artefact.digest);
        }
    }
    let found = files_below(&project.jobs("x"));
    for (path, bytes) in &found {
        assert_eq!(expected.get(path), Some(&Digest::of(bytes)), "{path}");
    }
    assert_eq!(found.len(), expected.len());
}
