//! Tasks as they were read for their trials.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use aec_base::digest::Digest;
use aec_base::problem::Problem;
use aec_task::dataset::tree::{self, Memory};
use aec_task::task::Task;

use super::Run;
use crate::task::PreparedTask;

/// Prepared tasks that are kept for the next trial, and their bytes.
const KEPT_TASKS: usize = 256;
const KEPT_BYTES: usize = 32 * 1024 * 1024;

/// Tasks that were prepared lately, since trials of one task follow one another.
#[derive(Default)]
pub(super) struct Prepared(Mutex<HashMap<usize, Arc<PreparedTask>>>);

impl Prepared {
    pub(super) fn get(&self, run: &Run, index: usize) -> Result<Arc<PreparedTask>, Problem> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = kept.get(&index) {
            return Ok(Arc::clone(task));
        }
        let plan = &run.shared.plan;
        let revision = plan.tasks[index].revision;
        let task = &run.tasks[index];
        let prepared = PreparedTask::read(task.clone(), revision, &plan.conditions)
            .and_then(|prepared| unchanged(task, revision).map(|()| Arc::new(prepared)))?;
        let bytes: usize = kept.values().map(|task| task.bytes()).sum();
        if kept.len() >= KEPT_TASKS || bytes > KEPT_BYTES {
            kept.retain(|_, task| Arc::strong_count(task) > 1);
        }
        kept.insert(index, Arc::clone(&prepared));
        Ok(prepared)
    }
}

/// Looks after a task was read: what was read is what was planned.
pub fn unchanged(task: &Task, revision: Digest) -> Result<(), Problem> {
    let changed = tree::hash(&task.path, &Memory::default()).is_ok_and(|found| found != revision);
    if changed {
        let what = format!("the task `{}` changed while the run went on", task.id);
        return Err(Problem::error(what).fix("restore it, then go on"));
    }
    Ok(())
}
