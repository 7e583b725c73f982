//! Attempts that another program carried out: what came back of them is frozen and judged here, and becomes a record
//! like any other.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use aec_base::content::ContentStore;
use aec_base::secret::Redactor;
use aec_base::timestamp::Timestamp;
use aec_judge::judge::{Judge, JudgeLimits};
use aec_judge::submission::Submission;
use aec_judge::verdict::{Outcome, Verdict};
use aec_ledger::jobs::LIVE;
use aec_ledger::record::{
    AgentStatus, Artefact, Boundary, Completeness, Cost, Fault, OutputSource, Timing, TrialRecord,
};
use aec_model::event::CallEvent;
use aec_sandbox::Tree;
use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::answer::{AnswerError, freeze_returned};
use crate::harness::End;
use crate::harness::RoomFault;
use crate::plan::PlannedTrial;
use crate::recording::{Known, live_name};
use crate::salvage;
use crate::task::PreparedTask;
use crate::trajectory::{self, Event, EventRole, Trajectory};
use crate::trial::{Shared, is_judgeable, judge_end, limits, not_judged};

/// How an attempt ended where it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The agent had its chance: what it left counts, whatever ended its work.
    Judgeable(Option<Fault>),
    /// It had none.
    Lost(Outcome, Fault),
}

/// An attempt that came back.
pub struct Returned<'a> {
    /// Which trial.
    pub trial: &'a PlannedTrial,
    /// Which try at it.
    pub attempt: u32,
    /// Its task.
    pub task: &'a PreparedTask,
    /// When it began.
    pub started: Timestamp,
    /// How it ended.
    pub ending: Ending,
    /// What the agent left in `/workspace`; absent when nothing came back.
    pub workspace: Option<&'a Path>,
    /// Files of the workspace that this program wrote there.
    pub ours: &'a [&'a str],
    /// The events, when this program's own loop wrote them.
    pub events: Vec<Event>,
    /// What is to be noted when there are none, with what belongs to it.
    pub note: (String, Map<String, Value>),
    /// Seconds that the agent might take.
    pub timeout_sec: u64,
    /// Versions of what took part there.
    pub tool_versions: BTreeMap<String, String>,
    /// What is told of its work there.
    pub agent_result: IndexMap<String, Value>,
    /// What its model calls took, when no events say so.
    pub cost: Cost,
    /// Its times, files with times in them included.
    pub timing: Timing,
    /// What it ran in.
    pub runtime_image: String,
}

/// What became of judging a workspace.
#[derive(Debug)]
pub struct Judgement {
    /// What became of the trial.
    pub outcome: Outcome,
    /// What went wrong.
    pub fault: Option<Fault>,
    /// What was frozen.
    pub submission: Option<Submission>,
    /// Where its answer came from.
    pub source: Option<OutputSource>,
    /// What the judge says; absent when it was not asked.
    pub verdict: Option<Verdict>,
}

/// What freezes and judges workspaces.
#[derive(Clone, Copy)]
pub struct Bench<'a> {
    /// The judge; absent when nobody wants a verdict.
    pub judge: Option<&'a Judge>,
    /// Contents of the ledger.
    pub contents: &'a ContentStore,
    /// Keeps secrets out.
    pub redactor: &'a Redactor,
}

/// Freezes and judges what an agent left elsewhere.
pub fn judge(bench: Bench<'_>, task: &PreparedTask, workspace: &Path, ours: &[&str]) -> Judgement {
    let lost = |outcome, fault| Judgement {
        outcome,
        fault: Some(fault),
        submission: None,
        source: None,
        verdict: None,
    };
    let frozen = Tree::open(workspace)
        .map_err(AnswerError::from)
        .and_then(|tree| freeze_returned(task, &tree, ours, bench.contents, bench.redactor));
    let frozen = match frozen {
        Ok(frozen) => frozen,
        Err(AnswerError::Unfit(reason)) => {
            return lost(Outcome::AgentFault, fault(Boundary::Harness, None, reason, false));
        }
        Err(AnswerError::Machine(RoomFault { kind, message, may_pass })) => {
            return lost(Outcome::InfraFault, fault(Boundary::Sandbox, kind, message, may_pass));
        }
    };
    judge_frozen(bench, task, frozen.submission, frozen.source)
}

