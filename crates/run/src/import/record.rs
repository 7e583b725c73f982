//! The record of a trial made by another program.

use std::io;

use aec_base::digest::{Digest, Hasher};
use aec_base::name::Name;
use aec_base::secret::Redactor;
use aec_base::timestamp::Timestamp;
use aec_judge::settle::outcome::{AgentStatus, Boundary, Ending, Fault};
use aec_judge::verdict::{Judged, Outcome};
use aec_ledger::record::{
    AgentFacts, AgentOutput, Artefact, Completeness, EnvironmentFacts, Evaluation, Inputs, Outputs,
    SCHEMA_VERSION, SubmissionFacts, TaskFacts, Timing, TrialRecord, Validity,
};
use aec_ledger::transcript::TRAJECTORY_FILE;
use aec_ledger::transcript::conversation::CONVERSATION_FILE;
use aec_task::id::TaskId;
use serde_json::Value;

use super::foreign::{Answer, Foreign, ForeignAgent, ForeignTrial, Left, Told, keep};
use super::trust::Standing;
use super::verification::{Verification, verify};
use super::{ImportSetup, KnownTasks};
use crate::elsewhere::{ForeignJudging, Judgement};
use crate::plan::trial_key;
use crate::recording::{evaluation_of, scrub_map};

/// The directory of a trial's files, as in records of runs.
const WORKSPACE: &str = "workspace";

/// A trial that gets a record, with its trial id, attempt and repetition.
pub(super) struct Case<'a, F> {
    pub(super) foreign: &'a F,
    pub(super) agent: AgentFacts,
    pub(super) trial: Name,
    pub(super) attempt: u32,
    pub(super) repetition: u32,
}

pub(super) struct Made {
    pub(super) record: TrialRecord,
    pub(super) verification: Verification,
}

/// Whether the agent caused a fault: an agent whose model says nothing, refuses, or cannot take such a long
/// conversation has only itself to blame.
pub fn is_agents_doing(fault: &Fault) -> bool {
    fault.boundary == Boundary::Harness
        || matches!(fault.kind.as_deref(), Some("empty" | "overlong" | "content_filter"))
}

/// A foreign program's words about a task, without secrets. An id with one in it becomes another id.
fn scrubbed(mut task: TaskFacts, redactor: &Redactor) -> TaskFacts {
    if redactor.scrub_text(&mut task.task_id) {
        task.task_id = TaskId::nearest(&task.task_id).to_string();
    }
    for text in [&mut task.domain, &mut task.family] {
        redactor.scrub_text(text);
    }
    redactor.scrub_some(&mut task.difficulty);
    redactor.scrub_some(&mut task.visibility);
    task
}

pub(super) struct Maker<'a, 'b> {
    pub(super) setup: &'a ImportSetup<'b>,
    pub(super) tasks: &'a KnownTasks<'b>,
    pub(super) plan: Digest,
    pub(super) bench: ForeignJudging<'a>,
}

impl Maker<'_, '_> {
    /// The agent in the form of records.
    pub(super) fn agent(&self, agent: &ForeignAgent) -> AgentFacts {
        let adapter = self.setup.origin.adapter;
        let mut configuration = agent.configuration.clone();
        let redactor = self.setup.redactor;
        scrub_map(&mut configuration, redactor);
        let (mut revision, mut model) = (agent.revision.clone(), agent.model.clone());
        redactor.scrub_some(&mut revision);
        redactor.scrub_some(&mut model);
        let mut hasher = Hasher::default();
        hasher.part(adapter.as_bytes());
        hasher.part(agent.model.as_deref().unwrap_or_default().as_bytes());
        hasher.part(serde_json::to_string(&configuration).unwrap_or_default().as_bytes());
        AgentFacts {
            name: Name::nearest(&redactor.scrub(agent.name.clone())),
            adapter: adapter.to_owned(),
            adapter_revision: revision,
            model,
            resolved_model: None,
            configuration,
            digest: hasher.finish(),
        }
    }

