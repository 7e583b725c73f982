//! The record of a trial that others made.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

use aec_base::digest::{Digest, Hasher};
use aec_base::name::Name;
use aec_base::timestamp::Timestamp;
use aec_judge::settle::order::AnswerOrder;
use aec_judge::settle::outcome::{AgentStatus, Boundary, Ending, Fault};
use aec_judge::verdict::{Judged, Outcome};
use aec_ledger::record::{
    AgentFacts, AgentOutput, Artefact, Completeness, EnvironmentFacts, Evaluation, Inputs, Outputs,
    SCHEMA_VERSION, SubmissionFacts, TaskFacts, TrialRecord, Validity,
};
use aec_run::elsewhere::{Bench, Judgement, Workspace, judge};
use aec_run::plan::trial_key;
use aec_run::recording::evaluation_of;
use aec_run::task::PreparedTask;
use indexmap::IndexMap;
use serde_json::{Value, json};

use super::known::Found;
use super::planned::{agent_result, cost, timing};
use super::{Maker, SAME};
use crate::fault::ending;
use crate::keep::evidence;
use crate::result::{Job, Trial};

/// What became of judging again.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verification {
    Agrees,
    Disagrees { local: f64, hosted: Option<f64> },
    Unverified(String),
}

/// A record that is ready to be committed.
pub(super) struct Made {
    pub(super) record: TrialRecord,
    pub(super) verification: Verification,
}

/// Rollouts of one task and agent are counted as they come: the same order gives the same numbers.
#[derive(Default)]
pub(super) struct Repetitions(HashMap<Digest, u32>);

impl Repetitions {
    pub(super) fn next(&mut self, maker: &Maker<'_>, trial: &Trial) -> u32 {
        let mut hasher = Hasher::default();
        hasher.part(task_id(trial, &maker.tasks.find(trial)).as_bytes());
        hasher.part(maker.agent(trial).digest.bytes());
        let count = self.0.entry(hasher.finish()).or_default();
        *count += 1;
        *count
    }
}

/// The trial's id: the same for the same trial, however often it is imported.
pub(super) fn trial_name(job: &Job, trial: &Trial) -> Name {
    let own = trial.id.clone().unwrap_or_else(|| {
        let job = trial.job_id.clone().or_else(|| job.id.clone()).unwrap_or_else(|| job.name());
        format!("{job}-{}", trial.name)
    });
    Name::nearest(&format!("harbor-{own}"))
}

fn task_id(trial: &Trial, found: &Found) -> String {
    match found {
        Found::Same(task) | Found::Named(task) => task.id().to_owned(),
        Found::Nothing => {
            let name = trial.task_name.as_deref().or(trial.task_path.as_deref()).unwrap_or("unknown");
            let name: String = name.chars().take(200).collect();
            format!("harbor/{}", aec_base::text::printable(&name))
        }
    }
}

