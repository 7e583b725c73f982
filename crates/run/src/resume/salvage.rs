//! The record of an attempt that did not finish, made from its trajectory: answered calls are charged, and calls that
//! were in flight count as unsettled.

use std::io;
use std::path::Path;

use aec_base::timestamp::Timestamp;
use aec_judge::settle::outcome::{AgentStatus, Fault};
use aec_judge::verdict::Outcome;
use aec_ledger::record::{Completeness, Timing, TrialRecord};
use aec_ledger::transcript::{self, TRAJECTORY_FILE};
use indexmap::IndexMap;

use crate::plan::PlannedTrial;
use crate::recording::Known;
use crate::task::PreparedTask;
use crate::trajectory::Finished;
use crate::trial::runtime_image;
use crate::trial::{Shared, limits};

/// Makes the record of an attempt from its live directory.
pub(crate) fn salvage(
    shared: &Shared,
    trial: &PlannedTrial,
    attempt: u32,
    task: &PreparedTask,
    live: &Path,
    outcome: Outcome,
    fault: Fault,
) -> io::Result<TrialRecord> {
    let path = live.join(TRAJECTORY_FILE);
    let text = match fs_err::read(&path) {
        Ok(text) => text,
        // It was killed before it wrote anything, or its files were removed.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs_err::create_dir_all(live)?;
            fs_err::write(&path, "")?;
            Vec::new()
        }
        Err(error) => return Err(error),
    };
    let events = transcript::read(&text);
    let first = events.first().and_then(|event| event.timestamp.clone());
    let record = Known {
        plan: &shared.plan,
        trial,
        attempt,
        task,
        started: first.unwrap_or_else(Timestamp::now_in_milliseconds),
        outcome,
        fault: Some(fault),
        completeness: Completeness::Partial,
        limits: limits(&shared.plan.conditions, &task.task),
        timeout_sec: 0,
        room: None,
        runtime_image: runtime_image(shared, &task.task),
        tool_versions: shared.tool_versions.clone(),
        resolved_model: transcript::model(&events).map(str::to_owned),
        system_prompt: transcript::system_prompt(&events).map(str::to_owned),
        status: Some(AgentStatus::Partial),
        agent_result: IndexMap::new(),
        source: None,
        submission: None,
        verdict: None,
        cost: transcript::cost(&events),
        timing: Timing::default(),
        trajectory: &Finished::of(path, &events),
        contents: &shared.contents,
        redactor: &shared.redactor,
    };
    record.record()
}
