//! The content of a report: plain structs that the caller fills from its records and statistics.
//!
//! The report itself computes no statistics. An unknown number is absent, never zero.

use serde::Serialize;

use super::text::clip;

/// A report of one experiment or several.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Document {
    pub title: String,
    /// The program that made it, with its version.
    pub tool: String,
    /// Explains the means, denominators and intervals of agents. Shown below their table.
    pub method: Option<String>,
    /// A scored trial with at least this reward passes.
    pub pass_reward: f64,
    /// Important remarks for the reader, such as that some planned trials were not run.
    pub notes: Vec<String>,
    pub experiments: Vec<Experiment>,
    pub agents: Vec<Agent>,
    pub tasks: Vec<Task>,
    pub groups: Vec<Group>,
    /// Every attempt at every trial.
    pub trials: Vec<Trial>,
    /// The traces that were read; at most one per trial.
    pub traces: Vec<Trace>,
    pub curves: Vec<Curve>,
    pub comparison: Option<Comparison>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Experiment {
    pub id: String,
    /// As `NAME@VERSION`.
    pub dataset: Option<String>,
    /// Short digest of its plan.
    pub plan: Option<String>,
    /// When its first trial began.
    pub started: Option<String>,
    pub planned: Option<u64>,
}

/// An agent with its results over all trials of the report.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Agent {
    pub name: String,
    pub harness: String,
    pub model: Option<String>,
    pub trials: u64,
    /// Trials with a reward.
    pub scored: u64,
    pub mean: Option<f64>,
    /// What is unknown, and what that means for the mean; absent if the mean is of all trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// Lower end of the 95 % interval of the mean.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Mean over all trials as they were run.
    pub as_run: Option<f64>,
    /// Mean without trials that this machine or a provider spoiled.
    pub without_infra: Option<f64>,
    /// Mean with zero for every trial that has no reward or was not run.
    pub worst_case: Option<f64>,
    /// Trials that failed through no fault of the agent.
    pub faults: u64,
    /// Trials in which the agent's program ended with an error and left no answer.
    pub crashed: u64,
    pub pass_rate: Option<f64>,
    /// Dollars of the attempts with a price.
    pub cost: Option<f64>,
    /// Attempts without a price.
    pub unpriced: usize,
    /// Dollars per solved task; absent if an attempt has no price, or if no task is solved.
    pub cost_per_solved: Option<f64>,
    pub tokens_in: Option<u64>,
    pub tokens_out: Option<u64>,
    pub seconds: Option<f64>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Task {
    pub id: String,
    /// Short digest of its files.
    pub revision: String,
    pub discipline: String,
    pub difficulty: Option<String>,
    /// Tasks of one family have the same value.
    pub family: String,
    /// Absent if the report must not show it.
    pub prompt: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupKind {
    Difficulty,
    Discipline,
    Family,
}

#[derive(Clone, Debug, Serialize)]
pub struct Group {
    pub kind: GroupKind,
    pub name: String,
    /// The index of the agent; absent for all agents together.
    pub agent: Option<usize>,
    pub trials: u64,
    pub mean: Option<f64>,
    /// Lower end of the 95 % interval of the mean.
    pub low: Option<f64>,
    pub high: Option<f64>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Trial {
    /// With the attempt, it is unique in the document.
    pub id: String,
    /// Index in the document.
    pub task: usize,
    /// Index in the document.
    pub agent: usize,
    /// Index in the document.
    pub experiment: usize,
    /// Counted from 1.
    pub repetition: u32,
    /// Counted from 1.
    pub attempt: u32,
    /// `scored`, or the name of what prevented it.
    pub outcome: String,
    pub reward: Option<f64>,
    /// The reward above that of an empty or constant answer, on a scale from 0 to 1.
    pub rescaled: Option<f64>,
    /// Which side caused the fault, and its kind.
    pub fault_kind: Option<String>,
    /// In one line.
    pub fault_message: Option<String>,
    pub stop: Option<String>,
    pub turns: Option<u64>,
    pub tool_calls: Option<u64>,
    pub tool_errors: Option<u64>,
    pub submitted: Option<bool>,
    pub output_source: Option<String>,
    pub tokens_in: Option<u64>,
    pub tokens_out: Option<u64>,
    pub cost: Option<f64>,
    pub seconds: Option<f64>,
    /// Length of its trace in the project, if there is one. Determines the order in which traces are chosen.
    pub trace_bytes: Option<u64>,
    /// The verifier's marks of the parts of the answer.
    pub fields: Vec<Field>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Field {
    pub name: String,
    /// From 0 to 1.
    pub score: Option<f64>,
    /// Such as `correct`, `wrong` or `missing`.
    pub status: String,
    pub expected: String,
    pub got: String,
    pub message: String,
}

impl Field {
    /// The same with each text cut to `limit` characters.
    #[must_use]
    pub fn clipped(self, limit: usize) -> Self {
        Self {
            name: short(self.name, limit),
            score: self.score,
            status: short(self.status, limit),
            expected: short(self.expected, limit),
            got: short(self.got, limit),
            message: short(self.message, limit),
        }
    }
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Trace {
    /// Index in the document.
    pub trial: usize,
    /// The answer as it was judged.
    pub answer: Option<String>,
    pub entries: Vec<TraceEntry>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct TraceEntry {
    /// `system`, `user`, `assistant`, `tool_call`, `tool_result`, `model_call` or `note`.
    pub role: String,
    /// The turn, from 1; 0 before the first answer.
    pub step: u32,
    pub text: Option<String>,
    pub reasoning: Option<String>,
    pub tool: Option<String>,
    /// As text.
    pub arguments: Option<String>,
    pub stdout: Option<String>,
    pub stderr: Option<String>,
    pub exit_code: Option<i32>,
    pub duration_ms: Option<u64>,
    /// Milliseconds since the trial began.
    pub offset_ms: Option<u64>,
}

impl TraceEntry {
    /// The same with each text cut to `limit` characters; a longer one keeps its head and tail.
    #[must_use]
    pub fn clipped(self, limit: usize) -> Self {
        let short = |text: Option<String>| text.map(|text| short(text, limit));
        Self {
            text: short(self.text),
            reasoning: short(self.reasoning),
            tool: short(self.tool),
            arguments: short(self.arguments),
            stdout: short(self.stdout),
            stderr: short(self.stderr),
            ..self
        }
    }
}

fn short(text: String, limit: usize) -> String {
    if text.len() <= limit { text } else { clip(&text, limit).into_owned() }
}

/// A measure over the steps of a training run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Curve {
    /// The run.
    pub name: String,
    /// Curves of one metric share a chart.
    pub metric: String,
    /// Step and value, in order.
    pub points: Vec<(f64, f64)>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Comparison {
    pub title: String,
    /// One row for each pair.
    pub rows: Vec<ComparisonRow>,
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct ComparisonRow {
    pub candidate: String,
    pub baseline: String,
    pub pairs: u64,
    /// Mean difference, candidate minus baseline.
    pub difference: Option<f64>,
    /// Lower end of the 95 % interval of the difference.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Probability of a difference this large by chance.
    pub p_value: Option<f64>,
    pub verdict: String,
}
