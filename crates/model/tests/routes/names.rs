//! The rules about names: the provider of a model, its address and the variable of its key.

use aec_model::endpoint::{Format, StreamMode};
use aec_model::message::{Message, Request, Role, Stop};
use aec_model::routing::{ClientKind, ClientSettings, ClientTable, Routes, Target};
use aec_model::transport::Line;

use super::{env, key, resolve};

const OPENAI: (&str, &str) = ("OPENAI_API_KEY", "sk-openai");
const ANTHROPIC: (&str, &str) = ("ANTHROPIC_API_KEY", "sk-anthropic");
const AZURE_KEY: (&str, &str) = ("AZURE_OPENAI_API_KEY", "azure-key");
const AZURE: (&str, &str) = ("AZURE_OPENAI_ENDPOINT", "https://example.openai.azure.com/");
const FOUNDRY: (&str, &str) = ("AZURE_OPENAI_ENDPOINT", "https://example.services.ai.azure.com/openai/v1/");
const REGION: (&str, &str) = ("AWS_REGION", "ap-southeast-2");
const BEARER: (&str, &str) = ("AWS_BEARER_TOKEN_BEDROCK", "bedrock-token");

/// A model, the variables that are set, and two expected texts.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, &'a str);

/// The called address, and the key.
fn called(model: &str, variables: &[(&str, &str)]) -> (String, String) {
    let endpoint = resolve(model, variables, None).unwrap();
    let key = key(&endpoint);
    (Line::new(endpoint).unwrap().url().to_string(), key)
}

