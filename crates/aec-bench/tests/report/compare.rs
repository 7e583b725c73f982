//! `report compare`: the documented table, frames, verdicts and exit codes.

use aec_judge::settle::outcome::{Boundary, Fault};
use aec_judge::verdict::Outcome;
use aec_ledger::example;
use serde_json::{Value, json};

use crate::report::world::{World, of_agent, of_task, rewarded};

/// One sample of the documented check: reward, whether the environment had the last word, whether an empty answer ended
/// it, and number of tool calls.
type Sampled = (f64, bool, bool, u64);

/// Fifteen samples of five tasks, three of each; the last task is never solved.
const BASE: [Sampled; 15] = [
    (1.0, true, false, 6),
    (1.0, false, true, 4),
    (0.0, false, true, 2),
    (1.0, true, false, 6),
    (0.0, false, true, 2),
    (0.0, false, true, 1),
    (1.0, false, true, 4),
    (0.0, false, true, 2),
    (0.0, false, true, 2),
    (1.0, false, true, 3),
    (0.0, false, true, 2),
    (0.0, false, true, 2),
    (0.0, false, true, 1),
    (0.0, false, true, 2),
    (0.0, false, true, 1),
];
const ADAPTER: [Sampled; 15] = [
    (1.0, true, false, 5),
    (1.0, true, false, 5),
    (1.0, false, false, 4),
    (1.0, true, false, 5),
    (1.0, true, false, 5),
    (1.0, false, false, 4),
    (1.0, true, false, 5),
    (1.0, true, false, 5),
    (1.0, false, false, 4),
    (1.0, true, false, 5),
    (1.0, true, false, 5),
    (1.0, false, false, 4),
    (0.0, false, true, 3),
    (0.0, false, true, 3),
    (0.0, false, true, 3),
];
const TASKS: [&str; 5] =
    ["bracket-load", "beam-check", "bolt-group", "column-buckling", "retaining-wall-stability"];

/// Writes the samples of a run as records of a hosted evaluation.
fn hosted(world: &mut World, experiment: &str, samples: &[Sampled], difficulty: &str) {
    for (at, (reward, last_word, empty, calls)) in samples.iter().enumerate() {
        world.add(experiment, |record| {
            of_task(record, TASKS[at / 3]);
            of_agent(record, experiment);
            record.repetition = u32::try_from(at % 3).unwrap() + 1;
            record.task.difficulty = Some(difficulty.to_owned());
            record.agent.adapter = "stateful".into();
            record.agent.configuration.insert("split".to_owned(), json!("eval"));
            record.agent.configuration.insert("seed".to_owned(), json!(7));
            rewarded(record, *reward);
            let result = [
                ("tool_calls", json!(calls)),
                ("submit_calls", json!(u64::from(*last_word))),
                ("submitted", json!(last_word)),
                ("final_environment_response", json!(last_word)),
            ];
            record.outputs.agent_result.extend(result.map(|(key, value)| (key.to_owned(), value)));
            record.outputs.trajectory_path = None;
            if *empty {
                record.fault = Some(Fault {
                    boundary: Boundary::Provider,
                    kind: Some("empty".to_owned()),
                    message: "the model said nothing".to_owned(),
                    retryable: false,
                });
            }
        });
    }
}

#[test]
fn the_documented_check_of_base_and_adapter_is_reproduced() {
    let mut world = World::new();
    hosted(&mut world, "base", &BASE, "medium");
    hosted(&mut world, "adapter", &ADAPTER, "medium");
    let text = world.run("report compare base adapter");
    let rows: Vec<Vec<&str>> = text
        .stdout
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    for expected in [
        ["Reward mean", "0.333", "0.800"],
        ["Nonzero rollouts", "5/15", "12/15"],
        ["Final environment response", "2/15", "8/15"],
        ["Empty response errors", "13/15", "3/15"],
        ["Mean tool calls", "2.667", "4.333"],
        ["Mean submit_answer calls", "0.133", "0.533"],
    ] {
        let row = rows.iter().find(|row| row.first() == Some(&expected[0]));
        assert_eq!(row.map(|row| &row[..3]), Some(&expected[..]), "{}", text.stdout);
    }
    let stubborn =
        rows.iter().find(|row| row.first() == Some(&"template:structural/retaining-wall-stability"));
    assert_eq!(stubborn.unwrap()[4], "0/3, 0/3", "{}", text.stdout);

    let data = world.json("report compare base adapter").envelope()["data"].clone();
    assert_eq!(data["frame"], json!([]));
    assert_eq!(
        data["alignment"],
        json!({"paired": true, "tasks": 5, "only_base": 0, "only_other": 0, "repetitions": 15})
    );
    // Five tasks with differences 1/3, 2/3, 2/3, 2/3 and 0: of 16 ways to sign the four that differ, two are as extreme.
    assert_eq!(data["reward"]["permutation"]["p_value"], 0.125);
    // Five tasks cannot distinguish an improvement from chance, but they rule out a loss.
    assert_eq!((data["verdict"]["kind"].clone(), text.code), (json!("not_worse"), Some(0)));
    let smallest = data["power"]["minimal_detectable_effect"].as_f64().unwrap();
    assert!((0.3..0.7).contains(&smallest), "{data}");
    // With the sides exchanged, the difference has the other sign.
    let back = world.json("report compare adapter base").envelope()["data"].clone();
    let difference = |data: &Value| data["reward"]["difference"].as_f64().unwrap();
    assert!((difference(&data) + difference(&back)).abs() < 1e-12);
}

