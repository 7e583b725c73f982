//! `--events` of an evaluation.

use serde_json::Value;

use crate::eval::world::World;

#[test]
fn an_evaluation_tells_every_rollout_once() {
    let world = World::new();
    world.environment("my-env");
    world.eval("eval run my-env -m gpt-4.1-mini -n 3 -r 2 --events events.jsonl");
    let text = world.env.read("events.jsonl");
    let told: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |name: &str| told.iter().filter(|line| line["event"] == name).count();
    assert_eq!(told[0]["event"], "opened");
    assert_eq!((count("eval_started"), count("rollout_ended"), count("eval_ended")), (1, 6, 1), "{text}");
    let mut rollouts: Vec<(i64, u64)> = told
        .iter()
        .filter(|line| line["event"] == "rollout_ended")
        .map(|line| (line["example_id"].as_i64().unwrap(), line["rollout_number"].as_u64().unwrap()))
        .collect();
    rollouts.sort_unstable();
    rollouts.dedup();
    assert_eq!(rollouts.len(), 6, "{text}");
    let page = include_str!("../../../../docs/progress.md");
    for key in told.iter().flat_map(|line| line.as_object().unwrap().keys()) {
        assert!(page.contains(&format!("`{key}`")), "{key}");
    }
}
