//! What the tests of runs share: projects with tasks, a model server, and readers for what a run leaves.

use std::collections::BTreeMap;
use std::path::PathBuf;

use aec_judge::scorer::STANDARD_VERIFY_PY;
use aec_ledger::record::TrialRecord;
use aec_model::script::Script;
use aec_model_server::{Answers, Options, Stats, TestServer};
use aec_xtest::files::names_in;
use aec_xtest::running::Running;
use aec_xtest::wait::until;
use aec_xtest::{Run, TestEnv};
use serde_json::Value;
use tokio::runtime::Runtime;

/// An answer with full reward.
pub(crate) const RIGHT: &str = r#"{"flow_m3_s": 3.217, "depth_m": 1.254}"#;

/// A task with limits that tests can use.
const TASK: &str = "version = \"1.0\"\n\n[metadata]\ndifficulty = \"DIFFICULTY\"\nvisibility = \"public\"\ntags = [\"x\"]\n\n\
                    [agent]\ntimeout_sec = 60\n\n[verifier]\ntimeout_sec = 30\n\n[environment]\nmemory_mb = 512\n\
                    storage_mb = 256\nallow_internet = false\n";

const ANSWERS: &str = r#"{"version": 1, "output": "output.json", "fields": {
  "flow_m3_s": {"type": "number", "value": 3.217, "rel_tol": 0.001},
  "depth_m": {"type": "number", "value": 1.254, "rel_tol": 0.001}
}}"#;

/// Kinds of requests that call a model.
const KINDS: [&str; 2] = ["chat_completions", "messages"];

/// A project in a separate test environment.
pub(crate) struct Project {
    pub(crate) env: TestEnv,
}

