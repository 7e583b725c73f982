//! Tasks for a run: generated during the run, so that no model has seen them, or selected from the project.
//!
//! Tasks to learn from, tasks for tests and tasks reserved for the end are never the same. Generated ones have
//! different seeds for each purpose; selected ones are divided once (see `division`), and the run warns if there are
//! too few to divide. If another batch or test uses a selected task again, that is another repetition; no batch and no
//! test has a task twice.

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
use aec_run::plan::PlannedTask;
use aec_run::planning::Places;
use aec_task::dataset::tree::{self, Memory};
use aec_task::file::Visibility;
use aec_task::id::TaskId;
use aec_task::task::Task;

use crate::FAMILY;
use crate::config::{DEFAULT_HOLDOUT, Generate};
use crate::division::{self, Division};
use crate::event::{Event, Purpose, TaskRef};
use crate::log;
use crate::run::{RunDirectory, Settings};
use crate::state::{Used, UsedFor};

/// After this many known instances in a row, a template counts as exhausted.
const MOST_KNOWN: u32 = 200;

#[derive(Clone, Debug)]
pub struct Item {
    pub task: Task,
    /// The task's name in the log.
    pub reference: TaskRef,
}

pub struct Supply {
    places: Places,
    made: Option<Made>,
    division: Division,
    wanted_holdout: usize,
    /// Warnings about the tasks of the run.
    pub remarks: Vec<Problem>,
}

struct Made {
    engines: Engines,
    template: Template,
    told: Generate,
    run: String,
    directory: PathBuf,
    /// One thread at a time: lots are published as directories.
    making: Mutex<Making>,
}

impl Supply {
    /// Finds the tasks of a run. Selected ones are divided now, unless the run already has a `division`: then they must
    /// be unchanged. `directory` is for generated ones.
    pub fn open(
        places: Places,
        settings: &Settings,
        division: Option<Division>,
        template: Option<(Template, Engines)>,
        run: &str,
        directory: PathBuf,
    ) -> Result<Self, Vec<Problem>> {
        let made = match (&settings.generate, template) {
            (Some(told), Some((template, engines))) => Some(Made {
                engines,
                template,
                told: told.clone(),
                run: run.to_owned(),
                directory,
                making: Mutex::default(),
            }),
            _ => None,
        };
        let division = match division {
            Some(division) => {
                division.check(&places)?;
                division
            }
            None => Division::of_selection(&places, settings)?,
        };
        let wanted_holdout = match &made {
            Some(_) => settings.holdout.unwrap_or(DEFAULT_HOLDOUT) as usize,
            None => division.holdout.len(),
        };
        let remarks = division.remarks(settings);
        Ok(Self { places, made, division, wanted_holdout, remarks })
    }

    pub fn division(&self) -> &Division {
        &self.division
    }

    /// Number of different tasks for tests; `None` if tasks are generated and do not run out.
    pub fn tasks_of_tests(&self) -> Option<usize> {
        self.made.is_none().then_some(self.division.testing.len())
    }

    /// Tasks that are reserved for the end.
    pub fn tasks_kept(&self) -> usize {
        self.wanted_holdout
    }

