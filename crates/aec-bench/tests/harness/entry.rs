//! `agent-entry`: the tool loop inside a container, controlled by the seven variables.

use std::process::{Command, Output};
use std::sync::Arc;

use aec_model::script::Script;
use aec_model_server::{Answers, Options, TestServer};
use serde_json::Value;

use crate::harness::write;

/// A server that plays a script, and a workspace.
struct Stage {
    directory: tempfile::TempDir,
    server: TestServer,
}

async fn stage(script: &str) -> Stage {
    let directory = tempfile::tempdir().unwrap();
    write(&directory.path().join("s.json"), script);
    std::fs::create_dir(directory.path().join("w")).unwrap();
    let script = Arc::new(Script::read(&directory.path().join("s.json")).unwrap());
    let options = Options {
        answers: Answers::Script(script),
        key: Some("sk-canary-key".into()),
        keep_requests: 32,
        ..Options::default()
    };
    Stage { directory, server: TestServer::start(options).await.unwrap() }
}

impl Stage {
    fn workspace(&self) -> std::path::PathBuf {
        self.directory.path().join("w")
    }

    /// Runs the program with these variables and no others.
    async fn run(&self, variables: &[(&str, &str)]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aec-bench"));
        command
            .args(["agent-entry", "--json", "--workspace"])
            .arg(self.workspace())
            .current_dir(self.directory.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", "/home/somebody")
            .env("OPENAI_BASE_URL", format!("{}/v1", self.server.url()))
            .env("OPENAI_API_KEY", "sk-canary-key")
            .envs(variables.iter().copied());
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.workspace().join(name)).ok()
    }

    fn sent(&self, index: usize) -> Value {
        serde_json::from_slice(&self.server.requests()[index].body).unwrap()
    }
}

const BASICS: [(&str, &str); 2] =
    [("AGENT_MODEL", "mine"), ("AGENT_INSTRUCTION", "Write /workspace/output.md.")];

fn with<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    BASICS.iter().chain(more).copied().collect()
}

const SAY: &str = r#"{"replies": [{"text": "The answer."}]}"#;

