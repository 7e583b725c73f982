//! The record of a rollout.

use std::collections::BTreeMap;
use std::io;

use aec_base::content::ContentStore;
use aec_base::digest::{Digest, Hasher};
use aec_base::name::Name;
use aec_base::timestamp::Timestamp;
use aec_judge::settle::order::AnswerOrder;
use aec_judge::settle::outcome::{AgentStatus, Boundary, Fault};
use aec_judge::verdict::{Judged, Outcome};
use aec_ledger::record::{
    AgentFacts, AgentOutput, Artefact, Completeness, Cost, EnvironmentFacts, Evaluation, Inputs, Outputs,
    SCHEMA_VERSION, SubmissionFacts, TaskFacts, Timing, TrialRecord, Validity,
};
use aec_ledger::transcript::conversation::CONVERSATION_FILE as CONVERSATION;
use aec_ledger::transcript::{self, TRAJECTORY_FILE as TRAJECTORY};
use aec_run::plan::trial_key;
use aec_run::recording::evaluation_of;
use indexmap::IndexMap;
use serde_json::{Value, json};

use super::check::{Answer, KnownTask, KnownTasks, Verification, answer, check, measured, source};
use super::{Case, ImportSetup};
use crate::rollouts::conversation::{conversation_lines, events};
use crate::rollouts::outcome;
use crate::rollouts::rollout::{IdSource, Rollout};
use crate::rollouts::run::Run;
use crate::rollouts::stop::StopKind;

/// The directory of a trial's files, as in records of runs.
const WORKSPACE: &str = "workspace";
const SAMPLE: &str = "prime_sample.json";

/// Makes records.
pub(super) struct Maker<'a, 'b> {
    pub(super) setup: &'a ImportSetup<'b>,
    pub(super) tasks: &'a KnownTasks<'b>,
    pub(super) plan: Digest,
    pub(super) contents: ContentStore,
}

/// The id of a rollout's task, or a name that tells it from others of the same environment. Packages of ours say which
/// task it is; elsewhere the answer or the label of an example may mean anything.
pub(super) fn task_id(rollout: &Rollout, run: &Run, tasks: &KnownTasks<'_>) -> String {
    let task = &rollout.task;
    let sure = |id: &&String| task.id_source == Some(IdSource::Info) || tasks.knows(id);
    match task.task_id.as_ref().filter(sure) {
        Some(id) => id.clone(),
        None => {
            let environment = run.environment.as_deref().unwrap_or("environment");
            format!("prime/{environment}/{}", rollout.example_id.as_deref().unwrap_or("unknown"))
        }
    }
}

/// The model of a rollout.
pub(super) fn model<'a>(rollout: &'a Rollout, run: &'a Run) -> Option<&'a str> {
    rollout.model.as_deref().or(run.model.as_deref())
}