impl Maker<'_> {
    /// The record of a trial. Its contents are in the store when this returns.
    pub(super) fn record(&self, trial: &Trial, name: &Name, repetition: u32) -> io::Result<Made> {
        let found = self.tasks.find(trial);
        let ending = ending(trial, false);
        let (judgement, verification) = self.judge(trial, &found, &ending);
        let (outcome, fault) = outcome(trial, &ending, judgement.as_ref());
        let task = task_facts(trial, &found);
        let agent = self.agent(trial);
        let mut result = agent_result(trial, &serde_json::Map::new());
        self.add_verification(&mut result, &verification);
        let kept = evidence(&trial.path, &self.contents, self.setup.redactor)?;
        let submission = judgement.as_ref().and_then(|judgement| judgement.submission.as_ref());
        let mut artefacts: Vec<Artefact> = submission
            .iter()
            .flat_map(|submission| &submission.files)
            .map(|(path, file)| Artefact {
                path: format!("workspace/{path}"),
                digest: file.digest,
                size: file.size,
            })
            .collect();
        artefacts.sort_by(|a, b| a.path.cmp(&b.path));
        let verdict = judgement.as_ref().and_then(|judgement| judgement.verdict.as_ref());
        let source = judgement.as_ref().and_then(|judgement| judgement.source);
        let evaluation = match verdict.filter(|verdict| verdict.reward.is_some()) {
            Some(verdict) => Some(evaluation_of(verdict, source)),
            None => told_evaluation(trial, outcome),
        };
        let record = TrialRecord {
            schema_version: SCHEMA_VERSION,
            trial_id: name.clone(),
            experiment_id: self.setup.experiment.clone(),
            dataset_id: None,
            timestamp: trial.times.started.clone().unwrap_or_else(Timestamp::now),
            attempt: 1,
            repetition,
            key: trial_key(&task.task_id, task.task_revision, agent.digest, repetition),
            plan: self.plan,
            outcome,
            fault: fault.map(|fault| self.scrubbed(fault)),
            inputs: Inputs {
                instruction: match &found {
                    Found::Same(task) => self.setup.redactor.scrub(task.instruction.clone()),
                    Found::Named(_) | Found::Nothing => String::new(),
                },
                system_prompt: None,
                input_files: Vec::new(),
            },
            outputs: Outputs {
                agent_output: Some(agent_output(trial, &found, outcome)),
                output_source: source,
                answer_order: AnswerOrder::PRESENT,
                raw_output_path: None,
                conversation_path: None,
                trajectory_path: None,
                trajectory_content: None,
                agent_result: result,
                submission: submission.map(|submission| SubmissionFacts {
                    digest: submission.digest,
                    files: submission.files.clone(),
                    refused: submission.refused.clone(),
                }),
                snapshots: Vec::new(),
            },
            evaluation,
            cost: cost(trial),
            adaptation: None,
            artefacts,
            completeness: Completeness::Partial,
            timing: timing(trial, kept),
            environment: self.environment(trial),
            task,
            agent,
        };
        Ok(Made { record, verification })
    }

    fn scrubbed(&self, fault: Fault) -> Fault {
        Fault { message: self.setup.redactor.scrub(fault.message), ..fault }
    }

    fn add_verification(&self, result: &mut IndexMap<String, Value>, verification: &Verification) {
        let word = match verification {
            Verification::Agrees => "agrees",
            Verification::Disagrees { .. } => "disagrees",
            Verification::Unverified(_) => "unverified",
        };
        result.insert("verification".to_owned(), word.into());
        if let Verification::Unverified(reason) = verification {
            result.insert("unverified_because".to_owned(), reason.as_str().into());
        }
        result.insert("source_run".to_owned(), self.job.name().into());
        result.values_mut().for_each(|value| self.setup.redactor.scrub_value(value));
    }

    /// Judges again what an agent left, if it came back and the verifier is the one that it met there.
    fn judge(&self, trial: &Trial, found: &Found, ending: &Ending) -> (Option<Judgement>, Verification) {
        let unverified = |reason: &str| (None, Verification::Unverified(reason.to_owned()));
        let task = match found {
            Found::Same(task) => task,
            Found::Named(_) => return unverified("the task here has other files"),
            Found::Nothing => return unverified("the task is not here"),
        };
        let Ending::Judgeable(own) = ending else { return unverified("it failed where it was made") };
        if trial.has_steps {
            return unverified("it has several steps");
        }
        let Some(workspace) = trial.workspace() else {
            return unverified("what the agent left in /workspace is not among the artifacts");
        };
        let bench = Bench {
            judge: self.setup.judge,
            contents: &self.contents,
            redactor: self.setup.redactor,
            order: AnswerOrder::PRESENT,
        };
        let workspace = Workspace { path: &workspace, ours: &[], published: None };
        let judgement = judge(bench, task, workspace, own.clone());
        let local = judgement.verdict.as_ref().and_then(|verdict| verdict.reward);
        let verification = match (local, trial.reward()) {
            (Some(local), Some(hosted)) if (local - hosted).abs() <= SAME => Verification::Agrees,
            (Some(local), hosted) => Verification::Disagrees { local, hosted },
            (None, _) if self.setup.judge.is_none() => {
                Verification::Unverified("nobody asked for it".to_owned())
            }
            (None, _) => {
                let reason =
                    judgement.settled.fault.as_ref().map(|fault| fault.message.clone()).unwrap_or_default();
                Verification::Unverified(format!("it could not be judged here: {reason}"))
            }
        };
        (Some(judgement), verification)
    }

    fn agent(&self, trial: &Trial) -> AgentFacts {
        let info = &trial.agent;
        let name =
            info.name.clone().or_else(|| info.import_path.clone()).unwrap_or_else(|| "unknown".to_owned());
        let shown = match &info.model {
            Some(model) => format!("{name}-{model}"),
            None => name.clone(),
        };
        let mut configuration = IndexMap::from([("agent".to_owned(), Value::from(name))]);
        if let Some(path) = &info.import_path {
            configuration.insert("import_path".to_owned(), path.as_str().into());
        }
        // The name that this program gave an agent says nothing about what it does.
        let arguments: serde_json::Map<String, Value> = info
            .kwargs
            .iter()
            .filter(|(key, _)| *key != "aec_agent")
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        if !arguments.is_empty() {
            configuration.insert("kwargs".to_owned(), json!(arguments));
        }
        configuration.values_mut().for_each(|value| self.setup.redactor.scrub_value(value));
        let mut hasher = Hasher::default();
        hasher.part(b"harbor");
        hasher.part(info.model.as_deref().unwrap_or_default().as_bytes());
        hasher.part(serde_json::to_string(&configuration).unwrap_or_default().as_bytes());
        AgentFacts {
            name: Name::nearest(&shown),
            adapter: "harbor".to_owned(),
            adapter_revision: info.version.clone(),
            model: info.model.clone(),
            resolved_model: None,
            configuration,
            digest: hasher.finish(),
        }
    }

    fn environment(&self, trial: &Trial) -> EnvironmentFacts {
        let mut versions = BTreeMap::from([("aec-bench".to_owned(), self.setup.tool_version.to_owned())]);
        if let Some(version) = &self.job.version {
            versions.insert("harbor".to_owned(), version.clone());
        }
        EnvironmentFacts {
            runtime_image: format!("harbor:{}", trial.environment),
            compute_backend: "harbor".to_owned(),
            sandbox: None,
            held: None,
            limits: None,
            timeout_sec: None,
            network: false,
            tool_versions: versions,
        }
    }
}

