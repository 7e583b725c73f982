//! v0 environments in real interpreters: the rows are those of the library.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::worker::world::{
    Scripted, asked, fixtures, generate, interpreter, job, play, said, setup, turns, values,
};
use aec_eval::worker::{FailureKind, Interface, ModelFailure, WorkerError, WorkerPool};
use serde_json::{Value, json};

mod v0_1_14 {
    #[tokio::test(flavor = "multi_thread")]
    #[cfg_attr(not(packages), ignore = "needs the Python package index")]
    async fn single_turn() {
        super::single_turn("0.1.14").await;
    }

    #[tokio::test(flavor = "multi_thread")]
    #[cfg_attr(not(packages), ignore = "needs the Python package index")]
    async fn rows_are_those_of_the_library() {
        super::rows_are_those_of_the_library("0.1.14").await;
    }

    #[tokio::test(flavor = "multi_thread")]
    #[cfg_attr(not(packages), ignore = "needs the Python package index")]
    async fn failures_of_the_model() {
        super::failures_of_the_model("0.1.14").await;
    }

    #[tokio::test(flavor = "multi_thread")]
    #[cfg_attr(not(packages), ignore = "needs the Python package index")]
    async fn groups_and_independent_rollouts() {
        super::groups_and_independent_rollouts("0.1.14").await;
    }

    #[tokio::test(flavor = "multi_thread")]
    #[cfg_attr(not(packages), ignore = "needs the Python package index")]
    async fn generated_now_and_scored_later() {
        super::generated_now_and_scored_later("0.1.14").await;
    }

    #[tokio::test(flavor = "multi_thread")]
    #[cfg_attr(not(packages), ignore = "needs the Python package index")]
    async fn two_hundred_rollouts() {
        super::two_hundred_rollouts("0.1.14").await;
    }

    #[tokio::test(flavor = "multi_thread")]
    #[cfg_attr(not(packages), ignore = "needs the Python package index")]
    async fn what_an_environment_sees() {
        super::what_an_environment_sees("0.1.14").await;
    }
}

mod v0_3_1 {
    #[tokio::test(flavor = "multi_thread")]
    #[cfg_attr(
        not(all(packages, full)),
        ignore = "needs the Python package index, and AEC_TEST=full: the fast tier tries the versions before and after it"
    )]
    async fn single_turn() {
        super::single_turn("0.3.1").await;
    }

    #[tokio::test(flavor = "multi_thread")]
    #[cfg_attr(
        not(all(packages, full)),
        ignore = "needs the Python package index, and AEC_TEST=full: the fast tier tries the versions before and after it"
    )]
    async fn rows_are_those_of_the_library() {
        super::rows_are_those_of_the_library("0.3.1").await;
    }

    #[tokio::test(flavor = "multi_thread")]
    #[cfg_attr(
        not(all(packages, full)),
        ignore = "needs the Python package index, and AEC_TEST=full: the fast tier tries the versions before and after it"
    )]
    async fn failures_of_the_model() {
        super::failures_of_the_model("0.3.1").await;
    }

    #[tokio::test(flavor = "multi_thread")]
    #[cfg_attr(
        not(all(packages, full)),
        ignore = "needs the Python package index, and AEC_TEST=full: the fast tier tries the versions before and after it"
    )]
    async fn groups_and_independent_rollouts() {
        super::groups_and_independent_rollouts("0.3.1").await;
    }

    #[tokio::test(flavor = "multi_thread")]
    #[cfg_attr(
        not(all(packages, full)),
        ignore = "needs the Python package index, and AEC_TEST=full: the fast tier tries the versions before and after it"
    )]
    async fn generated_now_and_scored_later() {
        super::generated_now_and_scored_later("0.3.1").await;
    }

    #[tokio::test(flavor = "multi_thread")]
    #[cfg_attr(
        not(all(packages, full)),
        ignore = "needs the Python package index, and AEC_TEST=full: the fast tier tries the versions before and after it"
    )]
    async fn two_hundred_rollouts() {
        super::two_hundred_rollouts("0.3.1").await;
    }

    #[tokio::test(flavor = "multi_thread")]
    #[cfg_attr(
        not(all(packages, full)),
        ignore = "needs the Python package index, and AEC_TEST=full: the fast tier tries the versions before and after it"
    )]
    async fn what_an_environment_sees() {
        super::what_an_environment_sees("0.3.1").await;
    }
}

