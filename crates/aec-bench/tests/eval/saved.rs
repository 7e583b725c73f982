//! Saved evaluations: listing, showing, comparing, and the reader of `verifiers` itself.

use serde_json::json;

use crate::eval::world::{World, metadata};

#[test]
fn saved_evaluations_are_listed_shown_and_compared() {
    let world = World::new();
    world.environment("my-env");
    world.eval("eval run my-env -m gpt-4.1-mini -n 4 -r 2 -s");
    world.eval("eval run my-env -m my-model -n 4 -r 2 -s");
    let listed = world.run("--json eval list");
    let data = listed.data();
    assert_eq!(data["total"], 2, "{listed:?}");
    let ids: Vec<&str> =
        data["evaluations"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    let text = world.run("eval list --model my-model");
    assert!(text.stdout.contains("my-model") && !text.stdout.contains("gpt-4.1-mini"), "{text:?}");
    let shown = world.run(&format!("eval show {} --rollouts 1", ids[0]));
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stdout.contains("Reward: ") && shown.stdout.contains("assistant: "), "{shown:?}");
    let compared = world.run(&format!("--json eval compare {} {}", ids[0], ids[1]));
    assert_eq!(compared.code, Some(0), "{compared:?}");
    let against = &compared.data()["against_first"][0];
    assert_eq!((&against["pairs"], &against["reward"]["difference"]), (&json!(4), &json!(0.0)));
    assert_eq!(world.run("eval show 00000000").code, Some(3));
}

#[test]
fn metadata_has_the_fields_of_verifiers_in_their_order() {
    let world = World::new();
    world.environment("my-env");
    world.eval("eval run my-env -n 2 -r 4 -s");
    let saved = metadata(&world.saved("my_env", "my-env"));
    let keys: Vec<&String> = saved.as_object().unwrap().keys().collect();
    assert_eq!(
        &keys[..20],
        &[
            "env_id",
            "env_args",
            "model",
            "base_url",
            "num_examples",
            "rollouts_per_example",
            "sampling_args",
            "time",
            "avg_reward",
            "avg_metrics",
            "avg_error",
            "pass_at_k",
            "pass_all_k",
            "pass_threshold",
            "usage",
            "version_info",
            "state_columns",
            "tools",
            "reward",
            "reward_std",
        ]
    );
    assert_eq!(saved["pass_at_k"].as_object().unwrap().keys().collect::<Vec<_>>(), ["1", "2", "4"]);
}
