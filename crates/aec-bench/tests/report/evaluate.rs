//! `evaluate`, `report summary`, `report leaderboard` and `plan --detect`.

use aec_base::digest::Digest;
use aec_judge::verdict::Outcome;
use aec_ledger::example;
use serde_json::{Value, json};

use crate::report::world::{World, of_agent, of_task, rewarded};

/// Two agents, two tasks, two repetitions, and every kind of fault.
fn mixed() -> World {
    let mut world = World::new();
    for (agent, task, repetition, reward) in [
        ("good", "beam", 1, 1.0),
        ("good", "beam", 2, 0.5),
        ("good", "bolt", 1, 1.0),
        ("good", "bolt", 2, 1.0),
        ("poor", "beam", 1, 0.0),
        ("poor", "beam", 2, 1.0),
    ] {
        world.add("x", |record| {
            of_task(record, task);
            of_agent(record, agent);
            record.repetition = repetition;
            rewarded(record, reward);
        });
    }
    for (repetition, outcome) in [
        (1, Outcome::AgentFault),
        (2, Outcome::InfraFault),
        (3, Outcome::Cancelled),
        (4, Outcome::Unverified),
    ] {
        world.add("x", |record| {
            of_task(record, "bolt");
            of_agent(record, "poor");
            record.repetition = repetition;
            *record = example::with_outcome(record.clone(), outcome);
        });
    }
    world
}

fn group<'a>(data: &'a Value, table: &str, name: &str) -> &'a Value {
    let rows = data["by"][table].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap()
}

