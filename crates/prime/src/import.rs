//! Imports rollouts of Prime and of verifiers: converts each row to the form that every importer uses.

use std::io;
use std::sync::Arc;

use aec_base::digest::Digest;
use aec_base::problem::{Place, Problem};
use aec_base::timestamp::Timestamp;
use aec_judge::settle::order::{AnswerOrder, Source, last_word};
use aec_judge::settle::outcome::{AgentStatus, Ending};
use aec_judge::verdict::Outcome;
use aec_ledger::record::{Artefact, Cost, TaskFacts, Timing};
use aec_ledger::transcript::conversation::CONVERSATION_FILE;
use aec_ledger::transcript::{self, TRAJECTORY_FILE};
use aec_package::interaction::{Interaction, lane};
use aec_run::elsewhere::ForeignJudging;
use aec_run::import::foreign::{Answer, Foreign, ForeignAgent, ForeignTrial, Identity, Left, Told, keep};
use aec_run::import::{ImportError, Importer, KnownTasks, RolloutKey, Row as RolloutRow, is_agents_doing};
use aec_run::task::PreparedTask;
use aec_task::id::TaskId;
use bytes::Bytes;
use indexmap::IndexMap;
use serde_json::{Value, json};

use crate::FAMILY;
use crate::rollouts::conversation::{conversation_lines, events};
use crate::rollouts::outcome;
use crate::rollouts::problem::{Problem as RowProblem, ProblemKind};
use crate::rollouts::rollout::{IdSource, Rollout};
use crate::rollouts::rows::Row;
use crate::rollouts::run::Run;
use crate::rollouts::stop::StopKind;

/// Rollouts that are imported together.
const GROUP: usize = 128;
/// The row or sample, unchanged.
const SAMPLE_FILE: &str = "prime_sample.json";

/// The harness of runs saved on a user's machine, which are identified by the names of their directories.
pub const SAVED: &str = "verifiers";

/// Takes the rows of a run group by group, so that memory does not grow with their number.
pub struct Rollouts<'a, 'b> {
    importer: &'a mut Importer<'b>,
    run: &'a Run,
    seen: usize,
    group: Vec<Sample<'a>>,
}

/// A rollout with the bytes that it was read from.
struct Sample<'a> {
    rollout: Rollout,
    raw: Bytes,
    run: &'a Run,
    adapter: &'static str,
    trial_id: String,
}

impl<'a, 'b> Rollouts<'a, 'b> {
    pub fn new(importer: &'a mut Importer<'b>, run: &'a Run) -> Self {
        Self { importer, run, seen: 0, group: Vec::new() }
    }

    /// Takes the next row. A row that cannot be read is counted and reported.
    pub fn take(&mut self, row: Result<Row, RowProblem>) -> Result<(), ImportError> {
        let row = match row {
            Ok(row) => row,
            Err(problem) => {
                // A bad row keeps its number, so that the other rows keep theirs when it is corrected.
                self.seen += 1;
                self.importer.refuse(refused(&problem));
                return Ok(());
            }
        };
        let origin = self.importer.origin();
        let is_alone = row.rollouts.len() == 1;
        for (at, rollout) in row.rollouts.into_iter().enumerate() {
            self.seen += 1;
            let own = match &rollout.sample_id {
                Some(id) if is_alone => id.clone(),
                Some(id) => format!("{id}-{at}"),
                None => format!("sample-{}", self.seen),
            };
            let trial_id = format!("prime-{}-{own}", origin.id);
            let (run, adapter) = (self.run, origin.adapter);
            self.group.push(Sample { rollout, raw: row.raw.clone(), run, adapter, trial_id });
        }
        if self.group.len() < GROUP {
            return Ok(());
        }
        self.importer.take(&std::mem::take(&mut self.group))
    }

    /// Takes the remaining rows.
    pub fn finish(self) -> Result<(), ImportError> {
        self.importer.take(&self.group)
    }
}

