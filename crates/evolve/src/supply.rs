//! Tasks for a run: made on the fly, so that nobody has seen them, or taken from the project's own.
//!
//! Tasks to learn from, tasks of tests and tasks kept for the end are never the same. Made ones have seeds of their own
//! for each use; selected ones are divided once, and where there are too few to divide, the run says so. A task of the
//! project that is used again is another repetition of it.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use aec_author::engine::Engines;
use aec_author::generate::GenerateError;
use aec_author::manifest::{MANIFEST_FILE, Manifest};
use aec_author::single::{TaskRequest, make};
use aec_author::template::Template;
use aec_base::digest::{Digest, Hasher};
use aec_base::problem::Problem;
use aec_base::text;
use aec_run::planning::Places;
use aec_task::catalogue::Catalogue;
use aec_task::dataset::tree::{self, Memory};
use aec_task::file::Visibility;
use aec_task::id::TaskId;
use aec_task::selection::Selection;
use aec_task::task::Task;

use crate::FAMILY;
use crate::config::{DEFAULT_HOLDOUT, Generate};
use crate::event::{Event, Purpose, TaskRef};
use crate::log;
use crate::run::{RunDirectory, Settings};
use crate::state::{Used, UsedFor};

/// Selected tasks below which nothing is kept for the end.
const FEWEST_FOR_HOLDOUT: usize = 10;
/// Selected tasks below which tests use those that were learned from.
const FEWEST_FOR_SIDES: usize = 4;
/// Instances in a row that are known already, after which a template has no new ones.
const MOST_KNOWN: u32 = 200;

/// A task that is to be worked on.
#[derive(Clone, Debug)]
pub struct Item {
    /// The task.
    pub task: Task,
    /// How the log names it.
    pub reference: TaskRef,
}

/// Gives tasks.
pub struct Supply {
    places: Places,
    made: Option<Made>,
    learning: Vec<Task>,
    testing: Vec<Task>,
    holdout: Vec<Task>,
    wanted_holdout: usize,
    /// What a reader of the run should know about its tasks.
    pub remarks: Vec<Problem>,
}

/// Tasks that are made on the fly.
struct Made {
    engines: Engines,
    template: Template,
    told: Generate,
    run: String,
    directory: PathBuf,
    /// One at a time: lots are published as directories.
    making: Mutex<Making>,
}

impl Supply {
    /// Finds out which tasks there are. `directory` is where made ones go.
    pub fn open(
        places: Places,
        settings: &Settings,
        template: Option<Template>,
        engines: Engines,
        run: &str,
        directory: PathBuf,
    ) -> Result<Self, Vec<Problem>> {
        let made = match (&settings.generate, template) {
            (Some(told), Some(template)) => Some(Made {
                engines,
                template,
                told: told.clone(),
                run: run.to_owned(),
                directory,
                making: Mutex::default(),
            }),
            _ => None,
        };
        let mut supply = Self {
            places,
            made,
            learning: Vec::new(),
            testing: Vec::new(),
            holdout: Vec::new(),
            wanted_holdout: settings.holdout.unwrap_or(DEFAULT_HOLDOUT) as usize,
            remarks: Vec::new(),
        };
        if settings.tasks.is_some() {
            let selected = supply.select(settings)?;
            supply.divide(selected, settings.holdout);
        }
        if supply.made.is_none() && supply.learning.is_empty() {
            let (what, fix) = if supply.holdout.is_empty() {
                (
                    "no task is selected",
                    "loosen `tasks`, or add `generate`; `aec-bench task list` shows what there is",
                )
            } else {
                ("every selected task is kept for the end", "lower `holdout.tasks`, or select more tasks")
            };
            return Err(vec![Problem::error(what).id(FAMILY.number(40)).fix(fix)]);
        }
        Ok(supply)
    }

