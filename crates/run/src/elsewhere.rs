//! Attempts made by another program: the files that it returned are frozen and judged here, and become a record like
//! any other.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use aec_base::content::ContentStore;
use aec_base::secret::Redactor;
use aec_base::timestamp::Timestamp;
use aec_judge::judge::{Judge, JudgeLimits};
use aec_judge::settle::freeze::{Frozen, Unfrozen};
use aec_judge::settle::order::{AnswerOrder, Handed, Source};
use aec_judge::settle::outcome::{Boundary, Ending, Fault, Settled};
use aec_judge::submission::Submission;
use aec_judge::verdict::{Outcome, Verdict};
use aec_ledger::jobs::LIVE;
use aec_ledger::record::{Artefact, Completeness, Cost, Timing, TrialRecord};
use aec_ledger::transcript::{self, Event};
use aec_sandbox::Tree;
use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::harness::End;
use crate::plan::PlannedTrial;
use crate::recording::{Known, live_name};
use crate::task::PreparedTask;
use crate::trajectory::Trajectory;
use crate::trial::{Shared, ending, limits};

/// An attempt that another program returned.
pub struct Returned<'a> {
    pub trial: &'a PlannedTrial,
    pub attempt: u32,
    pub task: &'a PreparedTask,
    pub started: Timestamp,
    pub ending: Ending,
    /// The agent's files in `/workspace`; absent when none were returned.
    pub workspace: Option<&'a Path>,
    /// Files of the workspace that this program wrote there.
    pub ours: &'a [&'a str],
    /// The origin of the answer that the loop wrote into the output file.
    pub published: Option<Source>,
    /// The events, if this program's own loop wrote them.
    pub events: Vec<Event>,
    /// A note for the trajectory when there are no events, with its metadata.
    pub note: (String, Map<String, Value>),
    /// The agent's time limit in seconds.
    pub timeout_sec: u64,
    /// Versions of the programs involved there.
    pub tool_versions: BTreeMap<String, String>,
    /// What the other program reports about the agent's work.
    pub agent_result: IndexMap<String, Value>,
    /// The cost of its model calls, if no events show it.
    pub cost: Cost,
    /// Its times, including files that contain times.
    pub timing: Timing,
    pub runtime_image: String,
}

/// The result of judging a workspace.
#[derive(Debug)]
pub struct Judgement {
    /// The outcome of the trial.
    pub settled: Settled,
    /// The frozen files.
    pub submission: Option<Submission>,
    /// The origin of its answer.
    pub source: Option<Source>,
    /// The verdict; absent when the judge was not called.
    pub verdict: Option<Verdict>,
}

impl Judgement {
    fn without_verdict(settled: Settled) -> Self {
        Self { settled, submission: None, source: None, verdict: None }
    }
}

/// Everything needed to freeze and judge workspaces.
#[derive(Clone, Copy)]
pub struct ForeignJudging<'a> {
    /// The judge; absent when no verdict is wanted.
    pub judge: Option<&'a Judge>,
    pub contents: &'a ContentStore,
    pub redactor: &'a Redactor,
    /// Which of several answers counts.
    pub order: AnswerOrder,
}

/// A workspace that another program returned.
#[derive(Clone, Copy)]
pub struct Workspace<'a> {
    pub path: &'a Path,
    /// Files that this program wrote there.
    pub ours: &'a [&'a str],
    /// The origin of the answer that the agent wrote into the output file.
    pub published: Option<Source>,
}

/// Freezes and judges an agent's files; `own` is what ended its work there.
pub fn judge(
    bench: ForeignJudging<'_>,
    task: &PreparedTask,
    workspace: Workspace<'_>,
    own: Option<Fault>,
) -> Judgement {
    let frozen = Tree::open(workspace.path).map_err(Unfrozen::from).and_then(|tree| {
        let freezer = task.freezer(bench.order, bench.contents, bench.redactor);
        freezer.tree(&tree, workspace.ours, &Handed::default())
    });
    let published = |source| workspace.published.unwrap_or(source);
    judge_frozen(
        bench,
        task,
        frozen.map(|frozen| Frozen { source: frozen.source.map(published), ..frozen }),
        own,
    )
}

