//! Every dialect over a real connection: requests and answers, whole and streamed.

use aec_model::client::Scope;
use aec_model::message::{Message, Part, Request, Role, Sampling, Stop, Tool};
use aec_model::tape::Tape;
use aec_model_server::{Answers, AwsKeys, Options};
use serde_json::json;

use super::{ask, client_with, model, quick, scope, start};

const VARIABLES: [(&str, &str); 4] = [
    ("KEY", "sk-test-value"),
    ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
    ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI"),
    ("AWS_SESSION_TOKEN", "session"),
];

/// Name, model, keys of the row, path below the server, path that must be called (whole, streamed), key header.
struct Vendor {
    name: &'static str,
    model: &'static str,
    keys: &'static str,
    below: &'static str,
    path: [&'static str; 2],
    header: (&'static str, &'static str),
}

const VENDORS: [Vendor; 7] = [
    Vendor {
        name: "openai",
        model: "gpt-4.1-mini",
        keys: "key = \"KEY\"",
        below: "/v1",
        path: ["/v1/chat/completions", "/v1/chat/completions"],
        header: ("authorization", "Bearer sk-test-value"),
    },
    Vendor {
        name: "anthropic",
        model: "claude-sonnet-4-5",
        keys: "key = \"KEY\"\napi_client_type = \"anthropic_messages\"",
        below: "",
        path: ["/v1/messages", "/v1/messages"],
        header: ("x-api-key", "sk-test-value"),
    },
    Vendor {
        name: "azure resource",
        model: "gpt-4.1",
        keys: "key = \"KEY\"\napi_client_type = \"azure_openai\"",
        below: "",
        path: [
            "/openai/deployments/gpt-4.1/chat/completions?api-version=2024-10-21",
            "/openai/deployments/gpt-4.1/chat/completions?api-version=2024-10-21",
        ],
        header: ("api-key", "sk-test-value"),
    },
    Vendor {
        name: "azure foundry",
        model: "gpt-4.1",
        keys: "key = \"KEY\"",
        below: "/openai/v1",
        path: ["/openai/v1/chat/completions", "/openai/v1/chat/completions"],
        header: ("authorization", "Bearer sk-test-value"),
    },
    Vendor {
        name: "bedrock with a token",
        model: "anthropic.claude-3-haiku-20240307-v1:0",
        keys: "key = \"KEY\"\napi_client_type = \"bedrock\"\nregion = \"us-east-1\"",
        below: "",
        path: [
            "/model/anthropic.claude-3-haiku-20240307-v1%3A0/invoke",
            "/model/anthropic.claude-3-haiku-20240307-v1%3A0/invoke-with-response-stream",
        ],
        header: ("authorization", "Bearer sk-test-value"),
    },
    Vendor {
        name: "bedrock, signed",
        model: "au.anthropic.claude-sonnet-4-6",
        keys: "api_client_type = \"bedrock\"\nregion = \"ap-southeast-2\"",
        below: "",
        path: [
            "/model/au.anthropic.claude-sonnet-4-6/invoke",
            "/model/au.anthropic.claude-sonnet-4-6/invoke-with-response-stream",
        ],
        header: ("authorization", "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"),
    },
    Vendor {
        name: "converse, signed",
        model: "amazon.nova-pro-v1:0",
        keys: "api_client_type = \"bedrock\"\nregion = \"us-east-1\"",
        below: "",
        path: ["/model/amazon.nova-pro-v1%3A0/converse", "/model/amazon.nova-pro-v1%3A0/converse-stream"],
        header: ("authorization", "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"),
    },
];

fn options(answers: Answers) -> Options {
    let aws = AwsKeys {
        access_key_id: "AKIDEXAMPLE".into(),
        secret_access_key: "wJalrXUtnFEMI".into(),
        session_token: Some("session".into()),
    };
    Options { answers, aws: Some(aws), keep_requests: 16, ..Options::default() }
}

#[tokio::test]
async fn each_vendor_is_called_and_understood() {
    for vendor in VENDORS {
        let server = start(options(Answers::Echo)).await;
        let mut replies = Vec::new();
        for (mode, path) in ["never", "always"].into_iter().zip(vendor.path) {
            let rows = format!(
                "[[endpoint]]\nendpoint_id = \"m\"\nmodel = \"{}\"\nurl = \"{}{}\"\nstream = \"{mode}\"\nprompt_cache = false\n{}\n",
                vendor.model,
                server.url(),
                vendor.below,
                vendor.keys
            );
            let client = client_with(&rows, &VARIABLES, quick(), Tape::Live);
            let called = model(&client).call(&ask("what is the moment?"), &scope()).await;
            let reply = called.outcome.unwrap_or_else(|failure| panic!("{} {mode}: {failure}", vendor.name));
            assert_eq!(reply.text(), "what is the moment?", "{} {mode}", vendor.name);
            assert_eq!(reply.stop, Stop::End, "{} {mode}", vendor.name);
            let sent = server.requests().pop().unwrap();
            assert_eq!(sent.path, path, "{} {mode}", vendor.name);
            let header = sent.headers.get(vendor.header.0).unwrap().to_str().unwrap();
            assert!(header.starts_with(vendor.header.1), "{} {mode}: {header}", vendor.name);
            replies.push((reply.parts, reply.stop, reply.usage.unwrap()));
        }
        assert_eq!(replies[0], replies[1], "{}: the stream is the same answer", vendor.name);
        let usage = replies[0].2;
        assert!(usage.all_input() > 0 && usage.all_output() > 0, "{}: {usage:?}", vendor.name);
    }
}

#[tokio::test]
async fn tools_images_and_long_conversations_go_everywhere() {
    let tool = Tool {
        name: "bash".into(),
        description: "Runs a command".into(),
        parameters: json!({ "type": "object", "properties": { "command": { "type": "string" } }, "required": ["command"] }),
    };
    for vendor in VENDORS {
        let server = start(Options { tool_calls: 1.0, ..options(Answers::Drawn) }).await;
        for mode in ["never", "always"] {
            let rows = format!(
                "[[endpoint]]\nendpoint_id = \"m\"\nmodel = \"{}\"\nurl = \"{}{}\"\nstream = \"{mode}\"\n{}\n",
                vendor.model,
                server.url(),
                vendor.below,
                vendor.keys
            );
            let client = client_with(&rows, &VARIABLES, quick(), Tape::Live);
            let scope: Scope = scope();
            let mut request = Request {
                messages: vec![
                    Message::text(Role::System, "You are careful."),
                    Message {
                        role: Role::User,
                        parts: vec![
                            Part::text("What does the drawing say?"),
                            Part::Image { media_type: "image/png".into(), data: "iVBORw0KGgo=".into() },
                        ],
                    },
                ],
                tools: vec![tool.clone()].into(),
                sampling: Sampling { max_tokens: Some(200), temperature: Some(0.2), ..Sampling::default() },
                ..Request::default()
            };
            for turn in 0..3 {
                let called = model(&client).call(&request, &scope).await;
                let reply = called
                    .outcome
                    .unwrap_or_else(|failure| panic!("{} {mode} {turn}: {failure}", vendor.name));
                assert_eq!(reply.stop, Stop::ToolCalls, "{} {mode}", vendor.name);
                let results: Vec<Part> = reply
                    .tool_calls()
                    .map(|call| {
                        assert!(
                            call.object().is_some_and(|object| object.contains_key("command")),
                            "{call:?}"
                        );
                        Part::ToolResult {
                            call_id: call.id.clone(),
                            parts: vec![Part::text("42 kNm")],
                            is_error: turn == 1,
                        }
                    })
                    .collect();
                assert!(!results.is_empty());
                request.messages.push(reply.into_message());
                request.messages.push(Message { role: Role::User, parts: results });
            }
        }
    }
}

#[tokio::test]
async fn prompts_are_cached_where_the_provider_must_be_asked() {
    let server = start(options(Answers::Drawn)).await;
    let rows = format!(
        "[[endpoint]]\nendpoint_id = \"m\"\nmodel = \"claude-sonnet-4-5\"\nurl = \"{}\"\nkey = \"KEY\"\napi_client_type = \"anthropic_messages\"\n",
        server.url()
    );
    let client = client_with(&rows, &VARIABLES, quick(), Tape::Live);
    let mut request = ask(&"a long document ".repeat(2000));
    let first = model(&client).call(&request, &scope()).await.outcome.unwrap();
    let written = first.usage.unwrap();
    assert!(written.cache_write > 1000 && written.cache_read == 0, "{written:?}");
    request.messages.push(first.into_message());
    request.messages.push(Message::text(Role::User, "and then?"));
    let read = model(&client).call(&request, &scope()).await.outcome.unwrap().usage.unwrap();
    assert!(read.cache_read >= written.cache_write, "{read:?}");
}
