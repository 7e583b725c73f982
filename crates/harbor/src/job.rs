//! A job: its planned trials, its directory, and its configuration.
//!
//! Harbor combines all tasks of a job with all its agents and names trials at random. One of our jobs therefore
//! contains only agents with the same remaining trials, one entry for each task and repetition, and the repetition as
//! the entry's `source`; the agent's name is among its arguments. Every result contains task, source and agent, which
//! together identify exactly one planned trial.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};

use aec_base::digest::Digest;
use aec_base::file::{Links, read_text, write_atomic};
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_run::campaign::Waiting;
use aec_run::experiment::Harness;
use aec_run::plan::{Plan, PlannedTool, PlannedTrial};
use aec_task::task::Task;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::agent::HarborAgent;
use crate::program::Environment;
use crate::result::Trial;
use crate::runtime;
use crate::task::export::{Purpose, RunChanges, translate};

/// The directory of jobs in an experiment's directory of `jobs`.
pub const HARBOR: &str = "_harbor";
/// The list of a job's trials, in our directory of the job.
const NOTE: &str = "trials.json";
const CONFIG: &str = "job.json";
const NOTE_LIMIT: u64 = 64 * 1024 * 1024;
/// Seconds that a remote sandbox may live in addition to a trial's own limit.
const SPARE_SECONDS: f64 = 1800.0;

pub struct JobSetup<'a> {
    pub plan: &'a Plan,
    /// In the plan's order.
    pub tasks: &'a [Task],
    /// In the plan's order.
    pub agents: &'a [HarborAgent],
    pub trials: &'a [PlannedTrial],
    pub environment: &'a Environment,
    pub concurrency: usize,
    /// Most concurrent trials of one model.
    pub model_concurrency: usize,
}

#[derive(Clone, Debug)]
pub struct Staged {
    /// Our directory of the job.
    pub directory: PathBuf,
    pub name: Name,
    note: Note,
}

/// The list of a job's trials.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Note {
    schema_version: u32,
    job_name: Name,
    plan: Digest,
    trials: Vec<NotedTrial>,
}

/// A planned trial, and the values by which Harbor's result identifies it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotedTrial {
    pub trial_id: Name,
    pub attempt: u32,
    task: String,
    source: String,
    agent: String,
}

/// Repetitions and tasks.
type Places = Vec<(u32, usize)>;

