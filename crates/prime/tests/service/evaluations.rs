//! Hosted evaluations: start, follow, cancel, list.

use std::ops::ControlFlow;

use aec_prime::service::evaluations::{
    self, EvaluationStatus, FollowEnd, FollowEvent, HostedEvaluation, ListOptions, StartError,
};
use aec_prime::service::settings::Settings;
use aec_xtest::prime::{Failure, StandIn};
use serde_json::json;

use crate::service::{client_with, quick_watch, start};

fn evaluation(stand_in: &StandIn) -> HostedEvaluation {
    HostedEvaluation {
        environment_ids: vec![stand_in.with(|state| state.add_environment("me", "demo"))],
        model: "Qwen/Qwen3.5-4B:ad1".to_owned(),
        name: Some("demo".to_owned()),
        env_args: json!({"split": "eval", "difficulty": ["easy", "medium"], "seed": 20_260_509})
            .as_object()
            .unwrap()
            .clone(),
        num_examples: 5,
        rollouts_per_example: 3,
        max_tokens: Some(4096),
        max_concurrent: Some(5),
        timeout_minutes: Some(120),
        ..HostedEvaluation::default()
    }
}

#[tokio::test]
async fn the_request_is_that_of_primes_program() {
    let (stand_in, client) = start().await;
    let started = evaluations::start(&client, &evaluation(&stand_in)).await.unwrap();
    assert_eq!(started.ids, ["eval_1"]);
    let expected = json!({
        "environment_ids": ["env1"],
        "inference_model": "Qwen/Qwen3.5-4B:ad1",
        "eval_config": {
            "num_examples": 5,
            "rollouts_per_example": 3,
            "allow_sandbox_access": true,
            "allow_instances_access": false,
            "allow_tunnel_access": true,
            "env_args": {"split": "eval", "difficulty": ["easy", "medium"], "seed": 20_260_509},
            "timeout_minutes": 120,
            "sampling_args": {"max_tokens": 4096},
            "max_concurrent": 5,
        },
        "name": "demo",
    });
    assert_eq!(stand_in.requests()[0].json(), expected);
}

#[tokio::test]
async fn the_team_of_the_settings_pays_unless_another_is_named() {
    let (stand_in, _) = start().await;
    let client =
        client_with(Settings { team_id: Some("t1".to_owned()), ..crate::service::settings(&stand_in) });
    evaluations::start(&client, &evaluation(&stand_in)).await.unwrap();
    let other = HostedEvaluation { team_id: Some("t2".to_owned()), ..evaluation(&stand_in) };
    evaluations::start(&client, &other).await.unwrap();
    let teams: Vec<_> = stand_in.requests().iter().map(|request| request.json()["team_id"].clone()).collect();
    assert_eq!(teams, [json!("t1"), json!("t2")]);
}

#[tokio::test]
async fn following_tells_statuses_and_each_line_once() {
    let (stand_in, client) = start().await;
    evaluations::start(&client, &evaluation(&stand_in)).await.unwrap();
    let mut limited = Failure::new("/evaluations/eval_1", 429, 1);
    limited.after = 2;
    limited.headers.push(("retry-after".to_owned(), "0".to_owned()));
    let mut broken = Failure::new("/logs", 500, 1);
    broken.after = 1;
    stand_in.with(|state| state.failures = vec![limited, broken]);
    let (mut statuses, mut lines, mut troubles) = (Vec::new(), Vec::new(), 0);
    let end = evaluations::follow(&client, "eval_1", &quick_watch(), |event| {
        match event {
            FollowEvent::Status(status) => statuses.push(status.to_string()),
            FollowEvent::Log(line) => lines.push(line.to_owned()),
            FollowEvent::Trouble { .. } => troubles += 1,
            FollowEvent::LogLost(error) => panic!("{error}"),
        }
        ControlFlow::Continue(())
    })
    .await
    .unwrap();
    let FollowEnd::Ended(evaluation) = end else { panic!("left") };
    assert_eq!(evaluation.status, EvaluationStatus::Completed);
    assert_eq!(evaluation.total_samples, Some(15));
    assert_eq!(statuses, ["PENDING", "RUNNING", "COMPLETED"]);
    assert_eq!(lines, ["line 1", "line 2", "line 3", "line 4", "line 5", "line 6"]);
    assert_eq!(troubles, 2);
}

