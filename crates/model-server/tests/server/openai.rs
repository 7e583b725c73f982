//! Chat completions, of OpenAI and of Azure.

use std::sync::Arc;

use aec_model::script::Script;
use aec_model_server::{Answers, Options};
use serde_json::{Value, json};

use crate::client::{Answer, Case, Ended, Family, request, send, start};

const WHOLE: Case = Case { family: Family::Chat, stream: false };
const STREAM: Case = Case { family: Family::Chat, stream: true };

fn echo() -> Options {
    Options { answers: Answers::Echo, ..Options::default() }
}

fn script(value: Value) -> Options {
    let script: Script = serde_json::from_value(value).unwrap();
    Options { answers: Answers::Script(Arc::new(script)), ..Options::default() }
}

#[tokio::test]
async fn a_whole_completion() {
    let server = start(echo()).await;
    let answer = WHOLE.ask(&server, "one two three", &json!({})).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "application/json"));
    assert!(answer.header("x-request-id").starts_with("req_"));
    let value = answer.json();
    assert!(value["id"].as_str().unwrap().starts_with("chatcmpl-"));
    assert_eq!((&value["object"], &value["model"]), (&json!("chat.completion"), &json!("m")));
    let choice = &value["choices"][0];
    assert_eq!(
        choice["message"],
        json!({"role": "assistant", "content": "one two three", "refusal": null, "annotations": []})
    );
    assert_eq!((&choice["index"], &choice["finish_reason"]), (&json!(0), &json!("stop")));
    let usage = &value["usage"];
    assert_eq!([&usage["prompt_tokens"], &usage["completion_tokens"], &usage["total_tokens"]], [4, 3, 7]);
    assert_eq!(usage["completion_tokens_details"]["reasoning_tokens"], 0);
}

#[tokio::test]
async fn a_stream_has_a_role_tokens_an_end_and_done() {
    let server = start(echo()).await;
    let answer = STREAM.ask(&server, "one two \"three\"\n", &json!({})).await;
    assert_eq!(answer.header("content-type"), "text/event-stream; charset=utf-8");
    assert_eq!(answer.events().last().unwrap().1, "[DONE]");
    let chunks = answer.data();
    assert!(
        chunks.iter().all(|chunk| chunk["object"] == "chat.completion.chunk" && chunk.get("usage").is_none())
    );
    let deltas: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]).collect();
    assert_eq!(deltas[0], &json!({"role": "assistant", "content": "", "refusal": null}));
    let text: String = deltas[1..].iter().filter_map(|delta| delta["content"].as_str()).collect();
    assert_eq!(text, "one two \"three\"\n");
    assert_eq!(deltas.last().unwrap(), &&json!({}));
    let reasons: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"][0]["finish_reason"]).collect();
    assert_eq!(reasons.iter().filter(|reason| !reason.is_null()).count(), 1);
    assert_eq!(reasons.last().unwrap(), &"stop");
}

#[tokio::test]
async fn a_stream_counts_tokens_when_asked() {
    let server = start(echo()).await;
    let options = json!({"stream_options": {"include_usage": true}});
    let chunks = STREAM.ask(&server, "one two", &options).await.data();
    let (last, others) = chunks.split_last().unwrap();
    assert!(others.iter().all(|chunk| chunk["usage"].is_null() && chunk.get("usage").is_some()));
    assert_eq!((&last["choices"], &last["usage"]["completion_tokens"]), (&json!([]), &json!(2)));
}