/// Judges what was frozen of an agent's work.
pub(crate) fn judge_frozen(
    bench: Bench<'_>,
    task: &PreparedTask,
    submission: Submission,
    source: Option<OutputSource>,
) -> Judgement {
    let Some(judge) = bench.judge else {
        return Judgement {
            outcome: Outcome::Unverified,
            fault: None,
            submission: Some(submission),
            source,
            verdict: None,
        };
    };
    let verdict = match &task.verifier {
        Some(files) => judge.verdict_by(files, &JudgeLimits::from(&task.task), &submission),
        None => judge.verdict(&task.task, &submission),
    };
    let reason = verdict.fault.clone().unwrap_or_default();
    let found = match verdict.outcome {
        Outcome::VerifierFault => {
            let what = format!("the verifier failed: {reason}");
            Some(fault(Boundary::Verifier, verdict.fault_kind, what, true))
        }
        Outcome::InfraFault => Some(fault(Boundary::Sandbox, verdict.fault_kind, reason, verdict.may_pass)),
        _ => None,
    };
    Judgement {
        outcome: verdict.outcome,
        fault: found,
        submission: Some(submission),
        source,
        verdict: Some(verdict),
    }
}

/// The record of an attempt that came back. Its contents are in the store when this returns.
pub fn record(shared: &Shared, returned: Returned<'_>) -> io::Result<TrialRecord> {
    let wants_verdict = !shared.plan.conditions.disable_verification;
    let bench = Bench {
        judge: wants_verdict.then_some(&shared.judge),
        contents: &shared.contents,
        redactor: &shared.redactor,
    };
    let judgement = judgement(bench, &returned);
    let live = shared.jobs.join(LIVE).join(live_name(&returned.trial.id, returned.attempt));
    // A process that was killed while it made this record left its beginning; what came back is still there.
    match fs_err::remove_dir_all(&live) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => fs_err::create_dir_all(&live)?,
    }
    let trajectory = Trajectory::create(&live, Arc::clone(&shared.redactor), None)?;
    let told = !returned.events.is_empty();
    let cost = if told { salvage::cost(&returned.events) } else { returned.cost };
    let system = returned.events.iter().find(|event| event.role == EventRole::System);
    let system_prompt = system.and_then(|event| event.content.clone());
    let resolved_model = returned.events.iter().rev().find_map(|event| event.model.clone());
    if !told {
        trajectory.user(&returned.task.instruction);
    }
    trajectory.adopt(returned.events);
    trajectory.note(returned.note.0, returned.note.1);
    if let Some(fault) = &judgement.fault {
        trajectory.note(fault.message.clone(), Map::new());
    }
    let finished = trajectory.finish()?;
    let mut tool_versions = shared.tool_versions.clone();
    tool_versions.extend(returned.tool_versions);
    let outcome = judgement.outcome;
    let own = match &judgement.fault {
        Some(fault) if outcome != Outcome::Scored => Some(fault.clone()),
        found => match &returned.ending {
            Ending::Judgeable(own) => own.clone().or_else(|| found.clone()),
            Ending::Lost(..) => found.clone(),
        },
    };
    let known = Known {
        plan: &shared.plan,
        trial: returned.trial,
        attempt: returned.attempt,
        task: returned.task,
        started: returned.started,
        outcome,
        status: Some(status(&returned.ending, outcome, judgement.source.is_some())),
        fault: own,
        completeness: match outcome {
            Outcome::Cancelled => Completeness::Partial,
            _ => Completeness::Complete,
        },
        limits: limits(&shared.plan.conditions, &returned.task.task),
        timeout_sec: returned.timeout_sec,
        room: None,
        // Whoever brought it knows better.
        runtime_image: "local".to_owned(),
        tool_versions,
        resolved_model,
        system_prompt,
        agent_result: returned.agent_result,
        source: judgement.source,
        submission: judgement.submission.as_ref(),
        verdict: judgement.verdict,
        cost,
        timing: Timing { artefacts: Vec::new(), ..returned.timing.clone() },
        trajectory: &finished,
        contents: &shared.contents,
        redactor: &shared.redactor,
    };
    let mut record = known.record()?;
    record.environment.runtime_image = returned.runtime_image;
    record.timing.artefacts.extend(returned.timing.artefacts);
    record.timing.artefacts.sort_by(|a: &Artefact, b| a.path.cmp(&b.path));
    Ok(record)
}