    /// Warns if other runs have used selected tasks that are reserved here: a user who starts from the result of such a
    /// run has tuned to them.
    pub fn compare_with(&mut self, others: &[RunDirectory]) {
        let kept: HashSet<Digest> = self.division.holdout.iter().map(|task| task.revision).collect();
        if kept.is_empty() {
            return;
        }
        let mut seen: HashSet<Digest> = HashSet::new();
        let mut runs: Vec<&str> = Vec::new();
        for other in others {
            // An unreadable log is reported by its own run.
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
                "{} of {} kept for the end served as the holdout of an earlier run: {}",
                seen.len(),
                text::count(kept.len(), "task"),
                runs.join(", ")
            );
            let problem = Problem::warning(what).id(FAMILY.number(48));
            self.remarks.push(
                problem
                    .why("a result on tasks that were used before may be too good")
                    .fix("select other tasks, or let them be made with `generate`"),
            );
        }
    }

    /// Tasks to learn from. If there are both kinds, half of a batch is selected tasks.
    pub fn learning(&self, used: &Used, count: usize) -> Result<Vec<Item>, Vec<Problem>> {
        let learning = &self.division.learning;
        let selected = match &self.made {
            Some(_) if learning.is_empty() => 0,
            Some(_) => count.div_ceil(2).min(learning.len()),
            None => count,
        };
        let mut items = self.again(learning, UsedFor::Learning, used, &HashSet::new(), selected)?;
        if let Some(made) = &self.made {
            items.extend(made.make(&self.places, UsedFor::Learning, used, count - selected)?);
        }
        Ok(items)
    }

    /// Tasks that are new to a test. Fewer than `count`, or none, if the selected ones run out.
    pub fn testing(
        &self,
        used: &Used,
        had: &HashSet<Digest>,
        count: usize,
    ) -> Result<Vec<Item>, Vec<Problem>> {
        match &self.made {
            Some(made) => made.make(&self.places, UsedFor::Testing, used, count),
            None => self.again(&self.division.testing, UsedFor::Testing, used, had, count),
        }
    }

    /// The tasks that are reserved for the end.
    pub fn holdout(&self, used: &Used) -> Result<Vec<Item>, Vec<Problem>> {
        let (kept, count) = (&self.division.holdout, self.wanted_holdout);
        match &self.made {
            Some(made) => made.make(&self.places, UsedFor::Holdout, used, count),
            None => self.again(kept, UsedFor::Holdout, used, &HashSet::new(), count),
        }
    }

    /// Loads tasks that the log names, if they are unchanged.
    pub fn load(&self, references: &[TaskRef]) -> Result<Vec<Item>, Vec<Problem>> {
        let load = |reference: &TaskRef| {
            let TaskRef { task_id, task_path, revision, .. } = reference;
            let task = division::load(&self.places, (task_id, task_path, *revision))?;
            Ok(Item { task, reference: reference.clone() })
        };
        references.iter().map(load).collect()
    }

    /// The next selected tasks for a purpose, least used first, each only once.
    fn again(
        &self,
        tasks: &[PlannedTask],
        used_for: UsedFor,
        used: &Used,
        had: &HashSet<Digest>,
        count: usize,
    ) -> Result<Vec<Item>, Vec<Problem>> {
        let times =
            |task: &PlannedTask| used.times.get(&(used_for, task.task_id.clone())).copied().unwrap_or(0);
        let mut left: Vec<(u32, &PlannedTask)> = tasks
            .iter()
            .filter(|task| !had.contains(&task.revision))
            .map(|task| (times(task), task))
            .collect();
        // Tasks used equally often stay in the order of the division.
        left.sort_by_key(|(times, _)| *times);
        let references: Vec<TaskRef> = left
            .into_iter()
            .take(count)
            .map(|(times, task)| TaskRef {
                task_id: task.task_id.clone(),
                task_path: task.task_path.clone(),
                revision: task.revision,
                repetition: times + 1,
            })
            .collect();
        self.load(&references)
    }
}

#[derive(Default)]
struct Making {
    /// Where the next instances of a purpose begin, so that two agents of a swarm never get the same.
    next: HashMap<UsedFor, u64>,
    /// The last lot of each purpose.
    lots: HashMap<UsedFor, (u64, Lot)>,
}

/// Instances that were generated together.
#[derive(Clone)]
struct Lot {
    directory: PathBuf,
    /// Paths of the tasks below the directory.
    tasks: Vec<String>,
}

impl Made {
    /// Instances that are new to the run. They are stored in lots of the requested size.
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

    /// Generates a lot. If it already exists, because a process was killed after generating it, it is used: lots appear
    /// completely or not at all.
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

    /// A seed for each purpose and run, so that no run learns from the tasks that another one reserved.
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

pub(crate) fn shown(root: &Path, path: &Path) -> String {
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
