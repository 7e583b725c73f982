//! Every way to run an agent gives the same answer: a table of scripted behaviours goes through `run`, the native
//! executor, the exported package under two generations of `verifiers`, and an import of the package's results. Where
//! they cannot agree, the table says so, and `docs/judge.md` explains why.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use aec_judge::scorer::STANDARD_VERIFY_PY;
use aec_ledger::record::TrialRecord;
use aec_model::script::{Script, ScriptedConversation, ScriptedReply};
use aec_model_server::{Answers, Options, TestServer};
use aec_xtest::TestEnv;
use aec_xtest::venv::with_verifiers;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::eval::world::ok;

pub(super) const RIGHT: &str = r#"{"flow_m3_s": 3.217, "depth_m": 1.254}"#;
const WRONG: &str = r#"{"flow_m3_s": 1, "depth_m": 1}"#;
const HALF: &str = r#"{"flow_m3_s": 3.217, "depth_m": 0}"#;
/// The initial content of the output file in tasks that provide one.
const GIVEN: &str = r#"{"flow_m3_s": 0, "depth_m": 0}"#;
const SECRET: &str = "sk-canary-7f3a9c51d2";
/// Turns that an agent has in every way of running it.
const TURNS: u32 = 4;

const TASK: &str = "version = \"1.0\"\n\n[metadata]\ndifficulty = \"easy\"\nvisibility = \"public\"\n\n\
                    [agent]\ntimeout_sec = SECONDS\n\n[verifier]\ntimeout_sec = 60\n\n[environment]\nmemory_mb = 512\n\
                    storage_mb = 1024\nallow_internet = false\n";
const ANSWERS: &str = r#"{"version": 1, "output": "output.json", "fields": {
  "flow_m3_s": {"type": "number", "value": 3.217, "rel_tol": 0.001},
  "depth_m": {"type": "number", "value": 1.254, "rel_tol": 0.001}
}}"#;

/// What a model does, and the expected result.
#[derive(Debug, Deserialize)]
pub(super) struct Behaviour {
    pub(super) name: String,
    pub(super) replies: Vec<ScriptedReply>,
    /// Whether the task provides the output file.
    #[serde(default)]
    pub(super) given: bool,
    #[serde(flatten)]
    pub(super) expected: Expected,
    /// The expected result in ways that cannot agree.
    #[serde(default)]
    pub(super) unless: BTreeMap<String, Expected>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(super) struct Expected {
    pub(super) outcome: String,
    /// Present only for scored results.
    #[serde(default)]
    pub(super) reward: Option<f64>,
    #[serde(default)]
    pub(super) source: Option<String>,
}

fn behaviours() -> Vec<Behaviour> {
    read(include_str!("doors.json"))
}

/// Behaviours of agents that run out of time before they run out of turns.
fn late() -> Vec<Behaviour> {
    read(include_str!("late.json"))
}

/// Reads a table, and replaces words in capitals by texts.
fn read(table: &str) -> Vec<Behaviour> {
    let words = [("RIGHT", RIGHT), ("WRONG", WRONG), ("HALF", HALF), ("GIVEN", GIVEN), ("SECRET", SECRET)];
    let mut text = table.to_owned();
    for (word, stands_for) in words {
        text = text.replace(word, &stands_for.replace('"', "\\\""));
    }
    serde_json::from_str(&text).unwrap()
}

/// A project with a task for each behaviour, and a model that plays the behaviours.
pub(super) struct World {
    pub(super) env: TestEnv,
    pub(super) server: TestServer,
    runtime: Runtime,
    pub(super) behaviours: Vec<Behaviour>,
}

impl World {
    /// Gives each agent this many seconds.
    pub(super) fn new(behaviours: Vec<Behaviour>, seconds: u32) -> Self {
        let mut env = TestEnv::new(env!("CARGO_BIN_EXE_aec-bench"));
        ok(&env, "init --quiet --no-example");
        let mut conversations = Vec::new();
        for (number, behaviour) in behaviours.iter().enumerate() {
            write_task(&env, &task_name(number), behaviour.given, seconds);
            let when = format!("# {}\n", task_name(number));
            conversations.push(ScriptedConversation { when, replies: behaviour.replies.clone() });
        }
        let script = Script { replies: Vec::new(), conversations };
        let answers = Answers::Script(Arc::new(script));
        let options = Options { answers, keep_requests: 4096, ..Options::default() };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let server = runtime.block_on(TestServer::start(options)).unwrap();
        env.write(
            "configs/endpoints.toml",
            format!(
                "[[endpoint]]\nendpoint_id = \"gpt-4.1-mini\"\nmodel = \"gpt-4.1-mini\"\nurl = \"{}/v1\"\nkey = \"OPENAI_API_KEY\"\n",
                server.url()
            ),
        );
        env.write(".env", "OPENAI_API_KEY=sk-local-test-key\n");
        env.set("SOME_API_KEY", SECRET);
        Self { env, server, runtime, behaviours }
    }