    fn select(&self, settings: &Settings) -> Result<Vec<Task>, Vec<Problem>> {
        let table = settings.tasks.clone().unwrap_or_default();
        let selection = Selection::prepare(&table, &self.places.datasets)?;
        let Catalogue { tasks, problems } = Catalogue::load(&self.places.tasks);
        let concerned = |problem: &Problem| {
            let id = problem.about.as_deref().and_then(|id| TaskId::parse(id).ok());
            problem.counts() && id.is_some_and(|id| selection.may_take(&id))
        };
        let broken: Vec<Problem> = problems.into_iter().filter(concerned).collect();
        if !broken.is_empty() {
            return Err(broken);
        }
        let mut tasks: Vec<Task> = tasks.into_iter().filter(|task| selection.takes(task)).collect();
        // In the order of a hash: neighbours in the catalogue are alike.
        tasks.sort_by_cached_key(|task| Digest::of(task.id.as_str().as_bytes()));
        Ok(tasks)
    }

    /// Divides selected tasks by their use. Beside made tasks they are only learned from.
    fn divide(&mut self, mut selected: Vec<Task>, holdout: Option<u32>) {
        if self.made.is_some() {
            self.learning = selected;
            return;
        }
        let count = selected.len();
        let wanted = match holdout {
            Some(wanted) => wanted as usize,
            None if count < FEWEST_FOR_HOLDOUT => 0,
            None => count / 5,
        };
        if holdout.is_none() && wanted == 0 && count > 0 {
            let what = format!("nothing is kept for the end: {} are selected", text::count(count, "task"));
            let problem = Problem::warning(what).id(FAMILY.number(41));
            self.remarks.push(problem.fix("select more tasks, or let them be made with `generate`"));
        }
        let rest = count.saturating_sub(wanted);
        self.holdout = selected.split_off(rest);
        self.wanted_holdout = self.holdout.len();
        if selected.len() < FEWEST_FOR_SIDES {
            if !selected.is_empty() {
                let what = "tests use the tasks that are learned from: there are too few to divide";
                let problem = Problem::warning(what).id(FAMILY.number(42));
                self.remarks.push(
                    problem
                        .why("what is accepted may be better on these tasks only")
                        .fix("select more tasks, or let them be made with `generate`"),
                );
            }
            self.testing.clone_from(&selected);
            self.learning = selected;
        } else {
            self.testing = selected.split_off(selected.len() / 2);
            self.learning = selected;
        }
    }

    /// Says so when other runs have looked at selected tasks that are kept for the end: who begins again from what such
    /// a run found has tuned to them.
    pub fn compare_with(&mut self, others: &[RunDirectory]) -> Result<(), Vec<Problem>> {
        if self.made.is_some() || self.holdout.is_empty() {
            return Ok(());
        }
        let memory = Memory::default();
        let kept: HashSet<Digest> =
            self.holdout.iter().map(|task| tree::hash(&task.path, &memory)).collect::<Result<_, _>>()?;
        let mut seen: HashSet<Digest> = HashSet::new();
        let mut runs: Vec<&str> = Vec::new();
        for other in others {
            // A log that cannot be read is that run's trouble.
            let before = seen.len();
            for entry in log::entries(other.path()).unwrap_or_default() {
                if let Event::Measured(measured) = entry.event
                    && measured.purpose == Purpose::Holdout
                {
                    seen.extend(
                        measured.tasks.iter().map(|task| task.revision).filter(|task| kept.contains(task)),
                    );
                }
            }
            if seen.len() > before {
                runs.push(other.run.as_str());
            }
        }
        if !seen.is_empty() {
            let what = format!(
                "{} of {} kept for the end served as such before: {}",
                seen.len(),
                text::count(kept.len(), "task"),
                runs.join(", ")
            );
            let problem = Problem::warning(what).id(FAMILY.number(48));
            self.remarks.push(
                problem
                    .why("a result on tasks that were looked at before may be too good")
                    .fix("select other tasks, or let them be made with `generate`"),
            );
        }
        Ok(())
    }

    /// Tasks to learn from. Half of a batch is selected tasks where both kinds are there.
    pub fn learning(&self, used: &Used, count: usize) -> Result<Vec<Item>, Vec<Problem>> {
        let selected = match &self.made {
            Some(_) if self.learning.is_empty() => 0,
            Some(_) => count.div_ceil(2).min(self.learning.len()),
            None => count,
        };
        let mut items = self.again(&self.learning, UsedFor::Learning, used, selected)?;
        if let Some(made) = &self.made {
            items.extend(made.make(&self.places, UsedFor::Learning, used, count - selected)?);
        }
        Ok(items)
    }

