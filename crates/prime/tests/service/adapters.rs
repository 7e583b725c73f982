//! Adapters over many pages, and ids of other records.

use aec_prime::service::adapters::{self, AdapterError, AdapterStep, OtherRecord};
use aec_xtest::prime::{StandIn, TrainingRun};
use serde_json::{Value, json};

use crate::service::start;

const MODEL: &str = "Qwen/Qwen3.5-4B";

fn adapter(id: &str, run: &str, step: u64, status: &str, deployment: &str) -> Value {
    json!({
        "id": id, "displayName": id, "userId": "u1", "teamId": null, "rftRunId": run, "baseModel": MODEL,
        "step": step, "status": status, "deploymentStatus": deployment, "deploymentError": null,
        "deployedAt": format!("2026-11-{:02}T00:00:00Z", step % 28 + 1),
        "createdAt": "2026-11-01T00:00:00Z", "updatedAt": "2026-11-01T00:00:00Z",
    })
}

/// 230 adapters of other runs, and those of `run_x` at the end.
fn fill(stand_in: &StandIn) {
    let mut all: Vec<Value> = (0..230)
        .map(|index| adapter(&format!("other{index}"), "run_o", index, "READY", "DEPLOYED"))
        .collect();
    all.push(adapter("ad10", "run_x", 10, "READY", "DEPLOYED"));
    all.push(adapter("ad20", "run_x", 20, "READY", "DEPLOYED"));
    all.push(adapter("ad25", "run_x", 25, "READY", "NOT_DEPLOYED"));
    all.push(adapter("ad26", "run_x", 26, "UPLOADING", "NOT_DEPLOYED"));
    all.push(adapter("failed", "run_f", 1, "FAILED", "DEPLOY_FAILED"));
    let mut foreign = adapter("foreign", "run_x", 27, "READY", "DEPLOYED");
    foreign["baseModel"] = json!("Qwen/Qwen3.5-9B");
    all.push(foreign);
    let mut run = TrainingRun::new(json!({"model": {"name": MODEL}}), false);
    run.statuses = vec!["RUNNING".to_owned()];
    run.checkpoints = vec![json!({"id": "cp7", "rftRunId": "run_empty", "step": 7, "status": "READY"})];
    stand_in.with(|state| {
        state.adapters = all;
        state.runs.insert("run_empty".to_owned(), run);
    });
}

#[tokio::test]
async fn the_list_has_all_pages() {
    let (stand_in, client) = start().await;
    fill(&stand_in);
    let all = adapters::list(&client).await.unwrap();
    assert_eq!(all.len(), 236);
    assert_eq!(stand_in.requests().len(), 3);
    let offsets: Vec<_> =
        stand_in.requests().iter().map(|request| request.parameter("offset").unwrap()).collect();
    assert_eq!(offsets, ["0", "100", "200"]);
}

#[tokio::test]
async fn the_latest_and_a_step_of_a_run() {
    let (stand_in, client) = start().await;
    fill(&stand_in);
    let latest = adapters::of_run(&client, "run_x", MODEL, AdapterStep::Latest).await.unwrap();
    assert_eq!(latest.id, "ad20");
    let tenth = adapters::of_run(&client, "run_x", MODEL, "10".parse().unwrap()).await.unwrap();
    assert_eq!(adapters::compose(MODEL, &tenth.id).unwrap(), "Qwen/Qwen3.5-4B:ad10");
    let other = adapters::of_run(&client, "run_x", "Qwen/Qwen3.5-9B", AdapterStep::Latest).await.unwrap();
    assert_eq!(other.id, "foreign");
}

#[tokio::test]
async fn a_run_without_a_fitting_adapter_says_what_it_has() {
    let (stand_in, client) = start().await;
    fill(&stand_in);
    let error =
        adapters::of_run(&client, "run_x", MODEL, AdapterStep::Number(25)).await.unwrap_err().to_string();
    assert!(error.contains("ad25 (step 25, Qwen/Qwen3.5-4B, READY, NOT_DEPLOYED)"), "{error}");
    assert!(error.contains("ad26") && error.contains("UPLOADING"), "{error}");
    let error = adapters::of_run(&client, "run_empty", MODEL, AdapterStep::Latest).await.unwrap_err();
    assert!(
        matches!(&error, AdapterError::RunWithoutAdapters { status: Some(status), .. } if status == "RUNNING")
    );
    let error =
        adapters::of_run(&client, "run_gone", MODEL, AdapterStep::Latest).await.unwrap_err().to_string();
    assert!(error.contains("no such run exists"), "{error}");
    let error = adapters::of_run(&client, "ad10", MODEL, AdapterStep::Latest).await.unwrap_err().to_string();
    assert!(error.contains("--adapter-id"), "{error}");
}

#[tokio::test]
async fn an_id_is_checked_before_it_is_used() {
    let (stand_in, client) = start().await;
    fill(&stand_in);
    assert_eq!(adapters::by_id(&client, MODEL, "ad20").await.unwrap(), "Qwen/Qwen3.5-4B:ad20");
    let not_deployed = adapters::by_id(&client, MODEL, "ad25").await.unwrap_err().to_string();
    assert!(not_deployed.contains("NOT_DEPLOYED"), "{not_deployed}");
    let not_ready = adapters::by_id(&client, MODEL, "ad26").await.unwrap_err().to_string();
    assert!(not_ready.contains("UPLOADING, not READY"), "{not_ready}");
    let other_model = adapters::by_id(&client, MODEL, "foreign").await.unwrap_err().to_string();
    assert!(other_model.contains("--model Qwen/Qwen3.5-9B"), "{other_model}");
    let run = adapters::by_id(&client, MODEL, "run_empty").await.unwrap_err();
    assert!(matches!(&run, AdapterError::NotAnAdapter { record: OtherRecord::Run { .. }, .. }), "{run}");
    let checkpoint = adapters::by_id(&client, MODEL, "cp7").await.unwrap_err().to_string();
    assert!(checkpoint.contains("--adapter-from-run run_empty --adapter-step 7"), "{checkpoint}");
    let nothing = adapters::by_id(&client, MODEL, "zzz").await.unwrap_err();
    assert!(matches!(&nothing, AdapterError::NotAnAdapter { record: OtherRecord::Nothing, .. }), "{nothing}");
}

#[tokio::test]
async fn a_model_with_an_adapter_takes_no_second_one() {
    let (_stand_in, client) = start().await;
    let twice = format!("{MODEL}:ad1");
    for error in [
        adapters::compose(&twice, "ad2").unwrap_err(),
        adapters::by_id(&client, &twice, "ad2").await.unwrap_err(),
        adapters::of_run(&client, "run_x", &twice, AdapterStep::Latest).await.unwrap_err(),
    ] {
        assert!(matches!(error, AdapterError::ModelHasAdapter { .. }), "{error}");
    }
    for bad in ["", "a b", "..", "a/b", "a:b"] {
        assert!(adapters::compose(MODEL, bad).is_err(), "{bad:?}");
    }
    for bad in ["", "last", "-1", "1.5"] {
        assert!(bad.parse::<AdapterStep>().is_err(), "{bad:?}");
    }
}
