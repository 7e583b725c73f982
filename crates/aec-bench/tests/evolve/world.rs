//! What the tests of evolution share: projects with tasks and a workspace, models played by the test, and readers for
//! what a run leaves.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use aec_evolve::event::Entry;
use aec_evolve::state::State;
use aec_evolve::workspace::Workspace;
use aec_evolve::workspace::git::GitProgram;
use aec_judge::scorer::STANDARD_VERIFY_PY;
use aec_ledger::record::TrialRecord;
use aec_xtest::files::{files_below, names_in};
use aec_xtest::running::Running;
use aec_xtest::{Run, TestEnv};
use serde_json::Value;

use crate::evolve::swarms::{AGENTS, different};
use crate::evolve::voices::{cycle, said_by, skill};
use crate::evolve::{Said, Voices};

/// An answer with full reward.
pub(crate) const RIGHT: &str = r#"{"flow_m3_s": 3.217, "depth_m": 1.254}"#;
/// An answer with no reward.
pub(crate) const WRONG: &str = r#"{"flow_m3_s": 1, "depth_m": 1}"#;
/// What makes the solver better; only the test knows it.
pub(crate) const LESSON: &str = "Always check the units of every number first.";

/// Tasks of a project: 2 are kept for the end, and half of the others are the most that a test uses.
pub(crate) const TASKS: usize = 34;

const TASK: &str = "version = \"1.0\"\n\n[metadata]\ndifficulty = \"DIFFICULTY\"\nvisibility = \"public\"\ntags = [\"x\"]\n\n\
                    [agent]\ntimeout_sec = 60\n\n[verifier]\ntimeout_sec = 30\n\n[environment]\nmemory_mb = 512\n\
                    storage_mb = 256\nallow_internet = false\n";

const ANSWERS: &str = r#"{"version": 1, "output": "output.json", "fields": {
  "flow_m3_s": {"type": "number", "value": 3.217, "rel_tol": 0.001},
  "depth_m": {"type": "number", "value": 1.254, "rel_tol": 0.001}
}}"#;

/// An evolution that finds its improvement in the second of three cycles.
pub(crate) const EVOLUTION: &str = "workspace_path: workspaces/w
models: { evolver: evolver }
solver: { name: solver-v1, harness: direct, model: solver }
tasks: {}
batch_size: 4
max_cycles: 3
improvement_threshold: 0.01
acceptance: { error_rate: 0.2, max_tasks: 16 }
holdout: { tasks: 2 }
";

/// A swarm over the same tasks.
pub(crate) const SWARM: &str = "task: { workspace: workspaces/w, task_path: tasks }
agents: { count: 3, default_model: evolver }
solver: { name: solver-v1, harness: direct, model: solver }
budget: { max_cost_usd: 20.0 }
evolution: { batch_size: 4, max_cycles: 3, error_rate: 0.2, max_tasks: 16 }
holdout: { tasks: 2 }
";

/// A project in a separate test environment.
pub(crate) struct World {
    pub(crate) env: TestEnv,
    pub(crate) voices: Voices,
}

impl World {
    /// A project with tasks, a workspace, and the usual models.
    pub(crate) fn new() -> Self {
        Self::with(usual)
    }

    /// Like `new`, with other models.
    pub(crate) fn with(answer: impl Fn(&Value) -> Said + Send + Sync + 'static) -> Self {
        let world = Self::bare(Voices::start(answer));
        for index in 0..TASKS {
            world.task(&format!("civil/channel-{index:03}"), "easy");
        }
        let made = world.run("evolve init workspaces/w --harness direct");
        assert_eq!(made.code, Some(0), "{made:?}");
        world.env.write("evolution.yaml", EVOLUTION);
        world.env.write("swarm.yaml", SWARM);
        world
    }

    /// A project with a finished evolution, which is run once for all tests.
    pub(crate) fn finished() -> Self {
        static LEFT: OnceLock<Left> = OnceLock::new();
        Self::left(LEFT.get_or_init(|| {
            let world = Self::new();
            let _data = world.evolve();
            Left::of(&world)
        }))
    }

    /// A project with a finished swarm, which is run once for all tests.
    pub(crate) fn swarmed() -> Self {
        static LEFT: OnceLock<Left> = OnceLock::new();
        Self::left(LEFT.get_or_init(|| {
            let world = Self::with(different);
            world.swarm(&[AGENTS]);
            let _data = world.data("swarm run swarm.yaml");
            Left::of(&world)
        }))
    }

    fn left(left: &Left) -> Self {
        let voices = Voices::start(usual);
        voices.remember(&left.asked);
        let world = Self { env: TestEnv::new(env!("CARGO_BIN_EXE_aec-bench")), voices };
        for (name, content) in &left.files {
            world.env.write(name, content);
        }
        world.endpoints(&["evolver", "solver", "classifier"]);
        world
    }

