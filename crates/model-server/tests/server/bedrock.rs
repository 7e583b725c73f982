//! Bedrock: both of its formats, and its signatures.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aec_model::script::Script;
use aec_model_server::{Answers, AwsKeys, Options, TestServer};
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::client::{Answer, Case, Family, request, send, start};

fn case(family: Family, stream: bool) -> Case {
    Case { family, stream }
}

fn tools_and_thoughts() -> Options {
    let script: Script = serde_json::from_value(json!({"replies": [
        {"reasoning": "think first", "text": "I look", "tool_calls": [{"name": "f", "arguments": {"a": "x y"}}]}]}))
    .unwrap();
    Options { answers: Answers::Script(Arc::new(script)), ..Options::default() }
}

#[tokio::test]
async fn converse_whole() {
    let server = start(tools_and_thoughts()).await;
    let answer = case(Family::Converse, false).ask(&server, "12345678", &json!({})).await;
    assert_eq!(answer.header("x-amzn-requestid").len(), 36);
    let value = answer.json();
    let message = &value["output"]["message"];
    assert_eq!((&message["role"], &value["stopReason"]), (&json!("assistant"), &json!("tool_use")));
    assert_eq!(message["content"][0]["reasoningContent"]["reasoningText"]["text"], "think first");
    assert_eq!(message["content"][1], json!({"text": "I look"}));
    let call = &message["content"][2]["toolUse"];
    assert_eq!((&call["name"], &call["input"]), (&json!("f"), &json!({"a": "x y"})));
    assert!(call["toolUseId"].as_str().unwrap().starts_with("tooluse_"));
    let usage = &value["usage"];
    assert_eq!([&usage["inputTokens"], &usage["outputTokens"], &usage["totalTokens"]], [2, 7, 9]);
    assert!(value["metrics"]["latencyMs"].is_u64());
}

#[tokio::test]
async fn converse_as_a_stream_of_frames() {
    let server = start(tools_and_thoughts()).await;
    let answer = case(Family::Converse, true).ask(&server, "12345678", &json!({})).await;
    assert_eq!(answer.header("content-type"), "application/vnd.amazon.eventstream");
    let frames = answer.frames().unwrap();
    let mut names: Vec<&str> = frames.iter().map(|(name, _)| name.as_str()).collect();
    names.dedup();
    let expected =
        [
            &[
                "messageStart",
                "contentBlockDelta",
                "contentBlockStop",
                "contentBlockDelta",
                "contentBlockStop",
            ][..],
            &["contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"],
        ]
        .concat();
    assert_eq!(names, expected);
    let joined = |pointer: &str| -> String {
        frames.iter().filter_map(|(_, value)| value.pointer(pointer)?.as_str()).collect()
    };
    assert_eq!(joined("/delta/reasoningContent/text"), "think first");
    assert_eq!(joined("/delta/text"), "I look");
    assert_eq!(joined("/delta/toolUse/input"), "{\"a\":\"x y\"}");
    assert_eq!((joined("/start/toolUse/name").as_str(), joined("/stopReason").as_str()), ("f", "tool_use"));
    assert_eq!(frames.last().unwrap().1["usage"]["outputTokens"], 7);
}

#[tokio::test]
async fn invoke_speaks_anthropic_whole_and_in_frames() {
    let server = start(tools_and_thoughts()).await;
    let answer = case(Family::Invoke, false).ask(&server, "12345678", &json!({})).await;
    assert_eq!(answer.header("x-amzn-bedrock-output-token-count"), "7");
    assert_eq!(answer.json()["content"][1]["text"], "I look");
    let answer = case(Family::Invoke, true).ask(&server, "12345678", &json!({})).await;
    assert_eq!(answer.header("x-amzn-bedrock-content-type"), "application/json");
    let events: Vec<Value> = answer
        .frames()
        .unwrap()
        .into_iter()
        .map(|(name, value)| {
            assert_eq!(name, "chunk");
            let bytes = BASE64_STANDARD.decode(value["bytes"].as_str().unwrap()).unwrap();
            serde_json::from_slice(&bytes).unwrap()
        })
        .collect();
    assert_eq!(events[0]["type"], "message_start");
    let text: String = events.iter().filter_map(|event| event["delta"]["text"].as_str()).collect();
    assert_eq!(text, "I look");
    let last = events.last().unwrap();
    assert_eq!(last["type"], "message_stop");
    assert_eq!(last["amazon-bedrock-invocationMetrics"]["outputTokenCount"], 7);
    let old = json!({"prompt": "x"});
    let request =
        request(&server, case(Family::Invoke, false).path(), &[("authorization", "Bearer k")], &old);
    let refused = Answer::read(send(&server, request).await.unwrap().response).await;
    assert!(refused.header("x-amzn-errortype").starts_with("ValidationException"));
}

