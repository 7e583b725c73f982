//! Saved evaluations whose rollouts have several rows: one rollout is one trial. And the words that all imports share.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use aec_xtest::TestEnv;
use serde_json::{Value, json};

use crate::prime_loop::import::counts;
use crate::prime_loop::world::World;

/// A row as an evaluation writes it; an error is the environment's own, so its reward of 0 counts.
fn row(example: u64, number: u64, attempt: u64, reward: Option<f64>) -> Value {
    let mut row = json!({
        "example_id": example, "prompt": [{"role": "user", "content": format!("Example {example}?")}],
        "completion": [{"role": "assistant", "content": "42"}], "reward": reward.unwrap_or(0.0), "error": null,
        "is_completed": true, "stop_condition": "max_turns_reached", "metrics": {"num_turns": 1.0},
        "rollout_number": number,
    });
    if attempt > 1 {
        row["attempt"] = json!(attempt);
    }
    if reward.is_none() {
        row["error"] = json!({"error": "ToolCallError", "error_chain_str": "ToolCallError"});
        row["stop_condition"] = json!("has_error");
    }
    row
}

/// Writes a saved evaluation.
fn save(env: &TestEnv, name: &str, rows: &[Value]) {
    let lines: Vec<String> = rows.iter().map(|row| format!("{row}\n")).collect();
    env.write(format!("{name}/results.jsonl"), lines.concat());
    env.write(format!("{name}/metadata.json"), json!({"env_id": "tiny", "model": "mock"}).to_string());
}

fn mean(world: &World, experiment: &str) -> (u64, f64) {
    let overall = world.data(&format!("evaluate -e {experiment}"))["overall"].clone();
    (overall["trials"].as_u64().unwrap(), overall["mean_reward"].as_f64().unwrap())
}

#[test]
fn rollouts_that_were_run_again_are_one_trial_each() {
    let world = World::new();
    let rewards = [1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0];
    let failed = [0, 3, 6];
    let row = |at: usize, attempt: u64, reward| row(at as u64 / 2, at as u64 % 2, attempt, reward);
    let mut rows: Vec<Value> =
        (0..10).map(|at| row(at, 1, Some(rewards[at]).filter(|_| !failed.contains(&at)))).collect();
    save(&world.env, "evals/first", &rows);
    let first = world.data("import evals/first -e again --trust-rewards");
    assert_eq!(counts(&first), [10, 10, 0, 0, 0, 0, 0]);
    // One of them needs three tries.
    rows.push(row(0, 2, None));
    rows.extend([3, 6].map(|at| row(at, 2, Some(rewards[at]))));
    rows.push(row(0, 3, Some(rewards[0])));
    save(&world.env, "evals/first", &rows);
    let more = world.data("import evals/first -e again --trust-rewards");
    assert_eq!(counts(&more), [14, 0, 4, 10, 0, 0, 0], "what was run again since is added");
    let whole = world.data("import evals/first -e whole --trust-rewards");
    assert_eq!(counts(&whole), [14, 10, 4, 0, 0, 0, 0]);
    assert_eq!(counts(&world.data("import evals/first -e whole --trust-rewards")), [14, 0, 0, 14, 0, 0, 0]);
    for experiment in ["again", "whole"] {
        assert_eq!(mean(&world, experiment), (10, 0.7), "{experiment}");
        let listed = world.data(&format!("ledger list -e {experiment} --all-attempts"));
        assert_eq!(listed["totals"]["count"], 14, "no attempt is dropped");
        let verified = world.run(&format!("ledger verify -e {experiment}"));
        assert_eq!(verified.code, Some(0), "{verified:?}");
    }
    let last = world.data("ledger show whole/prime-evals-first-sample-1");
    assert_eq!((&last["record"]["attempt"], &last["record"]["repetition"]), (&json!(3), &json!(1)));
}