/// How this program's own loop ended elsewhere, by its report and its events.
pub fn loop_ending(report: &Map<String, Value>, events: &[Event]) -> Ending {
    let text = |key: &str| report.get(key).and_then(Value::as_str);
    let reason = text("stop_reason").unwrap_or_default();
    if text("status") == Some("ok") {
        let limit = (reason != "done").then(|| {
            let message = format!("a limit ended the agent's work: {reason}");
            fault(Boundary::Harness, Some(reason), message, false)
        });
        return Ending::Judgeable(limit);
    }
    let failed = events.iter().rev().find_map(|event| match &event.call {
        Some(CallEvent::Failed { failure, .. }) => Some(failure.clone()),
        _ => None,
    });
    let end = match failed {
        Some(failure) => End::Model(failure),
        None => End::Agent(text("error").unwrap_or("the loop failed and does not say why").to_owned()),
    };
    if is_judgeable(&end) {
        return Ending::Judgeable(judge_end(&end).1);
    }
    let (outcome, found, _, _) = not_judged(&end);
    let unknown = || fault(Boundary::Internal, None, "the loop failed".to_owned(), true);
    Ending::Lost(outcome, found.unwrap_or_else(unknown))
}

/// The events of a file that this program's loop wrote elsewhere.
pub fn read_events(text: &str) -> Vec<Event> {
    trajectory::read(text).0
}

fn judgement(bench: Bench<'_>, returned: &Returned<'_>) -> Judgement {
    let nothing = |outcome, fault| Judgement {
        outcome,
        fault: Some(fault),
        submission: None,
        source: None,
        verdict: None,
    };
    match (&returned.ending, returned.workspace) {
        (Ending::Lost(outcome, fault), _) => nothing(*outcome, fault.clone()),
        (Ending::Judgeable(_), None) => {
            let message = "what the agent left in /workspace did not come back".to_owned();
            nothing(Outcome::InfraFault, fault(Boundary::Sandbox, None, message, true))
        }
        (Ending::Judgeable(_), Some(workspace)) => judge(bench, returned.task, workspace, returned.ours),
    }
}

fn status(ending: &Ending, outcome: Outcome, has_answer: bool) -> AgentStatus {
    match ending {
        Ending::Lost(Outcome::Cancelled, _) => AgentStatus::Partial,
        Ending::Lost(..) => AgentStatus::Failed,
        Ending::Judgeable(_) if outcome == Outcome::AgentFault => AgentStatus::Failed,
        Ending::Judgeable(Some(fault)) if fault.kind.as_deref() == Some("agent_error") => AgentStatus::Failed,
        Ending::Judgeable(Some(_)) => AgentStatus::Partial,
        Ending::Judgeable(None) if has_answer => AgentStatus::Completed,
        Ending::Judgeable(None) => AgentStatus::Empty,
    }
}

fn fault(boundary: Boundary, kind: Option<&str>, message: String, retryable: bool) -> Fault {
    Fault { boundary, kind: kind.map(str::to_owned), message, retryable }
}
