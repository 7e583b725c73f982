//! Caches prepared tasks for their trials.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use aec_base::problem::Problem;
use aec_task::dataset::tree::{self, Memory};
use aec_task::task::Task;

use crate::plan::Plan;
use crate::task::PreparedTask;

/// Number of prepared tasks to keep for the next trial, and their bytes.
const KEPT_TASKS: usize = 256;
const KEPT_BYTES: usize = 32 * 1024 * 1024;

/// Recently prepared tasks, since trials of one task follow one another.
pub struct TaskCache {
    plan: Arc<Plan>,
    tasks: Vec<Task>,
    kept: Mutex<HashMap<usize, Arc<PreparedTask>>>,
}

impl TaskCache {
    pub(super) fn new(plan: Arc<Plan>, tasks: Vec<Task>) -> Self {
        Self { plan, tasks, kept: Mutex::default() }
    }

    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// A task of the plan; one that has changed since planning is refused.
    pub fn get(&self, index: usize) -> Result<Arc<PreparedTask>, Problem> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = kept.get(&index) {
            return Ok(Arc::clone(task));
        }
        let (task, revision) = (&self.tasks[index], self.plan.tasks[index].revision);
        let prepared = Arc::new(PreparedTask::read(task.clone(), revision, &self.plan.conditions)?);
        // The digest is checked after the task was read, so that what was read is what was planned.
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