/// The problem of a row, or of a run's metadata, that cannot be read.
pub fn refused(problem: &RowProblem) -> Problem {
    let told = Problem::warning(problem.kind.to_string()).id(FAMILY.number(23));
    let told = match problem.line {
        Some(line) => told.at(Place {
            file: problem.file.clone(),
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: 1,
        }),
        None => told.in_file(&problem.file),
    };
    match problem.kind {
        ProblemKind::Torn => told.fix("the other rows were taken; finish the evaluation and import it again"),
        _ => told.fix("the other rows were taken"),
    }
}

impl Sample<'_> {
    fn as_it_came(&self) -> String {
        String::from_utf8_lossy(&self.raw).into_owned()
    }
}

impl Foreign for Sample<'_> {
    fn identity(&self, tasks: &KnownTasks<'_>) -> Identity {
        let (rollout, run) = (&self.rollout, self.run);
        let model = rollout.model.clone().or_else(|| run.model.clone());
        Identity {
            id: self.trial_id.clone(),
            rollout: rollout_key(rollout),
            task_id: task_id(rollout, run, tasks),
            agent: ForeignAgent {
                name: model.clone().unwrap_or_else(|| "unknown".to_owned()),
                revision: run.versions.get("vf_version").cloned(),
                configuration: outcome::configuration(rollout, run),
                model,
            },
        }
    }

    fn trial(&self, tasks: &KnownTasks<'_>) -> ForeignTrial {
        let (rollout, run) = (&self.rollout, self.run);
        let task_id = task_id(rollout, run, tasks);
        let known = tasks.position(&task_id).and_then(|at| Some((at, tasks.read(at)?)));
        let answer = answer(rollout, known.as_ref().map(|(_, task)| &**task));
        let writes = |tool: &String| !["submit_answer", "read_file", "list_files"].contains(&tool.as_str());
        let is_touched = rollout.calls_by_name.keys().any(writes);
        let is_one_file = is_touched
            && known.as_ref().is_some_and(|(at, task)| {
                let places: Vec<&str> = task.files.iter().map(|file| file.place.as_str()).collect();
                lane(&tasks.all()[*at], &places).0 == Interaction::SingleTurn
            });
        let known = known.map(|(_, task)| task);
        let mut tool_versions = run.versions.clone();
        let package = &rollout.task.package;
        if let (Some(name), Some(version)) = (&package.name, &package.version) {
            tool_versions.insert(name.clone(), version.clone());
        }
        ForeignTrial {
            task: task_facts(rollout, task_id, known.as_deref()),
            dataset: rollout.task.dataset.clone(),
            started: started(rollout, run),
            instruction: rollout.instruction().unwrap_or_default().to_owned(),
            ending: ending(rollout),
            status: status(rollout, answer.is_some()),
            error: rollout.error.as_ref().map(|error| error.kind.clone()),
            told: match rollout.reward {
                _ if measured(rollout, "agent_fault") => Told::Refused,
                _ if measured(rollout, "verifier_fault") => {
                    Told::VerifierFailed("the verifier failed where the rollout was made".to_owned())
                }
                Some(reward) => Told::Reward(reward),
                None => Told::Missing(rollout.unscored()),
            },
            measured: (!rollout.metrics.is_empty()).then(|| json!({ "metrics": rollout.metrics })),
            verifier: rollout.task.verifier.as_deref().and_then(|digest| digest.parse().ok()),
            source: source(rollout),
            output_path: answer
                .as_ref()
                .map_or_else(String::new, |answer| format!("/workspace/{}", answer.path)),
            left: Left::Conversation { answer, is_touched, is_one_file },
            here: here(rollout, known),
            runtime_image: self.adapter.to_owned(),
            tool_versions,
            agent_result: agent_result(rollout, run),
            cost: Cost {
                model_calls: rollout.turns as u64,
                tokens_in: rollout.tokens_in,
                tokens_out: rollout.tokens_out,
                estimated_cost_usd: rollout.cost_usd,
                unpriced_calls: if rollout.cost_usd.is_none() { rollout.turns as u64 } else { 0 },
                ..Cost::default()
            },
            timing: Timing {
                total_seconds: rollout.timing.total.unwrap_or(0.0),
                agent_seconds: rollout.timing.generation,
                verification_seconds: rollout.timing.scoring,
                ..Timing::default()
            },
        }
    }

    fn evidence(&self, bench: ForeignJudging<'_>) -> io::Result<Vec<Artefact>> {
        let keep = |name: &str, text: String| keep(format!("workspace/{name}"), text, bench);
        Ok(vec![
            keep(CONVERSATION_FILE, conversation_lines(&self.rollout.messages))?,
            keep(SAMPLE_FILE, self.as_it_came())?,
            keep(TRAJECTORY_FILE, transcript::lines(&events(&self.rollout)))?,
        ])
    }

    fn original(&self) -> Option<(String, String)> {
        (self.adapter == SAVED).then(|| (format!("workspace/{SAMPLE_FILE}"), self.as_it_came()))
    }
}