/// Judges the frozen files, if freezing succeeded; `own` is what ended the work.
pub(crate) fn judge_frozen(
    bench: ForeignJudging<'_>,
    task: &PreparedTask,
    frozen: Result<Frozen, Unfrozen>,
    own: Option<Fault>,
) -> Judgement {
    let Frozen { submission, source } = match frozen {
        Ok(frozen) => frozen,
        Err(error) => return Judgement::without_verdict(Settled::unfrozen(&error)),
    };
    let verdict = bench.judge.map(|judge| match &task.verifier {
        Some(files) => judge.verdict_by(files, &JudgeLimits::from(&task.task), &task.references, &submission),
        None => judge.verdict(&task.task, &submission),
    });
    Judgement {
        settled: Settled::judged(own, source.is_some(), verdict.as_ref()),
        submission: Some(submission),
        source,
        verdict,
    }
}

/// The record of a returned attempt. Its contents are in the store when this returns.
pub fn record(shared: &Shared, returned: Returned<'_>) -> io::Result<TrialRecord> {
    let wants_verdict = !shared.plan.conditions.disable_verification;
    let bench = ForeignJudging {
        judge: wants_verdict.then_some(&shared.judge),
        contents: &shared.contents,
        redactor: &shared.redactor,
        order: shared.plan.conditions.answer_order,
    };
    let judgement = judgement(bench, &returned);
    let live = shared.jobs.join(LIVE).join(live_name(&returned.trial.id, returned.attempt));
    // A process killed while making this record left a partial directory; the returned files still exist.
    match fs_err::remove_dir_all(&live) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => fs_err::create_dir_all(&live)?,
    }
    let trajectory = Trajectory::create(&live, Arc::clone(&shared.redactor), None)?;
    let told = !returned.events.is_empty();
    let cost = if told { transcript::cost(&returned.events) } else { returned.cost };
    let system_prompt = transcript::system_prompt(&returned.events).map(str::to_owned);
    let resolved_model = transcript::model(&returned.events).map(str::to_owned);
    if !told {
        trajectory.user(&returned.task.instruction);
    }
    trajectory.adopt(returned.events);
    trajectory.note(returned.note.0, returned.note.1);
    let Settled { outcome, fault, status } = judgement.settled;
    if let Some(fault) = &fault {
        trajectory.note(fault.message.clone(), Map::new());
    }
    let finished = trajectory.finish()?;
    let mut tool_versions = shared.tool_versions.clone();
    tool_versions.extend(returned.tool_versions);
    let known = Known {
        plan: &shared.plan,
        trial: returned.trial,
        attempt: returned.attempt,
        task: returned.task,
        started: returned.started,
        outcome,
        status: Some(status),
        fault,
        completeness: match outcome {
            Outcome::Cancelled => Completeness::Partial,
            _ => Completeness::Complete,
        },
        limits: limits(&shared.plan.conditions, &returned.task.task),
        timeout_sec: returned.timeout_sec,
        room: None,
        // The caller replaces this with its own image.
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

/// How this program's own loop ended in another process, according to its report and its events.
pub fn loop_ending(report: &Map<String, Value>, events: &[Event]) -> Ending {
    let text = |key: &str| report.get(key).and_then(Value::as_str);
    let reason = text("stop_reason").unwrap_or_default();
    if text("status") == Some("ok") {
        return if reason == "done" { Ending::Judgeable(None) } else { Ending::limit(reason) };
    }
    let failed = events.iter().rev().find_map(Event::failed_call);
    ending(&match failed {
        Some((_, failure, _)) => End::Model(failure.clone()),
        None => End::Agent(text("error").unwrap_or("the loop failed and does not say why").to_owned()),
    })
}

fn judgement(bench: ForeignJudging<'_>, returned: &Returned<'_>) -> Judgement {
    let lost = |outcome, fault| Judgement::without_verdict(Settled::lost(outcome, fault));
    match (&returned.ending, returned.workspace) {
        (Ending::Lost(outcome, fault), _) => lost(*outcome, fault.clone()),
        (Ending::Judgeable(_), None) => {
            let message = "what the agent left in /workspace did not come back";
            lost(Outcome::InfraFault, Fault::passing(Boundary::Sandbox, None, message))
        }
        (Ending::Judgeable(own), Some(path)) => {
            let workspace = Workspace { path, ours: returned.ours, published: returned.published };
            judge(bench, returned.task, workspace, own.clone())
        }
    }
}
