//! Harnesses from outside: real rooms, scripted models, and the recorded events.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod command;
mod entry;
mod lambda_rlm;
mod lambda_rlm_keys;
mod played;
mod rlm;
mod rlm_keys;
mod rlm_trouble;
mod tool_loop;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aec_base::content::ContentStore;
use aec_base::digest::Digest;
use aec_base::env::Env;
use aec_base::secret::Redactor;
use aec_judge::judge::Isolation;
use aec_judge::settle::order::Submitted;
use aec_ledger::transcript::{self, Event, EventRole};
use aec_model::client::{Client, Scope, Setup};
use aec_model::gateway::Gateway;
use aec_model::meter::{Account, Budget, Meter, Unpriced};
use aec_model::price::PriceList;
use aec_model::registry::Registry;
use aec_model::retry::RetryPolicy;
use aec_model::routing::Routes;
use aec_model::script::Script;
use aec_model::tape::Tape;
use aec_model_server::{Answers, Options, TestServer};
use aec_run::experiment::Harness;
use aec_run::harness::{self, AgentFile, PreparedAgent, Rollout, TrialContext, TrialState};
use aec_run::parameters::Parameters;
use aec_run::room::RoomOpener;
use aec_run::task::PreparedTask;
use aec_run::trajectory::Trajectory;
use aec_sandbox::{Limits, python};
use aec_task::id::TaskId;
use aec_task::task::Task;
use serde_json::Value;

/// The task of these tests.
const INSTRUCTION: &str = "# Channel\n\nRead `/workspace/survey.csv`. Write `flow_m3_s` and `depth_m` as JSON to \
                           `/workspace/output.json`.\n";

const TASK: &str = r#"version = "1.0"
[agent]
timeout_sec = 60
[environment]
memory_mb = 512
storage_mb = 256
[[environment.tools]]
name = "flow calc"
source = "tools/flow.py"
description = "Flow from depth."
[[environment.tools]]
name = "bash"
source = "environment/plot.py"
description = "Plots the survey."
returns_image = true
"#;

const FLOW: &str = "import sys\nprint('args', sys.argv[1:])\n";

/// Writes a picture of one pixel and says so.
const PLOT: &str = "import base64\n\
    open('/workspace/plot.png', 'wb').write(base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='))\n\
    print('IMAGE:plot.png')\nprint('IMAGE:/etc/passwd')\nprint('IMAGE:survey.csv')\n";

const SOLUTION: &str = "#!/usr/bin/env bash\nset -e\ncat /solution/answer.json > /workspace/output.json\n";

const ANSWER: &str = "{\"flow_m3_s\": 3.217, \"depth_m\": 1.25}\n";

struct Bench {
    directory: tempfile::TempDir,
    harness: Harness,
    parameters: Value,
    system_prompt: Option<String>,
    files: Vec<AgentFile>,
    model: Option<String>,
    /// Endpoints file, and the variables that it needs.
    endpoints: String,
    env: Vec<(String, String)>,
    time: Duration,
    budget: Budget,
    seed: u8,
    retry: RetryPolicy,
    /// Prices in addition to the usual ones.
    prices: String,
}

/// The result of one attempt.
struct Left {
    rollout: Rollout,
    events: Vec<Event>,
    context: TrialContext,
    account: Account,
}

