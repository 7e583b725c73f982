//! Makes the record of an attempt from everything known about it.

use std::collections::BTreeMap;
use std::io;

use aec_base::content::ContentStore;
use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_base::secret::Redactor;
use aec_base::timestamp::Timestamp;
use aec_judge::settle::order::Source;
use aec_judge::settle::outcome::{AgentStatus, Fault};
use aec_judge::submission::Submission;
use aec_judge::verdict::{Outcome, Verdict};
use aec_ledger::record::{
    Adaptation, AgentFacts, AgentOutput, Artefact, Completeness, Cost, EnvironmentFacts, Evaluation, Inputs,
    Outputs, SCHEMA_VERSION, SubmissionFacts, TaskFacts, Timing, TrialRecord, Validity,
};
use aec_ledger::transcript::TRAJECTORY_FILE;
use aec_ledger::transcript::conversation::CONVERSATION_FILE;
use aec_model::meter::Spending;
use aec_sandbox::{Held, Level, Limits};
use indexmap::IndexMap;
use serde_json::{Value, json};

use crate::harness::snapshot;
use crate::plan::{Plan, PlannedTrial};
use crate::task::PreparedTask;
use crate::trajectory::Finished;

/// The workspace in a trial's directory of `jobs`.
const WORKSPACE: &str = "workspace";
/// Bytes; the rest of a trajectory is not read back.
const TRAJECTORY_LIMIT: u64 = 1024 * 1024 * 1024;
/// Names in the workspace of `jobs` that do not belong to the agent.
const RESERVED: [&str; 4] = [TRAJECTORY_FILE, CONVERSATION_FILE, AGENT_RESULT_FILE, "logs"];
const AGENT_RESULT_FILE: &str = "agent_result.json";

/// What is known about an attempt, however it ended.
pub(crate) struct Known<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) trial: &'a PlannedTrial,
    pub(crate) attempt: u32,
    pub(crate) task: &'a PreparedTask,
    pub(crate) started: Timestamp,
    pub(crate) outcome: Outcome,
    pub(crate) fault: Option<Fault>,
    pub(crate) completeness: Completeness,
    pub(crate) limits: Limits,
    pub(crate) timeout_sec: u64,
    pub(crate) room: Option<(Level, Held)>,
    pub(crate) runtime_image: String,
    pub(crate) tool_versions: BTreeMap<String, String>,
    pub(crate) resolved_model: Option<String>,
    pub(crate) system_prompt: Option<String>,
    pub(crate) status: Option<AgentStatus>,
    pub(crate) agent_result: IndexMap<String, Value>,
    pub(crate) source: Option<Source>,
    pub(crate) submission: Option<&'a Submission>,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) cost: Cost,
    pub(crate) timing: Timing,
    pub(crate) trajectory: &'a Finished,
    pub(crate) contents: &'a ContentStore,
    pub(crate) redactor: &'a Redactor,
}

