//! Selected tasks: which of them are for learning, for tests and for the end is decided once, and no test counts a task
//! twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aec_base::digest::Digest;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::evolve::voices::{cycle, said_by, skill};
use crate::evolve::world::{TASKS, solved, task_number, usual};
use crate::evolve::{Said, World};

/// Ids of the tasks that a run used for some purposes.
fn used(world: &World, run: &str, purposes: &[&str]) -> BTreeSet<String> {
    let measured = world.events(run, "measured").into_iter();
    measured
        .filter(|event| purposes.iter().any(|purpose| event["purpose"] == *purpose))
        .flat_map(|event| event["tasks"].as_array().unwrap().clone())
        .map(|task| task["task_id"].as_str().unwrap().to_owned())
        .collect()
}

/// A solver that always does the same with the same prompt on the same task. Every prompt is equally good: whether it
/// solves a task is random.
fn luck(seed: u32, body: &Value) -> Said {
    match body["model"].as_str() {
        Some("solver") => {
            let (prompt, task) = (said_by(body, "system"), task_number(body));
            let drawn = Digest::of(format!("{seed} {task} {prompt}").as_bytes());
            solved(drawn.bytes()[0].is_multiple_of(2))
        }
        _ => skill(&format!("idea-{}", cycle(body)), &format!("Idea {} is of no use.", cycle(body))).into(),
    }
}

/// If a task counted repeatedly, tests would continue with the same few differences until they look significant.
#[test]
fn a_test_counts_each_task_once_and_ends_undecided_without_further_ones() {
    let (runs, most) = if aec_xtest::full() { (20, 4) } else { (4, 1) };
    let (mut accepting, mut ran_out) = (0, 0);
    for seed in 0..runs {
        let world = World::with(move |body| luck(seed, body));
        world.evolution(&[
            "max_cycles: 4",
            "stagnation_window: 9",
            "acceptance: { error_rate: 0.05, max_tasks: 60 }",
        ]);
        let data = world.evolve();
        accepting += u32::from(data["accepted"] != 0);
        let mut had: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
        for event in world.events("evolve/w-1", "measured") {
            for task in event["tasks"].as_array().unwrap().iter().filter(|_| event["purpose"] == "accept") {
                let test = had.entry(event["cycle"].as_u64().unwrap()).or_default();
                assert!(test.insert(task["revision"].as_str().unwrap().to_owned()), "twice: {task}");
            }
        }
        for event in world.events("evolve/w-1", "decided") {
            assert!(event["standing"]["pairs"].as_u64().unwrap() <= 16, "{event}");
            ran_out += usize::from(event["rejection"] == "tasks_ran_out");
        }
        for cycle in data["cycles"].as_array().unwrap() {
            let outcome = cycle["outcome"].as_str().unwrap();
            assert!(!outcome.contains("fresh"), "tasks of tests come up again in later tests: {outcome}");
        }
    }
    assert!(ran_out > 0, "no test came to the end of its tasks: nothing was shown");
    // Each run accepts something with a probability of at most 0.05: two or more of four with one of 0.014.
    assert!(accepting <= most, "{accepting} of {runs} runs accepted something");
}

#[test]
fn who_looks_on_is_told_which_tasks_were_seen_before() {
    let world = World::with(|body| luck(1, body));
    world.evolution(&["max_cycles: 3", "acceptance: { error_rate: 0.2, max_tasks: 60 }"]);
    let run = world.run("evolve run -c evolution.yaml");
    assert_eq!(run.code, Some(0), "{run:?}");
    let tested: Vec<Value> = world
        .events("evolve/w-1", "measured")
        .into_iter()
        .filter(|event| event["purpose"] == "accept")
        .collect();
    let lines: Vec<&str> = run.stderr.lines().filter(|line| line.contains(" against ")).collect();
    let again = |event: &Value| event["tasks"].as_array().unwrap().iter().any(|task| task["repetition"] != 1);
    assert!(tested.iter().any(again), "no task came up again: nothing was shown");
    for (event, line) in tested.iter().zip(lines) {
        assert_eq!(line.contains("that are new"), !again(event), "{line}");
        assert_eq!(line.contains("seen before"), again(event), "{line}");
    }
}