#[tokio::test]
async fn endless_trouble_ends_following() {
    let (stand_in, client) = start().await;
    evaluations::start(&client, &evaluation(&stand_in)).await.unwrap();
    stand_in.with(|state| state.failures = vec![Failure::new("/evaluations/eval_1", 502, 1000)]);
    let mut troubles = 0;
    let error = evaluations::follow(&client, "eval_1", &quick_watch(), |_| {
        troubles += 1;
        ControlFlow::Continue(())
    })
    .await
    .unwrap_err();
    assert!(error.is_passing(), "{error}");
    assert_eq!(troubles, 5);
}

#[tokio::test]
async fn a_lost_log_does_not_hide_the_result() {
    let (stand_in, client) = start().await;
    evaluations::start(&client, &evaluation(&stand_in)).await.unwrap();
    stand_in.with(|state| {
        state.evaluations.get_mut("eval_1").unwrap().statuses = vec!["FAILED".to_owned()];
        state.failures = vec![Failure::new("/logs", 500, 1000)];
    });
    let mut lost = 0;
    let end = evaluations::follow(&client, "eval_1", &quick_watch(), |event| {
        lost += u32::from(matches!(event, FollowEvent::LogLost(_)));
        ControlFlow::Continue(())
    })
    .await
    .unwrap();
    assert!(matches!(end, FollowEnd::Ended(evaluation) if evaluation.status == EvaluationStatus::Failed));
    assert_eq!(lost, 1);
}

#[tokio::test]
async fn the_caller_may_leave_and_cancel() {
    let (stand_in, client) = start().await;
    evaluations::start(&client, &evaluation(&stand_in)).await.unwrap();
    let end =
        evaluations::follow(&client, "eval_1", &quick_watch(), |_| ControlFlow::Break(())).await.unwrap();
    assert_eq!(end, FollowEnd::Left);
    assert_eq!(evaluations::cancel(&client, "eval_1").await.unwrap(), "cancelled");
    let evaluation = evaluations::get(&client, "eval_1").await.unwrap();
    assert_eq!(evaluation.status, EvaluationStatus::Cancelled);
    assert!(evaluations::get(&client, "eval_9").await.unwrap_err().is_not_found());
    for id in ["", "..", "a/b", "a?b"] {
        assert!(evaluations::get(&client, id).await.is_err(), "{id:?}");
    }
}

#[tokio::test]
async fn an_evaluation_that_fails_at_once_is_an_error() {
    let (stand_in, client) = start().await;
    let mut failed = Failure::new("hosted-evaluations", 200, 1);
    failed.body =
        json!({"status": "FAILED", "evaluation_ids": ["e1"], "error_message": "no capacity"}).to_string();
    let mut empty = Failure::new("hosted-evaluations", 200, 1);
    empty.body = "{}".to_owned();
    stand_in.with(|state| state.failures = vec![failed, empty]);
    let error = evaluations::start(&client, &evaluation(&stand_in)).await.unwrap_err();
    assert!(matches!(&error, StartError::Failed { ids, .. } if ids == &["e1"]), "{error}");
    let error = evaluations::start(&client, &evaluation(&stand_in)).await.unwrap_err().to_string();
    assert!(error.contains("no evaluation id"), "{error}");
}

#[tokio::test]
async fn evaluations_are_listed() {
    let (stand_in, client) = start().await;
    for _ in 0..3 {
        evaluations::start(&client, &evaluation(&stand_in)).await.unwrap();
    }
    let options = ListOptions { skip: 1, limit: 1, environment_name: Some("demo".to_owned()) };
    let (page, total) = evaluations::list(&client, &options).await.unwrap();
    assert_eq!((page.len(), page[0].id.as_str(), total), (1, "eval_2", 3));
    let request = stand_in.requests().pop().unwrap();
    assert_eq!(request.path, "/api/v1/evaluations/");
    assert_eq!(request.parameter("environment_name").as_deref(), Some("demo"));
}