const SECRET: &str = "wJalrXUtnFEMI-example";

fn keys(session_token: Option<&str>) -> AwsKeys {
    AwsKeys {
        access_key_id: "AKIAEXAMPLE".to_owned(),
        secret_access_key: SECRET.to_owned(),
        session_token: session_token.map(str::to_owned),
    }
}

/// Signs with the given secret at the given time, sends, and returns the status and kind of the answer.
async fn ask_signed(
    server: &TestServer,
    secret: &str,
    token: Option<&str>,
    time: SystemTime,
    late_change: bool,
) -> (u16, String) {
    let case = case(Family::Converse, false);
    let body = case.body("one", &json!({}));
    let mut request = request(server, case.path(), &[], &body);
    let bytes = body.to_string();
    let identity = Credentials::new("AKIAEXAMPLE", secret, token.map(str::to_owned), None, "test").into();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region("eu-central-1")
        .name("bedrock")
        .time(time)
        .settings(SigningSettings::default())
        .build()
        .unwrap()
        .into();
    let url = format!("{}{}", server.url(), case.path());
    let headers: Vec<(&str, &str)> =
        request.headers().iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    let signable =
        SignableRequest::new("POST", url, headers.into_iter(), SignableBody::Bytes(bytes.as_bytes()))
            .unwrap();
    let (instructions, _) = sign(signable, &params).unwrap().into_parts();
    let signed: Vec<(String, String)> =
        instructions.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    for (name, value) in signed {
        request.headers_mut().insert(http::HeaderName::try_from(name).unwrap(), value.parse().unwrap());
    }
    if late_change {
        request.headers_mut().insert("content-type", "text/plain".parse().unwrap());
    }
    let answer = Answer::read(send(server, request).await.unwrap().response).await;
    let kind = answer.header("x-amzn-errortype").split(':').next().unwrap().to_owned();
    (answer.status, kind)
}

#[tokio::test]
async fn signatures_are_verified_when_the_keys_are_known() {
    let now = SystemTime::now();
    let good = (200, String::new());
    let wrong = (403, "InvalidSignatureException".to_owned());
    let unknown = (403, "UnrecognizedClientException".to_owned());
    let server = start(Options { aws: Some(keys(None)), ..Options::default() }).await;
    assert_eq!(ask_signed(&server, SECRET, None, now, false).await, good);
    assert_eq!(ask_signed(&server, "another-secret", None, now, false).await, wrong);
    assert_eq!(ask_signed(&server, SECRET, None, now, true).await, wrong);
    assert_eq!(ask_signed(&server, SECRET, None, now - Duration::from_hours(1), false).await, wrong);
    assert_eq!(ask_signed(&server, SECRET, Some("token"), now, false).await, unknown);
    let temporary = start(Options { aws: Some(keys(Some("token"))), ..Options::default() }).await;
    assert_eq!(ask_signed(&temporary, SECRET, Some("token"), now, false).await, good);
    assert_eq!(ask_signed(&temporary, SECRET, None, now, false).await, unknown);
    let open = start(Options::default()).await;
    assert_eq!(ask_signed(&open, "any-secret", None, now, true).await, good, "only the shape counts");
}

#[tokio::test]
async fn some_authorization_is_always_demanded() {
    let server = start(Options { key: Some("right".to_owned()), ..Options::default() }).await;
    let case = case(Family::Converse, false);
    let ask = async |headers: &[(&str, &str)]| {
        let request = request(&server, case.path(), headers, &case.body("one", &json!({})));
        let answer = Answer::read(send(&server, request).await.unwrap().response).await;
        assert!(answer.status == 200 || answer.json()["message"].is_string());
        (answer.status, answer.header("x-amzn-errortype").split(':').next().unwrap().to_owned())
    };
    assert_eq!(ask(&[]).await, (403, "MissingAuthenticationTokenException".to_owned()));
    assert_eq!(
        ask(&[("authorization", "Bearer wrong")]).await,
        (403, "UnrecognizedClientException".to_owned())
    );
    assert_eq!(
        ask(&[("authorization", "AWS4-HMAC-SHA256 x")]).await,
        (403, "InvalidSignatureException".to_owned())
    );
    assert_eq!(ask(&[("authorization", "Bearer right")]).await.0, 200);
}