impl Maker<'_, '_> {
    /// The record of a rollout. Its contents are in the store when this returns.
    pub(super) fn record(&self, case: &Case) -> io::Result<(TrialRecord, Verification)> {
        let rollout = &case.sample.rollout;
        let task_id = task_id(rollout, &self.setup.run, self.tasks);
        let known = self.tasks.get(&task_id);
        let answer = answer(rollout, known.map(|(_, known)| known));
        let (verification, judged) = check(rollout, known, answer.as_ref(), self.setup.judge, &self.contents);
        let (outcome, fault) = self.outcome(rollout, judged.is_some());
        let task = task_facts(rollout, task_id, known.map(|(_, known)| known));
        let agent = self.agent(rollout);
        let key = trial_key(&task.task_id, task.task_revision, agent.digest, case.repetition);
        let (artefacts, timed) = self.keep(case, answer.as_ref())?;
        let evaluation = match &judged {
            Some((verdict, _)) => Some(evaluation_of(verdict, source(rollout))),
            None => self.evaluation(rollout, outcome),
        };
        let record = TrialRecord {
            schema_version: SCHEMA_VERSION,
            trial_id: case.trial.clone(),
            experiment_id: self.setup.experiment.clone(),
            dataset_id: rollout.task.dataset.clone(),
            timestamp: started(rollout, &self.setup.run),
            attempt: 1,
            repetition: case.repetition,
            key,
            plan: self.plan,
            outcome,
            fault,
            task,
            agent,
            environment: self.environment(rollout),
            inputs: Inputs {
                instruction: self.scrub(rollout.instruction().unwrap_or_default()),
                system_prompt: None,
                input_files: Vec::new(),
            },
            outputs: Outputs {
                agent_output: Some(agent_output(rollout, answer.as_ref())),
                output_source: source(rollout),
                answer_order: AnswerOrder::PRESENT,
                raw_output_path: answer.as_ref().map(Answer::artefact),
                conversation_path: Some(format!("{WORKSPACE}/{CONVERSATION}")),
                trajectory_path: Some(format!("{WORKSPACE}/{TRAJECTORY}")),
                trajectory_content: None,
                agent_result: self.agent_result(rollout, &verification),
                submission: judged.map(|(_, submission)| SubmissionFacts {
                    digest: submission.digest,
                    files: submission.files,
                    refused: submission.refused,
                }),
                snapshots: Vec::new(),
            },
            evaluation,
            cost: Cost {
                model_calls: rollout.turns as u64,
                tokens_in: rollout.tokens_in,
                tokens_out: rollout.tokens_out,
                estimated_cost_usd: rollout.cost_usd,
                unpriced_calls: if rollout.cost_usd.is_none() { rollout.turns as u64 } else { 0 },
                ..Cost::default()
            },
            adaptation: None,
            artefacts,
            completeness: Completeness::Partial,
            timing: Timing {
                completed_at: None,
                total_seconds: rollout.timing.total.unwrap_or(0.0),
                setup_seconds: None,
                agent_seconds: rollout.timing.generation,
                verification_seconds: rollout.timing.scoring,
                artefacts: timed,
            },
        };
        Ok((record, verification))
    }

    fn scrub(&self, text: &str) -> String {
        self.setup.redactor.scrub(text.to_owned())
    }

    /// What became of it. A reward counts whatever went wrong on the way to it; so does a verdict of this judge.
    fn outcome(&self, rollout: &Rollout, judged: bool) -> (Outcome, Option<Fault>) {
        let fault = outcome::fault(rollout).map(|fault| Fault {
            boundary: boundary(fault.boundary),
            kind: fault.kind.map(str::to_owned),
            message: self.scrub(&fault.message),
            retryable: fault.is_retryable,
        });
        if judged {
            return (Outcome::Scored, fault);
        }
        if failed_elsewhere(rollout) {
            return (Outcome::InfraFault, fault);
        }
        if measured(rollout, "agent_fault") {
            let message = "what the agent left was refused where the rollout was made";
            return (Outcome::AgentFault, Some(Fault::lasting(Boundary::Harness, None, message)));
        }
        if measured(rollout, "verifier_fault") {
            let message = "the verifier failed where the rollout was made".to_owned();
            let failed = Fault { boundary: Boundary::Verifier, kind: None, message, retryable: true };
            return (Outcome::VerifierFault, Some(failed));
        }
        if let Some(reward) = rollout.reward.filter(|reward| !(0.0..=1.0).contains(reward)) {
            let message = format!("the sample's reward is {reward}, which is not from 0 to 1");
            let failed = Fault { boundary: Boundary::Verifier, kind: None, message, retryable: false };
            return (Outcome::VerifierFault, Some(failed));
        }
        let outcome = match (&fault, rollout.reward) {
            (_, Some(_)) => Outcome::Scored,
            (Some(fault), None) if fault.boundary == Boundary::Harness => Outcome::AgentFault,
            (Some(_), None) => Outcome::InfraFault,
            (None, None) => Outcome::VerifierFault,
        };
        let fault = fault.or_else(|| {
            (outcome == Outcome::VerifierFault).then(|| Fault {
                boundary: Boundary::Verifier,
                kind: None,
                message: "the sample has no reward".to_owned(),
                retryable: false,
            })
        });
        (outcome, fault)
    }

    /// What the sample says of its own verdict.
    fn evaluation(&self, rollout: &Rollout, outcome: Outcome) -> Option<Evaluation> {
        let reward = rollout.reward.filter(|_| outcome == Outcome::Scored)?;
        Some(Evaluation {
            reward: Some(reward),
            validity: Validity {
                output_parseable: true,
                schema_valid: true,
                verifier_completed: true,
                errors: Vec::new(),
            },
            breakdown: (!rollout.metrics.is_empty()).then(|| json!({ "metrics": rollout.metrics })),
            judged: Judged::Elsewhere,
            verifier: rollout.task.verifier.as_deref().and_then(|digest| digest.parse().ok()),
            submission: None,
            sandbox: None,
            held: None,
            exit_code: None,
            stdout: String::new(),
            stderr: String::new(),
        })
    }

