//! The tasks of this project, read when an imported trial needs them.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use aec_base::digest::Digest;
use aec_task::dataset::tree::{Memory, hash};
use aec_task::task::Task;

use crate::plan::Conditions;
use crate::task::PreparedTask;

pub struct KnownTasks<'a> {
    tasks: &'a [Task],
    by_id: HashMap<&'a str, usize>,
    prepared: Vec<OnceLock<Option<Arc<PreparedTask>>>>,
    memory: Memory,
}

impl<'a> KnownTasks<'a> {
    /// Some tasks, none of them read yet.
    pub fn new(tasks: &'a [Task]) -> Self {
        Self {
            by_id: tasks.iter().enumerate().map(|(at, task)| (task.id.as_str(), at)).collect(),
            prepared: tasks.iter().map(|_| OnceLock::new()).collect(),
            memory: Memory::default(),
            tasks,
        }
    }

    pub fn all(&self) -> &'a [Task] {
        self.tasks
    }

    /// The index of the task with this id.
    pub fn position(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// The digest of a task's files; absent when they cannot be read.
    pub fn revision(&self, at: usize) -> Option<Digest> {
        hash(&self.tasks[at].path, &self.memory).ok()
    }

    /// The current version of a task; absent when it cannot be read.
    pub fn read(&self, at: usize) -> Option<Arc<PreparedTask>> {
        let read = || {
            let task = &self.tasks[at];
            let revision = self.revision(at)?;
            PreparedTask::read(task.clone(), revision, &Conditions::default()).ok().map(Arc::new)
        };
        self.prepared[at].get_or_init(read).clone()
    }
}