/// Checks that each model is called at its address with its key.
fn check(cases: &[Case<'_>]) {
    for (model, variables, address, key) in cases {
        let (found, with) = called(model, variables);
        assert_eq!((found.as_str(), with.as_str()), (*address, *key), "{model}");
    }
}

#[test]
fn each_row_of_the_credentials_table() {
    let cases: &[Case<'_>] = &[
        (
            "claude-sonnet-4-5",
            &[ANTHROPIC, OPENAI],
            "https://api.anthropic.com/v1/messages",
            "ANTHROPIC_API_KEY",
        ),
        (
            "claude-sonnet-4-5",
            &[OPENAI],
            "https://api.anthropic.com/v1/messages",
            "missing ANTHROPIC_API_KEY",
        ),
        (
            "gpt-4.1",
            &[AZURE, AZURE_KEY, OPENAI],
            "https://example.openai.azure.com/openai/deployments/gpt-4.1/chat/completions?api-version=2024-10-21",
            "AZURE_OPENAI_API_KEY",
        ),
        (
            "gpt-4.1",
            &[AZURE, AZURE_KEY, ("AZURE_OPENAI_API_VERSION", "2025-01-01")],
            "https://example.openai.azure.com/openai/deployments/gpt-4.1/chat/completions?api-version=2025-01-01",
            "AZURE_OPENAI_API_KEY",
        ),
        (
            "gpt-4.1",
            &[AZURE, AZURE_KEY, ("AGENT_API_VERSION", "2025-02-02")],
            "https://example.openai.azure.com/openai/deployments/gpt-4.1/chat/completions?api-version=2025-02-02",
            "AZURE_OPENAI_API_KEY",
        ),
        (
            "gpt-4.1",
            &[FOUNDRY, AZURE_KEY],
            "https://example.services.ai.azure.com/openai/v1/chat/completions",
            "AZURE_OPENAI_API_KEY",
        ),
        (
            "my deployment/1",
            &[AZURE, AZURE_KEY],
            "https://example.openai.azure.com/openai/deployments/my%20deployment%2F1/chat/completions?api-version=2024-10-21",
            "AZURE_OPENAI_API_KEY",
        ),
        ("gpt-4.1", &[OPENAI], "https://api.openai.com/v1/chat/completions", "OPENAI_API_KEY"),
        ("gpt-4.1", &[AZURE, OPENAI], "https://api.openai.com/v1/chat/completions", "OPENAI_API_KEY"),
        ("gpt-4.1", &[AZURE_KEY, OPENAI], "https://api.openai.com/v1/chat/completions", "OPENAI_API_KEY"),
        (
            "gpt-4.1",
            &[AZURE],
            "https://example.openai.azure.com/openai/deployments/gpt-4.1/chat/completions?api-version=2024-10-21",
            "missing AZURE_OPENAI_API_KEY",
        ),
        ("o3", &[OPENAI], "https://api.openai.com/v1/chat/completions", "OPENAI_API_KEY"),
        ("o4-mini", &[OPENAI], "https://api.openai.com/v1/chat/completions", "OPENAI_API_KEY"),
        (
            "openai:gpt-4.1",
            &[AZURE, AZURE_KEY, OPENAI],
            "https://api.openai.com/v1/chat/completions",
            "OPENAI_API_KEY",
        ),
        (
            "together:Qwen/Qwen3-235B",
            &[("TOGETHER_API_KEY", "t")],
            "https://api.together.ai/v1/chat/completions",
            "TOGETHER_API_KEY",
        ),
        (
            "anthropic:some-new-name",
            &[ANTHROPIC],
            "https://api.anthropic.com/v1/messages",
            "ANTHROPIC_API_KEY",
        ),
    ];
    check(cases);
}

#[test]
fn bedrock_by_token_signature_and_explicit_address() {
    let bedrock = "https://bedrock-runtime.ap-southeast-2.amazonaws.com/model";
    let keys = [("AWS_ACCESS_KEY_ID", "AKIA"), ("AWS_SECRET_ACCESS_KEY", "secret")];
    let cases: &[Case<'_>] = &[
        (
            "au.anthropic.claude-sonnet-4-6",
            &[REGION, BEARER],
            &format!("{bedrock}/au.anthropic.claude-sonnet-4-6/invoke"),
            "AWS_BEARER_TOKEN_BEDROCK",
        ),
        (
            "us.anthropic.claude-opus-4-20250514-v1:0",
            &[("AWS_DEFAULT_REGION", "ap-southeast-2"), ("AWS_BEARER_TOKEN", "x"), BEARER],
            &format!("{bedrock}/us.anthropic.claude-opus-4-20250514-v1%3A0/invoke"),
            "AWS_BEARER_TOKEN",
        ),
        (
            "amazon.nova-pro-v1:0",
            &[REGION, keys[0], keys[1]],
            &format!("{bedrock}/amazon.nova-pro-v1%3A0/converse"),
            "signed for ap-southeast-2",
        ),
        (
            "us.meta.llama3-3-70b-instruct-v1:0",
            &[REGION, BEARER],
            &format!("{bedrock}/us.meta.llama3-3-70b-instruct-v1%3A0/converse"),
            "AWS_BEARER_TOKEN_BEDROCK",
        ),
        (
            "bedrock:anything",
            &[REGION, BEARER],
            &format!("{bedrock}/anything/converse"),
            "AWS_BEARER_TOKEN_BEDROCK",
        ),
        (
            "anthropic.claude-3-haiku",
            &[("AWS_BEDROCK_ENDPOINT", "https://proxy.example/bedrock"), BEARER],
            "https://proxy.example/bedrock/model/anthropic.claude-3-haiku/invoke",
            "AWS_BEARER_TOKEN_BEDROCK",
        ),
        (
            "anthropic.claude-3-haiku",
            &[REGION],
            &format!("{bedrock}/anthropic.claude-3-haiku/invoke"),
            "missing AWS_BEARER_TOKEN_BEDROCK or AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY",
        ),
    ];
    check(cases);
}

#[test]
fn the_model_on_the_wire_has_no_prefix() {
    for (model, wire) in [
        ("together:Qwen/Qwen3-235B", "Qwen/Qwen3-235B"),
        ("bedrock:anthropic.claude-3-haiku", "anthropic.claude-3-haiku"),
        ("openai:gpt-4.1", "gpt-4.1"),
        ("ft:gpt-4.1:acme::x", "ft:gpt-4.1:acme::x"),
    ] {
        assert_eq!(resolve(model, &[REGION, OPENAI], None).unwrap().model, wire, "{model}");
    }
}

#[test]
fn a_client_says_what_a_name_does_not() {
    let client = |kind, settings| Some(ClientTable { kind: Some(kind), settings });
    let plain = ClientSettings::default();
    let bedrock = client(ClientKind::Bedrock, plain.clone());
    let endpoint = resolve("my-profile", &[REGION, BEARER], bedrock.as_ref()).unwrap();
    assert_eq!((endpoint.format, endpoint.provider.name()), (Format::BedrockConverse, "bedrock"));
    let region = ClientSettings { region: Some("eu-west-1".into()), ..plain.clone() };
    let endpoint =
        resolve("my-profile", &[REGION, BEARER], client(ClientKind::Bedrock, region).as_ref()).unwrap();
    assert_eq!(endpoint.base_url.host_str(), Some("bedrock-runtime.eu-west-1.amazonaws.com"));
    let azure = ClientSettings {
        deployment: Some("prod".into()),
        api_version: Some("2025-03-03".into()),
        stream_mode: Some(StreamMode::Always),
        ..plain
    };
    let azure = client(ClientKind::AzureOpenAiChat, azure);
    let endpoint = resolve("gpt-4.1", &[AZURE, AZURE_KEY], azure.as_ref()).unwrap();
    assert_eq!(endpoint.stream, StreamMode::Always);
    let line = Line::new(endpoint).unwrap();
    assert!(
        line.url().as_str().ends_with("/openai/deployments/prod/chat/completions?api-version=2025-03-03")
    );
}

#[test]
fn what_cannot_be_called_says_what_to_do() {
    let cases: &[Case<'_>] = &[
        ("", &[], "no name", "name a model"),
        ("mystery", &[OPENAI], "nothing says where", "endpoints.toml"),
        ("groq:llama", &[OPENAI], "nothing says where", "openai:"),
        ("gpt-4.1", &[AZURE_KEY], "AZURE_OPENAI_ENDPOINT is not set", "OPENAI_API_KEY"),
        ("amazon.nova-pro-v1:0", &[BEARER], "region is not known", "AWS_REGION"),
        ("amazon.nova-pro-v1:0", &[("AWS_REGION", "evil.example/#")], "region is not valid", "AWS_REGION"),
        ("gpt-4.1", &[("AZURE_OPENAI_ENDPOINT", "ftp://x"), AZURE_KEY], "not an http", "address"),
        ("gpt-4.1", &[("OPENAI_BASE_URL", "https://user:pass@x"), OPENAI], "not an http", "without a user"),
        ("offline/nothing", &[], "no offline model", "offline/echo"),
        ("offline/scripted:", &[], "no offline model", "FILE"),
        ("offline/scripted:none.yaml", &[], "no such file", "create the file"),
    ];
    for (model, variables, what, fix) in cases {
        let routes = Routes { env: env(variables), ..Routes::default() };
        let error = routes.resolve(model, None).unwrap_err();
        assert!(error.what.contains(what) && error.fix.contains(fix), "{model}: {error:?}");
        assert!(!format!("{error:?}").contains("pass@"), "an address with a secret is not repeated");
    }
}

#[test]
fn scripts_answer_by_the_conversation_alone() {
    let dir = tempfile::tempdir().unwrap();
    let script = "replies:\n  - text: one\n  - {reasoning: hm, tool_calls: [{name: bash, arguments: {command: ls}}]}\n\
                  conversations:\n  - when: beam\n    replies:\n      - {text: bending, stop: length}\n";
    fs_err::write(dir.path().join("s.yaml"), script).unwrap();
    let routes = Routes { directory: dir.path().to_path_buf(), ..Routes::default() };
    let Target::Offline(model) = routes.resolve("offline/scripted:s.yaml", None).unwrap() else { panic!() };
    let user = |text: &str| Message::text(Role::User, text);
    let request = |messages: Vec<Message>| Request { messages, ..Request::default() };
    let first = model.answer(&request(vec![user("a pump")])).unwrap();
    assert_eq!((first.text().as_str(), first.usage.unwrap().input), ("one", 2));
    let second = model.answer(&request(vec![user("a pump"), first.into_message(), user("go on")])).unwrap();
    assert_eq!(second.tool_calls().next().unwrap().arguments, "{\"command\":\"ls\"}");
    let beam = model.answer(&request(vec![user("a beam")])).unwrap();
    assert_eq!((beam.text().as_str(), beam.stop), ("bending", Stop::Length));
}