    fn agent(&self, rollout: &Rollout) -> AgentFacts {
        let model = model(rollout, &self.setup.run).map(str::to_owned);
        let mut configuration = outcome::configuration(rollout, &self.setup.run);
        for (key, value) in &self.setup.run.sampling {
            configuration.entry(key.clone()).or_insert_with(|| value.clone());
        }
        configuration.values_mut().for_each(|value| self.setup.redactor.scrub_value(value));
        let mut hasher = Hasher::default();
        hasher.part(self.setup.origin.adapter.as_bytes());
        hasher.part(model.as_deref().unwrap_or_default().as_bytes());
        hasher.part(serde_json::to_string(&configuration).unwrap_or_default().as_bytes());
        AgentFacts {
            name: Name::nearest(model.as_deref().unwrap_or("unknown")),
            adapter: self.setup.origin.adapter.to_owned(),
            adapter_revision: self.setup.run.versions.get("vf_version").cloned(),
            resolved_model: None,
            digest: hasher.finish(),
            configuration,
            model,
        }
    }

    fn environment(&self, rollout: &Rollout) -> EnvironmentFacts {
        let mut versions: BTreeMap<String, String> = self.setup.run.versions.clone();
        versions.insert("aec-bench".to_owned(), self.setup.tool_version.to_owned());
        let package = &rollout.task.package;
        if let (Some(name), Some(version)) = (&package.name, &package.version) {
            versions.insert(name.clone(), version.clone());
        }
        EnvironmentFacts {
            runtime_image: self.setup.origin.adapter.to_owned(),
            compute_backend: self.setup.origin.adapter.to_owned(),
            sandbox: None,
            held: None,
            limits: None,
            timeout_sec: None,
            network: false,
            tool_versions: versions,
        }
    }

    fn agent_result(&self, rollout: &Rollout, verification: &Verification) -> IndexMap<String, Value> {
        let mut result = outcome::agent_result(rollout, &self.setup.run);
        let mut put = |key: &str, value: Value| drop(result.insert(key.to_owned(), value));
        put("source", self.setup.origin.adapter.into());
        put("source_run", self.setup.origin.id.clone().into());
        for (key, value) in [("sample_id", &rollout.sample_id), ("example_id", &rollout.example_id)] {
            if let Some(value) = value {
                put(key, value.clone().into());
            }
        }
        if let Some(number) = rollout.rollout_number {
            put("rollout_number", number.into());
        }
        if let Some(reward) = rollout.reward {
            put("source_reward", reward.into());
        }
        if let Some(isolation) = &rollout.task.isolation {
            put("isolation", isolation.clone().into());
        }
        if let Some(overlap) = &rollout.task.overlap {
            put("overlap", overlap.clone());
        }
        put("verification", verification.name().into());
        if let Verification::Unverified { reason } = verification {
            put("unverified_because", reason.clone().into());
        }
        if !rollout.metrics.is_empty() {
            put("metrics", json!(rollout.metrics));
        }
        result.values_mut().for_each(|value| self.setup.redactor.scrub_value(value));
        result
    }

    /// The files of the trial: those that say nothing of the clock, and those that may.
    fn keep(&self, case: &Case, answer: Option<&Answer>) -> io::Result<(Vec<Artefact>, Vec<Artefact>)> {
        let rollout = &case.sample.rollout;
        let mut artefacts = Vec::new();
        if let Some(answer) = answer {
            artefacts.push(self.put(answer.artefact(), &answer.text)?);
        }
        let timed = vec![
            self.put(own(CONVERSATION), &conversation_lines(&rollout.messages))?,
            self.put(own(SAMPLE), &String::from_utf8_lossy(&case.sample.raw))?,
            self.put(own(TRAJECTORY), &transcript::lines(&events(rollout)))?,
        ];
        Ok((artefacts, timed))
    }

    fn put(&self, path: String, text: &str) -> io::Result<Artefact> {
        let text = self.scrub(text);
        let digest = self.contents.put(text.as_bytes())?;
        Ok(Artefact { path, digest, size: text.len() as u64 })
    }
}

fn own(name: &str) -> String {
    format!("{WORKSPACE}/{name}")
}

