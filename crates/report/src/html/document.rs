//! What a report says: plain structs that the caller fills from its records and statistics.
//!
//! The report computes no statistic of its own. A number that is not known is absent, never zero.

use serde::Serialize;

use super::text::clip;

/// A report of one experiment or several.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Document {
    pub title: String,
    /// The program that made it, with its version.
    pub tool: String,
    /// What the means, denominators and intervals of agents are. Stands below their table.
    pub method: Option<String>,
    /// A scored trial with at least this reward passes.
    pub pass_reward: f64,
    /// What a reader must know first, such as that some planned trials were not run.
    pub notes: Vec<String>,
    pub experiments: Vec<Experiment>,
    pub agents: Vec<Agent>,
    pub tasks: Vec<Task>,
    /// Means of parts of the trials.
    pub groups: Vec<Group>,
    /// Every attempt at every trial.
    pub trials: Vec<Trial>,
    /// What the agents did, as far as it was read; at most one for a trial.
    pub traces: Vec<Trace>,
    /// Measures over the steps of a training run.
    pub curves: Vec<Curve>,
    /// A comparison of agents.
    pub comparison: Option<Comparison>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Experiment {
    pub id: String,
    /// The dataset, as `NAME@VERSION`.
    pub dataset: Option<String>,
    /// Digest of its plan, short.
    pub plan: Option<String>,
    /// When its first trial began.
    pub started: Option<String>,
    /// How many trials were planned.
    pub planned: Option<u64>,
}

/// An agent with its results over all trials of the report.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Agent {
    /// Its name in the experiment.
    pub name: String,
    pub harness: String,
    /// The model, if it has one.
    pub model: Option<String>,
    /// How many trials.
    pub trials: u64,
    /// How many of them have a reward.
    pub scored: u64,
    /// Mean reward.
    pub mean: Option<f64>,
    /// Lower end of the 95 % interval of the mean.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Mean over all trials as they were run.
    pub as_run: Option<f64>,
    /// Mean without trials that this machine or a provider spoiled.
    pub without_infra: Option<f64>,
    /// Mean with zero for every trial that has no reward or was not run.
    pub worst_case: Option<f64>,
    /// Share of trials that pass.
    pub pass_rate: Option<f64>,
    /// Dollars for all trials.
    pub cost: Option<f64>,
    /// Dollars for each task that was solved.
    pub cost_per_solved: Option<f64>,
    /// Input tokens of all trials.
    pub tokens_in: Option<u64>,
    /// Output tokens of all trials.
    pub tokens_out: Option<u64>,
    /// Mean seconds of a trial.
    pub seconds: Option<f64>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Task {
    pub id: String,
    /// Digest of its files, short.
    pub revision: String,
    pub discipline: String,
    /// How hard it is, if it says.
    pub difficulty: Option<String>,
    /// Tasks of one family have one value.
    pub family: String,
    /// The prompt, if the report may show it.
    pub prompt: Option<String>,
}

/// What the trials of a group have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupKind {
    /// The difficulty of their tasks.
    Difficulty,
    /// The discipline of their tasks.
    Discipline,
    /// The family of their tasks.
    Family,
}

/// The mean reward of a part of the trials.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// What the trials have in common.
    pub kind: GroupKind,
    /// The value that they have in common.
    pub name: String,
    /// The agent, by its place in the document; absent for all agents together.
    pub agent: Option<usize>,
    /// How many trials.
    pub trials: u64,
    /// Mean reward.
    pub mean: Option<f64>,
    /// Lower end of the 95 % interval of the mean.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// One attempt at one trial.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Trial {
    /// The trial. With the attempt it is unique in the document.
    pub id: String,
    /// The task, by its place in the document.
    pub task: usize,
    /// The agent, by its place in the document.
    pub agent: usize,
    /// The experiment, by its place in the document.
    pub experiment: usize,
    /// Which repetition of its task and agent, from 1.
    pub repetition: u32,
    /// Which try at the trial, from 1.
    pub attempt: u32,
    /// What became of it: `scored`, or the name of what prevented it.
    pub outcome: String,
    /// The reward, if there is one.
    pub reward: Option<f64>,
    /// The reward above what an empty or constant answer gets, on a scale from 0 to 1.
    pub rescaled: Option<f64>,
    /// On whose side a fault lies, and which kind.
    pub fault_kind: Option<String>,
    /// What went wrong, in one line.
    pub fault_message: Option<String>,
    /// Why the agent stopped.
    pub stop: Option<String>,
    /// Turns of the model.
    pub turns: Option<u64>,
    pub tool_calls: Option<u64>,
    /// Calls of tools that failed.
    pub tool_errors: Option<u64>,
    /// Whether the agent handed in an answer.
    pub submitted: Option<bool>,
    /// Where the answer came from.
    pub output_source: Option<String>,
    /// Input tokens.
    pub tokens_in: Option<u64>,
    /// Output tokens.
    pub tokens_out: Option<u64>,
    /// Dollars.
    pub cost: Option<f64>,
    /// Seconds from start to end.
    pub seconds: Option<f64>,
    /// Length of its trace in the project, if it has one there. Decides the order in which traces are taken.
    pub trace_bytes: Option<u64>,
    /// What the verifier says about the parts of the answer.
    pub fields: Vec<Field>,
}

/// One part of an answer.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Field {
    pub name: String,
    /// From 0 to 1.
    pub score: Option<f64>,
    /// Such as `correct`, `wrong` or `missing`.
    pub status: String,
    pub expected: String,
    /// What the answer says.
    pub got: String,
    /// Why.
    pub message: String,
}

impl Field {
    /// The same with texts of at most so many characters.
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

/// What an agent did in a trial.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Trace {
    /// The trial, by its place in the document.
    pub trial: usize,
    /// The answer as it was judged.
    pub answer: Option<String>,
    /// What happened, in order.
    pub entries: Vec<TraceEntry>,
}

/// One event of a trace.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TraceEntry {
    /// `system`, `user`, `assistant`, `tool_call`, `tool_result`, `model_call` or `note`.
    pub role: String,
    /// The turn, from 1; 0 before the first answer.
    pub step: u32,
    /// What was said.
    pub text: Option<String>,
    /// What the model thought.
    pub reasoning: Option<String>,
    pub tool: Option<String>,
    /// Arguments of a tool call, as text.
    pub arguments: Option<String>,
    /// What a tool printed.
    pub stdout: Option<String>,
    /// What a tool complained of.
    pub stderr: Option<String>,
    /// Exit code of a tool.
    pub exit_code: Option<i32>,
    /// How long it took, in milliseconds.
    pub duration_ms: Option<u64>,
    /// Milliseconds since the trial began.
    pub offset_ms: Option<u64>,
}

impl TraceEntry {
    /// The same with texts of at most so many characters; a longer one keeps its head and tail.
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
    /// The measure. Curves of one measure share a chart.
    pub metric: String,
    /// Step and value, in order.
    pub points: Vec<(f64, f64)>,
}

/// A comparison of agents.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Comparison {
    /// What is compared, and how.
    pub title: String,
    /// One row for each pair.
    pub rows: Vec<ComparisonRow>,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// The difference of two agents.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ComparisonRow {
    /// The agent that is compared.
    pub candidate: String,
    /// The agent that it is compared with.
    pub baseline: String,
    /// How many pairs.
    pub pairs: u64,
    /// Mean difference, candidate less baseline.
    pub difference: Option<f64>,
    /// Lower end of the 95 % interval of the difference.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Probability of a difference this large if there were none.
    pub p_value: Option<f64>,
    /// The conclusion in a few words.
    pub verdict: String,
}