/// What became of it: the judge here has the last word, then the reward there, then the exception.
fn outcome(trial: &Trial, ending: &Ending, judgement: Option<&Judgement>) -> (Outcome, Option<Fault>) {
    let own = match ending {
        Ending::Judgeable(fault) => fault.clone(),
        Ending::Lost(outcome, fault) => return (*outcome, Some(fault.clone())),
    };
    if judgement.is_some_and(|judgement| judgement.settled.outcome == Outcome::Scored) {
        return (Outcome::Scored, own);
    }
    match trial.reward() {
        Some(reward) if (0.0..=1.0).contains(&reward) => (Outcome::Scored, own),
        Some(reward) => {
            let message = format!("Harbor's reward is {reward}, which is not from 0 to 1");
            let fault = Fault { boundary: Boundary::Verifier, kind: None, message, retryable: false };
            (Outcome::VerifierFault, Some(fault))
        }
        None => match judgement {
            Some(Judgement { settled, .. }) => (settled.outcome, settled.fault.clone()),
            None => match own {
                Some(fault) => (Outcome::AgentFault, Some(fault)),
                None => (Outcome::Unverified, None),
            },
        },
    }
}

/// What Harbor says of its own verdict.
fn told_evaluation(trial: &Trial, outcome: Outcome) -> Option<Evaluation> {
    let reward = trial.reward().filter(|_| outcome == Outcome::Scored)?;
    Some(Evaluation {
        reward: Some(reward),
        validity: Validity {
            output_parseable: true,
            schema_valid: true,
            verifier_completed: true,
            errors: Vec::new(),
        },
        breakdown: Some(json!({ "rewards": trial.rewards })),
        judged: Judged::Elsewhere,
        verifier: None,
        submission: None,
        sandbox: None,
        held: None,
        exit_code: None,
        stdout: String::new(),
        stderr: String::new(),
    })
}

fn task_facts(trial: &Trial, found: &Found) -> TaskFacts {
    let task_id = task_id(trial, found);
    // Without the task, two trials whose tasks had the same files were asked the same.
    let told = || {
        let told = trial.checksum.as_deref().or(trial.contract.as_deref()).unwrap_or_default();
        Digest::of(format!("harbor\n{task_id}\n{told}").as_bytes())
    };
    let known = |task: &Arc<PreparedTask>| TaskFacts {
        task_revision: if matches!(found, Found::Same(_)) { task.revision } else { told() },
        domain: task.domain().to_owned(),
        difficulty: task.difficulty().map(str::to_owned),
        visibility: task.visibility().map(str::to_owned),
        family: task.family.clone(),
        task_id: task_id.clone(),
    };
    match found {
        Found::Same(task) | Found::Named(task) => known(task),
        Found::Nothing => TaskFacts {
            task_revision: told(),
            domain: "harbor".to_owned(),
            difficulty: None,
            visibility: None,
            family: format!("task:{task_id}"),
            task_id,
        },
    }
}

fn agent_output(trial: &Trial, found: &Found, outcome: Outcome) -> AgentOutput {
    let path = match found {
        Found::Same(task) => task.output_path.clone(),
        Found::Named(_) | Found::Nothing => String::new(),
    };
    AgentOutput {
        status: match &trial.exception {
            Some(exception) if exception.kind == "AgentTimeoutError" => AgentStatus::Partial,
            Some(_) => AgentStatus::Failed,
            None if outcome == Outcome::AgentFault => AgentStatus::Failed,
            None => AgentStatus::Completed,
        },
        output_format: if path.ends_with(".md") { "markdown" } else { "jsonl" }.to_owned(),
        output_path: path,
        error_message: trial.exception.as_ref().map(|exception| exception.kind.clone()),
    }
}
