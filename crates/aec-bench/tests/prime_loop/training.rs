//! Train configurations, and starting them.

use aec_xtest::prime::SharedTraining;
use serde_json::json;

use crate::prime_loop::world::World;

const SINGLE: &str = "prime train-config --environment your-owner/aec-electrical-v1 --output train.toml --model \
    Qwen/Qwen3.5-0.8B --split train --difficulty easy --harness stateful --num-examples 50 --max-steps 20";

#[test]
fn a_single_slice_is_written_and_started() {
    let world = World::new();
    world.data(SINGLE);
    let file: toml::Table = world.env.read("train.toml").parse().unwrap();
    assert_eq!(file["model"].as_str(), Some("Qwen/Qwen3.5-0.8B"));
    let environments = file["env"].as_array().unwrap();
    assert_eq!(environments.len(), 1);
    assert_eq!(environments[0]["args"]["difficulty"].as_str(), Some("easy"));
    assert!(file["eval"]["env"].is_array(), "without it Prime drops the block");
    let run = world.run(SINGLE);
    assert_eq!(run.code, Some(3), "a file that is there stays: {run:?}");
    let run = world.run("prime train train.toml");
    assert_eq!(run.code, Some(2), "training costs money: {run:?}");
    let started = world.data("prime train train.toml --yes --watch --poll-interval 0.01");
    assert_eq!((&started["generation"], &started["status"]), (&json!("shared-lora"), &json!("COMPLETED")));
    let body = &world.bodies("POST", "/api/v1/rft/runs")[0];
    assert_eq!(body["environments"][0]["args"]["num_examples"], 50);
}

#[test]
fn a_suite_has_a_view_for_each_ratio() {
    let world = World::new();
    let line = "prime train-config --environment your-owner/aec-release-train --output configs/rl/aec-filtered-ratios.toml \
        --model Qwen/Qwen3.5-9B --split all --harness stateful --difficulty-ratio easy=0.45 --difficulty-ratio medium=0.40 \
        --difficulty-ratio hard=0.15 --max-steps 50 --batch-size 64 --rollouts-per-example 8 --max-tokens 4096 \
        --online-difficulty-filtering --easy-threshold 0.8 --hard-threshold 0.2 --easy-fraction 0.25 --hard-fraction 0.25";
    world.data(line);
    let file: toml::Table = world.env.read("configs/rl/aec-filtered-ratios.toml").parse().unwrap();
    let views: Vec<&str> = file["env"]
        .as_array()
        .unwrap()
        .iter()
        .map(|view| view["args"]["difficulty"].as_str().unwrap())
        .collect();
    assert_eq!(views, ["easy", "medium", "hard"]);
    let ratios: Vec<f64> = file["buffer"]["env_ratios"]
        .as_array()
        .unwrap()
        .iter()
        .map(|ratio| ratio.as_float().unwrap())
        .collect();
    assert_eq!(ratios, [0.45, 0.40, 0.15]);
    assert_eq!(file["buffer"]["online_difficulty_filtering"].as_bool(), Some(true));
    for (what, more) in [
        ("both", "--difficulty easy"),
        ("indivisible", "--batch-size 63"),
        ("upside down", "--easy-threshold 0.1"),
        ("no share", "--difficulty-ratio hard=0"),
    ] {
        let run = world.run(&format!("{line} --force {more}"));
        assert!(matches!(run.code, Some(2 | 3)), "{what}: {run:?}");
    }
    world.data(&format!("{line} --force --target prime-rl"));
    let file: toml::Table = world.env.read("configs/rl/aec-filtered-ratios.toml").parse().unwrap();
    let sources = file["orchestrator"]["train"]["source"].as_array().unwrap();
    assert_eq!(sources.len(), 3);
    assert!(file["orchestrator"]["eval"]["source"].is_array());
}

#[test]
fn what_the_service_has_retired_is_said() {
    let world = World::new();
    world.data(SINGLE);
    world.service.with(|state| state.shared_training = SharedTraining::Retired);
    let run = world.run("prime train train.toml --yes --json");
    assert_eq!((run.code, run.errors()[0].0.as_str()), (Some(4), "H038"), "{run:?}");
    assert!(run.stdout.contains("prime-rl"));
    world.data(&format!("{SINGLE} --force --target prime-rl"));
    let started = world.data("prime train train.toml --yes");
    assert_eq!(started["generation"], "prime-rl");
}