impl Project {
    /// A project without tasks.
    pub(crate) fn empty() -> Self {
        let env = TestEnv::new(env!("CARGO_BIN_EXE_aec-bench"));
        let run = env.run(["init", "--no-example", "--quiet"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        Self { env }
    }

    /// A project with this many tasks of one kind, `civil/channel-000` and so on.
    pub(crate) fn with_tasks(count: usize) -> Self {
        let project = Self::empty();
        for index in 0..count {
            project.task(&format!("civil/channel-{index:03}"), "easy");
        }
        project
    }

    /// Writes a task whose answer the native scorer judges.
    pub(crate) fn task(&self, id: &str, difficulty: &str) {
        let instruction = format!(
            "# Channel {id}\n\nRead `/workspace/survey.csv`. Write `flow_m3_s` and `depth_m` as JSON to \
             `/workspace/output.json`.\n"
        );
        for (name, text) in [
            ("task.toml", TASK.replace("DIFFICULTY", difficulty).as_str()),
            ("instruction.md", &instruction),
            ("environment/Dockerfile", "FROM scratch\n"),
            ("environment/survey.csv", "x,z\n0,1\n"),
            ("tests/test.sh", "#!/usr/bin/env bash\nexec python3 -I \"$(dirname \"$0\")/verify.py\"\n"),
            ("tests/verify.py", STANDARD_VERIFY_PY),
            ("tests/answers.json", ANSWERS),
            ("tests/fixtures/golden_pass.json", RIGHT),
            ("tests/fixtures/golden_fail.json", "{\"flow_m3_s\": 1, \"depth_m\": 1}\n"),
            (
                "solution/solve.sh",
                "#!/usr/bin/env bash\ncat /solution/answer.json > /workspace/output.json\n",
            ),
            ("solution/answer.json", RIGHT),
        ] {
            self.env.write(format!("tasks/{id}/{name}"), text);
        }
    }

    /// Writes an endpoints file in which these names lead to the server.
    pub(crate) fn endpoints(&self, url: &str, models: &[&str]) {
        let rows: Vec<String> = models
            .iter()
            .map(|model| {
                format!(
                    "[[endpoint]]\nendpoint_id = \"{model}\"\nmodel = \"test-model\"\nurl = \"{url}/v1\"\n"
                )
            })
            .collect();
        self.env.write("configs/endpoints.toml", rows.join("\n"));
    }

    /// Writes a file of replies for an offline model. Returns its name as a model.
    pub(crate) fn script(&self, name: &str, replies: &str) -> String {
        self.env.write(format!("{name}.yaml"), replies);
        format!("offline/scripted:{name}.yaml")
    }

    /// Runs the program; words are split at spaces.
    pub(crate) fn run(&self, line: &str) -> Run {
        self.env.run(line.split_whitespace())
    }

    /// Like `run`, with `--json`.
    pub(crate) fn json(&self, line: &str) -> Run {
        self.env.run(["--json"].into_iter().chain(line.split_whitespace()))
    }

    /// Runs the program, which must succeed, and returns the data of its envelope.
    pub(crate) fn data(&self, line: &str) -> Value {
        self.json(line).data()
    }

    /// The only problem of a run that ended with this code.
    pub(crate) fn refusal(&self, line: &str, code: i32) -> (String, String) {
        let run = self.json(line);
        assert_eq!(run.code, Some(code), "{line}: {run:?}");
        let mut errors = run.errors();
        assert_eq!(errors.len(), 1, "{line}: {run:?}");
        errors.remove(0)
    }

    /// Starts a run that the test watches.
    pub(crate) fn start(&self, line: &str) -> Running {
        Running::new(self.env.start_piped(line.split_whitespace()))
    }

    pub(crate) fn ledger(&self, experiment: &str) -> PathBuf {
        self.env.path("artefacts/ledger").join(experiment)
    }

    pub(crate) fn jobs(&self, experiment: &str) -> PathBuf {
        self.env.path("jobs").join(experiment)
    }

    /// Names of the record files of an experiment, sorted.
    pub(crate) fn record_names(&self, experiment: &str) -> Vec<String> {
        let names = names_in(&self.ledger(experiment)).into_iter();
        names.filter(|name| name.ends_with(".json") && !name.starts_with('.')).collect()
    }

    /// All records of an experiment, by file name. Each must be complete.
    pub(crate) fn records(&self, experiment: &str) -> BTreeMap<String, TrialRecord> {
        let directory = self.ledger(experiment);
        let read = |name: String| {
            let text = std::fs::read_to_string(directory.join(&name)).unwrap();
            let record =
                serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
            (name, record)
        };
        self.record_names(experiment).into_iter().map(read).collect()
    }

    /// The only record of an experiment.
    pub(crate) fn record(&self, experiment: &str) -> TrialRecord {
        let records = self.records(experiment);
        assert_eq!(records.len(), 1, "{:?}", records.keys());
        records.into_values().next().unwrap()
    }

    /// A file of a trial's workspace in `jobs`.
    pub(crate) fn job_file(&self, record: &TrialRecord, name: &str) -> String {
        let stem = aec_ledger::layout::stem(&record.trial_id, record.attempt);
        let path = self.jobs(record.experiment_id.as_str()).join(stem).join("workspace").join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Checks that `ledger verify` finds nothing wrong.
    pub(crate) fn assert_sound(&self, experiment: &str) {
        let verified = self.json(&format!("ledger verify -e {experiment}"));
        assert_eq!(verified.code, Some(0), "{verified:?}");
    }
}

/// A model server with its own runtime.
pub(crate) struct Server {
    runtime: Runtime,
    server: Option<TestServer>,
}

impl Server {
    pub(crate) fn start(options: Options) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let server = runtime.block_on(TestServer::start(options)).unwrap();
        Self { runtime, server: Some(server) }
    }

    /// A server with these replies, one per turn.
    pub(crate) fn saying(replies: &str) -> Self {
        Self::start(saying(replies))
    }

    pub(crate) fn url(&self) -> String {
        self.server().url()
    }

    pub(crate) fn stats(&self) -> Stats {
        self.server().stats()
    }

    /// Requests to a model so far, as the server counts them.
    pub(crate) fn count(&self) -> u64 {
        let stats = self.stats();
        stats.requests.iter().filter(|(kind, _)| KINDS.contains(*kind)).map(|(_, count)| count).sum()
    }

    /// The bodies of the recorded requests, oldest first.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        let kept = self.server().requests();
        kept.iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
    }

    pub(crate) fn server(&self) -> &TestServer {
        self.server.as_ref().unwrap()
    }

    /// Waits until this many requests to a model have arrived.
    pub(crate) fn wait_for_requests(&self, count: u64) {
        until(&format!("request {count}"), || self.count() >= count);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _entered = self.runtime.enter();
        drop(self.server.take());
    }
}

/// Options of a server with these replies, one per turn, that records its requests.
pub(crate) fn saying(replies: &str) -> Options {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("replies.yaml");
    std::fs::write(&path, replies).unwrap();
    let script = Script::read(&path).unwrap();
    Options {
        answers: Answers::Script(std::sync::Arc::new(script)),
        keep_requests: 4096,
        ..Options::default()
    }
}

/// Options of a server that always gives the right answer.
pub(crate) fn right() -> Options {
    saying(&format!("replies:\n- text: '{RIGHT}'\n"))
}