#[tokio::test]
async fn tool_calls_whole_and_streamed() {
    let server = start(script(json!({"replies": [{"reasoning": "think first", "tool_calls": [
        {"name": "f", "arguments": {"a": "x y"}}, {"name": "g"}]}]})))
    .await;
    let whole = WHOLE.ask(&server, "go", &json!({})).await.json();
    let message = &whole["choices"][0]["message"];
    assert_eq!((&message["content"], &message["reasoning_content"]), (&Value::Null, &json!("think first")));
    assert_eq!(whole["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(whole["usage"]["completion_tokens_details"]["reasoning_tokens"], 2);
    let calls = message["tool_calls"].as_array().unwrap();
    assert!(
        calls
            .iter()
            .all(|call| call["type"] == "function" && call["id"].as_str().unwrap().starts_with("call_"))
    );
    assert_ne!(calls[0]["id"], calls[1]["id"]);
    assert_eq!(calls[0]["function"], json!({"name": "f", "arguments": "{\"a\":\"x y\"}"}));
    assert_eq!(calls[1]["function"], json!({"name": "g", "arguments": "{}"}));

    let mut seen: Vec<(Value, String, String)> = Vec::new();
    for chunk in STREAM.ask(&server, "go", &json!({})).await.data() {
        for call in chunk["choices"][0]["delta"]["tool_calls"].as_array().unwrap_or(&Vec::new()) {
            let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
            if let Some(name) = call["function"]["name"].as_str() {
                assert_eq!((index, &call["function"]["arguments"]), (seen.len(), &json!("")));
                seen.push((call["id"].clone(), name.to_owned(), String::new()));
            } else {
                seen[index].2.push_str(call["function"]["arguments"].as_str().unwrap());
            }
        }
    }
    let seen: Vec<(&str, &str)> = seen.iter().map(|(_, name, text)| (name.as_str(), text.as_str())).collect();
    assert_eq!(seen, [("f", "{\"a\":\"x y\"}"), ("g", "{}")]);
}

#[tokio::test]
async fn azure_adds_its_filters_and_demands_key_and_version() {
    let server = start(echo()).await;
    let case = |stream| Case { family: Family::Azure, stream };
    let whole = case(false).ask(&server, "one", &json!({})).await.json();
    assert_eq!(whole["model"], "dep", "the path names it");
    assert_eq!(whole["choices"][0]["content_filter_results"]["hate"]["severity"], "safe");
    let chunks = case(true).ask(&server, "one", &json!({})).await.data();
    assert_eq!((&chunks[0]["choices"], &chunks[0]["id"]), (&json!([]), &json!("")));
    assert!(chunks[0]["prompt_filter_results"][0]["content_filter_results"].is_object());

    let path = "/openai/deployments/dep/chat/completions";
    let body = case(false).body("one", &json!({}));
    let ask = async |path: &str, headers: &[(&str, &str)]| {
        let answer =
            Answer::read(send(&server, request(&server, path, headers, &body)).await.unwrap().response).await;
        (answer.status, answer.json()["error"]["code"].clone())
    };
    assert_eq!(ask(path, &[("api-key", "k")]).await, (404, json!("404")));
    assert_eq!(ask(&format!("{path}?api-version=1"), &[]).await, (401, json!("401")));
    assert_eq!(ask(&format!("{path}?api-version=1"), &[("api-key", "k")]).await.0, 200);
}

#[tokio::test]
async fn keys_models_unknown_paths_and_bad_requests() {
    let server = start(Options { key: Some("right".to_owned()), ..echo() }).await;
    let ask = async |path: &str, headers: &[(&str, &str)], body: &Value| {
        let answer =
            Answer::read(send(&server, request(&server, path, headers, body)).await.unwrap().response).await;
        assert_eq!(answer.ended, Ended::Well);
        (answer.status, answer.json()["error"].clone())
    };
    let body = WHOLE.body("one", &json!({}));
    let chat = WHOLE.path();
    assert_eq!(ask(chat, &[], &body).await.0, 401);
    let (status, error) = ask(chat, &[("authorization", "Bearer wrong")], &body).await;
    assert_eq!((status, &error["code"]), (401, &json!("invalid_api_key")));
    assert!(!error.to_string().contains("wrong"), "keys are not repeated");
    for good in [("authorization", "Bearer right"), ("api-key", "right")] {
        assert_eq!(ask("/openai/v1/chat/completions", &[good], &body).await.0, 200);
    }
    let key = [("authorization", "Bearer right")];
    let (status, error) = ask(chat, &key, &json!({"model": "m"})).await;
    assert_eq!(
        (status, &error["param"], &error["code"]),
        (400, &json!("messages"), &json!("missing_required_parameter"))
    );
    let stray = json!({"model": "m", "messages": [{"role": "tool", "tool_call_id": "x", "content": ""}]});
    assert_eq!(ask(chat, &key, &stray).await.0, 400);
    assert_eq!(ask("/v1/embeddings", &key, &body).await.0, 404);
}

#[tokio::test]
async fn the_answer_can_have_a_schema_and_a_limit() {
    let server = start(Options::default()).await;
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    let format =
        json!({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}});
    let value = WHOLE.ask(&server, "x", &format).await.json();
    let text = value["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(serde_json::from_str::<Value>(text).unwrap()["n"].is_i64());
    let limited = WHOLE.ask(&server, "x", &json!({"max_completion_tokens": 3})).await.json();
    assert_eq!(limited["choices"][0]["finish_reason"], "length");
    assert_eq!(limited["usage"]["completion_tokens"], 3);
}
