//! Tasks as they were read for their trials.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use aec_base::problem::Problem;
use aec_task::dataset::tree::{self, Memory};
use aec_task::task::Task;

use crate::plan::Plan;
use crate::task::PreparedTask;

/// Prepared tasks that are kept for the next trial, and their bytes.
const KEPT_TASKS: usize = 256;
const KEPT_BYTES: usize = 32 * 1024 * 1024;

/// Tasks that were prepared lately, since trials of one task follow one another.
pub struct TaskCache {
    plan: Arc<Plan>,
    tasks: Vec<Task>,
    kept: Mutex<HashMap<usize, Arc<PreparedTask>>>,
}

impl TaskCache {
    pub(super) fn new(plan: Arc<Plan>, tasks: Vec<Task>) -> Self {
        Self { plan, tasks, kept: Mutex::default() }
    }

    /// The tasks of the plan, in its order.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// A task of the plan, as it was planned: one that has changed since is refused.
    pub fn get(&self, index: usize) -> Result<Arc<PreparedTask>, Problem> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = kept.get(&index) {
            return Ok(Arc::clone(task));
        }
        let (task, revision) = (&self.tasks[index], self.plan.tasks[index].revision);
        let prepared = Arc::new(PreparedTask::read(task.clone(), revision, &self.plan.conditions)?);
        // Looked at after the task was read: what was read is what was planned.
        if tree::hash(&task.path, &Memory::default()).is_ok_and(|found| found != revision) {
            let what = format!("the task `{}` changed while the run went on", task.id);
            return Err(Problem::error(what).fix("restore it, then go on"));
        }
        let bytes: usize = kept.values().map(|task| task.bytes()).sum();
        if kept.len() >= KEPT_TASKS || bytes > KEPT_BYTES {
            kept.retain(|_, task| Arc::strong_count(task) > 1);
        }
        kept.insert(index, Arc::clone(&prepared));
        Ok(prepared)
    }
}