    pub(super) fn json(&self, words: &[&str]) -> Value {
        let run = self.env.run(["--json"].iter().chain(words));
        assert!(matches!(run.code, Some(0 | 1)), "{words:?}: {run:?}");
        run.envelope()
    }

    /// The result of each behaviour, from the records of an experiment.
    fn recorded(&self, experiment: &str) -> BTreeMap<String, Expected> {
        let directory = self.env.path("artefacts/ledger").join(experiment);
        let names = aec_xtest::files::names_in(&directory).into_iter();
        let names = names.filter(|name| name.ends_with(".json") && !name.starts_with('.'));
        let read = |name: String| -> TrialRecord {
            serde_json::from_str(&std::fs::read_to_string(directory.join(name)).unwrap()).unwrap()
        };
        let told = |record: TrialRecord| {
            let expected = Expected {
                outcome: record.outcome.name().to_owned(),
                reward: record.reward(),
                source: record.outputs.output_source.map(|source| source.name().to_owned()),
            };
            (record.task.task_id.trim_start_matches("civil/").to_owned(), expected)
        };
        names.map(read).map(told).collect()
    }

    /// The result of each behaviour, from the rows in a directory.
    pub(super) fn in_rows(&self, directory: &Path) -> BTreeMap<String, Expected> {
        let rows = crate::eval::world::rows(directory);
        rows.iter()
            .map(|row| {
                let measured = |name: &str| row["metrics"][name].as_f64().is_some_and(|value| value > 0.0);
                let class = row["error"]["error"].as_str().unwrap_or_default();
                let outcome = match () {
                    () if measured("agent_fault") => "agent_fault",
                    () if measured("verifier_fault") => "verifier_fault",
                    () if class.is_empty() || class == "EmptyModelResponseError" => "scored",
                    () => "infra_fault",
                };
                let source = [
                    ("submitted", "submitted"),
                    ("source_workspace", "file"),
                    ("source_message", "final_text"),
                ];
                let source = source.into_iter().find(|(metric, _)| measured(metric));
                let expected = Expected {
                    outcome: outcome.to_owned(),
                    reward: row["reward"].as_f64().filter(|_| outcome == "scored"),
                    source: source.map(|(_, word)| word.to_owned()),
                };
                let task = row["info"]["task_id"].as_str().unwrap().trim_start_matches("civil/").to_owned();
                (task, expected)
            })
            .collect()
    }

    /// Compares the results of the behaviours with the table.
    fn check(&self, way: &str, found: &BTreeMap<String, Expected>) {
        let wrong: Vec<String> = self
            .behaviours
            .iter()
            .enumerate()
            .filter_map(|(number, behaviour)| {
                let expected = behaviour.unless.get(way).unwrap_or(&behaviour.expected);
                let found = found.get(&task_name(number));
                (found != Some(expected))
                    .then(|| format!("{}: {found:?} instead of {expected:?}", behaviour.name))
            })
            .collect();
        assert!(
            wrong.is_empty(),
            "{way}, {} of {}:\n{}",
            wrong.len(),
            self.behaviours.len(),
            wrong.join("\n")
        );
    }

    /// The directory of the only evaluation below an output directory.
    pub(super) fn saved(&self, base: &str) -> std::path::PathBuf {
        let group = self.env.path(format!("{base}/evals/doors--gpt-4.1-mini"));
        std::fs::read_dir(group).unwrap().next().unwrap().unwrap().path()
    }

