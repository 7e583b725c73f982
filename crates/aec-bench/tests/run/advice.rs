//! What a run advises can be typed as it is printed, and then does something; what has no price is not free.

use aec_model_server::Options;
use serde_json::{Value, json};

use crate::run::world::right;
use crate::run::{Project, Server};

const LINE: &str = "run civil --model mine --harness direct -e x";

/// The command that a text advises after these words.
fn advised(text: &str, after: &str) -> String {
    let rest = text.split(after).nth(1).unwrap_or_else(|| panic!("no `{after}`: {text}"));
    rest.split(['\n', '`']).next().unwrap().trim().to_owned()
}

#[test]
fn after_faults_the_advised_command_tries_them_again() {
    let project = Project::with_tasks(2);
    let server = Server::start(Options { faults: vec!["auth".parse().unwrap()], ..right() });
    project.endpoints(&server.url(), &["mine"]);
    let first = project.run(&format!("{LINE} --max-faults 9"));
    assert_eq!(first.code, Some(1), "{first:?}");
    let command = advised(&first.stdout, "continue with: aec-bench ");
    let remark = project.run("runs status x").stderr;
    assert_eq!(advised(&remark, "Go on with `aec-bench "), command);
    assert!(first.stderr.contains(&format!("`aec-bench {command}`")), "{first:?}");
    // The problem names another command as well.
    assert_eq!(project.run(&advised(&first.stderr, "see `aec-bench ")).code, Some(0));
    drop(server);
    let server = Server::start(right());
    project.endpoints(&server.url(), &["mine"]);
    let again = project.data(&command);
    assert_eq!((&again["recorded"], &again["all"]["outcomes"]), (&json!(2), &json!({ "scored": 2 })));
    let done = project.run(&command);
    assert!(!done.stdout.contains("continue with"), "{done:?}");
    assert!(!project.run("runs status x").stderr.contains("Go on"), "nothing is left");
}

#[test]
fn after_a_part_the_advised_command_does_the_rest() {
    let project = Project::with_tasks(4);
    let shard = project.run("run civil --harness oracle -e x --shard 0/2");
    assert_eq!(shard.code, Some(0), "{shard:?}");
    let command = advised(&project.run("runs status x").stderr, "Go on with `aec-bench ");
    assert_eq!(project.data(&command)["all"]["outcomes"], json!({ "scored": 4 }));
}

#[test]
fn calls_without_a_price_cost_an_unknown_amount() {
    let project = Project::with_tasks(2);
    let server = Server::start(right());
    project.endpoints(&server.url(), &["mine"]);
    let run = project.run(&format!("{LINE} --events events.jsonl"));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains(": unpriced, 2 calls"), "{run:?}");
    let end = run.stderr.lines().find(|line| line.starts_with("done:")).unwrap();
    assert!(end.contains("unpriced") && !end.contains('$'), "{end}");
    let events = project.env.read("events.jsonl");
    let last: Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["event"], &last["spent_usd"], &last["unpriced"]),
        (&json!("run_ended"), &Value::Null, &json!(2))
    );
    let status = project.run("runs status x").stdout;
    assert!(status.contains("cost so far: unpriced\n"), "{status}");
    let status = project.data("runs status x");
    assert_eq!((&status["cost_usd"], &status["unpriced"]), (&Value::Null, &json!(2)));
    assert_eq!((&status["budget"]["spent_usd"], &status["budget"]["unpriced"]), (&Value::Null, &json!(2)));
    let capped = project.data(&format!("{LINE} --max-cost 1 --allow-unpriced"));
    assert_eq!(
        (&capped["spent"], &capped["unpriced"]),
        (&json!(0), &json!(0)),
        "this session called nothing"
    );
    let status = project.run("runs status x").stdout;
    assert!(status.contains("cost so far: unpriced of $1.00, $1.00 left\n"), "{status}");
}

#[test]
fn a_model_without_a_price_under_a_cap_has_two_ways_out() {
    let project = Project::with_tasks(1);
    let server = Server::start(right());
    project.endpoints(&server.url(), &["mine"]);
    let line = format!("{LINE} --max-cost 1");
    let refused = project.run(&line);
    assert_eq!((refused.code, server.count()), (Some(3), 0), "{refused:?}");
    assert!(refused.stderr.contains("--allow-unpriced"), "{refused:?}");
    let price: Vec<&str> = refused
        .stderr
        .lines()
        .skip_while(|line| line.trim() != "[[price]]")
        .map(str::trim)
        .take_while(|line| !line.is_empty())
        .take(5)
        .collect();
    project.env.write("configs/prices.toml", price.join("\n"));
    assert_ne!(project.run(&line).code, Some(0), "the dollars must be written");
    project.env.write("configs/prices.toml", price.join("\n").replace("DOLLARS", "2.00"));
    let done = project.data(&line);
    assert!(done["spent"].as_u64().unwrap() > 0 && done["unpriced"] == 0, "{done}");
    std::fs::remove_file(project.env.path("configs/prices.toml")).unwrap();
    let other = project.data(&format!("{line} --allow-unpriced").replace("-e x", "-e y"));
    assert_eq!((&other["spent"], &other["unpriced"]), (&Value::Null, &json!(1)));
}

#[test]
fn a_task_that_is_not_active_is_named_if_nothing_else_is_selected() {
    let project = Project::empty();
    assert_eq!(project.run("task new civil/culvert-capacity").code, Some(0));
    let refused = project.run("run civil --harness oracle");
    assert_eq!(refused.code, Some(3));
    assert!(
        refused.stderr.contains("civil/culvert-capacity would fit, but is proposed, not active"),
        "{refused:?}"
    );
    assert_eq!(
        project.run("run civil --harness nop --lifecycle any").code,
        Some(0),
        "as the message advises"
    );
}
