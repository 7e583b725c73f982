//! What the holder of a token gets.

use std::time::Duration;

use aec_model::meter::Budget;
use aec_model_server::{Answers, Options, Range};
use serde_json::{Value, json};

use super::{KEY, World, chat, with};

#[tokio::test]
async fn both_formats_whole_and_streamed() {
    let world = World::echo().await;
    let (token, account) = world.token("mine", Budget::default());
    let (status, reply) = world.chat(&token, &chat("mine", "hello")).await;
    assert_eq!((status, &reply["choices"][0]["message"]["content"]), (200, &json!("hello")), "{reply}");
    assert_eq!(reply["model"], "mine");
    assert!(reply["usage"]["prompt_tokens"].as_u64().unwrap() > 0, "{reply}");
    let (status, text) =
        world.post("/v1/chat/completions", &token, &with(chat("mine", "hello"), "stream", json!(true))).await;
    assert_eq!(status, 200);
    assert!(text.contains("hello") && text.trim_end().ends_with("data: [DONE]"), "{text}");
    let (status, text) = world.post("/v1/messages", &token, &chat("mine", "hello")).await;
    let message: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &message["content"][0]["text"]), (200, &json!("hello")), "{message}");
    let (_, text) =
        world.post("/v1/messages", &token, &with(chat("mine", "hello"), "stream", json!(true))).await;
    assert!(text.contains("event: message_start") && text.contains("event: message_stop"), "{text}");
    assert_eq!(account.totals().all.calls, 4, "each of them is paid for");
    let sent = world.server.requests();
    assert!(sent.iter().all(|request| request.headers["authorization"] == format!("Bearer {KEY}")));
}

#[tokio::test]
async fn the_token_goes_where_libraries_put_keys() {
    let world = World::echo().await;
    let (token, _) = world.token("mine", Budget::default());
    for (header, value) in [
        ("authorization", format!("Bearer {}", token.reveal())),
        ("authorization", format!("bearer  {}", token.reveal())),
        ("x-api-key", token.reveal().to_owned()),
        ("api-key", token.reveal().to_owned()),
    ] {
        let sent = world.http.post(world.url("/v1/chat/completions")).header(header, value);
        let response = sent.body(chat("mine", "x").to_string()).send().await.unwrap();
        assert_eq!(response.status(), 200, "{header}");
    }
    let listed = world.http.get(world.url("/v1/models")).bearer_auth(token.reveal()).send().await.unwrap();
    let listed: Value = serde_json::from_str(&listed.text().await.unwrap()).unwrap();
    assert_eq!(listed["data"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["data"][0]["id"], "mine");
}

#[tokio::test]
async fn a_slow_answer_keeps_a_stream_alive() {
    let options = Options {
        answers: Answers::Echo,
        latency: Range::only(Duration::from_millis(5200)),
        ..Options::default()
    };
    let world = World::new(options, "").await;
    let (token, _) = world.token("mine", Budget::default());
    let body = with(chat("mine", "hello"), "stream", json!(true));
    let (status, text) = world.post("/v1/chat/completions", &token, &body).await;
    assert_eq!(status, 200);
    assert!(text.starts_with(": waiting"), "{text}");
    assert!(text.contains("hello") && text.trim_end().ends_with("data: [DONE]"), "{text}");
}

#[tokio::test]
async fn failures_keep_their_kind() {
    for (fault, status, code) in
        [("overlong", 400, "overlong"), ("filter", 400, "content_filter"), ("server", 503, "server")]
    {
        let world =
            World::new(Options::default(), &format!("headers = {{ x-test-fault = \"{fault}\" }}")).await;
        let (token, _) = world.token("mine", Budget::default());
        let (found, reply) = world.chat(&token, &chat("mine", "x")).await;
        assert_eq!((found, &reply["error"]["code"]), (status, &json!(code)), "{reply}");
    }
}