#[test]
fn means_say_what_they_are_of() {
    let world = mixed();
    let data = world.data("evaluate -e x");
    let poor = group(&data, "agent", "poor");
    // Rewards 0 and 1, and an agent fault; one infra fault; one cancelled.
    assert_eq!((poor["trials"].clone(), poor["counted"].clone()), (json!(6), json!(3)));
    let means = &poor["denominators"];
    assert!((means["without_infra"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-12);
    assert_eq!(means["as_run"], 0.25);
    // What nobody verified may be anything, so the worst case counts it as 0.
    assert!((means["worst_case"].as_f64().unwrap() - 1.0 / 6.0).abs() < 1e-12);
    let unknown = json!({"withheld": 0, "unverified": 1, "low": 0.25, "high": 0.5});
    assert_eq!(poor["unknown"], unknown);
    assert_eq!(poor["mean_reward"], means["without_infra"]);
    let good = group(&data, "agent", "good");
    assert_eq!((good["mean_reward"].clone(), good["solved"].clone()), (json!(0.875), json!(3)));
    // Task beam: one of two tries; bolt: both.
    let pass = good["pass"].as_array().unwrap();
    assert_eq!(pass[0], json!({"k": 1, "pass_at_k": 0.75, "pass_hat_k": 0.75, "tasks": 2}));
    assert_eq!(pass[1], json!({"k": 2, "pass_at_k": 1.0, "pass_hat_k": 0.5, "tasks": 2}));
    assert!((good["cost_per_solved"].as_f64().unwrap() - 4.0 * 0.0123 / 3.0).abs() < 1e-12);
    for (table, rows) in
        [("model", 1), ("harness", 1), ("difficulty", 1), ("discipline", 1), ("family", 2), ("task", 2)]
    {
        assert_eq!(data["by"][table].as_array().unwrap().len(), rows, "{table}");
    }
}

#[test]
fn the_experiment_has_one_option_with_three_names_and_filters_narrow() {
    let world = mixed();
    let text = |line: &str| {
        let run = world.run(line);
        assert_eq!(run.code, Some(0), "{run:?}");
        run.stdout
    };
    let short = text("evaluate -e x");
    assert_eq!(short, text("evaluate --experiment-id x"));
    assert_eq!(short, text("evaluate --experiment x"));
    for (filter, trials) in [
        ("--agent good", 4),
        ("--agent poor", 6),
        ("--task-prefix structural/beam", 4),
        ("--difficulty easy", 10),
        ("--discipline structural", 10),
        ("--harness direct", 10),
        ("--model openai/gpt-4.1", 10),
        ("--filter family=template:structural/bolt", 6),
    ] {
        let data = world.data(&format!("evaluate -e x {filter}"));
        assert_eq!(data["overall"]["trials"], trials, "{filter}");
    }
    for filter in ["--agent nobody", "--difficulty hard", "--discipline civil"] {
        assert_eq!(world.json(&format!("evaluate -e x {filter}")).code, Some(3), "{filter}");
    }
    assert_eq!(world.json("evaluate -e nothing").code, Some(3));
    assert_eq!(world.json("evaluate").code, Some(2));
}

#[test]
fn numbers_do_not_depend_on_how_records_were_found() {
    let world = mixed();
    let first = world.data("evaluate -e x --bootstrap 500");
    std::fs::remove_dir_all(world.env.path("artefacts/ledger/_index")).ok();
    assert_eq!(world.run("ledger reindex").code, Some(0));
    assert_eq!(world.data("evaluate -e x --bootstrap 500"), first);
    assert!(first["bootstrap"]["overall"]["low"].as_f64().is_some(), "{first}");
    assert_eq!(world.data("report summary -e x")["overall"], first["overall"]);
}

#[test]
fn a_leaderboard_has_one_row_for_each_agent() {
    let mut world = mixed();
    let data = world.data("report leaderboard");
    let rows = data["rows"].as_array().unwrap();
    let shown: Vec<(&str, u64)> =
        rows.iter().map(|row| (row["agent"].as_str().unwrap(), row["rank"].as_u64().unwrap())).collect();
    assert_eq!(shown, [("good", 1), ("poor", 2)]);
    // The same agent in another experiment counts as the same agent.
    world.add("y", |record| {
        of_task(record, "beam");
        of_agent(record, "good");
        rewarded(record, 0.0);
    });
    let data = world.data("report leaderboard");
    let good = data["rows"].as_array().unwrap().iter().find(|row| row["agent"] == "good").unwrap();
    assert_eq!(
        (good["experiments"].clone(), good["trials"].clone(), good["mean_reward"].clone()),
        (json!(2), json!(5), json!(0.7))
    );
    // Another agent with the same name does not.
    world.add("z", |record| {
        of_task(record, "beam");
        of_agent(record, "good");
        record.agent.digest = Digest::of(b"other parameters");
    });
    let data = world.data("report leaderboard");
    let names: Vec<&str> =
        data["rows"].as_array().unwrap().iter().map(|row| row["agent"].as_str().unwrap()).collect();
    assert_eq!(names.iter().filter(|name| name.starts_with("good@")).count(), 2, "{names:?}");
}

#[test]
fn different_revisions_of_a_task_are_not_merged_in_silence() {
    let mut world = mixed();
    world.add("y", |record| {
        of_task(record, "beam");
        of_agent(record, "good");
        record.task.task_revision = Digest::of(b"beam, corrected");
        rewarded(record, 0.0);
    });
    let refused = world.json("report leaderboard");
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.errors()[0].1.contains("structural/beam"), "{refused:?}");
    assert_eq!(world.json("report leaderboard -e x").code, Some(0));
    assert_eq!(world.data("report leaderboard --mix-revisions")["rows"][0]["tasks"], 2);
    let notes = world.data("evaluate -e x -e y")["notes"].to_string();
    assert!(notes.contains("2 revisions of structural/beam"), "{notes}");
}

#[test]
fn what_was_planned_and_not_run_counts_in_the_worst_case() {
    let world = World::new();
    for task in ["a", "b"] {
        world.env.write(format!("tasks/civil/{task}/task.toml"), "version = \"1.0\"\n");
        world.env.write(format!("tasks/civil/{task}/instruction.md"), "Write `/workspace/output.json`.\n");
        world.env.write(format!("tasks/civil/{task}/tests/test.sh"), "echo 1 > /logs/verifier/reward.txt\n");
    }
    let run = world.run("run civil --harness nop --repetitions 2 -e x --quiet");
    assert_eq!(run.code, Some(0), "{run:?}");
    let ids: Vec<String> = world.data("ledger list -e x")["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["trial_id"].as_str().unwrap().to_owned())
        .collect();
    std::fs::remove_file(world.env.path(format!("artefacts/ledger/x/{}.json", ids[0]))).unwrap();
    let data = world.json("evaluate -e x").envelope()["data"].clone();
    assert_eq!((data["overall"]["trials"].clone(), data["overall"]["missing"].clone()), (json!(3), json!(1)));
    assert_eq!(data["overall"]["denominators"]["worst_case"], 0.75, "{data}");
    assert!(data["notes"][0].as_str().unwrap().starts_with("1 of 4 planned trials"), "{data}");
    assert_eq!(world.json("evaluate -e x --agent nobody").code, Some(3));
}

#[test]
fn floors_rescale_rewards() {
    let world = mixed();
    world.env.write(
        "floors.json",
        r#"{"data": {"audits": [{"task_id": "structural/beam", "floor": 0.5}, {"task_id": "other", "floor": 0.1}]}}"#,
    );
    let data = world.data("evaluate -e x --agent good --floors floors.json");
    // beam: 1 and 0.5 above a floor of 0.5 are 1 and 0; bolt has no floor.
    assert_eq!(data["rescaled"]["overall"]["mean_reward"], 0.75);
    assert_eq!(
        (data["rescaled"]["tasks"].clone(), data["rescaled"]["tasks_without"].clone()),
        (json!(1), json!(1))
    );
    assert_eq!(data["overall"]["mean_reward"], 0.875);
    world.env.write("floors.json", "{");
    assert_eq!(world.json("evaluate -e x --floors floors.json").code, Some(3));
}

#[test]
fn a_plan_says_what_it_takes_to_see_a_difference() {
    let mut world = mixed();
    for task in 0..12 {
        let id = format!("tasks/civil/t{task}");
        world.env.write(format!("{id}/task.toml"), "version = \"1.0\"\n");
        world.env.write(format!("{id}/instruction.md"), "Write `/workspace/output.json`.\n");
        world.env.write(format!("{id}/tests/test.sh"), "echo 1 > /logs/verifier/reward.txt\n");
    }
    let line = "plan civil --harness nop --repetitions 3 --detect 0.05";
    let sizing = world.data(line)["sizing"].clone();
    assert_eq!((sizing["pilot_trials"].clone(), sizing["is_enough"].clone()), (json!(0), json!(false)));
    let assumed = sizing["tasks_needed"].as_u64().unwrap();
    // Rewards with little variance need fewer tasks.
    for task in 0..10 {
        for repetition in 1..3 {
            world.add("calm", |record| {
                of_task(record, &format!("calm-{task}"));
                record.repetition = repetition;
                rewarded(record, 0.8 + 0.01 * f64::from(repetition));
            });
        }
    }
    let sizing = world.data(&format!("{line} --pilot calm"))["sizing"].clone();
    assert_eq!(sizing["pilot_trials"], 20);
    assert!(sizing["tasks_needed"].as_u64().unwrap() < assumed, "{sizing}");
    assert!(
        (sizing["cost_needed"].as_f64().unwrap() / sizing["trials_needed"].as_f64().unwrap() - 0.0123).abs()
            < 1e-9
    );
    for value in ["0", "1", "-1", "nan"] {
        let line = format!("plan civil --harness nop --detect={value}");
        assert_eq!(world.json(&line).code, Some(2), "{value}");
    }
}