impl Bench {
    fn new(harness: Harness, parameters: Value) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("task.toml", TASK),
            ("instruction.md", INSTRUCTION),
            ("environment/survey.csv", "x,z\n0,1\n"),
            ("environment/plot.py", PLOT),
            ("tools/flow.py", FLOW),
            ("tests/verify.py", "raise SystemExit('CANARY')\n"),
            ("solution/solve.sh", SOLUTION),
            ("solution/answer.json", ANSWER),
        ] {
            write(&directory.path().join("task").join(name), text);
        }
        Self {
            directory,
            harness,
            parameters,
            system_prompt: None,
            files: Vec::new(),
            model: None,
            endpoints: String::new(),
            env: Vec::new(),
            time: Duration::from_mins(1),
            budget: Budget::default(),
            seed: 7,
            retry: RetryPolicy::once(),
            prices: String::new(),
        }
    }

    /// A tool loop whose model gives these replies, one per turn.
    fn looped(parameters: Value, replies: &str) -> Self {
        let mut bench = Self::new(Harness::ToolLoop, parameters);
        write(&bench.directory.path().join("replies.yaml"), replies);
        bench.model = Some("offline/scripted:replies.yaml".to_owned());
        bench
    }

    fn task_file(&self, name: &str, text: &str) {
        write(&self.directory.path().join("task").join(name), text);
    }

    fn context(&self) -> (TrialContext, Account) {
        aec_sandbox::use_shim(env!("CARGO_BIN_EXE_aec-bench").into());
        let root = self.directory.path();
        let env = Env::from_shell(self.env.clone());
        let endpoints = root.join("endpoints.toml");
        write(&endpoints, &self.endpoints);
        let prices = root.join("prices.toml");
        write(&prices, &self.prices);
        let (registry, _) = Registry::read(&endpoints, &env).unwrap();
        let client = Client::new(Setup {
            redactor: Redactor::from_env(&env),
            routes: Routes { env: env.clone(), registry, directory: root.to_path_buf() },
            prices: PriceList::with_user_file(&prices).unwrap(),
            retry: self.retry,
            tape: Tape::Live,
        });
        let task = Task::load(TaskId::parse("civil/channel").unwrap(), &root.join("task")).unwrap().task;
        let task =
            PreparedTask::read(task, Digest::of(b"revision"), &aec_run::plan::Conditions::default()).unwrap();
        let given = self.parameters.as_object().unwrap();
        let given = given.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        let agent = PreparedAgent {
            name: "agent".to_owned(),
            harness: self.harness,
            model: self.model.as_deref().map(|model| client.model(model, None).unwrap()),
            parameters: Parameters::read("agent", self.harness, &given).unwrap(),
            system_prompt: self.system_prompt.clone(),
            api_version: "2024-10-21".to_owned(),
            files: self.files.clone(),
        };
        let redactor = Arc::new(Redactor::from_env(&env));
        let attempt = root.join("attempt");
        std::fs::remove_dir_all(&attempt).ok();
        std::fs::create_dir(&attempt).unwrap();
        let trajectory = Trajectory::create(&attempt, Arc::clone(&redactor), None).unwrap();
        let account = Meter::new(Unpriced::Allow).open(None, "trial", self.budget);
        let mut scope = Scope::new("trial", account.clone());
        let events = trajectory.clone();
        scope.observer = Some(Arc::new(move |event| events.model_call(event)));
        let deadline = tokio::time::Instant::now() + self.time;
        let context = TrialContext {
            task: Arc::new(task),
            agent: Arc::new(agent),
            seed: [self.seed; 32],
            deadline,
            trajectory,
            scope,
            gateway: Gateway::new(),
            redactor,
            snapshots: Some(ContentStore::new(root.join("store"))),
            opener: RoomOpener {
                isolation: Isolation::Room,
                containers: None,
                python: python::find(std::env::var_os("PATH").as_deref()),
                limits: Limits { cpus: 1, memory_mb: 512, storage_mb: 128, pids: 64 },
                extra: Vec::new(),
                ourselves: false,
            },
            state: TrialState::new(deadline),
        };
        (context, account)
    }

    async fn run(&self) -> Left {
        let (mut context, account) = self.context();
        let rollout = harness::run(&mut context).await;
        context.trajectory.finish().unwrap();
        let text = std::fs::read_to_string(self.directory.path().join("attempt/trajectory.jsonl")).unwrap();
        let events = transcript::read(text.as_bytes());
        assert_eq!(transcript::lines(&events), text, "every line is an event, and is written as it was read");
        Left { rollout, events, context, account }
    }
}

impl Left {
    /// The submitted answer.
    fn submitted(&self) -> Option<&str> {
        match self.rollout.submitted.as_ref()? {
            Submitted::Content(content) => Some(std::str::from_utf8(content).unwrap()),
            Submitted::File(path) => panic!("a file was handed in: {path}"),
        }
    }

    fn results(&self) -> Vec<&Event> {
        self.events.iter().filter(|event| event.role == EventRole::ToolResult).collect()
    }

    fn stdout(&self, index: usize) -> &str {
        self.results()[index].stdout.as_deref().unwrap()
    }

    fn stderr(&self, index: usize) -> &str {
        self.results()[index].stderr.as_deref().unwrap()
    }

    fn result(&self, key: &str) -> &Value {
        self.rollout.result.get(key).unwrap_or_else(|| panic!("no {key}"))
    }

    async fn file(&self, path: &str) -> Option<String> {
        let bytes = self.context.opened()?.read(path, 1 << 20).await.ok()?;
        Some(String::from_utf8(bytes).unwrap())
    }
}

/// A server that answers from a script, for benches with models of these names.
async fn served(bench: &mut Bench, script: &Value, names: &[&str], faults: &[&str]) -> TestServer {
    let path = bench.directory.path().join("server.json");
    write(&path, &script.to_string());
    let script = Arc::new(Script::read(&path).unwrap());
    let options = Options {
        answers: Answers::Script(script),
        keep_requests: 100,
        faults: faults.iter().map(|fault| fault.parse().unwrap()).collect(),
        ..Options::default()
    };
    let server = TestServer::start(options).await.unwrap();
    bench.endpoints = names
        .iter()
        .map(|name| {
            format!(
                "[[endpoint]]\nendpoint_id = \"{name}\"\nmodel = \"{name}\"\nurl = \"{}/v1\"\n",
                server.url()
            )
        })
        .collect::<Vec<_>>()
        .concat();
    bench.model = Some(names[0].to_owned());
    server
}

/// The bodies of the requests to a server.
fn bodies(server: &TestServer) -> Vec<Value> {
    server.requests().iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
