//! The table of all trials and their fields as columns, which is never left out.

use serde::Serialize;

use super::document::{Agent, Comparison, Curve, Document, Experiment, Group, Task, Trial};
use super::pack::{Number, Texts, texts};
use super::text::clip;
use crate::label::PageLabels;

/// Longest value of a field; a verifier may quote a long text of an agent.
const VALUE: usize = 400;

const MESSAGE: usize = 1_000;

const PROMPT: usize = 20_000;

/// Everything except the traces, as `data.js` reads it.
#[derive(Serialize)]
pub(super) struct Table<'a> {
    title: &'a str,
    tool: &'a str,
    method: Option<&'a str>,
    pass_reward: f64,
    notes: &'a [String],
    experiments: &'a [Experiment],
    agents: &'a [Agent],
    tasks: Vec<LabelledTask>,
    groups: &'a [Group],
    curves: &'a [Curve],
    comparison: Option<&'a Comparison>,
    trials: Trials,
    fields: Fields,
}

#[derive(Serialize)]
struct LabelledTask {
    label: String,
    /// Absent if it is the family.
    #[serde(skip_serializing_if = "Option::is_none")]
    family_label: Option<String>,
    #[serde(flatten)]
    task: Task,
}

impl LabelledTask {
    fn new(task: &Task, labels: &PageLabels) -> Self {
        let family = labels.family(&task.family);
        Self {
            label: labels.task(&task.id).to_owned(),
            family_label: (family != task.family).then(|| family.into_owned()),
            task: Task { prompt: prompt(task), ..task.clone() },
        }
    }
}

/// Columns of trials. Absent texts are empty.
#[derive(Default, Serialize)]
struct Trials {
    #[serde(serialize_with = "texts")]
    id: Texts,
    /// How much of the id is the label, in the units of the script's texts.
    label: Vec<usize>,
    task: Vec<usize>,
    agent: Vec<usize>,
    experiment: Vec<usize>,
    repetition: Vec<u32>,
    attempt: Vec<u32>,
    #[serde(serialize_with = "texts")]
    outcome: Texts,
    reward: Vec<Number>,
    rescaled: Vec<Number>,
    #[serde(serialize_with = "texts")]
    fault_kind: Texts,
    #[serde(serialize_with = "texts")]
    fault_message: Texts,
    #[serde(serialize_with = "texts")]
    stop: Texts,
    turns: Vec<Number>,
    tool_calls: Vec<Number>,
    tool_errors: Vec<Number>,
    submitted: Vec<Option<u8>>,
    #[serde(serialize_with = "texts")]
    output_source: Texts,
    tokens_in: Vec<Number>,
    tokens_out: Vec<Number>,
    cost: Vec<Number>,
    seconds: Vec<Number>,
    trace: Vec<u8>,
}

/// Columns of fields, trial after trial.
#[derive(Default, Serialize)]
struct Fields {
    /// How many fields each trial has.
    count: Vec<usize>,
    #[serde(serialize_with = "texts")]
    name: Texts,
    score: Vec<Number>,
    #[serde(serialize_with = "texts")]
    status: Texts,
    #[serde(serialize_with = "texts")]
    expected: Texts,
    #[serde(serialize_with = "texts")]
    got: Texts,
    #[serde(serialize_with = "texts")]
    message: Texts,
}

impl Trials {
    fn push(&mut self, trial: &Trial, label: &str, has_trace: bool) {
        let optional = |text: &Option<String>| clip(text.as_deref().unwrap_or(""), MESSAGE).into_owned();
        self.id.push(&trial.id);
        self.label.push(label.encode_utf16().count());
        self.task.push(trial.task);
        self.agent.push(trial.agent);
        self.experiment.push(trial.experiment);
        self.repetition.push(trial.repetition);
        self.attempt.push(trial.attempt);
        self.outcome.push(&clip(&trial.outcome, VALUE));
        self.reward.push(Number::rounded(trial.reward, 6));
        self.rescaled.push(Number::rounded(trial.rescaled, 6));
        self.fault_kind.push(&optional(&trial.fault_kind));
        self.fault_message.push(&optional(&trial.fault_message));
        self.stop.push(&optional(&trial.stop));
        self.turns.push(Number::count(trial.turns));
        self.tool_calls.push(Number::count(trial.tool_calls));
        self.tool_errors.push(Number::count(trial.tool_errors));
        self.submitted.push(trial.submitted.map(u8::from));
        self.output_source.push(&optional(&trial.output_source));
        self.tokens_in.push(Number::count(trial.tokens_in));
        self.tokens_out.push(Number::count(trial.tokens_out));
        self.cost.push(Number::rounded(trial.cost, 8));
        self.seconds.push(Number::rounded(trial.seconds, 3));
        self.trace.push(u8::from(has_trace));
    }
}

impl Fields {
    fn push(&mut self, trial: &Trial) {
        self.count.push(trial.fields.len());
        for field in &trial.fields {
            self.name.push(&clip(&field.name, VALUE));
            self.score.push(Number::rounded(field.score, 6));
            self.status.push(&clip(&field.status, VALUE));
            self.expected.push(&clip(&field.expected, VALUE));
            self.got.push(&clip(&field.got, VALUE));
            self.message.push(&clip(&field.message, MESSAGE));
        }
    }
}

impl<'a> Table<'a> {
    pub(super) fn new(document: &'a Document) -> Self {
        let labels = PageLabels::of(
            document.tasks.iter().map(|task| task.id.as_str()),
            document.trials.iter().map(|trial| trial.id.as_str()),
        );
        let mut trials = Trials::default();
        let mut fields = Fields::default();
        let mut has_trace: Vec<bool> =
            document.trials.iter().map(|trial| trial.trace_bytes.is_some()).collect();
        for trace in &document.traces {
            has_trace[trace.trial] = true;
        }
        for (trial, has_trace) in document.trials.iter().zip(has_trace) {
            trials.push(trial, labels.trial(&trial.id), has_trace);
            fields.push(trial);
        }
        let tasks = document.tasks.iter().map(|task| LabelledTask::new(task, &labels)).collect();
        Self {
            title: &document.title,
            tool: &document.tool,
            method: document.method.as_deref(),
            pass_reward: document.pass_reward,
            notes: &document.notes,
            experiments: &document.experiments,
            agents: &document.agents,
            tasks,
            groups: &document.groups,
            curves: &document.curves,
            comparison: document.comparison.as_ref(),
            trials,
            fields,
        }
    }

    /// Leaves the prompts out and returns their number.
    pub(super) fn drop_prompts(&mut self) -> usize {
        self.tasks.iter_mut().filter_map(|task| task.task.prompt.take()).count()
    }
}

pub(super) fn prompt(task: &Task) -> Option<String> {
    task.prompt.as_deref().map(|prompt| clip(prompt, PROMPT).into_owned())
}