#[test]
fn rows_that_verifiers_wrote_are_run_again_by_their_places() {
    let world = World::new();
    let unnumbered = |reward| {
        let mut row = row(0, 0, 1, reward);
        row.as_object_mut().unwrap().remove("rollout_number");
        row
    };
    // `eval run --resume --rerun-errors` numbers rows of verifiers in the order of their arrival.
    let rows = [unnumbered(Some(1.0)), unnumbered(None), row(0, 2, 1, Some(0.0)), row(0, 1, 2, Some(1.0))];
    save(&world.env, "evals/theirs", &rows);
    let data = world.data("import evals/theirs -e theirs --trust-rewards");
    assert_eq!(counts(&data), [4, 3, 1, 0, 0, 0, 0]);
    assert_eq!(mean(&world, "theirs"), (3, 2.0 / 3.0));
    let again = world.data("ledger show theirs/prime-evals-theirs-sample-2");
    assert_eq!(again["record"]["attempt"], 2);
}

#[test]
fn doubled_rows_are_told_and_make_no_trials() {
    let world = World::new();
    let rows =
        [row(0, 0, 1, Some(1.0)), row(0, 0, 1, Some(0.0)), row(0, 1, 1, Some(1.0)), row(0, 1, 2, Some(0.0))];
    save(&world.env, "evals/doubled", &rows);
    let run = world.run("import evals/doubled -e doubled --trust-rewards --json");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert_eq!(counts(&run.envelope()["data"]), [4, 2, 0, 0, 2, 0, 0]);
    let ids: Vec<String> = run.errors().into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["H029", "H029"], "each of them is named");
    assert_eq!(mean(&world, "doubled"), (2, 1.0), "the first row is the one that counts");
}

#[test]
fn another_run_of_the_same_name_is_not_passed_over() {
    let world = World::new();
    for (place, reward) in [("a", 0.0), ("b", 1.0)] {
        save(
            &world.env,
            &format!("{place}/evals/run"),
            &[row(0, 0, 1, Some(reward)), row(1, 0, 1, Some(reward))],
        );
    }
    assert_eq!(counts(&world.data("import a/evals/run -e same --trust-rewards")), [2, 2, 0, 0, 0, 0, 0]);
    let run = world.run("import b/evals/run -e same --json");
    assert_eq!(run.errors().into_iter().map(|(id, _)| id).collect::<Vec<_>>(), ["H019"], "{run:?}");
    assert_ne!(run.code, Some(0));
    assert_eq!(mean(&world, "same"), (2, 0.0));
    assert_eq!(counts(&world.data("import b/evals/run -e other")), [2, 2, 0, 0, 0, 0, 0]);
    assert_eq!(
        counts(&world.data("import a/evals/run -e same --trust-rewards")),
        [2, 0, 0, 2, 0, 0, 0],
        "the same again"
    );
}

#[test]
fn a_reward_is_a_number_or_there_is_none() {
    let world = World::new();
    let odd = [json!(null), json!("1"), json!(true), json!({"score": 1.0})];
    let rows: Vec<Value> = (0_u64..)
        .zip(&odd)
        .map(|(example, reward)| {
            let mut row = row(example, 0, 1, Some(1.0));
            row["reward"] = reward.clone();
            row["metrics"] = json!({"aec_bench_reward": 1.0});
            row
        })
        .collect();
    save(&world.env, "evals/odd", &rows);
    let data = world.data("import evals/odd -e odd --no-verify");
    assert_eq!(counts(&data), [4, 4, 0, 0, 0, 0, 0]);
    let rows = world.data("ledger list -e odd");
    let rows = rows["records"].as_array().or_else(|| rows["rows"].as_array()).unwrap();
    for row in rows {
        assert_eq!((&row["outcome"], &row["reward"]), (&json!("verifier_fault"), &json!(null)), "{row}");
    }
    let shown = world.data("ledger show odd/prime-evals-odd-sample-2");
    assert_eq!(shown["record"]["fault"]["message"], "its `reward` is a text where a number was expected");
}

