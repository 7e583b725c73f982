//! Doctor, push and hosted evaluations.

use aec_xtest::prime::Failure;
use serde_json::{Value, json};

use crate::prime_loop::world::World;

const HOSTED: &str = "/api/v1/hosted-evaluations";

fn add_adapters(world: &World, count: usize) {
    let adapter = |number: usize| {
        json!({
            "id": format!("adapter{number:03}"), "rftRunId": format!("run{}", number / 2),
            "baseModel": "Qwen/Qwen3.5-4B", "step": number * 10, "status": "READY",
            "deploymentStatus": if number % 5 == 4 { "NOT_DEPLOYED" } else { "DEPLOYED" },
            "deployedAt": format!("2026-05-{:02}T00:00:00Z", number % 28 + 1), "createdAt": "2026-05-01T00:00:00Z",
        })
    };
    world.service.with(|state| state.adapters = (0..count).map(adapter).collect());
}

#[test]
fn doctor_says_what_is_ready() {
    let world = World::new();
    let data = world.data("prime doctor --check-inference");
    let checks = data["checks"].as_array().unwrap();
    let ok = |name: &str| checks.iter().find(|check| check["check"] == name).unwrap()["ok"].as_bool();
    assert_eq!(
        (ok("key"), ok("account"), ok("inference"), ok("python")),
        (Some(true), Some(true), Some(true), Some(true))
    );
    world.service.with(|state| state.key = "pit_another".to_owned());
    let run = world.run("prime doctor");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("PRIME_API_KEY") && !run.stderr.contains("pit_test_key"), "{run:?}");
}

#[test]
fn a_dataset_is_pushed_and_evaluated_as_the_documentation_says() {
    let world = World::new();
    world.freeze();
    let pushed = world.data(
        "prime push --name aec-electrical-v1 --dataset electrical-v1@1.0.0 --visibility PRIVATE --owner your-owner",
    );
    assert_eq!(pushed["environment"], "your-owner/aec-electrical-v1");
    assert_eq!(pushed["visibility"], "PRIVATE");
    let wheel = world.service.with(|state| state.stored("aec_electrical_v1-0.1.0-py3-none-any.whl").cloned());
    assert!(wheel.is_some_and(|wheel| wheel.starts_with(b"PK")));
    let evaluated = world.data(
        "prime eval --remote-env your-owner/aec-electrical-v1 --hosted --model Qwen/Qwen3.5-4B --split eval \
         --difficulty medium --harness stateful --env-num-examples 10 --seed 20260509 --num-examples 5 \
         --rollouts-per-example 3 --max-tokens 4096 --eval-name aec-electrical-base-medium --env-arg max_turns=20 \
         --watch --poll-interval 0.01",
    );
    assert_eq!(evaluated["status"], "COMPLETED");
    let body = &world.bodies("POST", HOSTED)[0];
    assert_eq!(body["inference_model"], "Qwen/Qwen3.5-4B");
    assert_eq!(body["name"], "aec-electrical-base-medium");
    let config = &body["eval_config"];
    assert_eq!(
        config["env_args"],
        json!({
            "split": "eval", "difficulty": "medium", "harness": "stateful", "num_examples": 10, "seed": 20_260_509,
            "max_turns": 20
        })
    );
    assert_eq!((&config["num_examples"], &config["rollouts_per_example"]), (&json!(5), &json!(3)));
    assert_eq!(config["sampling_args"]["max_tokens"], 4096);
}

#[test]
fn several_difficulties_are_one_list_and_nothing_runs_here() {
    let world = World::new();
    world.service.with(|state| state.add_environment("your-owner", "aec-electrical-v1"));
    let line = "prime eval --remote-env your-owner/aec-electrical-v1 --hosted --model Qwen/Qwen3.5-4B \
                --difficulty easy --difficulty medium";
    world.data(line);
    let body = &world.bodies("POST", HOSTED)[0];
    assert_eq!(body["eval_config"]["env_args"]["difficulty"], json!(["easy", "medium"]));
    let run = world.run(&line.replace("--hosted ", ""));
    assert_eq!(run.code, Some(2), "{run:?}");
    let run = world.run(&format!("{line} --env-arg nonsense"));
    assert_eq!(run.code, Some(3), "{run:?}");
    assert_eq!(world.bodies("POST", HOSTED).len(), 1);
}

#[test]
fn adapters_come_from_every_page_and_are_told_from_other_ids() {
    let world = World::new();
    world.service.with(|state| state.add_environment("your-owner", "aec-electrical-v1"));
    add_adapters(&world, 250);
    let listed = world.data("prime adapters");
    assert_eq!(listed["total"], 250);
    let eval = "prime eval --remote-env your-owner/aec-electrical-v1 --hosted --model Qwen/Qwen3.5-4B";
    let by_id = world.data(&format!("{eval} --adapter-id adapter240"));
    assert_eq!(by_id["model"], "Qwen/Qwen3.5-4B:adapter240");
    let by_run = world.data(&format!("{eval} --adapter-from-run run121 --adapter-step latest"));
    assert_eq!(by_run["model"], "Qwen/Qwen3.5-4B:adapter243");
    for (flags, said) in [
        ("--adapter-id adapter004", "NOT_DEPLOYED"),
        ("--adapter-id nobody", "nobody"),
        ("--adapter-from-run run999", "run999"),
        ("--adapter-from-run run121 --adapter-step 7", "7"),
    ] {
        let run = world.run(&format!("{eval} {flags}"));
        assert_eq!(run.code, Some(3), "{flags}: {run:?}");
        assert!(run.stderr.contains(said) && run.stderr.contains("prime adapters"), "{flags}: {run:?}");
    }
    assert_eq!(world.bodies("POST", HOSTED).len(), 2, "nothing was started for the others");
}

#[test]
fn an_evaluation_that_fails_and_a_service_that_stumbles_are_told() {
    let world = World::new();
    world.service.with(|state| {
        state.add_environment("o", "n");
        state.failures.push(Failure::new("/environmentshub/", 503, 1));
    });
    let line = "prime eval --remote-env o/n --hosted --model m";
    world.data(line);
    world.service.with(|state| state.failures.push(Failure::new("/hosted-evaluations", 402, 1)));
    let run = world.run(line);
    assert_eq!(run.code, Some(4), "{run:?}");
    world.service.with(|state| state.key = "pit_another".to_owned());
    let run = world.run(&format!("{line} --json"));
    assert_eq!((run.code, run.errors()[0].0.as_str()), (Some(4), "H031"), "{run:?}");
    assert!(!run.stdout.contains("pit_test_key"));
}

#[test]
fn what_is_held_out_is_not_pushed() {
    let world = World::new();
    let file = "tasks/electrical/voltage-drop/task.toml";
    let text = world.env.read(file).replace("visibility = \"public\"", "visibility = \"holdout\"");
    world.env.write(file, text);
    let run = world.run("prime push --name aec-voltage-drop --task electrical/voltage-drop --json");
    assert_eq!((run.code, run.errors()[0].0.as_str()), (Some(3), "H014"), "{run:?}");
    let asked: Vec<Value> = world.bodies("POST", "/api/v1/environmentshub/resolve");
    assert!(asked.is_empty());
}
