//! What the tests of reports share: ledgers with invented records.

use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_ledger::example;
use aec_ledger::layout::Ledger;
use aec_ledger::record::{Artefact, TrialRecord};
use aec_xtest::{Run, TestEnv};
use serde_json::{Value, json};

/// A project with a ledger.
pub(crate) struct World {
    pub(crate) env: TestEnv,
    count: u32,
}

impl World {
    pub(crate) fn new() -> Self {
        let env = TestEnv::new(env!("CARGO_BIN_EXE_aec-bench"));
        let run = env.run(["init", "--no-example", "--quiet"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        Self { env, count: 0 }
    }

    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::new(self.env.path("artefacts/ledger"))
    }

    /// Adds a record of a new trial, changed by `change`.
    pub(crate) fn add(&mut self, experiment: &str, change: impl FnOnce(&mut TrialRecord)) -> String {
        self.count += 1;
        let id = format!("0f1e2d3c-0000-8000-8000-{:012}", self.count);
        let mut record = example::record(experiment, &id, 1);
        change(&mut record);
        example::write(&self.ledger(), &record);
        id
    }

    /// Gives a record a trajectory of these events.
    pub(crate) fn trajectory(&self, record: &mut TrialRecord, events: &[Value]) {
        let text: String = events.iter().flat_map(|event| [event.to_string(), "\n".to_owned()]).collect();
        let digest = self.ledger().contents().put(text.as_bytes()).unwrap();
        record.outputs.trajectory_path = Some("workspace/trajectory.jsonl".to_owned());
        let path = "workspace/trajectory.jsonl".to_owned();
        record.timing.artefacts.push(Artefact { path, digest, size: text.len() as u64 });
    }

    pub(crate) fn run(&self, line: &str) -> Run {
        self.env.run(line.split_whitespace())
    }

    pub(crate) fn json(&self, line: &str) -> Run {
        self.env.run(["--json"].into_iter().chain(line.split_whitespace()))
    }

    /// The data of a run that must succeed.
    pub(crate) fn data(&self, line: &str) -> Value {
        self.json(line).data()
    }
}

/// Assigns a record to another task, whose name determines its family and difficulty.
pub(crate) fn of_task(record: &mut TrialRecord, task: &str) {
    record.task.task_id = format!("structural/{task}");
    record.task.family = format!("template:structural/{task}");
    record.task.task_revision = Digest::of(task.as_bytes());
}

/// Assigns a record to another agent.
pub(crate) fn of_agent(record: &mut TrialRecord, agent: &str) {
    record.agent.name = Name::parse(agent).unwrap();
    record.agent.digest = Digest::of(agent.as_bytes());
}

pub(crate) fn rewarded(record: &mut TrialRecord, reward: f64) {
    record.evaluation = Some(example::evaluation(reward));
}

/// A call of a tool and its result, as events.
pub(crate) fn called(step: u32, tool: &str, arguments: &Value, exit_code: i32, stderr: &str) -> [Value; 3] {
    let id = format!("call-{step}");
    [
        json!({ "step": step, "role": "assistant", "content": "", "usage": null }),
        json!({ "step": step, "role": "tool_call", "tool_name": tool, "tool_call_id": id, "arguments": arguments }),
        json!({
            "step": step, "role": "tool_result", "tool_name": tool, "tool_call_id": id, "stdout": "",
            "stderr": stderr, "exit_code": exit_code,
        }),
    ]
}