/// Groups the wanted trials into jobs: agents with the same remaining trials share a job.
pub fn groups(trials: &[PlannedTrial], wanted: &[Waiting]) -> Vec<Vec<Waiting>> {
    let mut by_agent: BTreeMap<usize, Vec<Waiting>> = BTreeMap::new();
    for one in wanted {
        by_agent.entry(trials[one.trial].agent).or_default().push(*one);
    }
    let mut groups: Vec<(Places, Vec<Waiting>)> = Vec::new();
    for wanted in by_agent.into_values() {
        // Sorted by repetition, so that a job that is stopped early is balanced.
        let mut places: Places =
            wanted.iter().map(|one| (trials[one.trial].repetition, trials[one.trial].task)).collect();
        places.sort_unstable();
        match groups.iter_mut().find(|(known, _)| *known == places) {
            Some((_, group)) => group.extend(wanted),
            None => groups.push((places, wanted)),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

impl JobSetup<'_> {
    fn describe(&self, name: &Name, directory: &Path, wanted: &[Waiting]) -> (Value, Note) {
        let mut agents: Vec<usize> = wanted.iter().map(|one| self.trials[one.trial].agent).collect();
        agents.sort_unstable();
        agents.dedup();
        let mut places: Vec<(u32, usize)> = wanted
            .iter()
            .map(|one| &self.trials[one.trial])
            .map(|trial| (trial.repetition, trial.task))
            .collect();
        places.sort_unstable();
        places.dedup();
        let entries: Vec<Value> = places
            .iter()
            .map(|(repetition, task)| {
                let path = directory.join("tasks").join(self.task_directory(*task));
                json!({ "path": path, "source": source(*repetition) })
            })
            .collect();
        let config = json!({
            "job_name": name,
            "jobs_dir": directory.join("jobs"),
            "n_attempts": 1,
            "n_concurrent_trials": self.concurrency.max(1),
            "quiet": true,
            "retry": { "max_retries": 0 },
            "environment": self.environment_entry(&places),
            "verifier": { "disable": self.plan.conditions.disable_verification },
            "agents": agents.iter().map(|agent| self.agent_entry(*agent)).collect::<Vec<_>>(),
            "tasks": entries,
        });
        let noted = |one: &Waiting| {
            let trial = &self.trials[one.trial];
            NotedTrial {
                trial_id: trial.id.clone(),
                attempt: one.attempt,
                task: self.task_directory(trial.task),
                source: source(trial.repetition),
                agent: self.plan.agents[trial.agent].name.to_string(),
            }
        };
        let note = Note {
            schema_version: 1,
            job_name: name.clone(),
            plan: self.plan.digest,
            trials: wanted.iter().map(noted).collect(),
        };
        (config, note)
    }

    /// The jobs that would be run, for a preview.
    pub fn preview(&self, wanted: &[Waiting]) -> Vec<Value> {
        let groups = groups(self.trials, wanted);
        let name = |number: usize| Name::nearest(&format!("{}-{number}", self.plan.experiment_id));
        groups
            .iter()
            .enumerate()
            .map(|(at, group)| self.describe(&name(at + 1), Path::new("."), group).0)
            .collect()
    }

    /// Creates the directory of a job: tasks, configuration, the Python sources and the list of its trials.
    pub fn stage(&self, directory: &Path, name: Name, wanted: &[Waiting]) -> Result<Staged, Vec<Problem>> {
        let (config, note) = self.describe(&name, directory, wanted);
        let with_solution = wanted
            .iter()
            .any(|one| self.plan.agents[self.trials[one.trial].agent].harness == Harness::Oracle);
        let unwritable = |error: io::Error| {
            let problem = Problem::error(format!("the job cannot be written: {error}"));
            vec![problem.fix("check the disk and paths.jobs").in_file(directory)]
        };
        let mut tasks: Vec<usize> = wanted.iter().map(|one| self.trials[one.trial].task).collect();
        tasks.sort_unstable();
        tasks.dedup();
        for task in tasks {
            let translated = translate(&self.tasks[task], &self.purpose(with_solution))?;
            let place = directory.join("tasks").join(self.task_directory(task));
            translated.write(&place).map_err(unwritable)?;
        }
        runtime::write(&directory.join("python")).map_err(unwritable)?;
        let write = |name: &str, text: String| write_atomic(&directory.join(name), text.as_bytes());
        write(CONFIG, format!("{config:#}\n")).map_err(unwritable)?;
        let text = serde_json::to_string_pretty(&note).unwrap_or_default();
        write(NOTE, text + "\n").map_err(unwritable)?;
        Ok(Staged { directory: directory.to_path_buf(), name, note })
    }

    fn purpose(&self, solution: bool) -> Purpose {
        let conditions = &self.plan.conditions;
        let tools = conditions.tools.as_ref();
        Purpose::Run(Box::new(RunChanges {
            solution,
            timeout_sec: conditions.timeout_override.map(f64::from),
            memory_mb: conditions.memory_mb,
            instruction: conditions.instruction.clone(),
            tools: tools.map(|tools| tools.iter().map(PlannedTool::to_tool).collect()),
        }))
    }

    fn task_directory(&self, task: usize) -> String {
        let id = &self.plan.tasks[task].task_id;
        format!("{task:04}-{}", id.rsplit('/').next().unwrap_or(id))
    }

    fn agent_entry(&self, agent: usize) -> Value {
        let mut entry = self.agents[agent].entry.clone();
        if let Some(model) = self.agents[agent].model.as_ref().filter(|_| self.model_concurrency < usize::MAX)
        {
            entry.insert("n_concurrent".to_owned(), self.model_concurrency.max(1).into());
            entry.insert("concurrency_group".to_owned(), model.as_str().into());
        }
        Value::Object(entry)
    }

    fn environment_entry(&self, places: &[(u32, usize)]) -> Value {
        let mut entry = Map::from_iter([("delete".to_owned(), Value::Bool(true))]);
        match self.environment {
            Environment::Type(name) => drop(entry.insert("type".to_owned(), name.as_str().into())),
            Environment::Class(path) => drop(entry.insert("import_path".to_owned(), path.as_str().into())),
        }
        if self.environment.name() == "modal" {
            // A killed job leaves its sandboxes, which by default live for a day.
            let longest = places
                .iter()
                .map(|(_, task)| &self.tasks[*task])
                .map(|task| {
                    let agent =
                        self.plan.conditions.timeout_override.map_or(task.agent.timeout_sec, f64::from);
                    agent + task.verifier.timeout_sec + task.environment.build_timeout_sec
                })
                .fold(0.0, f64::max);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "tasks take weeks at most"
            )]
            let seconds = (longest + SPARE_SECONDS).ceil() as u64;
            entry.insert("kwargs".to_owned(), json!({ "sandbox_timeout_secs": seconds.min(86_400) }));
        }
        Value::Object(entry)
    }
}