async fn single_turn(version: &str) {
    let python = interpreter(version);
    let (setup, _logs) = setup(&python, "gsm8k", &json!({"count": 4, "system_prompt": "Be short."}));
    let pool = WorkerPool::start(setup).await.unwrap();
    let loaded = pool.loaded();
    assert_eq!(loaded.interface, Interface::V0);
    assert_eq!(loaded.class_name, "SingleTurnEnv");
    assert_eq!(loaded.example_ids, [0, 1, 2, 3]);
    assert_eq!(loaded.version_info.vf_version.as_deref(), Some(version));
    assert_eq!(loaded.version_info.env_version.as_deref(), Some("0.1.3"));
    assert_eq!((loaded.max_turns, loaded.has_group_rewards), (Some(1), false));
    assert_eq!(json!(loaded.sampling_args), json!({"n": 1, "extra_body": {}}));
    assert!(
        loaded.warnings.iter().any(|one| one.contains("eval_dataset is not set")),
        "{:?}",
        loaded.warnings
    );
    let caller = Scripted::new(|call| {
        assert_eq!(call.messages.iter().map(|one| one.role.as_str()).collect::<Vec<_>>(), ["system", "user"]);
        assert_eq!(call.sampling_args["max_tokens"], json!(7));
        assert_eq!((call.model.as_str(), call.rollout), ("scripted", Some(5)));
        said("4")
    });
    let mut one = job(&[(1, 5)], false);
    one.sampling_args.insert("max_tokens".to_owned(), json!(7));
    one.sampling_args.insert("temperature".to_owned(), Value::Null);
    let rows = play(&pool, one, &caller).await.unwrap();
    assert_eq!((rows.len(), &rows[0]["example_id"], &rows[0]["reward"]), (1, &json!(1), &json!(1.0)));
    assert_eq!(rows[0]["stop_condition"], "max_turns_reached");
    let refused = generate(&pool, job(&[(9, 0)], false), &caller).await.unwrap_err();
    assert!(matches!(refused, WorkerError::NoSuchExample { example: 9, count: 4 }), "{refused}");
    pool.shutdown().await;
}

