//! What the tests of evaluations share: a project with environments, a model server, saved results.

use std::path::PathBuf;
use std::sync::Arc;

use aec_model::script::{Script, ScriptedCall, ScriptedConversation, ScriptedReply};
use aec_model_server::{Answers, Options, TestServer};
use aec_xtest::{Run, TestEnv};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// The models of seed 004.
const MODELS: [&str; 5] = ["gpt-4.1-mini", "qwen3-235b-i", "claude-sonnet", "custom-model", "my-model"];

/// A project and a model server.
pub(crate) struct World {
    pub(crate) env: TestEnv,
    pub(crate) server: TestServer,
    pub(crate) runtime: Runtime,
}

/// Options of the server unless a test changes them: half of the answers are right, half wrong.
fn options(script: Script) -> Options {
    Options { answers: Answers::Script(Arc::new(script)), keep_requests: 4096, ..Options::default() }
}

/// A reply of text.
pub(crate) fn says(text: impl Into<String>) -> ScriptedReply {
    ScriptedReply { text: Some(text.into()), ..ScriptedReply::default() }
}

/// A reply that calls a tool.
pub(crate) fn calls(name: &str, arguments: Value) -> ScriptedReply {
    let call = ScriptedCall { name: name.to_owned(), arguments };
    ScriptedReply { tool_calls: vec![call], ..ScriptedReply::default() }
}

impl World {
    /// A project whose model answers every other task right.
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// Like `new`, with changed options of the server.
    pub(crate) fn with(change: impl FnOnce(&mut Options)) -> Self {
        let env = TestEnv::new(env!("CARGO_BIN_EXE_aec-bench"));
        ok(&env, "init --quiet --no-example");
        ok(&env, "generate task voltage-drop --instances 6 --tool-mode no-tool");
        ok(&env, "generate task pump-power-npsh --instances 4 --tool-mode no-tool");
        let mut options = options(script(&env));
        change(&mut options);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let server = runtime.block_on(TestServer::start(options)).unwrap();
        let world = Self { env, server, runtime };
        world.endpoints(&[world.server.url()]);
        world
    }

    /// Writes the endpoints file: each model answers at all of these addresses.
    pub(crate) fn endpoints(&self, urls: &[String]) {
        let mut text = String::new();
        for (model, url) in MODELS.iter().flat_map(|model| urls.iter().map(move |url| (model, url))) {
            text.push_str(&format!(
                "[[endpoint]]\nendpoint_id = \"{model}\"\nmodel = \"{model}\"\nurl = \"{url}/v1\"\nkey = \"OPENAI_API_KEY\"\n\n"
            ));
        }
        self.env.write("configs/endpoints.toml", text);
        self.env.write(".env", "OPENAI_API_KEY=sk-local-test-key\nMY_API_KEY=sk-other-test-key\n");
    }

    /// Exports all single-turn tasks as an environment into `./environments`.
    pub(crate) fn environment(&self, name: &str) {
        ok(
            &self.env,
            &format!(
                "prime export --quiet --name {name} --output-dir environments --task electrical mechanical"
            ),
        );
        self.without_defaults(name);
    }

    /// Removes the package's own defaults, so that those of the program apply.
    fn without_defaults(&self, name: &str) {
        let module = name.replace('-', "_");
        let path = self.env.path(format!("environments/{module}/{module}/pyproject.toml"));
        let text = std::fs::read_to_string(&path).unwrap();
        let (kept, _) = text.split_once("[tool.verifiers.eval]").unwrap();
        std::fs::write(&path, kept).unwrap();
    }

    /// Exports the same tasks, worked on in a workspace.
    pub(crate) fn workspace_environment(&self, name: &str) {
        ok(
            &self.env,
            &format!(
                "prime export --quiet --name {name} --output-dir environments --harness-mode stateful --task electrical mechanical"
            ),
        );
    }

    /// Runs the program; words are split at spaces.
    pub(crate) fn run(&self, line: &str) -> Run {
        self.env.run(line.split_whitespace())
    }

    /// Runs an evaluation that must succeed. Returns the data of its first evaluation.
    pub(crate) fn eval(&self, line: &str) -> Value {
        let run = self.env.run(["--json"].into_iter().chain(line.split_whitespace()));
        assert_eq!(run.code, Some(0), "{line}: {run:?}");
        run.data()["evaluations"][0].clone()
    }

    /// Requests to the model so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.server.requests().iter().map(|kept| serde_json::from_slice(&kept.body).unwrap()).collect()
    }

    /// The directory of the only saved evaluation of an environment with the usual model.
    pub(crate) fn saved(&self, module: &str, name: &str) -> PathBuf {
        let group = self.env.path(format!("environments/{module}/outputs/evals/{name}--gpt-4.1-mini"));
        let mut runs: Vec<PathBuf> =
            std::fs::read_dir(&group).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs.remove(0)
    }
}

/// Runs a command that must succeed.
pub(crate) fn ok(env: &TestEnv, line: &str) {
    let run = env.run(line.split_whitespace());
    assert_eq!(run.code, Some(0), "{line}: {run:?}");
}

/// The rows of a saved evaluation, sorted by example and rollout.
pub(crate) fn rows(run: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("results.jsonl")).unwrap();
    let mut rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    rows.sort_by_key(|row| (row["example_id"].as_i64(), row["rollout_number"].as_i64()));
    rows
}

pub(crate) fn metadata(run: &std::path::Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(run.join("metadata.json")).unwrap()).unwrap()
}

/// A model that knows every other task: its instruction, and the golden answer.
fn script(env: &TestEnv) -> Script {
    let mut conversations = Vec::new();
    for (at, task) in
        task_directories(&env.path("tasks")).into_iter().enumerate().filter(|(at, _)| at % 2 == 0)
    {
        let instruction = std::fs::read_to_string(task.join("instruction.md")).unwrap();
        let golden = std::fs::read_dir(task.join("tests/fixtures")).unwrap();
        let golden = golden.map(|entry| entry.unwrap().path());
        let golden = golden.filter(|path| path.to_string_lossy().contains("golden_pass")).min().unwrap();
        let answer = std::fs::read_to_string(golden).unwrap();
        assert!(at < 100);
        conversations
            .push(ScriptedConversation { when: instruction.trim().to_owned(), replies: vec![says(answer)] });
    }
    Script { replies: vec![says("I do not know.")], conversations }
}

fn task_directories(below: &std::path::Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut ahead = vec![below.to_owned()];
    while let Some(next) = ahead.pop() {
        if next.join("task.toml").is_file() {
            found.push(next);
            continue;
        }
        ahead.extend(
            std::fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()),
        );
    }
    found.sort();
    found
}

/// An object with only some keys of another.
pub(crate) fn only(value: &Value, keys: &[&str]) -> Value {
    let pairs = keys.iter().map(|key| ((*key).to_owned(), value[*key].clone()));
    json!(pairs.collect::<serde_json::Map<String, Value>>())
}