#[tokio::test(flavor = "multi_thread")]
async fn model_and_instruction_come_from_their_variables() {
    let stage = stage(SAY).await;
    let output = stage.run(&BASICS).await;
    assert!(output.status.success(), "{output:?}");
    let sent = stage.sent(0);
    assert_eq!(sent["model"], "mine");
    assert_eq!(sent["messages"][1]["content"], "Write /workspace/output.md.");
    // Defaults of the other variables.
    let limit = sent.get("max_tokens").or_else(|| sent.get("max_completion_tokens"));
    assert_eq!(limit.unwrap(), 16_384);
    let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(envelope["data"]["max_turns"], 10);
    assert_eq!(envelope["data"]["output_source"], "final_text");
    assert_eq!(stage.file("output.md").as_deref(), Some("The answer."));
    let result: Value = serde_json::from_str(&stage.file("agent_result.json").unwrap()).unwrap();
    assert_eq!((&result["status"], &result["turns_used"]), (&"ok".into(), &1.into()));
    assert!(result["input_tokens"].as_u64().unwrap() > 0 && result["output_tokens"].as_u64().unwrap() > 0);
    assert_eq!(stage.file("conversation.jsonl").unwrap().lines().count(), 3);
    assert!(stage.file("trajectory.jsonl").unwrap().contains("\"role\":\"model_call\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_instruction_or_model_nothing_is_begun() {
    let stage = stage(SAY).await;
    for variables in [
        &[("AGENT_MODEL", "mine")][..],
        &[("AGENT_MODEL", "mine"), ("AGENT_INSTRUCTION", " ")],
        &[("AGENT_INSTRUCTION", "x")],
        &[("AGENT_MODEL", "mine"), ("AGENT_INSTRUCTION", "x"), ("AGENT_MAX_TURNS", "ten")],
    ] {
        let output = stage.run(variables).await;
        assert_eq!(output.status.code(), Some(2), "{variables:?}");
        let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(envelope["errors"][0]["what"].as_str().unwrap().starts_with("AGENT_"), "{envelope}");
    }
    assert!(stage.server.requests().is_empty());
    assert_eq!(std::fs::read_dir(stage.workspace()).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn max_tokens_is_sent() {
    let stage = stage(SAY).await;
    stage.run(&with(&[("AGENT_MAX_TOKENS", "77")])).await;
    let sent = stage.sent(0);
    let limit = sent.get("max_tokens").or_else(|| sent.get("max_completion_tokens"));
    assert_eq!(limit.unwrap(), 77);
}

#[tokio::test(flavor = "multi_thread")]
async fn max_turns_ends_the_loop() {
    let stage = stage(
        r#"{"replies": [{"tool_calls": [{"name": "bash", "arguments": {"command": "echo x >> out"}}]}]}"#,
    )
    .await;
    let output = stage.run(&with(&[("AGENT_MAX_TURNS", "2")])).await;
    assert!(output.status.success());
    assert_eq!(stage.server.requests().len(), 2);
    assert_eq!(stage.file("out").as_deref(), Some("x\nx\n"));
    let result: Value = serde_json::from_str(&stage.file("agent_result.json").unwrap()).unwrap();
    assert_eq!(result["stop_reason"], "turn_limit_reached");
    assert_eq!((&result["turns_used"], &result["max_turns"]), (&2.into(), &2.into()));
    assert_eq!(stage.file("output.md"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn command_timeout_ends_a_command() {
    let stage = stage(
        r#"{"replies": [{"tool_calls": [{"name": "bash", "arguments": {"command": "echo begun; sleep 600"}}]}, {"text": "ok"}]}"#,
    )
    .await;
    assert!(stage.run(&with(&[("AGENT_COMMAND_TIMEOUT", "1")])).await.status.success());
    assert!(stage.sent(1).to_string().contains("[timed out after 1 s]"));
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_offered_and_run() {
    let stage = stage(
        r#"{"replies": [
            {"tool_calls": [{"name": "flow", "arguments": {"command": "--depth 2"}}, {"name": "bash", "arguments": {"command": "env"}},
                            {"name": "write_file", "arguments": {"path": "/workspace/output.md", "content": "mine"}},
                            {"name": "submit_answer", "arguments": {"content": "handed in"}}]}]}"#,
    )
    .await;
    write(&stage.workspace().join("tools/flow.py"), "import sys\nprint('flow', sys.argv[1:])\n");
    write(&stage.workspace().join("system_prompt.md"), "Be exact.");
    let tools = r#"[{"name": "flow", "source": "tools/flow.py", "description": "Flow."}]"#;
    let output = stage.run(&with(&[("AGENT_TOOLS_JSON", tools)])).await;
    assert!(output.status.success(), "{output:?}");
    let sent = stage.sent(0);
    let names: Vec<&str> = sent["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names.last(), Some(&"flow"));
    assert!(sent["messages"][0]["content"].as_str().unwrap().starts_with("Be exact.\n\n"));
    let trajectory = stage.file("trajectory.jsonl").unwrap();
    assert!(trajectory.contains("flow ['--depth', '2']"), "{trajectory}");
    assert!(trajectory.contains("HOME=/home/somebody") && !trajectory.contains("canary"), "{trajectory}");
    // A submitted answer takes precedence over a written file, unless an old plan has the other order.
    assert_eq!(stage.file("output.md").as_deref(), Some("handed in"));
    let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(envelope["data"]["output_source"], "submitted_answer");
    let output = stage.run(&with(&[("AGENT_TOOLS_JSON", tools), ("AGENT_ANSWER_ORDER", "file_first")])).await;
    assert!(output.status.success(), "{output:?}");
    assert_eq!(stage.file("output.md").as_deref(), Some("mine"));
    let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(envelope["data"]["output_source"], "agent_file");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_version_reaches_azure() {
    let stage = stage(SAY).await;
    let endpoint = stage.server.url();
    let azure = |version: Option<&'static str>| {
        let mut variables = with(&[
            ("AZURE_OPENAI_ENDPOINT", endpoint.as_str()),
            ("AZURE_OPENAI_API_KEY", "sk-canary-key"),
            ("OPENAI_BASE_URL", ""),
        ]);
        variables.extend(version.map(|version| ("AGENT_API_VERSION", version)));
        variables
    };
    assert!(stage.run(&azure(None)).await.status.success());
    assert!(stage.run(&azure(Some("2025-01-01"))).await.status.success());
    let paths: Vec<String> = stage.server.requests().iter().map(|request| request.path.clone()).collect();
    assert!(paths[0].contains("api-version=2024-10-21"), "{paths:?}");
    assert!(paths[1].contains("api-version=2025-01-01"), "{paths:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn anthropic_addresses_are_honoured_and_failures_are_told() {
    let stage = stage(SAY).await;
    let url = stage.server.url();
    let anthropic = with(&[
        ("OPENAI_BASE_URL", ""),
        ("ANTHROPIC_BASE_URL", &url),
        ("ANTHROPIC_API_KEY", "sk-canary-key"),
    ]);
    assert!(stage.run(&anthropic).await.status.success());
    assert!(stage.server.requests()[0].path.ends_with("/v1/messages"));
    let wrong = with(&[("OPENAI_BASE_URL", "not an address")]);
    assert_eq!(stage.run(&wrong).await.status.code(), Some(3));
    let output = stage.run(&with(&[("OPENAI_API_KEY", "sk-another-key")])).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let result: Value = serde_json::from_str(&stage.file("agent_result.json").unwrap()).unwrap();
    assert_eq!((&result["status"], &result["stop_reason"]), (&"error".into(), &"provider_error".into()));
    assert!(result["error"].as_str().unwrap().starts_with("auth: "), "{result}");
}