impl Known<'_> {
    /// The record. Its contents are in the store when this returns.
    pub(crate) fn record(mut self) -> io::Result<TrialRecord> {
        self.scrub();
        let mut artefacts = Vec::new();
        let mut outputs = self.outputs();
        let (timed, snapshots) = self.keep_trajectory()?;
        outputs.snapshots = snapshots;
        self.keep_submission(&mut artefacts);
        if let Some(verdict) = &self.verdict {
            self.keep_verdict(verdict, &mut artefacts)?;
        }
        if !self.agent_result.is_empty() {
            let text = serde_json::to_string_pretty(&self.agent_result)?;
            self.keep(&mut artefacts, AGENT_RESULT_FILE, text.as_bytes())?;
        }
        artefacts.sort_by(|a, b| a.path.cmp(&b.path));
        let answer = format!("{WORKSPACE}/{}", self.task.output_place());
        outputs.raw_output_path = artefacts.iter().any(|artefact| artefact.path == answer).then_some(answer);
        let agent = &self.plan.agents[self.trial.agent];
        let version = self.tool_versions.get("aec-bench").cloned();
        Ok(TrialRecord {
            schema_version: SCHEMA_VERSION,
            trial_id: self.trial.id.clone(),
            experiment_id: self.plan.experiment_id.clone(),
            dataset_id: self.plan.dataset.as_ref().map(|dataset| dataset.id.clone()),
            timestamp: self.started.clone(),
            attempt: self.attempt,
            repetition: self.trial.repetition,
            key: self.trial.key,
            plan: self.plan.digest,
            outcome: self.outcome,
            fault: self.fault,
            task: task_facts(self.task),
            agent: AgentFacts {
                name: agent.name.clone(),
                adapter: agent.harness.name().to_owned(),
                adapter_revision: version,
                model: agent.model.clone(),
                resolved_model: self.resolved_model,
                configuration: configuration(&agent.parameters, self.redactor),
                digest: agent.digest,
            },
            environment: EnvironmentFacts {
                runtime_image: self.runtime_image,
                compute_backend: self.plan.conditions.backend.name().to_owned(),
                sandbox: self.room.map(|(level, _)| level),
                held: self.room.map(|(_, held)| held),
                limits: Some(self.limits),
                timeout_sec: Some(self.timeout_sec),
                network: self.task.task.environment.allow_internet,
                tool_versions: self.tool_versions,
            },
            inputs: Inputs {
                instruction: self.redactor.scrub(self.task.instruction.clone()),
                system_prompt: self.system_prompt,
                input_files: self.task.files.iter().map(|file| file.facts.clone()).collect(),
            },
            outputs,
            evaluation: self.verdict.as_ref().map(|verdict| evaluation_of(verdict, self.source)),
            cost: self.cost,
            adaptation: adaptation(self.task),
            artefacts,
            completeness: self.completeness,
            timing: Timing { artefacts: timed, ..self.timing },
        })
    }

    /// Removes secrets from a record and its files, wherever they come from. Texts are scrubbed one by one; the
    /// structure of a record is ours and contains none.
    fn scrub(&mut self) {
        scrub_map(&mut self.agent_result, self.redactor);
        self.redactor.scrub_some(&mut self.system_prompt);
        self.redactor.scrub_some(&mut self.resolved_model);
        self.redactor.scrub_text(&mut self.runtime_image);
        for version in self.tool_versions.values_mut() {
            self.redactor.scrub_text(version);
        }
        if let Some(fault) = &mut self.fault {
            fault.message = self.redactor.scrub(std::mem::take(&mut fault.message));
        }
        if let Some(verdict) = &mut self.verdict {
            for text in [&mut verdict.stdout, &mut verdict.stderr] {
                *text = self.redactor.scrub(std::mem::take(text));
            }
            self.redactor.scrub_some(&mut verdict.fault);
            if let Some(details) = &mut verdict.details {
                self.redactor.scrub_value(details);
            }
        }
    }

    fn outputs(&self) -> Outputs {
        let path = |name: &str| Some(format!("{WORKSPACE}/{name}"));
        let format = if self.task.output_path.ends_with(".md") { "markdown" } else { "jsonl" };
        Outputs {
            agent_output: self.status.map(|status| AgentOutput {
                status,
                output_path: self.task.output_path.clone(),
                output_format: format.to_owned(),
                error_message: self.fault.as_ref().map(|fault| fault.message.clone()),
            }),
            output_source: self.source,
            answer_order: self.plan.conditions.answer_order,
            raw_output_path: None,
            conversation_path: path(CONVERSATION_FILE),
            trajectory_path: path(TRAJECTORY_FILE),
            trajectory_content: Some(self.trajectory.content),
            agent_result: self.agent_result.clone(),
            submission: self.submission.map(|submission| SubmissionFacts {
                digest: submission.digest,
                files: submission.files.clone(),
                refused: submission.refused.clone(),
            }),
            snapshots: Vec::new(),
        }
    }

    /// Trajectory and conversation, which contain times; and the contents of the snapshots that they name.
    fn keep_trajectory(&self) -> io::Result<(Vec<Artefact>, Vec<Digest>)> {
        let bytes = fs_err::read(&self.trajectory.path)?;
        if bytes.len() as u64 > TRAJECTORY_LIMIT {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the trajectory is too long"));
        }
        let mut timed = Vec::new();
        self.keep(&mut timed, CONVERSATION_FILE, self.trajectory.conversation.as_bytes())?;
        let digest = self.contents.put_link(&self.trajectory.path, &bytes)?;
        let path = format!("{WORKSPACE}/{TRAJECTORY_FILE}");
        timed.push(Artefact { path, digest, size: bytes.len() as u64 });
        let states = self.trajectory.snapshots.iter().copied();
        Ok((timed, snapshot::contents(states, self.contents)?))
    }

    /// Files of the submission that were not given to the agent. Their contents are already in the store.
    fn keep_submission(&self, artefacts: &mut Vec<Artefact>) {
        let Some(submission) = self.submission else { return };
        for (path, file) in &submission.files {
            let given =
                self.task.files.iter().any(|input| input.place == *path && input.facts.hash == file.digest);
            if given {
                continue;
            }
            // An agent's file with one of our names is shown beside the workspace, so that it does not replace ours.
            let reserved = RESERVED.iter().any(|name| path.split('/').next() == Some(name));
            let directory = if reserved { "submitted" } else { WORKSPACE };
            let path = format!("{directory}/{path}");
            artefacts.push(Artefact { path, digest: file.digest, size: file.size });
        }
    }

    fn keep_verdict(&self, verdict: &Verdict, artefacts: &mut Vec<Artefact>) -> io::Result<()> {
        if let Some(reward) = verdict.reward {
            let text = json!({ "reward": reward }).to_string();
            self.keep(artefacts, "logs/verifier/reward.json", text.as_bytes())?;
        }
        if let Some(details) = &verdict.details {
            let text = serde_json::to_string_pretty(details)?;
            self.keep(artefacts, "logs/verifier/details.json", text.as_bytes())?;
        }
        for (name, text) in [("stdout", &verdict.stdout), ("stderr", &verdict.stderr)] {
            if !text.is_empty() {
                self.keep(artefacts, &format!("logs/verifier/{name}.txt"), text.as_bytes())?;
            }
        }
        Ok(())
    }

    fn keep(&self, artefacts: &mut Vec<Artefact>, name: &str, bytes: &[u8]) -> io::Result<()> {
        let digest = self.contents.put(bytes)?;
        artefacts.push(Artefact { path: format!("{WORKSPACE}/{name}"), digest, size: bytes.len() as u64 });
        Ok(())
    }
}