/// The library's own rows for the same replies, without times.
fn own_rows(python: &std::path::Path, module: &str, case: &Value) -> Vec<Value> {
    let request = json!({
        "path": [fixtures().join(module)],
        "env_id": case["env_id"],
        "env_args": case["env_args"],
        "rollouts": case["rollouts"],
        "independent": case["independent"],
        "state_columns": case["state_columns"],
        "sampling_args": {},
        "replies": case["replies"],
    });
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/worker/python/own_run.py");
    let mut child = Command::new(python)
        .arg(script)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    serde_json::to_writer(child.stdin.take().unwrap(), &request).unwrap();
    let done = child.wait_with_output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(!text.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn without_times(rows: &mut [Value]) {
    for row in rows {
        let timing = row.get_mut("timing").unwrap();
        let names: Vec<String> = timing.as_object().unwrap().keys().cloned().collect();
        let spans = [&timing["model"], &timing["env"]].map(|one| one["spans"].as_array().unwrap().len());
        *timing = json!({"names": names, "spans": spans});
    }
}

async fn rows_are_those_of_the_library(version: &str) {
    let python = interpreter(version);
    let tool =
        |id: &str, name: &str, arguments: &str| json!({"id": id, "name": name, "arguments": arguments});
    let cases = [
        (
            "math_python",
            json!({"env_id": "math-python", "env_args": {"difficulty": "hard"}, "rollouts": 1, "independent": false, "state_columns": ["trajectory_id_x"],
            "replies": [
                {"content": "", "tool_calls": [tool("a", "add", "{\"a\": 1, \"b\": 2}"), tool("b", "half", "{\"value\": 3}")], "finish_reason": "tool_calls"},
                {"content": "So far.", "reasoning_content": "hm", "tool_calls": [tool("c", "half", "no json"), tool("d", "nothing", "{}")]},
                {"content": "It is 3 – or 1.", "finish_reason": "stop"},
            ]}),
        ),
        (
            "wiki_search",
            json!({"env_id": "wiki-search", "env_args": {}, "rollouts": 1, "independent": true, "state_columns": ["pages_read"],
                "replies": [{"content": "bridges"}, {"content": "cars"}, {"content": "roads", "finish_reason": "length"}, {"content": "ANSWER piers"}]}),
        ),
        (
            "reverse_text",
            json!({"env_id": "reverse-text", "env_args": {}, "rollouts": 3, "independent": false, "state_columns": [], "replies": [{"content": "cba"}]}),
        ),
        (
            "gsm8k",
            json!({"env_id": "gsm8k", "env_args": {"count": 3}, "rollouts": 1, "independent": false, "state_columns": [],
            "replies": {
                "1 + 1": [{"content": ""}],
                "2 + 2": [{"status": 400, "message": "This exceeds the context length"}],
                "3 + 3": [{"status": 503, "message": "busy"}],
            }}),
        ),
    ];
    for (module, case) in cases {
        let mut own = own_rows(&python, module, &case);
        let (mut setup, _logs) = setup(&python, case["env_id"].as_str().unwrap(), &case["env_args"]);
        setup.environment.state_columns = serde_json::from_value(case["state_columns"].clone()).unwrap();
        let pool = WorkerPool::start(setup).await.unwrap();
        let caller = Scripted::replies(&case["replies"]);
        let rollouts = usize::try_from(case["rollouts"].as_u64().unwrap()).unwrap();
        let independent = case["independent"].as_bool().unwrap();
        let mut rows = Vec::new();
        for example in 0..pool.loaded().example_ids.len() {
            let members: Vec<_> = (0..rollouts).map(|rollout| (example, rollout)).collect();
            let groups: Vec<&[(usize, usize)]> =
                if independent { members.chunks(1).collect() } else { vec![&members] };
            for group in groups {
                rows.extend(play(&pool, job(group, independent), &caller).await.unwrap());
            }
        }
        without_times(&mut own);
        without_times(&mut rows);
        assert_eq!(rows.len(), own.len());
        for (row, own) in rows.iter().zip(&own) {
            assert_eq!(row, own, "{}", serde_json::to_string_pretty(&json!([row, own])).unwrap());
            assert_eq!(row.to_string(), own.to_string(), "the order of the keys");
        }
    }
}

async fn failures_of_the_model(version: &str) {
    let python = interpreter(version);
    let (setup, _logs) = setup(&python, "gsm8k", &json!({}));
    let pool = WorkerPool::start(setup).await.unwrap();
    for (kind, status, chain) in [
        (FailureKind::RateLimited, Some(429), "ModelError -> RateLimitError"),
        (FailureKind::RateLimited, None, "ModelError -> RateLimitError"),
        (FailureKind::Provider, Some(500), "ModelError -> InternalServerError"),
        (FailureKind::Provider, Some(418), "ModelError -> APIStatusError"),
        (FailureKind::Connection, None, "ModelError -> APIConnectionError"),
        (FailureKind::Timeout, None, "ModelError -> APITimeoutError"),
        (FailureKind::Empty, None, "EmptyModelResponseError"),
        (FailureKind::Invalid, None, "InvalidModelResponseError"),
    ] {
        let caller =
            Scripted::new(move |_| Err(ModelFailure { kind, status, message: "no luck".to_owned() }));
        let generated = generate(&pool, job(&[(0, 0)], false), &caller).await.unwrap();
        assert_eq!(generated.errors, [chain.split(' ').next().map(str::to_owned)]);
        let rows = values(&pool.score(generated).await.unwrap());
        assert_eq!(rows[0]["error"]["error_chain_str"], chain, "{kind:?}");
        assert_eq!((&rows[0]["stop_condition"], &rows[0]["reward"]), (&json!("has_error"), &json!(0.0)));
    }
    let caller = Scripted::new(|_| Err(ModelFailure::new(FailureKind::Overlong, "too long")));
    let rows = play(&pool, job(&[(0, 0)], false), &caller).await.unwrap();
    assert_eq!((&rows[0]["stop_condition"], &rows[0]["error"]), (&json!("prompt_too_long"), &Value::Null));
    let caller = Scripted::new(|_| Err(ModelFailure::new(FailureKind::Refused, "wrong key").status(403)));
    let refused = play(&pool, job(&[(0, 0), (0, 1)], false), &caller).await.unwrap_err();
    assert!(
        matches!(&refused, WorkerError::Job { error, .. } if error == "PermissionDeniedError"),
        "{refused}"
    );
    let caller = Scripted::new(|_| panic!("a caller that breaks"));
    let rows = play(&pool, job(&[(0, 0)], false), &caller).await.unwrap();
    assert_eq!(rows[0]["error"]["error"], "ModelError");
}

async fn groups_and_independent_rollouts(version: &str) {
    let python = interpreter(version);
    let (setup, _logs) = setup(&python, "reverse-text", &json!({}));
    let pool = WorkerPool::start(setup).await.unwrap();
    assert!(pool.loaded().has_group_rewards);
    let refusal = pool.loaded().refuses_independent_scoring("reverse-text").unwrap();
    assert_eq!(refusal.id.as_deref(), Some("R052"));
    let caller = Scripted::new(|call| said(["cba", "longer", ""][call.rollout.unwrap()]));
    let rows = play(&pool, job(&[(0, 0), (0, 1), (0, 2)], false), &caller).await.unwrap();
    let scores: Vec<_> = rows.iter().map(|row| [&row["reward"], &row["best_of_group"]]).collect();
    assert_eq!(scores, [[&json!(1.0), &json!(0.0)], [&json!(0.5), &json!(1.0)], [&json!(0.0), &json!(0.0)]]);
    assert_eq!(rows[2]["error"]["error"], "EmptyModelResponseError");
    let refused = play(&pool, job(&[(0, 0)], true), &caller).await.unwrap_err();
    assert!(matches!(&refused, WorkerError::Job { .. }), "{refused}");
}

async fn generated_now_and_scored_later(version: &str) {
    let python = interpreter(version);
    let (mut setup, _logs) = setup(&python, "my-env", &json!({"noise": 2000}));
    setup.environment.state_columns = vec!["judge_response".to_owned()];
    let pool = WorkerPool::start(setup).await.unwrap();
    let caller = Scripted::new(|call| said(&asked(call).replace("Say ", "").replace('.', "")));
    let mut kept = Vec::new();
    for example in 0..4 {
        kept.push(
            generate(&pool, job(&[(example, 0), (example, 1)], example % 2 == 0), &caller).await.unwrap(),
        );
    }
    assert_eq!(caller.calls.load(Ordering::SeqCst), 8);
    drop(kept.remove(1));
    kept.reverse();
    let mut seen = Vec::new();
    for generated in kept {
        assert!(!generated.scored);
        for row in values(&pool.score(generated).await.unwrap()) {
            assert_eq!(row["judge_response"], format!("said word {}", row["example_id"]));
            assert_eq!(row["reward"], 1.0);
            seen.push(row["example_id"].as_u64().unwrap());
        }
    }
    assert_eq!(seen, [3, 3, 2, 2, 0, 0]);
}

async fn two_hundred_rollouts(version: &str) {
    let python = interpreter(version);
    let (mut setup, _logs) = setup(&python, "math-python", &json!({}));
    setup.workers = aec_eval::worker::WorkerCount::Exactly(2);
    let pool = Arc::new(WorkerPool::start(setup).await.unwrap());
    let caller = Scripted::delayed(Duration::from_millis(5), |call| {
        let mut answer = said("3 or 5 or 1").unwrap();
        if turns(call) < 2 {
            let arguments = format!("{{\"a\": 1, \"b\": {}}}", turns(call));
            answer.tool_calls.push(aec_eval::worker::ToolCall {
                id: "x".into(),
                name: "add".into(),
                arguments,
            });
        }
        Ok(answer)
    });
    let gate = Arc::new(tokio::sync::Semaphore::new(64));
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..200 {
        let (pool, caller, gate) = (Arc::clone(&pool), Arc::clone(&caller), Arc::clone(&gate));
        tasks.spawn(async move {
            let _place = gate.acquire_owned().await.unwrap();
            (number, play(&pool, job(&[(number % 3, number)], number % 2 == 0), &caller).await.unwrap())
        });
    }
    let mut count = 0;
    while let Some(done) = tasks.join_next().await {
        let (number, rows) = done.unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0]["example_id"], json!(number % 3));
        assert_eq!((&rows[0]["reward"], &rows[0]["num_turns"]), (&json!(1.0), &json!(3.0)));
        assert_eq!(rows[0]["stop_condition"], "no_tools_called");
        count += 1;
    }
    assert_eq!((count, caller.calls.load(Ordering::SeqCst)), (200, 600));
    assert!((2..=64).contains(&caller.most_at_once.load(Ordering::SeqCst)));
}

