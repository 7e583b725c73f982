//! v1 tasksets in real interpreters: episodes of the library become rows of the v0 shape.

use crate::worker::world::{Scripted, asked, interpreter, job, play, said, setup, turns};
use aec_eval::worker::{FailureKind, Interface, ModelFailure, ToolCall, WorkerError, WorkerPool};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
async fn a_taskset_is_played() {
    for version in ["0.3.1", "0.4.0"] {
        let python = interpreter(version);
        let (mut setup, _logs) = setup(&python, "word-tasks", &json!({"count": 5}));
        setup.environment.num_examples = 3;
        setup.environment.state_columns = vec!["trace".to_owned()];
        let pool = WorkerPool::start(setup).await.unwrap();
        let loaded = pool.loaded();
        assert_eq!((loaded.interface, loaded.class_name.as_str()), (Interface::V1, "WordTaskset"));
        assert_eq!(loaded.example_ids, [0, 1, 2]);
        assert!(loaded.generates_and_scores_at_once);
        let caller = Scripted::new(|call| {
            assert_eq!(call.messages[0].role, "system");
            assert_eq!(call.sampling_args["temperature"], json!(0.5));
            let mut answer = said(&asked(call).replace("Say ", "").replace('.', ""))?;
            answer.usage = Some(aec_eval::worker::Usage {
                prompt_tokens: 7,
                completion_tokens: 3,
                total_tokens: 10,
                reasoning_tokens: 0,
            });
            Ok(answer)
        });
        let mut one = job(&[(1, 0), (1, 1)], false);
        one.sampling_args.insert("temperature".to_owned(), json!(0.5));
        let rows = play(&pool, one, &caller).await.unwrap();
        assert_eq!(rows.len(), 2);
        for row in rows {
            assert_eq!(
                row["prompt"],
                json!([{"role": "system", "content": "Be short."}, {"role": "user", "content": "Say word 1."}])
            );
            assert_eq!(row["completion"], json!([{"role": "assistant", "content": "word 1"}]));
            assert_eq!(
                (&row["reward"], &row["said"], &row["length"]),
                (&json!(2.0), &json!(1.0), &json!(6.0))
            );
            assert_eq!(
                (&row["example_id"], &row["answer"], &row["error"]),
                (&json!(1), &json!("word 1"), &json!(null))
            );
            assert_eq!(row["token_usage"]["input_tokens"], 7.0);
            assert_eq!((&row["is_completed"], &row["info"]), (&json!(true), &json!({"number": 1})));
            assert!(row["trace"]["nodes"].is_array());
        }
        let caller = Scripted::new(|_| Err(ModelFailure::new(FailureKind::Provider, "no").status(422)));
        let rows = play(&pool, job(&[(0, 0)], false), &caller).await.unwrap();
        assert_eq!(rows[0]["error"]["error"], "ProviderError", "{}", rows[0]);
        let stop = if version == "0.3.1" { "error" } else { "provider_error" };
        assert_eq!(rows[0]["stop_condition"], stop);
        pool.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
async fn what_cannot_be_played_here_says_why() {
    let python = interpreter("0.4.0");
    for (env_id, arguments, interface, word) in [
        ("word-tasks", json!({"image": "debian:12"}), Interface::Auto, "container runtime"),
        ("word-tasks", json!({"unknown": 1}), Interface::Auto, "unknown"),
        ("gsm8k", json!({}), Interface::V0, "verifiers<0.4"),
        ("nobody-has-this", json!({}), Interface::Auto, "not found"),
    ] {
        let (mut setup, _logs) = setup(&python, env_id, &arguments);
        setup.environment.interface = interface;
        let Err(error) = WorkerPool::start(setup).await else { panic!("{env_id} was loaded") };
        assert!(matches!(&error, WorkerError::Load(failure) if failure.message.contains(word)), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
async fn tools_of_a_taskset_are_called() {
    let python = interpreter("0.4.0");
    let (setup, _logs) = setup(&python, "word-tools", &json!({}));
    let pool = WorkerPool::start(setup).await.unwrap();
    let caller = Scripted::new(|call| {
        assert_eq!(call.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["look_up"]);
        if turns(call) == 0 {
            let mut answer = said("")?;
            let arguments = "{\"number\": 3}".to_owned();
            answer.tool_calls.push(ToolCall { id: "a".to_owned(), name: "look_up".to_owned(), arguments });
            return Ok(answer);
        }
        assert_eq!((asked(call).as_str(), call.messages[1].tool_calls.len()), ("stone 3", 1));
        said("the word is stone")
    });
    let rows = play(&pool, job(&[(1, 0)], false), &caller).await.unwrap();
    assert_eq!((&rows[0]["reward"], &rows[0]["error"]), (&json!(1.0), &json!(null)));
    assert_eq!(rows[0]["completion"][1], json!({"role": "tool", "content": "stone 3", "tool_call_id": "a"}));
    let call = rows[0]["completion"][0]["tool_calls"][0].as_str().unwrap();
    assert_eq!(call, r#"{"id": "a", "name": "look_up", "arguments": "{\"number\": 3}"}"#);
    assert_eq!(rows[0]["tool_defs"][0]["name"], "look_up");
}
