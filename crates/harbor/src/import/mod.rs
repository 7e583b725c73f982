//! Imports job directories of Harbor: each trial that has a result, in the form that every importer uses.

mod known;
pub(crate) mod planned;

use std::io;
use std::sync::Arc;

use aec_base::digest::Digest;
use aec_base::parallel;
use aec_base::problem::Problem;
use aec_base::text::printable;
use aec_judge::settle::outcome::AgentStatus;
use aec_ledger::record::{Artefact, TaskFacts};
use aec_run::elsewhere::ForeignJudging;
use aec_run::import::foreign::{Foreign, ForeignAgent, ForeignTrial, Identity, Left, Told};
use aec_run::import::{FAMILY, ImportError, Importer, KnownTasks, Origin};
use aec_run::task::PreparedTask;
use aec_task::id::TaskId;
use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::fault::ending;
use crate::keep::evidence;
use crate::result::{AgentInfo, Job, Trial, TrialError};
use known::{Digests, Found};
use planned::{agent_result, cost, timing};

/// Trials that are imported together.
const GROUP: usize = 64;

/// Identifies a job.
pub fn origin(job: &Job) -> Origin {
    Origin { adapter: "harbor", id: job.id.clone().unwrap_or_else(|| job.name()), name: job.name() }
}

/// Imports the trials of a job, group by group.
pub fn take(importer: &mut Importer<'_>, job: &Job) -> Result<(), ImportError> {
    let digests = Digests::default();
    for paths in job.trials.chunks(GROUP) {
        let mut group = Vec::with_capacity(paths.len());
        for (path, read) in paths.iter().zip(parallel::map(paths, 4, |path| Trial::read(path))) {
            match read {
                Ok(trial) => group.push(JobTrial { trial, job, digests: &digests }),
                Err(TrialError::Missing) => importer.unfinished(),
                Err(error) => {
                    let shown = path.file_name().unwrap_or_default().to_string_lossy();
                    let what = format!("{}: {error}", printable(&shown));
                    let problem = Problem::warning(what).id(FAMILY.number(23));
                    importer.refuse(problem.fix("the other trials were taken"));
                }
            }
        }
        importer.take(&group)?;
    }
    Ok(())
}

/// A trial of a job that has a result.
struct JobTrial<'a> {
    trial: Trial,
    job: &'a Job,
    digests: &'a Digests,
}

impl Foreign for JobTrial<'_> {
    fn identity(&self, tasks: &KnownTasks<'_>) -> Identity {
        let (trial, job) = (&self.trial, self.job);
        let own = trial.id.clone().unwrap_or_else(|| {
            let job = trial.job_id.clone().or_else(|| job.id.clone()).unwrap_or_else(|| job.name());
            format!("{job}-{}", trial.name)
        });
        Identity {
            id: format!("harbor-{own}"),
            rollout: None,
            task_id: task_facts(trial, &self.digests.find(trial, tasks)).task_id,
            agent: agent(&trial.agent),
        }
    }

    fn trial(&self, tasks: &KnownTasks<'_>) -> ForeignTrial {
        let (trial, job) = (&self.trial, self.job);
        let found = self.digests.find(trial, tasks);
        let task = task_facts(trial, &found);
        let here = match found {
            Found::Same(task) => Ok(task),
            Found::Named(_) => Err("the task here has other files"),
            Found::Nothing => Err("the task is not here"),
        };
        let left = match trial.workspace() {
            _ if trial.has_steps => Left::Unknown("it has several steps"),
            Some(workspace) => Left::Workspace(workspace),
            None => Left::Unknown("what the agent left in /workspace is not among the artifacts"),
        };
        let is_same =
            |text: fn(&PreparedTask) -> &String| here.as_deref().map(text).cloned().unwrap_or_default();
        ForeignTrial {
            task,
            dataset: None,
            started: trial.times.started.clone(),
            instruction: is_same(|task| &task.instruction),
            ending: ending(trial, false),
            status: match &trial.exception {
                Some(exception) if exception.kind == "AgentTimeoutError" => AgentStatus::Partial,
                Some(_) => AgentStatus::Failed,
                None => AgentStatus::Completed,
            },
            error: trial.exception.as_ref().map(|exception| exception.kind.clone()),
            told: match &trial.reward {
                Some(Ok(reward)) => Told::Reward(*reward),
                Some(Err(reason)) => Told::Missing(reason.clone()),
                None => Told::Unjudged,
            },
            measured: Some(json!({ "rewards": trial.rewards })),
            verifier: None,
            left,
            source: None,
            output_path: is_same(|task| &task.output_path),
            runtime_image: format!("harbor:{}", trial.environment),
            tool_versions: job.version.iter().map(|version| ("harbor".to_owned(), version.clone())).collect(),
            agent_result: agent_result(trial, &Map::new()),
            cost: cost(trial),
            timing: timing(trial, Vec::new()),
            here,
        }
    }

    fn evidence(&self, bench: ForeignJudging<'_>) -> io::Result<Vec<Artefact>> {
        evidence(&self.trial.path, bench.contents, bench.redactor)
    }
}

fn task_facts(trial: &Trial, found: &Found) -> TaskFacts {
    // If the task is unknown, trials whose tasks had the same files belong to the same task.
    let told = |task_id: &str| {
        let told = trial.checksum.as_deref().or(trial.contract.as_deref()).unwrap_or_default();
        Digest::of(format!("harbor\n{task_id}\n{told}").as_bytes())
    };
    let known = |task: &Arc<PreparedTask>, task_revision| TaskFacts {
        task_revision,
        domain: task.domain().to_owned(),
        difficulty: task.difficulty().map(str::to_owned),
        visibility: task.visibility().map(str::to_owned),
        family: task.family.clone(),
        task_id: task.id().to_owned(),
    };
    match found {
        Found::Same(task) => known(task, task.revision),
        Found::Named(task) => known(task, told(task.id())),
        Found::Nothing => {
            let name = trial.task_name.as_deref().or(trial.task_path.as_deref()).unwrap_or("unknown");
            let name: String = name.chars().take(200).collect();
            let task_id = TaskId::nearest(&format!("harbor/{name}")).to_string();
            TaskFacts {
                task_revision: told(&task_id),
                domain: "harbor".to_owned(),
                difficulty: None,
                visibility: None,
                family: format!("task:{task_id}"),
                task_id,
            }
        }
    }
}

fn agent(info: &AgentInfo) -> ForeignAgent {
    let name = info.name.clone().or_else(|| info.import_path.clone()).unwrap_or_else(|| "unknown".to_owned());
    let mut configuration = IndexMap::from([("agent".to_owned(), Value::from(name.as_str()))]);
    if let Some(path) = &info.import_path {
        configuration.insert("import_path".to_owned(), path.as_str().into());
    }
    // The name that this program gave an agent says nothing about what it does.
    let arguments: Map<String, Value> = info
        .kwargs
        .iter()
        .filter(|(key, _)| *key != "aec_agent")
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if !arguments.is_empty() {
        configuration.insert("kwargs".to_owned(), Value::Object(arguments));
    }
    ForeignAgent {
        name: match &info.model {
            Some(model) => format!("{name}-{model}"),
            None => name,
        },
        revision: info.version.clone(),
        model: info.model.clone(),
        configuration,
    }
}