/// The rollout that a row belongs to, numbered as in the results of an evaluation.
fn rollout_key(rollout: &Rollout) -> Option<RolloutKey> {
    let number = rollout.rollout_number.and_then(|number| u32::try_from(number).ok());
    let attempt =
        rollout.attempt.and_then(|attempt| u32::try_from(attempt).ok()).filter(|_| number.is_some());
    Some(RolloutKey {
        example: rollout.example_id.clone()?,
        number,
        row: RolloutRow { attempt: attempt.unwrap_or(1).max(1), has_error: rollout.error.is_some() },
        is_named: rollout.sample_id.is_some(),
    })
}

/// Whether the environment package recorded this metric.
fn measured(rollout: &Rollout, metric: &str) -> bool {
    rollout.metrics.get(metric).is_some_and(|value| *value > 0.0)
}

/// Where the answer of a rollout came from: according to the package's metrics, else to the conversation.
fn source(rollout: &Rollout) -> Option<Source> {
    let order = AnswerOrder::PRESENT;
    if rollout.metrics.contains_key("submitted") {
        let [submitted, written, said] =
            ["submitted", "source_workspace", "source_message"].map(|metric| measured(rollout, metric));
        return order.choose(submitted, written, said);
    }
    let said = rollout.final_text.as_deref().and_then(|text| last_word(text, false));
    order.choose(rollout.submitted().is_some(), false, said.is_some())
}

/// The answer of a rollout, if the conversation contains it. Files that the agent wrote are not part of a rollout.
fn answer(rollout: &Rollout, known: Option<&PreparedTask>) -> Option<Answer> {
    let output = known.map(|known| known.output_place().to_owned());
    let source = source(rollout)?;
    match source {
        Source::Submitted => {
            let submission = rollout.submitted()?;
            let file = || submission.file().map(|path| path.to_string_lossy().into_owned());
            let named = submission.path.as_ref().and_then(|_| file());
            let path = named.or(output).or_else(file)?;
            Some(Answer { path, text: submission.text.clone()?, source })
        }
        Source::FinalText => Some(Answer { path: output?, text: rollout.final_text.clone()?, source }),
        Source::File => None,
    }
}

/// The local task, if it is the one that the sample names.
fn here(rollout: &Rollout, known: Option<Arc<PreparedTask>>) -> Result<Arc<PreparedTask>, &'static str> {
    let known = known.ok_or("the task is not here")?;
    match rollout.task.revision.as_deref().map(str::parse::<Digest>) {
        Some(Ok(revision)) if revision == known.revision => Ok(known),
        Some(_) => Err("the task here has another revision"),
        None => Err("the sample does not say which revision of the task it is"),
    }
}