/// Trials of one task are alike: an interval that counted each trial separately would be too narrow.
#[test]
fn intervals_go_by_tasks() {
    let world = World::with(|body| luck(1, body));
    world.evolution(&["max_cycles: 4", "stagnation_window: 9", "batch_size: 16", "holdout: { tasks: 0 }"]);
    let data = world.evolve();
    let baseline = data["candidates"][0].clone();
    assert!(baseline["trials"].as_u64().unwrap() > 40, "tasks came up again: {baseline}");
    let shown = world.data("report leaderboard -e evolve-w-1");
    let entry = shown["rows"].as_array().unwrap().iter().find(|entry| entry["agent"] == baseline["name"]);
    let entry = entry.unwrap_or_else(|| panic!("{shown}"));
    let close = |one: &Value, other: &Value| (one.as_f64().unwrap() - other.as_f64().unwrap()).abs() < 1e-9;
    assert!(close(&baseline["mean"], &entry["mean_reward"]), "{baseline} {entry}");
    assert!(close(&baseline["low"], &entry["interval"]["low"]), "{baseline} {entry}");
    assert!(close(&baseline["high"], &entry["interval"]["high"]), "{baseline} {entry}");
}

#[test]
fn too_few_tasks_for_any_test_are_refused_with_what_helps() {
    let world = World::new();
    world.evolution(&[
        "tasks: { include_patterns: ['civil/channel-00*'] }",
        "acceptance: { error_rate: 0.05 }",
    ]);
    for line in ["evolve run -c evolution.yaml", "evolve run -c evolution.yaml --dry-run"] {
        world.refuses(
            line,
            (3, "X022"),
            &[
                "nothing could ever be accepted: of the selected tasks 4 are for tests",
                "a test has each task once",
                "3 tests at an error rate of 0.05",
                "needs 9",
                "select at least 19 tasks",
                "`generate`",
                "raise the error rate",
            ],
        );
    }
    assert_eq!(world.voices.asked("solver").len(), 0);
    // The number of tasks that the error message names is enough.
    let enough = format!("tasks: {{ include_patterns: ['civil/channel-00*', 'civil/channel-01[0-{}]'] }}", 8);
    world.evolution(&[&enough, "acceptance: { error_rate: 0.05 }"]);
    let data = world.data("evolve run -c evolution.yaml --dry-run");
    assert_eq!((&data["tasks_of_tests"], &data["tasks_kept"]), (&json!(9), &json!(2)), "{data}");
    std::fs::remove_dir_all(world.env.path("tasks/civil/channel-018")).unwrap();
    world.refuses("evolve run -c evolution.yaml", (3, "X022"), &["8 are for tests"]);
}

/// A project whose evolver does not answer until the test allows it, with a run that was killed meanwhile.
fn killed_in_the_first_cycle() -> (World, Arc<AtomicBool>) {
    let speaks = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&speaks);
    let world = World::with(move |body| match body["model"].as_str() {
        Some("evolver") if !heard.load(Ordering::Relaxed) => Said::Silence,
        _ => usual(body),
    });
    let run = world.start("evolve run -c evolution.yaml");
    world.voices.wait_for("evolver", 1);
    run.signal(Signal::KILL);
    run.end();
    (world, speaks)
}

#[test]
fn tasks_that_were_learned_from_never_become_tasks_of_tests() {
    let (world, speaks) = killed_in_the_first_cycle();
    let learned = used(&world, "evolve/w-1", &["learn"]);
    assert_eq!(learned.len(), 4);
    let started = world.events("evolve/w-1", "run_started")[0].clone();
    let ids = |list: &str| -> BTreeSet<String> {
        let tasks = started["division"][list].as_array().unwrap();
        tasks.iter().map(|task| task["task_id"].as_str().unwrap().to_owned()).collect()
    };
    let (learning, testing, holdout) = (ids("learning"), ids("testing"), ids("holdout"));
    assert_eq!((learning.len(), testing.len(), holdout.len()), (16, 16, 2));
    // New tasks would change the division if it were made again.
    for index in 0..20 {
        world.task(&format!("civil/culvert-{index:03}"), "easy");
    }
    speaks.store(true, Ordering::Relaxed);
    let data = world.data("evolve resume w-1");
    assert_eq!((&data["state"], &data["accepted"]), (&json!("ended"), &json!(1)));
    let (learned, tested) =
        (used(&world, "evolve/w-1", &["learn", "screen"]), used(&world, "evolve/w-1", &["accept"]));
    assert!(learned.is_subset(&learning) && tested.is_subset(&testing), "{learned:?} {tested:?}");
    assert_eq!(used(&world, "evolve/w-1", &["holdout"]), holdout);
}