    /// A project without tasks and workspaces.
    pub(crate) fn bare(voices: Voices) -> Self {
        let env = TestEnv::new(env!("CARGO_BIN_EXE_aec-bench"));
        let run = env.run(["init", "--no-example", "--quiet"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        let world = Self { env, voices };
        world.endpoints(&["evolver", "solver", "classifier"]);
        world
            .env
            .write("configs/prices.toml", prices(&[("evolver", 3.0), ("solver", 1.0), ("classifier", 1.0)]));
        world
    }

    /// Writes an endpoints file in which these names lead to the models of this test.
    pub(crate) fn endpoints(&self, models: &[&str]) {
        let url = self.voices.url();
        let row = |model: &&str| {
            format!(
                "[[endpoint]]\nendpoint_id = \"{model}\"\nmodel = \"{model}\"\nurl = \"{url}\"\nstream = \"never\"\n"
            )
        };
        let rows: Vec<String> = models.iter().map(row).collect();
        self.env.write("configs/endpoints.toml", rows.join("\n"));
    }

    /// Writes a task whose answer the native scorer judges.
    pub(crate) fn task(&self, id: &str, difficulty: &str) {
        let instruction = format!(
            "# Channel {id}\n\nRead the survey that lies in the workspace, find the discharge and the normal depth of \
             the channel that it describes, and write `flow_m3_s` and `depth_m` as JSON to `/workspace/output.json`.\n"
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
            ("tests/fixtures/golden_fail.json", WRONG),
            (
                "solution/solve.sh",
                "#!/usr/bin/env bash\ncat /solution/answer.json > /workspace/output.json\n",
            ),
            ("solution/answer.json", RIGHT),
        ] {
            self.env.write(format!("tasks/{id}/{name}"), text);
        }
    }

    /// Changes the evolution file: each given line replaces the line with the same key, or is added.
    pub(crate) fn evolution(&self, lines: &[&str]) {
        self.env.write("evolution.yaml", changed(EVOLUTION, lines));
    }

    /// Changes the swarm file in the same way.
    pub(crate) fn swarm(&self, lines: &[&str]) {
        self.env.write("swarm.yaml", changed(SWARM, lines));
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

    pub(crate) fn evolve(&self) -> Value {
        self.data("evolve run -c evolution.yaml")
    }

    /// The only problem of a run that ended with this code, from the envelope.
    pub(crate) fn refusal(&self, line: &str, code: i32) -> Value {
        let run = self.json(line);
        assert_eq!(run.code, Some(code), "{line}: {run:?}");
        let errors = run.envelope()["errors"].as_array().unwrap().clone();
        assert_eq!(errors.len(), 1, "{line}: {run:?}");
        errors[0].clone()
    }

    /// Checks for a refusal with this id whose text contains these words, and that it changes nothing.
    pub(crate) fn refuses(&self, line: &str, (code, id): (i32, &str), words: &[&str]) {
        let before = self.files();
        let refusal = self.refusal(line, code);
        assert_eq!(refusal["id"], id, "{refusal}");
        for word in words {
            assert!(refusal.to_string().contains(word), "`{word}`: {refusal}");
        }
        assert!(refusal["fix"].as_str().is_some_and(|fix| !fix.is_empty()), "{refusal}");
        assert_same(&before, &self.files());
    }

    /// Starts a run that the test watches.
    pub(crate) fn start(&self, line: &str) -> Running {
        Running::new(self.env.start_piped(line.split_whitespace()))
    }

    /// The directory of a run: `evolve/w-1`.
    pub(crate) fn directory(&self, run: &str) -> PathBuf {
        self.env.path("artefacts/feedback").join(run)
    }

    pub(crate) fn entries(&self, run: &str) -> Vec<Entry> {
        aec_evolve::log::entries(&self.directory(run)).unwrap()
    }

    /// The state that the log describes.
    pub(crate) fn state(&self, run: &str) -> State {
        State::replay(&self.entries(run)).unwrap()
    }

    /// The lines of the log with this event, as written.
    pub(crate) fn events(&self, run: &str, event: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.directory(run).join("events.jsonl")).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["event"] == event).collect()
    }

    /// The archive file beside the log; it must agree with the log.
    pub(crate) fn archive(&self, run: &str) -> String {
        let text = std::fs::read_to_string(self.directory(run).join("archive.json")).unwrap();
        assert_eq!(text, self.state(run).archive.to_json(), "the archive is what the log adds up to");
        text
    }

    pub(crate) fn workspace(&self) -> Workspace {
        let git = GitProgram::find(std::env::var_os("PATH")).unwrap();
        Workspace::open(git, &self.env.path("workspaces/w")).unwrap()
    }

    /// The output of git itself about the workspace.
    pub(crate) fn git(&self, line: &str) -> String {
        let mut command = Command::new("git");
        let output = command
            .args(line.split_whitespace())
            .current_dir(self.env.path("workspaces/w"))
            .output()
            .unwrap();
        assert!(output.status.success(), "git {line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// All records of a run, by file name. Each must be complete.
    pub(crate) fn records(&self, experiment: &str) -> BTreeMap<String, TrialRecord> {
        let directory = self.env.path("artefacts/ledger").join(experiment);
        let names = names_in(&directory).into_iter();
        let read = |name: String| {
            let text = std::fs::read_to_string(directory.join(&name)).unwrap();
            let record =
                serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
            (name, record)
        };
        names.filter(|name| name.ends_with(".json") && !name.starts_with('.')).map(read).collect()
    }

    /// Every file of the project and the home.
    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = files_below(&self.env.dir());
        // A process that checks whether the workspace is in use leaves an empty lock file.
        files.remove("workspaces/w/.git/aec-bench-lock");
        files.extend(
            files_below(&self.env.home()).into_iter().map(|(name, text)| (format!("~/{name}"), text)),
        );
        files
    }

    /// The files of the workspace, without git's own.
    pub(crate) fn in_workspace(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = files_below(&self.env.path("workspaces/w"));
        files.retain(|name, _| !name.starts_with(".git/"));
        files
    }

    /// Checks that `ledger verify` finds nothing wrong.
    pub(crate) fn assert_sound(&self, experiment: &str) {
        let verified = self.json(&format!("ledger verify -e {experiment}"));
        assert_eq!(verified.code, Some(0), "{verified:?}");
    }
}

/// The files that a run left, and the requests to its models.
struct Left {
    files: BTreeMap<String, Vec<u8>>,
    asked: Vec<Value>,
}

impl Left {
    fn of(world: &World) -> Self {
        let asked = ["evolver", "solver"].iter().flat_map(|model| world.voices.asked(model)).collect();
        Self { files: files_below(&world.env.dir()), asked }
    }
}

/// Checks that two trees are the same; the message names the differences.
pub(crate) fn assert_same(before: &BTreeMap<String, Vec<u8>>, after: &BTreeMap<String, Vec<u8>>) {
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differing: Vec<&&String> =
        names.iter().filter(|name| before.get(**name) != after.get(**name)).collect();
    assert!(differing.is_empty(), "these are not as they were: {differing:?}");
}

/// Checks that nothing outside these places was added, removed or changed.
pub(crate) fn assert_only(
    before: &BTreeMap<String, Vec<u8>>,
    after: &BTreeMap<String, Vec<u8>>,
    places: &[&str],
) {
    let outside = |files: &BTreeMap<String, Vec<u8>>| {
        let mut files = files.clone();
        files.retain(|name, _| !places.iter().any(|place| name.starts_with(place)));
        files
    };
    assert_same(&outside(before), &outside(after));
}

/// The directories that a run may write to.
pub(crate) const PLACES: [&str; 4] = ["workspaces/w/", "artefacts/feedback/", "artefacts/ledger/", "jobs/"];

/// A file with some lines replaced; a line is found by its key.
fn changed(text: &str, lines: &[&str]) -> String {
    let key = |line: &str| line.split(':').next().unwrap_or_default().to_owned();
    let mut all: Vec<String> = text.lines().map(str::to_owned).collect();
    for line in lines {
        // A key with a minus before it is removed.
        if let Some(gone) = line.strip_prefix('-') {
            all.retain(|known| key(known) != gone);
            continue;
        }
        match all.iter_mut().find(|known| key(known) == key(line)) {
            Some(known) => (*line).clone_into(known),
            None => all.push((*line).to_owned()),
        }
    }
    all.join("\n") + "\n"
}

/// Prices of endpoints in dollars per million tokens.
pub(crate) fn prices(rows: &[(&str, f64)]) -> String {
    let row = |(endpoint, price): &(&str, f64)| {
        format!("[[price]]\nendpoint = \"{endpoint}\"\ninput = {price:.1}\noutput = {price:.1}\n")
    };
    let rows: Vec<String> = rows.iter().map(row).collect();
    format!("schema_version = 1\n\n{}", rows.join("\n"))
}

/// The number of the task in a request to a solver.
pub(crate) fn task_number(body: &Value) -> u32 {
    let asked = said_by(body, "user");
    let number: String =
        asked.split("channel-").nth(1).unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
    number.parse().unwrap_or(0)
}

/// The usual models: a solver that gets a sixth of the tasks right, and all of them when its prompt says to check
/// units; an evolver that proposes this in its second cycle.
pub(crate) fn usual(body: &Value) -> Said {
    match body["model"].as_str() {
        Some("solver") => {
            solved(said_by(body, "system").contains(LESSON) || task_number(body).is_multiple_of(6))
        }
        _ => match cycle(body) {
            1 => skill("colours", "Write down every colour that you see.").into(),
            2 => skill("units", LESSON).into(),
            other => {
                skill(&format!("idea-{other}"), &format!("Idea number {other} says nothing of any use."))
                    .into()
            }
        },
    }
}

/// An answer to a task.
pub(crate) fn solved(right: bool) -> Said {
    if right { RIGHT.into() } else { WRONG.into() }
}