    /// The record. Its contents are in the store when this returns.
    pub(super) fn record<F: Foreign>(&self, case: &Case<'_, F>) -> io::Result<Made> {
        let told = &case.foreign.trial(self.tasks);
        let redactor = self.bench.redactor;
        let (judgement, verification) = verify(self.bench, told);
        let (found, fault) = outcome(told, judgement.as_ref());
        let standing = self.setup.rewards.standing(found, told, judgement.is_some());
        let (outcome, verification) = match &standing {
            Standing::Unverified(why) => (Outcome::Unverified, Verification::Unverified((*why).to_owned())),
            Standing::Own | Standing::Trusted => (found, verification),
        };
        let timed = case.foreign.evidence(self.bench)?;
        let (artefacts, raw_output_path) = self.left(told, judgement.as_ref(), &timed)?;
        let kept = |name: &str| {
            let path = format!("{WORKSPACE}/{name}");
            timed.iter().any(|artefact| artefact.path == path).then_some(path)
        };
        let source = told.source.or_else(|| judgement.as_ref()?.source);
        let verdict = judgement.as_ref().and_then(|judgement| judgement.verdict.as_ref());
        let evaluation = match verdict.filter(|verdict| verdict.reward.is_some()) {
            Some(verdict) => Some(evaluation_of(verdict, source)),
            None => told
                .told
                .reward()
                .filter(|_| outcome == Outcome::Scored)
                .map(|reward| elsewhere(told, reward, standing == Standing::Trusted)),
        };
        let mut tool_versions = told.tool_versions.clone();
        for version in tool_versions.values_mut() {
            redactor.scrub_text(version);
        }
        tool_versions.insert("aec-bench".to_owned(), self.setup.tool_version.to_owned());
        let record = TrialRecord {
            schema_version: SCHEMA_VERSION,
            trial_id: case.trial.clone(),
            experiment_id: self.setup.experiment.clone(),
            dataset_id: told.dataset.clone(),
            timestamp: told.started.clone().unwrap_or_else(Timestamp::now),
            attempt: case.attempt,
            repetition: case.repetition,
            key: trial_key(&told.task.task_id, told.task.task_revision, case.agent.digest, case.repetition),
            plan: self.plan,
            outcome,
            fault: fault.map(|fault| Fault { message: redactor.scrub(fault.message), ..fault }),
            task: scrubbed(told.task.clone(), redactor),
            agent: case.agent.clone(),
            environment: EnvironmentFacts {
                runtime_image: redactor.scrub(told.runtime_image.clone()),
                compute_backend: self.setup.origin.adapter.to_owned(),
                sandbox: None,
                held: None,
                limits: None,
                timeout_sec: None,
                network: false,
                tool_versions,
            },
            inputs: Inputs {
                instruction: redactor.scrub(told.instruction.clone()),
                system_prompt: None,
                input_files: Vec::new(),
            },
            outputs: Outputs {
                agent_output: Some(agent_output(told, outcome)),
                output_source: source,
                answer_order: self.bench.order,
                raw_output_path,
                conversation_path: kept(CONVERSATION_FILE),
                trajectory_path: kept(TRAJECTORY_FILE),
                trajectory_content: None,
                agent_result: self.agent_result(told, &verification),
                submission: judgement.and_then(|judgement| judgement.submission).map(|submission| {
                    SubmissionFacts {
                        digest: submission.digest,
                        files: submission.files,
                        refused: submission.refused,
                    }
                }),
                snapshots: Vec::new(),
            },
            evaluation,
            cost: told.cost.clone(),
            adaptation: None,
            artefacts,
            completeness: Completeness::Partial,
            timing: Timing { artefacts: timed, ..told.timing.clone() },
        };
        Ok(Made { record, verification })
    }

    /// The agent's results among the files of the trial, and the path of the answer.
    fn left(
        &self,
        told: &ForeignTrial,
        judgement: Option<&Judgement>,
        taken: &[Artefact],
    ) -> io::Result<(Vec<Artefact>, Option<String>)> {
        if let Left::Conversation { answer, .. } = &told.left {
            let Some(answer) = answer else { return Ok((Vec::new(), None)) };
            let kept = keep(place(answer, taken), answer.text.clone(), self.bench)?;
            let path = kept.path.clone();
            return Ok((vec![kept], Some(path)));
        }
        let submission = judgement.and_then(|judgement| judgement.submission.as_ref());
        let files = submission.into_iter().flat_map(|submission| &submission.files);
        let files = files.map(|(path, file)| Artefact {
            path: format!("{WORKSPACE}/{path}"),
            digest: file.digest,
            size: file.size,
        });
        Ok((files.collect(), None))
    }

