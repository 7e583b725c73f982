//! Training runs of both generations.

use std::ops::ControlFlow;
use std::path::Path;

use aec_prime::service::secrets::Secrets;
use aec_prime::service::settings::Settings;
use aec_prime::service::train_config::{Difficulties, DifficultyFiltering, Target, TrainOptions};
use aec_prime::service::training::{
    self, EnvironmentCheck, Generation, TrainConfig, TrainEnd, TrainError, TrainEvent,
};
use aec_xtest::prime::{Failure, SharedTraining, TrainingRun};
use serde_json::json;

use crate::service::{client_with, quick_watch, start, write};

fn options() -> TrainOptions {
    TrainOptions {
        model: "Qwen/Qwen3.5-4B".to_owned(),
        difficulties: Difficulties::Ratios(vec![("easy".to_owned(), 0.6), ("medium".to_owned(), 0.4)]),
        harness: Some("stateful".to_owned()),
        filtering: Some(DifficultyFiltering {
            easy_fraction: 0.25,
            hard_fraction: 0.25,
            ..Default::default()
        }),
        ..TrainOptions::new("me/aec_demo".parse().unwrap())
    }
}

fn config(target: Target) -> TrainConfig {
    let text = options().write(target).unwrap().text;
    TrainConfig::parse(&text, Path::new("train.toml")).unwrap()
}

fn secrets(pairs: &[&str]) -> Secrets {
    let pairs: Vec<String> = pairs.iter().map(|pair| (*pair).to_owned()).collect();
    Secrets::collect(&[], &pairs, |_| None).unwrap()
}

#[tokio::test]
async fn a_shared_run_is_started_as_primes_program_did() {
    let (stand_in, _) = start().await;
    let client =
        client_with(Settings { team_id: Some("t1".to_owned()), ..crate::service::settings(&stand_in) });
    stand_in.with(|state| state.add_environment("me", "aec_demo"));
    let config = config(Target::SharedLora);
    assert_eq!(config.generation, Generation::SharedLora);
    let run =
        training::start(&client, &config, &secrets(&["A=1"]), EnvironmentCheck::Required).await.unwrap();
    assert_eq!((run.id.as_str(), run.status.as_deref()), ("run_1", Some("QUEUED")));
    assert_eq!(
        stand_in.calls(),
        ["GET /api/v1/environmentshub/me/aec_demo/status", "POST /api/v1/rft/runs"],
        "each environment is asked about once"
    );
    let environment = |difficulty: &str, split: &str| {
        json!({"id": "me/aec_demo", "name": format!("aec_demo-{difficulty}"),
               "args": {"split": split, "difficulty": difficulty, "harness": "stateful"}})
    };
    let expected = json!({
        "model": {"name": "Qwen/Qwen3.5-4B"},
        "environments": [environment("easy", "train"), environment("medium", "train")],
        "max_steps": 20,
        "batch_size": 32,
        "rollouts_per_example": 4,
        "secrets": [{"key": "A", "value": "1"}],
        "team_id": "t1",
        "max_tokens": 2048,
        "eval": {
            "interval": 10, "num_examples": 10, "rollouts_per_example": 1, "eval_base_model": true,
            "environments": [environment("easy", "eval"), environment("medium", "eval")],
        },
        "buffer": {"env_ratios": [0.6, 0.4], "online_difficulty_filtering": true, "easy_threshold": 0.8,
                   "hard_threshold": 0.2, "easy_fraction": 0.25, "hard_fraction": 0.25},
        "adapters": {"interval": 0, "keep_last": 3},
    });
    assert_eq!(stand_in.requests()[1].json(), expected);
}

#[tokio::test]
async fn a_dedicated_run_ships_the_whole_file() {
    let (stand_in, client) = start().await;
    let directory = tempfile::tempdir().unwrap();
    let text = format!(
        "name = \"demo\"\ngpu_type = \"H100_80GB\"\nenv_files = [\"s.env\"]\n{}",
        options().write(Target::PrimeRl).unwrap().text
    );
    write(directory.path(), &[("train.toml", &text), ("s.env", "HF_TOKEN='hf'\n")]);
    let config = TrainConfig::read(&directory.path().join("train.toml")).unwrap();
    assert_eq!(config.generation, Generation::Dedicated);
    let files = config.secret_files().unwrap();
    let secrets = Secrets::collect(&files, &["WANDB_API_KEY=wb".to_owned()], |_| None).unwrap();
    let run = training::start(&client, &config, &secrets, EnvironmentCheck::Required).await.unwrap();
    assert_eq!(run.cost_per_hour, Some(4.0));
    assert!(!format!("{run:?}").contains("token-of-the-run"));
    assert_eq!(stand_in.calls(), ["POST /api/v1/training/runs"]);
    let body = stand_in.requests()[0].json();
    assert_eq!(body["name"], "demo");
    assert_eq!(body["gpuType"], "H100_80GB");
    assert_eq!((&body["hfToken"], &body["wandbApiKey"]), (&json!("hf"), &json!("wb")));
    assert_eq!(body["config"]["orchestrator"]["train"]["source"][0]["ratio"], json!(0.6));
    assert!(body["config"].get("env_files").is_none() && body["config"].get("gpu_type").is_none());
    assert!(body.get("mode").is_none());
    let other = Secrets::collect(&[], &["OTHER=1".to_owned()], |_| None).unwrap();
    let refused = training::start(&client, &config, &other, EnvironmentCheck::Required).await;
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("only WANDB_API_KEY and HF_TOKEN, not OTHER"), "{error}");
}