#[test]
fn a_task_that_changed_or_is_gone_is_refused_until_it_is_back() {
    let (world, speaks) = killed_in_the_first_cycle();
    speaks.store(true, Ordering::Relaxed);
    let started = world.events("evolve/w-1", "run_started")[0].clone();
    for list in ["learning", "testing", "holdout"] {
        let task = started["division"][list][0]["task_id"].as_str().unwrap().to_owned();
        let file = format!("tasks/{task}/instruction.md");
        let text = world.env.read(&file);
        world.env.write(
            &file,
            "# Something else\n\nWrite `flow_m3_s` and `depth_m` to `/workspace/output.json`.\n",
        );
        let refused = world.refusal("evolve resume w-1", 3);
        assert_eq!(refused["id"], "X043", "{list}: {refused}");
        assert!(refused.to_string().contains(&format!("`{task}` has changed")), "{refused}");
        world.env.write(&file, text);
        let place = world.env.path(format!("tasks/{task}"));
        let away = world.env.path("elsewhere");
        std::fs::rename(&place, &away).unwrap();
        let refused = world.refusal("evolve resume w-1", 3);
        assert_eq!(refused["id"], "X043", "{list}: {refused}");
        assert!(refused.to_string().contains(&format!("`{task}` is gone")), "{refused}");
        std::fs::rename(&away, &place).unwrap();
    }
    assert_eq!(world.data("evolve resume w-1")["state"], "ended");
}

/// Logs of earlier versions do not contain the division of tasks: they can be read, but not resumed.
#[test]
fn a_log_without_its_division_is_shown_and_not_gone_on_with() {
    let (world, _) = killed_in_the_first_cycle();
    let log = world.directory("evolve/w-1").join("events.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut first: Value = serde_json::from_str(&lines[0]).unwrap();
    assert!(first.as_object_mut().unwrap().remove("division").is_some());
    lines[0] = first.to_string();
    std::fs::write(&log, lines.join("\n") + "\n").unwrap();
    assert_eq!(world.data("evolve report w-1")["state"], "stopped");
    assert_eq!(world.data("evolve history")["total"], 1);
    world.refuses(
        "evolve resume w-1",
        (3, "X038"),
        &["earlier version", "kept for the end", "begin a new run"],
    );
}

#[test]
fn a_selection_of_nothing_is_no_selection_beside_made_tasks_either() {
    let world = World::new();
    world.evolution(&[
        "tasks: { domains: [maritime] }",
        "generate: { template: voltage-drop, count: 4, difficulties: [easy] }",
    ]);
    world.refuses("evolve run -c evolution.yaml", (3, "X040"), &["no task is selected", "leave it out"]);
}

#[test]
fn a_preview_counts_the_trials_of_the_end_and_no_task_of_a_test_twice() {
    let world = World::new();
    let data = world.data("evolve run -c evolution.yaml --dry-run");
    // Three cycles, both sides on 4 and on 16 tasks; then both on the 2 that are kept.
    assert_eq!(data["trials_at_most"], 3 * 2 * (4 + 16) + 2 * 2, "{data}");
    world.evolution(&["acceptance: { error_rate: 0.2, max_tasks: 60 }"]);
    let data = world.data("evolve run -c evolution.yaml --dry-run");
    assert_eq!((&data["trials_at_most"], &data["tasks_of_tests"]), (&json!(124), &json!((TASKS - 2) / 2)));
    let shown = world.run("evolve run -c evolution.yaml --dry-run").stdout;
    for part in [
        "evidence of 15 within 16 tasks; 6 at least",
        "16 selected tasks for tests, 2 kept for the end",
        "at most 124 trials",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}