#[test]
fn what_a_package_measured_says_what_was_judged() {
    let world = World::new();
    let measured = [
        (json!({"agent_fault": 1.0, "submitted": 0.0}), "agent_fault", json!(null)),
        (json!({"verifier_fault": 1.0, "submitted": 0.0}), "verifier_fault", json!(null)),
        (json!({"submitted": 1.0, "source_workspace": 0.0}), "scored", json!("submitted")),
        (json!({"submitted": 0.0, "source_workspace": 1.0}), "scored", json!("file")),
        (json!({"submitted": 0.0, "source_message": 1.0}), "scored", json!("final_text")),
        (json!({"submitted": 0.0, "source_message": 0.0}), "scored", json!(null)),
        (json!({"num_turns": 1.0}), "scored", json!("final_text")),
    ];
    let rows: Vec<Value> = (0_u64..)
        .zip(&measured)
        .map(|(example, (metrics, ..))| {
            let mut row = row(example, 0, 1, Some(1.0));
            row["metrics"] = metrics.clone();
            row
        })
        .collect();
    save(&world.env, "evals/measured", &rows);
    world.data("import evals/measured -e measured --trust-rewards");
    for (at, (metrics, outcome, source)) in measured.iter().enumerate() {
        let shown = world.data(&format!("ledger show measured/prime-evals-measured-sample-{}", at + 1));
        let record = &shown["record"];
        assert_eq!(record["outcome"], *outcome, "{metrics}");
        assert_eq!(record["outputs"]["output_source"], *source, "{metrics}");
        assert_eq!(record["outputs"]["answer_order"], "submitted_first");
    }
}

#[test]
fn every_import_answers_in_the_same_words() {
    let world = World::new();
    save(&world.env, "evals/run", &[row(0, 0, 1, Some(1.0))]);
    world.env.write("samples.json", json!({"samples": [row(0, 0, 1, Some(1.0))]}).to_string());
    let job = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/harbor/jobs/older");
    let keys = |line: &str| -> (BTreeSet<String>, BTreeSet<String>) {
        let data = world.data(line);
        let of = |value: &Value| value.as_object().unwrap().keys().cloned().collect();
        (of(&data), of(&data["verification"]))
    };
    let saved = keys("import evals/run -e saved");
    assert_eq!(saved, keys("import-prime-eval --file samples.json -e hosted"));
    assert_eq!(saved, keys(&format!("import {} -e job", job.display())));
    let first_words = |line: &str| {
        let run = world.run(line);
        assert_eq!(run.code, Some(0), "{run:?}");
        run.stdout
            .split_whitespace()
            .skip(1)
            .filter(|word| word.parse::<u64>().is_err())
            .map(str::to_owned)
            .collect()
    };
    let saved: Vec<String> = first_words("import evals/run -e saved");
    assert_eq!(saved, first_words("import-prime-eval --file samples.json -e hosted"));
    assert_eq!(saved, first_words(&format!("import {} -e job", job.display())));
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap().path();
        let place = to.join(entry.file_name().unwrap());
        if entry.is_dir() {
            copy(&entry, &place);
        } else {
            std::fs::copy(&entry, &place).unwrap();
        }
    }
}

/// An earlier version wrote `old/ledger`, in which every row was a separate trial: `old/evals/old` and the Harbor job
/// `older`, as experiments `old` and `harbor-old`.
#[test]
fn imports_of_earlier_versions_are_read_and_not_imported_again() {
    let world = World::new();
    let old: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/prime_loop/old");
    copy(&old.join("ledger"), &world.env.path("artefacts/ledger"));
    copy(&old.join("evals"), &world.env.path("evals"));
    assert_eq!(world.data("ledger list -e old")["totals"]["count"], 3);
    assert_eq!(counts(&world.data("import evals/old -e old")), [3, 0, 0, 3, 0, 0, 0]);
    let job = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/harbor/jobs/older");
    let line = format!("import {} -e harbor-old", job.display());
    assert_eq!(counts(&world.data(&line)), [2, 0, 0, 2, 0, 0, 0]);
    for experiment in ["old", "harbor-old"] {
        let verified = world.run(&format!("ledger verify -e {experiment}"));
        assert_eq!(verified.code, Some(0), "{verified:?}");
    }
    assert_eq!(counts(&world.data("import evals/old -e new")), [3, 2, 1, 0, 0, 0, 0]);
}
