//! The selected tasks of a run: those to learn from, those for tests and those reserved for the end. They are divided
//! once, when the run begins; the log keeps the division, so that no later session tests with a task that was learned
//! from.

use std::collections::HashSet;

use aec_base::digest::Digest;
use aec_base::problem::Problem;
use aec_base::text;
use aec_run::plan::PlannedTask;
use aec_run::planning::Places;
use aec_task::catalogue::Catalogue;
use aec_task::dataset::tree::{self, Memory};
use aec_task::id::TaskId;
use aec_task::selection::{Selection, SelectionTable};
use aec_task::task::Task;
use serde::{Deserialize, Serialize};

use crate::FAMILY;
use crate::run::Settings;
use crate::supply::shown;

/// With fewer selected tasks, none is reserved for the end.
const FEWEST_FOR_HOLDOUT: usize = 10;
/// With fewer selected tasks, tests use those that were learned from.
const FEWEST_FOR_SIDES: usize = 4;

/// Selected tasks by purpose. If tasks are also generated, selected ones are only learned from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Division {
    pub learning: Vec<PlannedTask>,
    pub testing: Vec<PlannedTask>,
    /// Reserved for the end.
    pub holdout: Vec<PlannedTask>,
}

impl Division {
    /// Selects tasks of the project and divides them.
    pub fn of_selection(places: &Places, settings: &Settings) -> Result<Self, Vec<Problem>> {
        let Some(table) = &settings.tasks else { return Ok(Self::default()) };
        let memory = Memory::default();
        let mut selected: Vec<PlannedTask> = select(places, table)?
            .into_iter()
            .map(|task| {
                Ok(PlannedTask {
                    task_id: task.id.as_str().to_owned(),
                    task_path: shown(&places.root, &task.path),
                    revision: tree::hash(&task.path, &memory)?,
                })
            })
            .collect::<Result<_, Vec<Problem>>>()?;
        // Tasks with the same files count as one: a test must not use a task twice, nor one that was learned from.
        let mut known = HashSet::new();
        selected.retain(|task| known.insert(task.revision));
        if selected.is_empty() {
            let fix = if settings.generate.is_some() {
                "loosen `tasks`, or leave it out; `aec-bench task list` shows what there is"
            } else {
                "loosen `tasks`, or add `generate`; `aec-bench task list` shows what there is"
            };
            return Err(vec![Problem::error("no task is selected").id(FAMILY.number(40)).fix(fix)]);
        }
        if settings.generate.is_some() {
            return Ok(Self { learning: selected, ..Self::default() });
        }
        let division = Self::of(selected, settings.holdout);
        if division.learning.is_empty() {
            let problem = Problem::error("every selected task is kept for the end").id(FAMILY.number(40));
            return Err(vec![problem.fix("lower `holdout.tasks`, or select more tasks")]);
        }
        Ok(division)
    }

    fn of(mut learning: Vec<PlannedTask>, holdout: Option<u32>) -> Self {
        let Sizes { kept, tests, apart } = sizes(learning.len(), holdout);
        let holdout = learning.split_off(learning.len() - kept);
        let testing = if apart { learning.split_off(learning.len() - tests) } else { learning.clone() };
        Self { learning, testing, holdout }
    }

    /// Warnings about the tasks of the run.
    pub fn remarks(&self, settings: &Settings) -> Vec<Problem> {
        let mut remarks = Vec::new();
        if settings.generate.is_some() || self.learning.is_empty() {
            return remarks;
        }
        let more = "select more tasks, or let them be made with `generate`";
        if settings.holdout.is_none() && self.holdout.is_empty() {
            let count = if self.tests_on_learned() { self.learning.len() } else { self.all().count() };
            let what = format!("nothing is kept for the end: {} are selected", text::count(count, "task"));
            remarks.push(Problem::warning(what).id(FAMILY.number(41)).fix(more));
        }
        if self.tests_on_learned() {
            let what = "tests use the tasks that are learned from: there are too few to divide";
            let problem = Problem::warning(what).id(FAMILY.number(42));
            remarks.push(problem.why("an accepted candidate may be better on these tasks only").fix(more));
        }
        remarks
    }

    fn tests_on_learned(&self) -> bool {
        self.testing == self.learning
    }

    fn all(&self) -> impl Iterator<Item = &PlannedTask> {
        self.learning.iter().chain(&self.testing).chain(&self.holdout)
    }

    /// Checks that every task is the same as when the run began.
    pub fn check(&self, places: &Places) -> Result<(), Vec<Problem>> {
        let changed: Vec<Problem> = self
            .all()
            .filter_map(|task| load(places, (&task.task_id, &task.task_path, task.revision)).err())
            .flatten()
            .collect();
        if changed.is_empty() { Ok(()) } else { Err(changed) }
    }
}