#[tokio::test]
async fn a_retired_service_is_said_to_be_retired() {
    let (stand_in, client) = start().await;
    let config = config(Target::SharedLora);
    stand_in.with(|state| state.shared_training = SharedTraining::Retired);
    let none = Secrets::default();
    let start = || training::start(&client, &config, &none, EnvironmentCheck::Skipped);
    let error = start().await.unwrap_err();
    assert!(matches!(error, TrainError::Retired { .. }), "{error}");
    assert!(error.to_string().contains("--target prime-rl"), "{error}");
    for (status, body) in
        [(405, ""), (400, "Shared LoRA training no longer accepts new runs"), (403, "was retired")]
    {
        let mut failure = Failure::new("/rft/runs", status, 1);
        failure.body = json!({"detail": body}).to_string();
        stand_in.with(|state| state.failures = vec![failure]);
        let error = start().await.unwrap_err();
        assert!(matches!(error, TrainError::Retired { .. }), "{status}: {error}");
    }
    stand_in.with(|state| state.failures = vec![Failure::new("/rft/runs", 402, 1)]);
    assert!(matches!(start().await.unwrap_err(), TrainError::Api(_)));
}

#[tokio::test]
async fn a_broken_environment_stops_the_start() {
    let (stand_in, client) = start().await;
    stand_in.with(|state| {
        state.add_environment("me", "aec_demo");
        state.environment_action = "FAILED".to_owned();
    });
    let config = config(Target::SharedLora);
    let error =
        training::start(&client, &config, &Secrets::default(), EnvironmentCheck::Required).await.unwrap_err();
    assert!(matches!(error, TrainError::BrokenEnvironment { .. }), "{error}");
    training::start(&client, &config, &Secrets::default(), EnvironmentCheck::Skipped).await.unwrap();
}

#[tokio::test]
async fn following_tells_steps_metrics_and_lines_once() {
    let (stand_in, client) = start().await;
    training::start(&client, &config(Target::SharedLora), &Secrets::default(), EnvironmentCheck::Skipped)
        .await
        .unwrap();
    let mut broken = Failure::new("/metrics", 503, 1);
    broken.after = 1;
    stand_in.with(|state| state.failures = vec![broken]);
    let (mut statuses, mut steps, mut metrics, mut lines, mut troubles) = (vec![], vec![], vec![], vec![], 0);
    let end = training::follow(&client, "run_1", &quick_watch(), |event| {
        match event {
            TrainEvent::Status(status) => statuses.push(status.to_owned()),
            TrainEvent::Step { done, all } => steps.push((done, all)),
            TrainEvent::Metrics(row) => metrics.push(row["step"].as_u64().unwrap()),
            TrainEvent::Log(line) => lines.push(line.to_owned()),
            TrainEvent::Trouble { .. } => troubles += 1,
        }
        ControlFlow::Continue(())
    })
    .await
    .unwrap();
    assert!(matches!(end, TrainEnd::Ended(run) if run.status == "COMPLETED"));
    assert_eq!(statuses, ["QUEUED", "RUNNING", "COMPLETED"]);
    assert_eq!(steps, [(1, Some(20)), (2, Some(20)), (3, Some(20)), (4, Some(20))]);
    assert_eq!(metrics, [0, 1, 2, 3]);
    assert_eq!(lines, (1..=4).map(|step| format!("step {step} reward 0.3")).collect::<Vec<_>>());
    assert_eq!(troubles, 1);
}