fn source(repetition: u32) -> String {
    format!("rep-{repetition}")
}

impl Staged {
    /// Harbor's directory of the job.
    pub fn job_directory(&self) -> PathBuf {
        self.directory.join("jobs").join(self.name.as_str())
    }

    /// Reads a job that an earlier session made.
    pub fn read(directory: &Path) -> Option<Self> {
        let text = read_text(&directory.join(NOTE), NOTE_LIMIT, Links::Refuse).ok()?;
        let note: Note = aec_base::json::from_str(&text).ok()?;
        (note.schema_version == 1).then(|| Self {
            directory: directory.to_path_buf(),
            name: note.job_name.clone(),
            note,
        })
    }

    pub fn trials(&self) -> &[NotedTrial] {
        &self.note.trials
    }

    pub fn index(&self) -> Index<'_> {
        let key = |trial: &'_ NotedTrial| (trial.task.clone(), trial.source.clone(), trial.agent.clone());
        Index(self.note.trials.iter().map(|trial| (key(trial), trial)).collect())
    }

    /// The process id, if its process is still alive: a killed run leaves Harbor running.
    pub fn is_running(&self) -> Option<i32> {
        let pid: i32 = fs_err::read_to_string(self.directory.join("pid")).ok()?.trim().parse().ok()?;
        let line = fs_err::read(format!("/proc/{pid}/cmdline")).ok()?;
        let config = self.directory.join(CONFIG);
        String::from_utf8_lossy(&line).contains(&*config.to_string_lossy()).then_some(pid)
    }
}

/// Planned trials by the values that identify them in results.
pub struct Index<'a>(HashMap<(String, String, String), &'a NotedTrial>);

impl<'a> Index<'a> {
    pub fn find(&self, task: &str, source: &str, agent: &str) -> Option<&'a NotedTrial> {
        let task = Path::new(task).file_name()?.to_str()?.to_owned();
        self.0.get(&(task, source.to_owned(), agent.to_owned())).copied()
    }

    pub fn of(&self, trial: &Trial) -> Option<&'a NotedTrial> {
        let agent = trial.agent.kwargs.get("aec_agent")?.as_str()?;
        self.find(trial.task_path.as_deref()?, trial.source.as_deref()?, agent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(task: usize, agent: usize, repetition: u32) -> PlannedTrial {
        let id = Name::nearest(&format!("{task}-{agent}-{repetition}"));
        PlannedTrial { id, key: Digest::of(b""), task, agent, repetition }
    }

    #[test]
    fn agents_with_the_same_trials_share_a_job_and_others_do_not() {
        let trials: Vec<PlannedTrial> = (0..2)
            .flat_map(|task| (0..3).flat_map(move |agent| (1..=2).map(move |rep| trial(task, agent, rep))))
            .collect();
        let all: Vec<Waiting> = (0..trials.len()).map(|trial| Waiting { trial, attempt: 1 }).collect();
        assert_eq!(groups(&trials, &all).len(), 1);
        let some: Vec<Waiting> = all.iter().copied().filter(|one| one.trial != 4).collect();
        let made = groups(&trials, &some);
        assert_eq!(made.iter().map(Vec::len).collect::<Vec<_>>(), [8, 3]);
        assert!(groups(&trials, &[]).is_empty());
    }
}
