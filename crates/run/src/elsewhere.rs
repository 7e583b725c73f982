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

/// An attempt that came back.
pub struct Returned<'a> {
    pub trial: &'a PlannedTrial,
    /// Which try at it.
    pub attempt: u32,
    pub task: &'a PreparedTask,
    /// When it began.
    pub started: Timestamp,
    /// How it ended.
    pub ending: Ending,
    /// What the agent left in `/workspace`; absent when nothing came back.
    pub workspace: Option<&'a Path>,
    /// Files of the workspace that this program wrote there.
    pub ours: &'a [&'a str],
    /// Where the loop took the answer from that it put into the output file.
    pub published: Option<Source>,
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
    pub settled: Settled,
    /// What was frozen.
    pub submission: Option<Submission>,
    /// Where its answer came from.
    pub source: Option<Source>,
    /// What the judge says; absent when it was not asked.
    pub verdict: Option<Verdict>,
}

impl Judgement {
    fn without_verdict(settled: Settled) -> Self {
        Self { settled, submission: None, source: None, verdict: None }
    }
}

/// What freezes and judges workspaces.
#[derive(Clone, Copy)]
pub struct ForeignJudging<'a> {
    /// The judge; absent when nobody wants a verdict.
    pub judge: Option<&'a Judge>,
    /// Contents of the ledger.
    pub contents: &'a ContentStore,
    /// Keeps secrets out.
    pub redactor: &'a Redactor,
    /// Which of several answers counts.
    pub order: AnswerOrder,
}

/// A workspace that came back.
#[derive(Clone, Copy)]
pub struct Workspace<'a> {
    /// Where it lies.
    pub path: &'a Path,
    /// Files that this program wrote there.
    pub ours: &'a [&'a str],
    /// Where the agent took the answer from that it put into the output file.
    pub published: Option<Source>,
}

/// Freezes and judges what an agent left elsewhere; `own` is what ended its work there.
pub fn judge(
    bench: ForeignJudging<'_>,
    task: &PreparedTask,
    workspace: Workspace<'_>,
    own: Option<Fault>,
) -> Judgement {
    let frozen = Tree::open(workspace.path).map_err(Unfrozen::from).and_then(|tree| {
        task.freezing(bench.order, bench.contents, bench.redactor, |freezer| {
            freezer.tree(&tree, workspace.ours, &Handed::default())
        })
    });
    let published = |source| workspace.published.unwrap_or(source);
    judge_frozen(
        bench,
        task,
        frozen.map(|frozen| Frozen { source: frozen.source.map(published), ..frozen }),
        own,
    )
}

/// Judges what was frozen of an agent's work, if it could be; `own` is what ended the work.
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
        Some(files) => judge.verdict_by(files, &JudgeLimits::from(&task.task), &submission),
        None => judge.verdict(&task.task, &submission),
    });
    Judgement {
        settled: Settled::judged(own, source.is_some(), verdict.as_ref()),
        submission: Some(submission),
        source,
        verdict,
    }
}

/// The record of an attempt that came back. Its contents are in the store when this returns.
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
    // A process that was killed while it made this record left its beginning; what came back is still there.
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