#[tokio::test]
async fn runs_can_be_asked_about_and_stopped() {
    let (stand_in, client) = start().await;
    let mut run = TrainingRun::new(json!({"model": {"name": "m"}}), false);
    run.checkpoints = vec![json!({"id": "cp1", "rftRunId": "r", "step": 10, "status": "READY"})];
    stand_in.with(|state| state.runs.insert("r".to_owned(), run));
    assert_eq!(training::get(&client, "r").await.unwrap().status, "QUEUED");
    assert_eq!(training::list(&client, 5).await.unwrap().len(), 1);
    assert_eq!(training::checkpoints(&client, "r").await.unwrap()[0].step, Some(10));
    assert_eq!(training::progress(&client, "r").await.unwrap(), Some(1));
    assert_eq!(training::metrics(&client, "r", 0).await.unwrap().len(), 1);
    assert_eq!(training::stop(&client, "r").await.unwrap().status, "STOPPED");
    assert!(training::get(&client, "gone").await.unwrap_err().is_not_found());
}

#[test]
fn configurations_with_mistakes_are_refused() {
    let parse = |text: &str| TrainConfig::parse(text, Path::new("conf/train.toml"));
    for (text, expected) in
        [("", "neither"), ("x = 1", "neither"), ("model = ", "line 1"), ("a = 1\na = 2", "duplicate")]
    {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("conf/train.toml"), "{text}: {error}");
    }
    let missing = TrainConfig::read(Path::new("no/such.toml")).unwrap_err().to_string();
    assert!(missing.contains("no/such.toml"), "{missing}");
}

#[tokio::test]
async fn settings_that_the_service_would_refuse_are_refused_here() {
    let (stand_in, client) = start().await;
    let head = "model = \"m\"\n[[env]]\nid = \"me/x\"\n";
    let cases = [
        ("[[env]]\nid = \"me/x\"\n".to_owned(), "`model` is missing"),
        ("model = \"m\"\n".to_owned(), "no [[env]]"),
        ("model = \"m\"\nenv = [1]\n".to_owned(), "list of tables"),
        ("model = \"m\"\n[[env]]\nname = \"x\"\n".to_owned(), "needs `id`"),
        (format!("{head}odd = 1\n"), "`env.odd` is not a setting"),
        (format!("lr = 1\n{head}"), "`lr` is not a setting"),
        (format!("max_steps = \"x\"\n{head}"), "`max_steps` must be a whole number"),
        (format!("learning_rate = nan\n{head}"), "cannot be sent"),
        (format!("{head}[eval]\ninterval = 1\n"), "no [[eval.env]]"),
        (
            format!("{head}[sampling]\nenable_thinking = true\nreasoning_effort = \"low\"\n"),
            "exclude each other",
        ),
        (format!("{head}[wandb]\nproject = \"p\"\n"), "WANDB_API_KEY"),
        ("[orchestrator]\n[trainer]\n".to_owned() + "[volume]\n", "`volume` must be a string"),
    ];
    for (text, expected) in cases {
        let config = TrainConfig::parse(&text, Path::new("t.toml")).unwrap();
        let started = training::start(&client, &config, &Secrets::default(), EnvironmentCheck::Skipped).await;
        let error = started.unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("t.toml"), "{text}: {error}");
    }
    assert!(stand_in.requests().is_empty());
}

#[tokio::test]
async fn versions_defaults_and_old_keys() {
    let (stand_in, client) = start().await;
    let text = "model = \"m\"\n[[env]]\nid = \"me/x@1.2\"\n[wandb]\nproject = \"p\"\n[infrastructure]\ncompute_size = \"L\"\n";
    let config = TrainConfig::parse(text, Path::new("t.toml")).unwrap();
    training::start(&client, &config, &secrets(&["WANDB_API_KEY=k"]), EnvironmentCheck::Skipped)
        .await
        .unwrap();
    let body = stand_in.requests()[0].json();
    assert_eq!(body["environments"], json!([{"id": "me/x", "version": "1.2"}]));
    assert_eq!((&body["max_steps"], &body["batch_size"]), (&json!(100), &json!(128)));
    assert_eq!(body["monitoring"], json!({"wandb": {"project": "p"}}));
    assert_eq!(body["compute_size"], "L");

    let text = "[trainer]\n[orchestrator.buffer]\nseed = 1\n[orchestrator.eval]\neval_base_model = false\n";
    let config = TrainConfig::parse(text, Path::new("t.toml")).unwrap();
    assert_eq!(config.warnings.len(), 2);
    training::start(&client, &config, &Secrets::default(), EnvironmentCheck::Required).await.unwrap();
    let body = stand_in.requests().pop().unwrap().json();
    assert_eq!(body["config"]["orchestrator"], json!({"eval": {"skip_first_step": true}}));

    let config = TrainConfig::parse("[data]\nname = \"d\"\n", Path::new("t.toml")).unwrap();
    training::start(&client, &config, &Secrets::default(), EnvironmentCheck::Required).await.unwrap();
    assert_eq!(stand_in.requests().pop().unwrap().json()["mode"], "sft");
}
