//! `configs/endpoints.toml`: what it means, and what is refused.

use aec_base::problem::Problem;
use aec_model::endpoint::{Format, Provider, StreamMode};
use aec_model::registry::Registry;
use aec_model::routing::{Routes, Target};
use aec_model::transport::Line;

use super::{env, key};

const SEED: &str = r#"
[[endpoint]]
endpoint_id = "gpt-4.1-mini"
model = "gpt-4.1-mini"
url = "https://api.openai.com/v1"
key = "OPENAI_API_KEY"

[[endpoint]]
endpoint_id = "qwen3-235b-i"
model = "qwen/qwen3-235b-a22b-instruct-2507"
url = "https://api.pinference.ai/api/v1"
key = "PRIME_API_KEY"

[[endpoint]]
endpoint_id = "claude-sonnet"
model = "claude-sonnet-4-5-20250929"
url = "https://api.anthropic.com"
key = "ANTHROPIC_API_KEY"
api_client_type = "anthropic_messages"
"#;

fn read(text: &str, variables: &[(&str, &str)]) -> Result<(Registry, Vec<Problem>), Vec<Problem>> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("endpoints.toml");
    fs_err::write(&path, text).unwrap();
    Registry::read(&path, &env(variables))
}

#[test]
fn the_documented_file() {
    let (registry, warnings) = read(SEED, &[("PRIME_API_KEY", "prime-value")]).unwrap();
    assert!(warnings.is_empty());
    assert_eq!(registry.ids().collect::<Vec<_>>(), ["gpt-4.1-mini", "qwen3-235b-i", "claude-sonnet"]);
    let facts: Vec<_> = registry
        .ids()
        .map(|id| {
            let endpoint = registry.find(id).unwrap()[0].clone();
            let key = key(&endpoint);
            (endpoint.provider, endpoint.format, Line::new(endpoint).unwrap().url().to_string(), key)
        })
        .collect();
    let expected = [
        (
            Provider::OpenAi,
            Format::OpenAiChat,
            "https://api.openai.com/v1/chat/completions",
            "missing OPENAI_API_KEY",
        ),
        (
            Provider::Prime,
            Format::OpenAiChat,
            "https://api.pinference.ai/api/v1/chat/completions",
            "PRIME_API_KEY",
        ),
        (
            Provider::Anthropic,
            Format::AnthropicMessages,
            "https://api.anthropic.com/v1/messages",
            "missing ANTHROPIC_API_KEY",
        ),
    ];
    for (found, expected) in facts.iter().zip(expected) {
        assert_eq!((found.0, found.1, found.2.as_str(), found.3.as_str()), expected);
    }
    assert_eq!(registry.secrets().collect::<Vec<_>>(), [("PRIME_API_KEY", "prime-value")]);
}

#[test]
fn an_id_comes_before_the_rules_of_names() {
    let text = "[[endpoint]]\nendpoint_id = \"gpt-4.1\"\nmodel = \"local-model\"\nurl = \"http://127.0.0.1:8000/v1\"\n";
    let (registry, _) = read(text, &[]).unwrap();
    let routes = Routes { env: env(&[("OPENAI_API_KEY", "x")]), registry, ..Routes::default() };
    let Target::Endpoints(endpoints) = routes.resolve("gpt-4.1", None).unwrap() else { panic!() };
    assert_eq!((endpoints[0].model.as_str(), key(&endpoints[0]).as_str()), ("local-model", "none"));
    let error = routes.resolve("gtp-4.1", None).unwrap_err();
    assert!(error.fix.contains("did you mean `gpt-4.1`?"), "{error:?}");
}

#[test]
fn rows_with_one_id_are_replicas_and_every_key_counts() {
    let text = r#"
[[endpoint]]
endpoint_id = "m"
model = "big"
url = "http://127.0.0.1:1/v1"
key = "KEY_ONE"
headers = { "X-Team" = "bridges", "X-Auth" = "Bearer ${SIDE_DOOR}" }
stream = "never"
prompt_cache = false
max_concurrency = 3
requests_per_minute = 60
tokens_per_minute = 9000
timeout_sec = 5
idle_timeout_sec = 7

[[endpoint]]
endpoint_id = "m"
model = "big"
api_base_url = "https://other.example/v1"
api_key_var = "$KEY_TWO"
type = "openai_chat_completions"
extra_headers = { "X-Team" = "$NOT_SET" }

[[endpoint]]
endpoint_id = "az"
model = "gpt-4.1"
url = "https://x.openai.azure.com"
api_client_type = "azure_openai"
api_version = "2025-09-09"
key = "KEY_ONE"

[[endpoint]]
endpoint_id = "bed"
model = "anthropic.claude-3-haiku"
url = "https://bedrock-runtime.us-east-1.amazonaws.com"
api_client_type = "bedrock"
"#;
    let variables = [
        ("KEY_ONE", "value-one"),
        ("KEY_TWO", "value-two"),
        ("SIDE_DOOR", "side-value"),
        ("AWS_ACCESS_KEY_ID", "A"),
        ("AWS_SECRET_ACCESS_KEY", "B"),
    ];
    let (registry, warnings) = read(text, &variables).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    let [first, second] = registry.find("m").unwrap() else { panic!() };
    assert_eq!((first.label.as_str(), second.label.as_str()), ("m", "m#2"));
    assert_eq!((first.stream, first.cache_prompt), (StreamMode::Never, false));
    assert_eq!(first.limits.max_concurrency, 3);
    assert_eq!(first.limits.requests_per_minute, Some(60));
    assert_eq!(first.limits.tokens_per_minute, Some(9000));
    assert_eq!((first.timeouts.answer.as_secs(), first.timeouts.idle.as_secs()), (5, 7));
    let header = |name: &str| first.headers.iter().find(|(found, _)| found == name).unwrap().1.clone();
    assert_eq!(header("x-team"), "bridges");
    assert_eq!(header("x-auth"), "Bearer side-value");
    let printed = format!("{first:?}");
    assert!(!printed.contains("value-one") && !printed.contains("side-value"), "{printed}");
    assert_eq!(key(second), "missing NOT_SET", "a header that cannot be filled in");
    let azure = Line::new(registry.find("az").unwrap()[0].clone()).unwrap();
    assert!(azure.url().as_str().ends_with("/deployments/gpt-4.1/chat/completions?api-version=2025-09-09"));
    let bedrock = &registry.find("bed").unwrap()[0];
    assert_eq!((bedrock.format, key(bedrock).as_str()), (Format::BedrockInvoke, "signed for us-east-1"));
    let names: Vec<_> = registry.secrets().map(|(name, _)| name).collect();
    assert_eq!(names, ["KEY_ONE", "SIDE_DOOR", "KEY_TWO", "KEY_ONE"]);
}

