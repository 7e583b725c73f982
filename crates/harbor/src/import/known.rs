//! Finds the tasks of this project that a foreign job uses.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use aec_base::parallel;
use aec_run::import::KnownTasks;
use aec_run::task::PreparedTask;
use aec_task::task::Task;

use crate::result::Trial;
use crate::task::export::{Purpose, RunChanges, checksums_of, translate};

/// Tasks by their digests in Harbor: unchanged, as `task export` writes them, and as jobs of this program contain them.
#[derive(Default)]
pub(super) struct Digests(OnceLock<HashMap<String, usize>>);

/// What is known about a trial's task.
pub(super) enum Found {
    /// This task, with the same files.
    Same(Arc<PreparedTask>),
    /// A task of this name; its files differ, or it is unknown whether they do.
    Named(Arc<PreparedTask>),
    /// The project has no such task.
    Nothing,
}

impl Digests {
    pub(super) fn find(&self, trial: &Trial, tasks: &KnownTasks<'_>) -> Found {
        let digests = self.0.get_or_init(|| digests(tasks.all()));
        let told = [&trial.checksum, &trial.contract];
        if let Some(at) = told.into_iter().flatten().find_map(|digest| digests.get(digest)) {
            return tasks.read(*at).map_or(Found::Nothing, Found::Same);
        }
        match by_name(trial, tasks.all()).and_then(|at| tasks.read(at)) {
            Some(task) => Found::Named(task),
            None => Found::Nothing,
        }
    }
}

fn digests(tasks: &[Task]) -> HashMap<String, usize> {
    let run = |solution| Purpose::Run(Box::new(RunChanges { solution, ..RunChanges::default() }));
    let all = parallel::map(tasks, 4, |task| {
        let mut found = Vec::new();
        found.extend(checksums_of(&task.path).ok());
        for purpose in [Purpose::Share, run(true), run(false)] {
            found.extend(translate(task, &purpose).ok().map(|translated| translated.checksums()));
        }
        found
    });
    let mut digests = HashMap::new();
    for (at, found) in all.into_iter().enumerate() {
        for sums in found {
            digests.insert(sums.whole, at);
            digests.insert(sums.contract, at);
        }
    }
    digests
}

/// The task whose id ends like the path of the trial's task, if there is exactly one.
fn by_name(trial: &Trial, tasks: &[Task]) -> Option<usize> {
    let path = trial.task_path.as_deref().map(|path| path.trim_end_matches('/'));
    let names = [path, trial.task_name.as_deref()];
    names.into_iter().flatten().find_map(|name| {
        let fits = |task: &(usize, &Task)| {
            let id = task.1.id.as_str();
            name == id || name.ends_with(&format!("/{id}")) || last(id) == last(name)
        };
        let mut fitting = tasks.iter().enumerate().filter(fits);
        let first = fitting.next()?;
        fitting.next().is_none().then_some(first.0)
    })
}

fn last(name: &str) -> &str {
    Path::new(name).file_name().and_then(|name| name.to_str()).unwrap_or(name)
}