    /// Tasks of a test.
    pub fn testing(&self, used: &Used, count: usize) -> Result<Vec<Item>, Vec<Problem>> {
        match &self.made {
            Some(made) => made.make(&self.places, UsedFor::Testing, used, count),
            None => self.again(&self.testing, UsedFor::Testing, used, count),
        }
    }

    /// The tasks that are kept for the end.
    pub fn holdout(&self, used: &Used) -> Result<Vec<Item>, Vec<Problem>> {
        match &self.made {
            Some(made) => made.make(&self.places, UsedFor::Holdout, used, self.wanted_holdout),
            None => self.again(&self.holdout, UsedFor::Holdout, used, self.holdout.len()),
        }
    }

    /// Tasks of the log, as they were.
    pub fn load(&self, references: &[TaskRef]) -> Result<Vec<Item>, Vec<Problem>> {
        let memory = Memory::default();
        references
            .iter()
            .map(|reference| {
                let path = self.places.root.join(&reference.task_path);
                let id = TaskId::parse(&reference.task_id)
                    .map_err(|error| vec![Problem::error(error.to_string())])?;
                let task = Task::load(id, &path)?.task;
                if tree::hash(&path, &memory)? != reference.revision {
                    let what = format!("the task `{}` has changed since the run used it", reference.task_id);
                    let problem = Problem::error(what).id(FAMILY.number(43));
                    return Err(vec![problem.fix("restore it, or begin a new run").in_file(path)]);
                }
                Ok(Item { task, reference: reference.clone() })
            })
            .collect()
    }

    /// The next selected tasks for a use: all of them in turn, then all of them once more.
    fn again(
        &self,
        tasks: &[Task],
        used_for: UsedFor,
        used: &Used,
        count: usize,
    ) -> Result<Vec<Item>, Vec<Problem>> {
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        let memory = Memory::default();
        let times =
            |task: &Task| used.times.get(&(used_for, task.id.as_str().to_owned())).copied().unwrap_or(0);
        let mut times: Vec<u32> = tasks.iter().map(times).collect();
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            let fewest = times.iter().enumerate().min_by_key(|(_, times)| **times);
            let (at, before) = fewest.map_or((0, 0), |(at, times)| (at, *times));
            times[at] += 1;
            let task = &tasks[at];
            items.push(Item {
                task: task.clone(),
                reference: TaskRef {
                    task_id: task.id.as_str().to_owned(),
                    task_path: shown(&self.places.root, &task.path),
                    revision: tree::hash(&task.path, &memory)?,
                    repetition: before + 1,
                },
            });
        }
        Ok(items)
    }
}

/// What was made so far.
#[derive(Default)]
struct Making {
    /// Where the next instances of a use begin, so that two agents of a swarm never get the same.
    next: HashMap<UsedFor, u64>,
    /// The lot of each use that was looked at last.
    lots: HashMap<UsedFor, (u64, Lot)>,
}

/// Some instances that were made together.
#[derive(Clone)]
struct Lot {
    directory: PathBuf,
    /// Tasks, by their paths below the directory.
    tasks: Vec<String>,
}