/// Scrubs the keys and values of a map.
pub(crate) fn scrub_map(map: &mut IndexMap<String, Value>, redactor: &Redactor) {
    if map.keys().any(|key| redactor.finds(key)) {
        *map = std::mem::take(map).into_iter().map(|(key, value)| (redactor.scrub(key), value)).collect();
    }
    for value in map.values_mut() {
        redactor.scrub_value(value);
    }
}

fn configuration(parameters: &IndexMap<String, Value>, redactor: &Redactor) -> IndexMap<String, Value> {
    let mut configuration = parameters.clone();
    scrub_map(&mut configuration, redactor);
    configuration
}

fn task_facts(task: &PreparedTask) -> TaskFacts {
    TaskFacts {
        task_id: task.id().to_owned(),
        task_revision: task.revision,
        domain: task.task.domain.clone(),
        difficulty: task.task.difficulty.map(|difficulty| difficulty.name().to_owned()),
        visibility: task.task.visibility.map(|visibility| visibility.name().to_owned()),
        family: task.family.clone(),
    }
}

/// A verdict in the form of records.
pub fn evaluation_of(verdict: &Verdict, source: Option<Source>) -> Evaluation {
    let detail = |key: &str| verdict.details.as_ref().and_then(|details| details.get(key)?.as_bool());
    Evaluation {
        reward: verdict.reward,
        validity: Validity {
            output_parseable: detail("output_parseable").unwrap_or_else(|| source.is_some()),
            schema_valid: detail("schema_valid").unwrap_or_else(|| source.is_some()),
            verifier_completed: verdict.reward.is_some() && verdict.caused_by.is_none(),
            errors: verdict.fault.iter().cloned().collect(),
        },
        breakdown: verdict.details.clone(),
        judged: verdict.judged,
        scorer: verdict.scorer,
        trusted: false,
        verifier: Some(verdict.verifier),
        submission: Some(verdict.submission),
        sandbox: verdict.level,
        held: verdict.held,
        exit_code: verdict.exit_code,
        stdout: verdict.stdout.clone(),
        stderr: verdict.stderr.clone(),
    }
}

fn adaptation(task: &PreparedTask) -> Option<Adaptation> {
    let generation = task.task.generation.as_ref()?;
    let template = generation.template.clone()?;
    let parts: [(&str, Option<Value>); 7] = [
        ("template_version", generation.template_version.clone().map(Value::from)),
        ("seed", generation.seed.map(Value::from)),
        ("index", generation.index.map(Value::from)),
        ("difficulty", generation.difficulty.clone().map(Value::from)),
        ("visibility_level", generation.visibility_level.clone().map(Value::from)),
        ("tool_mode", generation.tool_mode.clone().map(Value::from)),
        ("archetype", generation.archetype.clone().map(Value::from)),
    ];
    let variation: IndexMap<String, Value> =
        parts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
    let words: Vec<String> = variation
        .values()
        .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        .collect();
    Some(Adaptation { family_id: template, seed_task_id: None, variation_key: words.join("/"), variation })
}

/// The totals of an account in the form of records.
#[expect(clippy::cast_precision_loss, reason = "dollars of one trial fit")]
pub(crate) fn cost(spending: &Spending) -> Cost {
    let dollars = |micro: u64| micro as f64 / 1e6;
    let usage = (spending.unconfirmed_tokens == 0).then_some(spending.usage);
    Cost {
        model_calls: spending.calls,
        unbilled_calls: spending.unbilled_calls,
        unpriced_calls: spending.unpriced_calls,
        unsettled_calls: 0,
        tokens_in: usage.map(|usage| usage.all_input()),
        tokens_out: usage.map(|usage| usage.all_output()),
        cache_read_tokens: usage.map(|usage| usage.cache_read),
        cache_write_tokens: usage.map(|usage| usage.cache_write),
        reasoning_tokens: usage.map(|usage| usage.reasoning),
        unconfirmed_tokens: spending.unconfirmed_tokens,
        estimated_cost_usd: (spending.unpriced_calls == 0).then(|| dollars(spending.spent.0)),
        unconfirmed_cost_usd: dollars(spending.unconfirmed.0),
        ..Cost::default()
    }
}

/// The name of an attempt's directory while it runs.
pub(crate) fn live_name(trial: &Name, attempt: u32) -> String {
    aec_ledger::layout::stem(trial, attempt)
}