#[test]
fn runs_in_different_frames_are_refused_with_every_difference() {
    let mut world = World::new();
    hosted(&mut world, "base", &BASE, "medium");
    hosted(&mut world, "adapter", &ADAPTER[..12], "easy");
    world.add("adapter", |record| {
        of_task(record, "another");
        of_agent(record, "adapter");
        record.agent.adapter = "tool_loop".into();
        record.agent.configuration.insert("max_tokens".to_owned(), json!(2048));
        record.dataset_id = Some("beams@2.0.0".to_owned());
        record.repetition = 2;
    });
    let refused = world.json("report compare base adapter");
    assert_eq!(refused.code, Some(3), "{refused:?}");
    let why = refused.envelope()["errors"][0]["why"].as_str().unwrap().to_owned();
    for part in
        ["environment:", "difficulty:", "harness:", "seed:", "split:", "token_budget:", "rollouts:", "tasks:"]
    {
        assert!(why.contains(part), "{part} {why}");
    }
    let allowed = world.json("report compare base adapter --allow-different-frame");
    let data = allowed.envelope()["data"].clone();
    assert_eq!(data["alignment"]["tasks"], 4, "{data}");
    assert!(data["frame"].as_array().unwrap().len() >= 8, "{data}");
}

/// Two agents on this many tasks, each solving a fixed number of them, so that nothing is random.
fn two_agents(world: &mut World, tasks: usize, solved: [usize; 2]) {
    for task in 0..tasks {
        for (agent, solved) in ["first", "second"].into_iter().zip(solved) {
            world.add("x", |record| {
                of_task(record, &format!("task-{task:03}"));
                of_agent(record, agent);
                rewarded(record, f64::from(task < solved));
            });
        }
    }
}

#[test]
fn a_gate_lets_the_better_run_pass_and_stops_the_worse_one() {
    let mut world = World::new();
    two_agents(&mut world, 40, [10, 25]);
    let better = world.json("report compare x/first x/second");
    assert_eq!(better.code, Some(0), "{better:?}");
    assert_eq!(better.envelope()["data"]["verdict"]["kind"], "improved");
    // 15 tasks that only one solved: 2 of 2^15 ways.
    let chance = better.envelope()["data"]["reward"]["mcnemar"]["p_value"].as_f64().unwrap();
    assert!((chance - 2.0 / 32768.0).abs() < 1e-12, "{chance}");
    let worse = world.json("report compare x/second x/first");
    assert_eq!(
        (worse.code, worse.envelope()["data"]["verdict"]["kind"].clone()),
        (Some(1), json!("regressed"))
    );
    let same = world.json("report compare x/first x/first --margin 0.1");
    assert_eq!(
        (same.code, same.envelope()["data"]["verdict"]["kind"].clone()),
        (Some(0), json!("equivalent"))
    );
    let strict = world.json("report compare x/first x/first");
    assert_eq!(
        (strict.code, strict.envelope()["data"]["verdict"]["kind"].clone()),
        (Some(1), json!("undecided"))
    );
}

#[test]
fn what_cannot_be_compared_is_said() {
    let mut world = World::new();
    two_agents(&mut world, 2, [1, 1]);
    let several = world.json("report compare x x/first");
    assert_eq!(several.code, Some(2), "{several:?}");
    assert!(several.errors()[0].1.contains("several agents"), "{several:?}");
    for line in ["report compare x/first nothing", "report compare x/first x/nobody"] {
        assert_eq!(world.json(line).code, Some(3), "{line}");
    }
    for line in ["report compare x/first x/second --margin 0", "report compare x/first x/second --detect 2"] {
        assert_eq!(world.json(line).code, Some(2), "{line}");
    }
    // Faults that are not the agent's count neither as a reward nor as a loss.
    world.add("x", |record| {
        of_task(record, "task-000");
        of_agent(record, "second");
        record.repetition = 2;
        *record = example::with_outcome(record.clone(), Outcome::InfraFault);
    });
    let data =
        world.json("report compare x/first x/second --allow-different-frame").envelope()["data"].clone();
    assert_eq!(data["metrics"][0]["other"]["of"], 2, "{data}");
}