#[test]
fn each_mistake_has_its_problem_and_no_secret_is_repeated() {
    let row = |keys: &str| {
        format!(
            "[[endpoint]]\nendpoint_id = \"m\"\nmodel = \"big\"\nurl = \"https://x.example/v1\"\n{keys}\n"
        )
    };
    let cases = [
        (row("kee = \"A\""), "W003"),
        (row("client_type = \"openai_chat_completions\""), "W003"),
        (row("api_client_type = \"openai_responses\""), "W005"),
        (row("key = 7"), "W004"),
        (row("key = \"sk-proj-c4n4ry\""), "W005"),
        (row("key = \"c4n4ry0123456789abcdefghijkl\""), "W005"),
        (row("key = \"gsk_c4n4ry0123456789abcdefghijkl\""), "W005"),
        (row("key = \"A B C4N4RY\""), "W005"),
        (row("key = \"A\"\napi_key_var = \"A\""), "W007"),
        (row("api_base_url = \"https://y\""), "W007"),
        (row("headers = { a = \"1\" }\nextra_headers = { b = \"2\" }"), "W007"),
        (row("headers = { Authorization = \"Bearer c4n4ry\" }"), "W005"),
        (row("headers = { X-Api-Key = \"c4n4ry\" }"), "W005"),
        (row("headers = { helicone-auth = \"Bearer sk-c4n4ry\" }"), "W005"),
        (row("headers = { x-auth = \"c4n4ry0123456789abcdefghij\" }"), "W005"),
        (row("headers = { authorization = \"Bearer sk-c4n4ry${EMPTY}\" }"), "W005"),
        (row("").replace("https://x.example/v1", "https://x.example/?code=c4n4ry"), "W005"),
        (row("headers = { \"a b\" = \"1\" }"), "W005"),
        (row("headers = { host = \"x\" }"), "W005"),
        (row("headers = { x = \"a\\nb\" }"), "W005"),
        (row("api_version = \"2024\""), "W007"),
        (row("region = \"x\""), "W007"),
        (row("max_concurrency = 0"), "W005"),
        (row("max_concurrency = -1"), "W004"),
        (row("api_client_type = \"bedrock\""), "W006"),
        (row("").replace("https://x.example/v1", "https://c4n4ry@x.example"), "W005"),
        (row("").replace("https://x.example/v1", "https://x.example/?api_key=c4n4ry"), "W005"),
        (row("").replace("https://x.example/v1", "file:///etc/passwd"), "W005"),
        (row("").replace("\"m\"", "\" \""), "W006"),
        (row("").replace("model = \"big\"", ""), "W006"),
        (row("").replace("url = \"https://x.example/v1\"", ""), "W006"),
        (format!("{}{}", row(""), row("").replace("big", "small")), "W007"),
        ("[[endpoint]".to_owned(), "W002"),
        ("[endpoint]\na = 1".to_owned(), "W004"),
    ];
    for (text, id) in cases {
        let problems = read(&text, &[]).unwrap_err();
        assert!(
            problems.iter().any(|problem| problem.id.as_deref() == Some(id)),
            "{text}: wanted {id}, found {problems:#?}"
        );
        assert!(problems.iter().all(|problem| problem.fix.is_some()), "{text}: {problems:#?}");
        assert!(!format!("{problems:?}").to_lowercase().contains("c4n4ry"), "{text}: {problems:#?}");
    }
    let (_, warnings) = read(&row("key = \"A\"").replace("https:", "http:"), &[]).unwrap();
    assert!(warnings[0].what.contains("unencrypted"), "{warnings:?}");
}

#[test]
fn a_row_that_cannot_be_used_does_not_hide_the_others() {
    let problems = read("[[endpoint]]\nmodel = 1\n\n[[endpoint]]\nendpoint_id = \"x\"\n", &[]).unwrap_err();
    assert!(problems.len() >= 3, "{problems:#?}");
}
