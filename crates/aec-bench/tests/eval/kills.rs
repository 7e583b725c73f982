//! A killed evaluation loses nothing that was on disk, and ends with the same result.

use std::time::Duration;

use aec_model_server::Range;
use aec_xtest::wait::until;
use serde_json::Value;

use crate::eval::world::{World, metadata, rows};

/// Values that must be the same however often an evaluation was interrupted.
const METRICS: [&str; 9] = [
    "reward",
    "reward_std",
    "reward_se",
    "avg_metrics",
    "metrics_std",
    "pass_at_k",
    "pass_all_k",
    "usage",
    "stop_conditions",
];

#[test]
fn killed_at_random_moments_and_resumed_it_ends_the_same() {
    let world = World::with(|options| options.latency = Range::only(Duration::from_millis(2)));
    world.environment("my-env");
    world.eval("eval run my-env -n -1 -r 40 --seed 3 --record tape");
    let line = "eval run my-env -n -1 -r 40 --seed 3 -c 8 -s --replay tape";
    world.eval(line);
    let whole = world.saved("my_env", "my-env");
    let (expected, wanted) = (metadata(&whole), rows(&whole));
    std::fs::remove_dir_all(&whole).unwrap();
    let kills = if aec_xtest::full() { 100 } else { 15 };
    let mut state = 88_172_645_463_325_252_u64;
    let mut killed = 0;
    while killed < kills {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let words = format!("{line} --resume");
        let mut child = world.env.start(words.split(' '));
        // Only the moment is random here; nothing waits for anything to be ready.
        std::thread::sleep(Duration::from_millis(20 + state % 160));
        child.kill().unwrap();
        child.wait().unwrap();
        killed += 1;
        let group = world.env.path("environments/my_env/outputs/evals/my-env--gpt-4.1-mini");
        for run in std::fs::read_dir(&group).into_iter().flatten().filter_map(Result::ok) {
            // A run that was killed before its first write has no row that could be lost.
            if !run.path().join("metadata.json").exists() {
                let rows = std::fs::read(run.path().join("results.jsonl")).unwrap_or_default();
                assert!(rows.is_empty(), "rows without a word of what they are");
                std::fs::remove_dir_all(run.path()).unwrap();
            }
        }
        let runs = std::fs::read_dir(&group).map_or(0, Iterator::count);
        assert!(runs <= 1, "one run is resumed again and again");
        if runs == 1 && metadata(&world.saved("my_env", "my-env"))["complete"] == true {
            // It ended between two kills; the next one starts anew.
            check(&world, &expected, &wanted);
            std::fs::remove_dir_all(world.saved("my_env", "my-env")).unwrap();
        }
    }
    world.eval(&format!("{line} --resume"));
    check(&world, &expected, &wanted);
}

fn check(world: &World, expected: &Value, wanted: &[Value]) {
    let run = world.saved("my_env", "my-env");
    let (saved, rows) = (metadata(&run), rows(&run));
    assert_eq!(rows.len(), wanted.len());
    for (row, wanted) in rows.iter().zip(wanted) {
        for key in ["example_id", "rollout_number", "completion", "reward", "metrics", "stop_condition"] {
            assert_eq!(row[key], wanted[key]);
        }
    }
    for key in METRICS {
        assert_eq!(saved[key], expected[key], "{key}");
    }
}

#[test]
fn what_a_killed_session_may_have_paid_for_is_spent() {
    let world = World::with(|options| options.latency = Range::only(Duration::from_mins(5)));
    world.environment("my-env");
    let prices = "[[price]]\nendpoint = \"gpt-4.1-mini\"\ninput = 10\noutput = 10\n";
    world.env.write("configs/prices.toml", prices);
    let line = "eval run my-env -n 10 -r 3 -t 100 -s -c 8";
    let words = format!("{line} --max-cost 0.1");
    let mut child = world.env.start(words.split(' '));
    let saved = || {
        let group = world.env.path("environments/my_env/outputs/evals/my-env--gpt-4.1-mini");
        let run = std::fs::read_dir(group).ok()?.next()?.ok()?.path();
        run.join("metadata.json").is_file().then_some(run)
    };
    let spent = |run: std::path::PathBuf| metadata(&run)["budget"]["spent_usd"].as_f64();
    // No rollout has ended, but the maximum cost of the calls under way is recorded.
    until("the calls in the metadata", || saved().and_then(spent).is_some_and(|spent| spent > 0.05));
    child.kill().unwrap();
    child.wait().unwrap();
    let budget = metadata(&saved().unwrap())["budget"].clone();
    let reserved =
        budget["under_way"].as_array().unwrap().iter().map(|one| one["reserved_usd"].as_f64().unwrap());
    assert!((reserved.sum::<f64>() - budget["spent_usd"].as_f64().unwrap()).abs() < 1e-6, "{budget}");
    let asked = world.requests().len();
    assert!(rows(&saved().unwrap()).is_empty() && asked > 0);
    let again = world.run(&format!("{line} --resume {}", saved().unwrap().display()));
    assert_eq!((again.code, world.requests().len()), (Some(4), asked), "nothing is left: {again:?}");
}