impl Made {
    /// Instances that the run has not had for any use. They lie in lots of the size that was asked for.
    fn make(
        &self,
        places: &Places,
        used_for: UsedFor,
        used: &Used,
        count: usize,
    ) -> Result<Vec<Item>, Vec<Problem>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let supplied = used.supplied.get(&used_for).copied().unwrap_or(0);
        let mut at = making.next.get(&used_for).copied().unwrap_or(0).max(supplied);
        let size = u64::from(self.told.count.max(1));
        let mut items: Vec<Item> = Vec::with_capacity(count);
        let mut passed = 0;
        while items.len() < count {
            let number = at / size;
            let lot = match making.lots.get(&used_for) {
                Some((known, lot)) if *known == number => lot.clone(),
                _ => {
                    let lot = self.lot(used_for, number, size)?;
                    making.lots.insert(used_for, (number, lot.clone()));
                    lot
                }
            };
            let item = read(places, &lot, usize::try_from(at % size).unwrap_or(0))?;
            at += 1;
            let revision = item.reference.revision;
            if used.revisions.contains(&revision)
                || items.iter().any(|other| other.reference.revision == revision)
            {
                passed += 1;
                if passed >= MOST_KNOWN {
                    let what = format!("the template `{}` has no further instances", self.template.path());
                    let problem = Problem::error(what).id(FAMILY.number(45));
                    return Err(vec![problem.fix("take a template with more, or more difficulties")]);
                }
            } else {
                items.push(item);
            }
        }
        making.next.insert(used_for, at);
        Ok(items)
    }

    /// Makes a lot. One that is there already, because a process was killed after it was made, is taken as it is: lots
    /// appear as a whole or not at all.
    fn lot(&self, used_for: UsedFor, number: u64, size: u64) -> Result<Lot, Vec<Problem>> {
        let name = match used_for {
            UsedFor::Learning => "learn",
            UsedFor::Testing => "test",
            UsedFor::Holdout => "holdout",
        };
        let directory = self.directory.join(name).join(format!("{number:05}"));
        let template = &self.template;
        let inside = format!("{}/{}/{}", template.discipline, template.category, template.name);
        let manifest = directory.join(&inside).join(MANIFEST_FILE);
        let mut instances = if manifest.is_file() {
            Manifest::read(&manifest)?.instances
        } else {
            let request = TaskRequest {
                difficulties: self.told.difficulties.clone(),
                instances: u32::try_from(size).unwrap_or(u32::MAX),
                seed: self.seed(name),
                start_index: u32::try_from(number * size).unwrap_or(u32::MAX),
                tool_mode: None,
                visibility: Visibility::Public,
                output: directory.clone(),
                replace: false,
            };
            make(&self.engines, template, &request).map_err(|error| broken(&error))?.instances
        };
        instances.sort_by_key(|made| made.index);
        let tasks = instances.iter().map(|made| format!("{inside}/{}", made.task)).collect();
        Ok(Lot { directory, tasks })
    }

    /// A seed for each use and run: what one run kept for its end, no other run learns from.
    fn seed(&self, name: &str) -> i64 {
        let mut hasher = Hasher::default();
        hasher.part(b"evolution");
        hasher.part(&self.told.seed.to_le_bytes());
        hasher.part(self.run.as_bytes());
        hasher.part(name.as_bytes());
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&hasher.finish().bytes()[..8]);
        i64::from_le_bytes(bytes) >> 11
    }
}

fn read(places: &Places, lot: &Lot, at: usize) -> Result<Item, Vec<Problem>> {
    let missing = || {
        let problem = Problem::error("tasks that the run made are gone").id(FAMILY.number(43));
        vec![problem.fix("remove the directory; it is made again").in_file(&lot.directory)]
    };
    let inside = lot.tasks.get(at).ok_or_else(missing)?;
    let path = lot.directory.join(inside);
    let id = TaskId::parse(inside).map_err(|error| vec![Problem::error(error.to_string())])?;
    let task = Task::load(id, &path)?.task;
    let reference = TaskRef {
        task_id: inside.clone(),
        task_path: shown(&places.root, &path),
        revision: tree::hash(&path, &Memory::default())?,
        repetition: 1,
    };
    Ok(Item { task, reference })
}

fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

fn broken(error: &GenerateError) -> Vec<Problem> {
    match error {
        GenerateError::Template(problems) => problems.clone(),
        GenerateError::Engine(error) => {
            vec![Problem::error(error.to_string()).id(FAMILY.number(44)).fix("see `aec-bench doctor`")]
        }
        GenerateError::Io(error) => {
            let problem = Problem::error(format!("tasks cannot be made: {error}")).id(FAMILY.number(44));
            vec![problem.fix("check the free space and the permissions of paths.feedback")]
        }
    }
}