impl Answer {
    /// Where the answer lies among the files of the trial. The model chose its name: one of ours, or one that no file
    /// should have, goes beside.
    fn artefact(&self) -> String {
        let part = |part: &str| {
            let plain = |letter: char| letter.is_ascii_alphanumeric() || "._- ".contains(letter);
            !part.starts_with('.')
                && part.len() <= 100
                && part.chars().all(plain)
                && !part.ends_with([' ', '.'])
        };
        let fits = self.path.len() <= 400 && self.path.split('/').all(|one| !one.is_empty() && part(one));
        let taken = [CONVERSATION, SAMPLE, TRAJECTORY].contains(&self.path.as_str());
        if fits && !taken { own(&self.path) } else { "submitted/answer.txt".to_owned() }
    }
}

/// Whether the rollout came to nothing through no fault of the agent: its reward, if it has one, says nothing. A model
/// that answered with nothing, or could not take so long a conversation, has only itself to blame.
pub(super) fn failed_elsewhere(rollout: &Rollout) -> bool {
    let Some(fault) = outcome::fault(rollout) else { return false };
    let not_the_agent = boundary(fault.boundary) != Boundary::Harness;
    let own_doing = matches!(fault.kind, Some("empty" | "overlong"));
    let nothing = rollout.reward.is_none_or(|reward| reward == 0.0) && rollout.submitted().is_none();
    not_the_agent && !own_doing && nothing
}

fn task_facts(rollout: &Rollout, task_id: String, known: Option<&KnownTask>) -> TaskFacts {
    let task = &rollout.task;
    let told = task.revision.as_deref().and_then(|revision| revision.parse::<Digest>().ok());
    let same = known.filter(|known| told.is_none_or(|told| told == known.revision));
    // Without a revision, two rollouts that were asked the same are of the same task.
    let asked = || Digest::of(format!("{task_id}\n{}", rollout.instruction().unwrap_or_default()).as_bytes());
    let first = || task_id.split('/').next().unwrap_or_default().to_owned();
    TaskFacts {
        task_revision: told.or_else(|| same.map(|known| known.revision)).unwrap_or_else(asked),
        domain: task.discipline.clone().unwrap_or_else(first),
        difficulty: task.difficulty.clone(),
        visibility: task.visibility.clone(),
        family: task.family.clone().unwrap_or_else(|| format!("task:{task_id}")),
        task_id,
    }
}

fn agent_output(rollout: &Rollout, answer: Option<&Answer>) -> AgentOutput {
    let limited = matches!(rollout.stop.kind, StopKind::TurnLimit | StopKind::TokenLimit | StopKind::Timeout);
    let path = answer.map_or_else(String::new, |answer| format!("/workspace/{}", answer.path));
    AgentOutput {
        status: match () {
            () if rollout.error.is_some() => AgentStatus::Failed,
            () if answer.is_none() && rollout.tool_calls == 0 => AgentStatus::Empty,
            () if limited || rollout.is_truncated == Some(true) => AgentStatus::Partial,
            () => AgentStatus::Completed,
        },
        output_format: if path.ends_with(".md") { "markdown" } else { "jsonl" }.to_owned(),
        output_path: path,
        error_message: rollout.error.as_ref().map(|error| error.kind.clone()),
    }
}

fn boundary(name: &str) -> Boundary {
    match name {
        "provider" => Boundary::Provider,
        "sandbox" => Boundary::Sandbox,
        "task" => Boundary::Task,
        "internal" => Boundary::Internal,
        _ => Boundary::Harness,
    }
}

fn started(rollout: &Rollout, run: &Run) -> Timestamp {
    let told = [rollout.created_at.as_ref(), run.date.as_ref()];
    let told = told.into_iter().flatten().find_map(|text| timestamp(text));
    let measured = || rollout.timing.started.filter(|seconds| (1e9..1e11).contains(seconds));
    told.or_else(|| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded above")]
        measured().map(|seconds| Timestamp::from_seconds(seconds as u64))
    })
    .unwrap_or_else(Timestamp::now)
}

/// A moment as others write it: `2026-05-09 10:11:12`, with or without a zone.
fn timestamp(text: &str) -> Option<Timestamp> {
    let text = text.trim().replacen(' ', "T", 1);
    let attempts = [text.clone(), format!("{text}Z")];
    attempts.into_iter().find_map(|text| Timestamp::try_from(text).ok())
}