async fn what_an_environment_sees(version: &str) {
    let python = interpreter(version);
    let (mut setup, _logs) = setup(&python, "my-env", &json!({"misbehave": "nan", "at": "word 0"}));
    setup.environment.state_columns = vec!["environment".to_owned()];
    setup.environment.state_keys = vec!["example_id".to_owned(), "nothing".to_owned()];
    setup.environment.shuffle = true;
    setup.environment.shuffle_seed = Some(3);
    setup.environment.num_examples = 5;
    setup.surroundings.push(("ANTHROPIC_API_KEY".into(), "secret".into()));
    setup.surroundings.push(("AWS_SECRET_ACCESS_KEY".into(), "secret".into()));
    setup.variables.insert("GIVEN_KEY".to_owned(), "given".to_owned());
    setup.gateway = Some(aec_eval::worker::Gateway {
        base_url: "http://127.0.0.1:1/v1".to_owned(),
        token: "token".to_owned(),
    });
    let pool = WorkerPool::start(setup).await.unwrap();
    let ids = pool.loaded().example_ids.clone();
    assert_eq!(ids.len(), 5);
    assert_ne!(ids, [0, 1, 2, 3, 4]);
    let caller = Scripted::new(|call| {
        assert_eq!(call.state.len(), 1);
        said(&format!("word {}", call.state["example_id"]))
    });
    for (index, id) in ids.iter().enumerate() {
        let rows = play(&pool, job(&[(index, 0)], true), &caller).await.unwrap();
        assert_eq!(rows[0]["example_id"], json!(id));
        if *id == 0 {
            assert_eq!(rows[0]["reward"], Value::Null);
        } else {
            assert_eq!(rows[0]["environment"], json!(["GIVEN_KEY", "OPENAI_API_KEY"]));
        }
    }
}