    fn agent_result(
        &self,
        told: &ForeignTrial,
        verification: &Verification,
    ) -> indexmap::IndexMap<String, Value> {
        let mut result = told.agent_result.clone();
        let mut put = |key: &str, value: Value| drop(result.insert(key.to_owned(), value));
        put("source", self.setup.origin.adapter.into());
        put("source_run", self.setup.origin.name.as_str().into());
        if let Some(reward) = told.told.reward() {
            put("source_reward", reward.into());
        }
        verification.note(&mut result);
        scrub_map(&mut result, self.setup.redactor);
        result
    }
}

/// The outcome: the judge here decides, then the reward there, then any fault.
fn outcome(told: &ForeignTrial, judgement: Option<&Judgement>) -> (Outcome, Option<Fault>) {
    let own = match &told.ending {
        Ending::Lost(outcome, fault) => return (*outcome, Some(fault.clone())),
        Ending::Judgeable(own) => own.clone(),
    };
    // The judge here decides, also about files that make its verifier fail.
    let decided = judgement.filter(|judgement| judgement.verdict.is_some());
    if let Some(Judgement { settled, .. }) = decided.filter(|one| one.settled.outcome.is_counted()) {
        return (settled.outcome, settled.fault.clone());
    }
    let failed = |message: String, retryable| {
        let fault = Fault::lasting(Boundary::Verifier, None, message);
        (Outcome::VerifierFault, Some(Fault { retryable, ..fault }))
    };
    match (&told.told, judgement, own) {
        (Told::Reward(reward), _, own) if (0.0..=1.0).contains(reward) => (Outcome::Scored, own),
        (Told::Reward(reward), ..) => {
            failed(format!("the reported reward is {reward}, which is not from 0 to 1"), false)
        }
        (Told::Refused, ..) => {
            let message = "what the agent left was refused where it was made";
            (Outcome::AgentFault, Some(Fault::lasting(Boundary::Harness, None, message)))
        }
        (Told::VerifierFailed(reason), ..) => failed(reason.clone(), true),
        (_, Some(Judgement { settled, .. }), _) => (settled.outcome, settled.fault.clone()),
        (_, None, Some(own)) if is_agents_doing(&own) => (Outcome::AgentFault, Some(own)),
        (_, None, Some(own)) => (Outcome::InfraFault, Some(own)),
        (Told::Missing(reason), None, None) => failed(reason.clone(), false),
        (Told::Unjudged, None, None) => (Outcome::Unverified, None),
    }
}

/// The verdict of the other program.
fn elsewhere(told: &ForeignTrial, reward: f64, trusted: bool) -> Evaluation {
    Evaluation {
        reward: Some(reward),
        validity: Validity {
            output_parseable: true,
            schema_valid: true,
            verifier_completed: true,
            errors: Vec::new(),
        },
        breakdown: told.measured.clone(),
        judged: Judged::Elsewhere,
        scorer: None,
        trusted,
        verifier: told.verifier,
        submission: None,
        sandbox: None,
        held: None,
        exit_code: None,
        stdout: String::new(),
        stderr: String::new(),
    }
}

fn agent_output(told: &ForeignTrial, outcome: Outcome) -> AgentOutput {
    let path = &told.output_path;
    AgentOutput {
        status: match told.status {
            AgentStatus::Completed if outcome == Outcome::AgentFault => AgentStatus::Failed,
            status => status,
        },
        output_format: if path.ends_with(".md") { "markdown" } else { "jsonl" }.to_owned(),
        output_path: path.clone(),
        error_message: told.error.clone(),
    }
}

/// The path of an answer among the files of the trial. The model chose its name: if it is already taken or unsafe,
/// another path is used.
fn place(answer: &Answer, taken: &[Artefact]) -> String {
    let part = |part: &str| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "._- ".contains(letter);
        !part.is_empty()
            && !part.starts_with('.')
            && part.len() <= 100
            && part.chars().all(plain)
            && !part.ends_with([' ', '.'])
    };
    let path = format!("{WORKSPACE}/{}", answer.path);
    let fits = answer.path.len() <= 400 && answer.path.split('/').all(part);
    let is_free = taken.iter().all(|artefact| artefact.path != path);
    if fits && is_free { path } else { "submitted/answer.txt".to_owned() }
}