/// How the work ended. If a rollout achieved nothing through no fault of the agent, its reward is meaningless.
fn ending(rollout: &Rollout) -> Ending {
    let is_nothing = rollout.reward.is_none_or(|reward| reward == 0.0) && rollout.submitted().is_none();
    match outcome::fault(rollout) {
        Some(fault) if is_nothing && !is_agents_doing(&fault) => Ending::Lost(Outcome::InfraFault, fault),
        fault => Ending::Judgeable(fault),
    }
}

fn status(rollout: &Rollout, has_answer: bool) -> AgentStatus {
    let is_limited =
        matches!(rollout.stop.kind, StopKind::TurnLimit | StopKind::TokenLimit | StopKind::Timeout);
    match () {
        () if rollout.error.is_some() => AgentStatus::Failed,
        () if !has_answer && rollout.tool_calls == 0 => AgentStatus::Empty,
        () if is_limited || rollout.is_truncated == Some(true) => AgentStatus::Partial,
        () => AgentStatus::Completed,
    }
}

/// The id of a rollout's task, or a name that is unique within its environment. Our packages record the task's id; in
/// other environments the answer or the label of an example may be anything.
fn task_id(rollout: &Rollout, run: &Run, tasks: &KnownTasks<'_>) -> String {
    let task = &rollout.task;
    let is_sure = |id: &&String| task.id_source == Some(IdSource::Info) || tasks.position(id).is_some();
    task.task_id.as_ref().filter(is_sure).cloned().unwrap_or_else(|| {
        let environment = run.environment.as_deref().unwrap_or("environment");
        let example = rollout.example_id.as_deref().unwrap_or("unknown");
        TaskId::nearest(&format!("prime/{environment}/{example}")).to_string()
    })
}

fn task_facts(rollout: &Rollout, task_id: String, known: Option<&PreparedTask>) -> TaskFacts {
    let task = &rollout.task;
    let told = task.revision.as_deref().and_then(|revision| revision.parse::<Digest>().ok());
    // Without a revision, two rollouts with the same instruction belong to the same task.
    let asked = || Digest::of(format!("{task_id}\n{}", rollout.instruction().unwrap_or_default()).as_bytes());
    let first = || task_id.split('/').next().unwrap_or_default().to_owned();
    TaskFacts {
        task_revision: told.or_else(|| known.map(|known| known.revision)).unwrap_or_else(asked),
        domain: task.discipline.clone().unwrap_or_else(first),
        difficulty: task.difficulty.clone(),
        visibility: task.visibility.clone(),
        family: task.family.clone().unwrap_or_else(|| format!("task:{task_id}")),
        task_id,
    }
}

fn agent_result(rollout: &Rollout, run: &Run) -> IndexMap<String, Value> {
    let mut result = outcome::agent_result(rollout, run);
    let told = [
        ("sample_id", rollout.sample_id.clone().map(Value::from)),
        ("example_id", rollout.example_id.clone().map(Value::from)),
        ("rollout_number", rollout.rollout_number.map(Value::from)),
        ("isolation", rollout.task.isolation.clone().map(Value::from)),
        ("overlap", rollout.task.overlap.clone()),
        ("metrics", (!rollout.metrics.is_empty()).then(|| json!(rollout.metrics))),
    ];
    result.extend(told.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    result
}

fn started(rollout: &Rollout, run: &Run) -> Option<Timestamp> {
    let told = [rollout.created_at.as_ref(), run.date.as_ref()];
    let told = told.into_iter().flatten().find_map(|text| timestamp(text));
    told.or_else(|| {
        let measured = rollout.timing.started.filter(|seconds| (1e9..1e11).contains(seconds));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded above")]
        measured.map(|seconds| Timestamp::from_seconds(seconds as u64))
    })
}

/// A time in another program's format: `2026-05-09 10:11:12`, with or without a zone.
fn timestamp(text: &str) -> Option<Timestamp> {
    let text = text.trim().replacen(' ', "T", 1);
    let attempts = [text.clone(), format!("{text}Z")];
    attempts.into_iter().find_map(|text| Timestamp::try_from(text).ok())
}