    pub(super) fn export(&self) {
        ok(
            &self.env,
            "prime export --quiet --name doors --output-dir environments --harness-mode stateful --task civil",
        );
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // The server must be dropped inside its runtime.
        let _entered = self.runtime.enter();
    }
}

pub(super) fn task_name(number: usize) -> String {
    format!("behaviour-{number:03}")
}

fn write_task(env: &TestEnv, name: &str, given: bool, seconds: u32) {
    let task = TASK.replace("SECONDS", &seconds.to_string());
    let instruction =
        format!("# {name}\n\nWrite `flow_m3_s` and `depth_m` as JSON to `/workspace/output.json`.\n");
    let mut files = vec![
        ("task.toml", task.as_str()),
        ("instruction.md", instruction.as_str()),
        ("environment/Dockerfile", "FROM scratch\n"),
        ("environment/survey.csv", "x,z\n0,1\n"),
        ("tests/test.sh", "#!/usr/bin/env bash\nexec python3 -I \"$(dirname \"$0\")/verify.py\"\n"),
        ("tests/verify.py", STANDARD_VERIFY_PY),
        ("tests/answers.json", ANSWERS),
    ];
    if given {
        files.push(("environment/output.json", GIVEN));
    }
    for (path, text) in files {
        env.write(format!("tasks/civil/{name}/{path}"), text);
    }
}

#[test]
fn the_table_is_told_in_names_that_differ() {
    let behaviours = behaviours();
    let names: std::collections::BTreeSet<&str> =
        behaviours.iter().map(|behaviour| behaviour.name.as_str()).collect();
    assert_eq!(names.len(), behaviours.len());
    assert!(names.len() >= 60, "{}", names.len());
}

fn check_run(world: &World) {
    let turns = format!("max_turns={TURNS}");
    let model = ["--model", "gpt-4.1-mini", "--harness", "tool_loop", "-e", "x", "--max-attempts", "1"];
    world.json(&[&["run", "civil", "--parameter", &turns], model.as_slice()].concat());
    world.check("run", &world.recorded("x"));
}

/// Evaluates the exported package with these further arguments, and imports the results.
fn check_evaluation(world: &World, way: &str, imported: &str, words: &[&str]) {
    world.export();
    let turns = json!({"max_turns": TURNS, "split": "all"}).to_string();
    let all = ["eval", "run", "doors", "-n", "-1", "-r", "1", "-s", "-o", way, "-a", &turns];
    world.json(&[all.as_slice(), words].concat());
    let saved = world.saved(way);
    world.check(way, &world.in_rows(&saved));
    world.json(&["import", saved.to_str().unwrap(), "-e", "imported"]);
    world.check(imported, &world.recorded("imported"));
}

fn check_package(version: &str, way: &str, world: impl FnOnce() -> World) {
    let python = with_verifiers(version);
    let python = ["--python", python.to_str().unwrap()];
    check_evaluation(&world(), way, &format!("import of {way}"), &python);
}

#[test]
fn run_does_as_the_table_says() {
    check_run(&World::new(behaviours(), 120));
}

#[test]
fn the_native_lane_does_as_the_table_says() {
    check_evaluation(&World::new(behaviours(), 120), "native", "import", &[]);
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn the_package_under_verifiers_0_1_14_does_as_the_table_says() {
    check_package("0.1.14", "v0", || World::new(behaviours(), 120));
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn the_package_under_verifiers_0_4_0_does_as_the_table_says() {
    check_package("0.4.0", "v1", || World::new(behaviours(), 120));
}

#[test]
fn calls_after_the_agents_time_are_refused_in_native_doors() {
    check_run(&World::new(late(), 3));
    check_evaluation(&World::new(late(), 3), "native", "import", &[]);
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn calls_after_the_agents_time_are_refused_in_the_package_under_verifiers_0_1_14() {
    check_package("0.1.14", "v0", || World::new(late(), 10));
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn calls_after_the_agents_time_are_refused_in_the_package_under_verifiers_0_4_0() {
    check_package("0.4.0", "v1", || World::new(late(), 10));
}