struct Sizes {
    kept: usize,
    tests: usize,
    apart: bool,
}

fn sizes(selected: usize, holdout: Option<u32>) -> Sizes {
    let wanted = match holdout {
        Some(wanted) => wanted as usize,
        None if selected < FEWEST_FOR_HOLDOUT => 0,
        None => selected / 5,
    };
    let kept = wanted.min(selected);
    let rest = selected - kept;
    let apart = rest >= FEWEST_FOR_SIDES;
    Sizes { kept, tests: if apart { rest - rest / 2 } else { rest }, apart }
}

/// How many tasks must be selected so that this many are for tests.
pub fn selected_for(tests: usize, holdout: Option<u32>) -> usize {
    // At most a fifth is reserved unless the user gives a number, and half of the rest is for tests.
    let most = tests.saturating_mul(3).saturating_add(FEWEST_FOR_HOLDOUT + holdout.unwrap_or(0) as usize);
    (1..most).find(|selected| sizes(*selected, holdout).tests >= tests).unwrap_or(most)
}

fn select(places: &Places, table: &SelectionTable) -> Result<Vec<Task>, Vec<Problem>> {
    let selection = Selection::prepare(table, &places.datasets)?;
    let Catalogue { tasks, problems } = Catalogue::load(&places.tasks);
    let concerned = |problem: &Problem| {
        let id = problem.about.as_deref().and_then(|id| TaskId::parse(id).ok());
        problem.counts() && id.is_some_and(|id| selection.may_take(&id))
    };
    let broken: Vec<Problem> = problems.into_iter().filter(concerned).collect();
    if !broken.is_empty() {
        return Err(broken);
    }
    let mut tasks: Vec<Task> = tasks.into_iter().filter(|task| selection.takes(task)).collect();
    // In the order of a hash, because neighbours in the catalogue are alike.
    tasks.sort_by_cached_key(|task| Digest::of(task.id.as_str().as_bytes()));
    Ok(tasks)
}

/// Loads a task that the log names, if it is unchanged.
pub(crate) fn load(
    places: &Places,
    (task_id, task_path, revision): (&str, &str, Digest),
) -> Result<Task, Vec<Problem>> {
    let path = places.root.join(task_path);
    let another = |how: &str| {
        let what = format!("the task `{}` {how} since the run began", text::printable(task_id));
        let problem = Problem::error(what).id(FAMILY.number(43));
        vec![problem.fix("restore it, or begin a new run").in_file(&path)]
    };
    if !path.is_dir() {
        return Err(another("is gone"));
    }
    // A task that can no longer be read counts as changed.
    if tree::hash(&path, &Memory::default()).ok() != Some(revision) {
        return Err(another("has changed"));
    }
    let id = TaskId::parse(task_id).map_err(|error| vec![Problem::error(error.to_string())])?;
    Ok(Task::load(id, &path)?.task)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(count: usize) -> Vec<PlannedTask> {
        let task = |index: usize| PlannedTask {
            task_id: format!("civil/channel-{index}"),
            task_path: format!("tasks/civil/channel-{index}"),
            revision: Digest::of(&index.to_le_bytes()),
        };
        (0..count).map(task).collect()
    }

    #[test]
    fn every_task_has_one_use_where_there_are_enough() {
        for (count, holdout, wanted) in [
            (12, Some(2), (5, 5, 2)),
            (13, Some(2), (5, 6, 2)),
            (34, None, (14, 14, 6)),
            (9, None, (4, 5, 0)),
            (3, None, (3, 3, 0)),
            (3, Some(7), (0, 0, 3)),
        ] {
            let division = Division::of(tasks(count), holdout);
            let Division { learning, testing, holdout: kept } = &division;
            assert_eq!((learning.len(), testing.len(), kept.len()), wanted, "{count} {holdout:?}");
            if !division.tests_on_learned() {
                let mut all: Vec<&str> = division.all().map(|task| task.task_id.as_str()).collect();
                all.sort_unstable();
                all.dedup();
                assert_eq!(all.len(), count);
            }
        }
    }

    #[test]
    fn so_many_selected_tasks_are_the_fewest_that_give_a_test_its_tasks() {
        for tests in 1..60 {
            for holdout in [None, Some(0), Some(3), Some(20)] {
                let selected = selected_for(tests, holdout);
                assert!(Division::of(tasks(selected), holdout).testing.len() >= tests, "{tests} {holdout:?}");
                let fewer = Division::of(tasks(selected - 1), holdout);
                assert!(fewer.testing.len() < tests, "{tests} {holdout:?}");
            }
        }
    }
}
