//! The containers that trials need, computed in advance: how many of each kind, and of how many images.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aec_base::parallel;
use aec_base::problem::Problem;
use aec_container::image::different;
use aec_judge::judge::{JudgeLimits, image_of};
use aec_judge::verifier::VerifierFiles;
use aec_task::task::Task;

use crate::parameters::Parameters;
use crate::plan::{Plan, PlannedTrial};
use crate::room::lifetime;
use crate::trial::{agent_time, limits};

/// Number of tasks that one thread takes at a time.
const CHUNK: usize = 4;

/// The user of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    Agent,
    Verifier,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Verifier => "verifier",
        }
    }
}

/// Containers with equal requirements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContainerKind {
    pub role: Role,
    pub cpus: u32,
    /// Memory in MiB.
    pub memory_mb: u32,
    /// How long it may exist.
    pub lifetime: Duration,
    pub network: bool,
}

/// The needs of trials, with one attempt each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Upper bounds for each kind: an agent that runs no command opens no sandbox.
    pub containers: BTreeMap<ContainerKind, usize>,
    pub images: usize,
}

/// The needs of a plan's trials. Creates nothing.
pub fn demand(plan: &Plan, tasks: &[Task], trials: &[&PlannedTrial]) -> Result<Demand, Vec<Problem>> {
    let conditions = &plan.conditions;
    let agents = plan
        .agents
        .iter()
        .map(|agent| Parameters::read(agent.name.as_str(), agent.harness, &agent.parameters))
        .collect::<Result<Vec<_>, _>>()?;
    let used: Vec<usize> =
        trials.iter().map(|trial| trial.task).collect::<BTreeSet<_>>().into_iter().collect();
    // An unreadable verifier is a fault before any sandbox is opened.
    let judged = |task: &usize| {
        !conditions.disable_verification
            && VerifierFiles::read(&tasks[*task].path).is_ok_and(|files| files.needs_room())
    };
    let judged: BTreeMap<usize, bool> =
        used.iter().copied().zip(parallel::map(&used, CHUNK, judged)).collect();
    let mut demand = Demand::default();
    let mut with_image = BTreeSet::new();
    for trial in trials {
        let task = &tasks[trial.task];
        let mut add = |kind| {
            *demand.containers.entry(kind).or_default() += 1;
            with_image.insert(trial.task);
        };
        if plan.agents[trial.agent].harness.needs_room() {
            let own = limits(conditions, task);
            add(ContainerKind {
                role: Role::Agent,
                cpus: own.cpus,
                memory_mb: own.memory_mb,
                lifetime: lifetime(agent_time(conditions, task, &agents[trial.agent])),
                network: task.environment.allow_internet,
            });
        }
        if judged.get(&trial.task) == Some(&true) {
            let own = JudgeLimits::from(task);
            add(ContainerKind {
                role: Role::Verifier,
                cpus: own.cpus,
                memory_mb: own.memory_mb,
                lifetime: own.lifetime(),
                network: false,
            });
        }
    }
    let images: Vec<_> = with_image.into_iter().map(|task| image_of(&tasks[task])).collect();
    demand.images = different(&images).map_err(|error| {
        let problem = Problem::error(format!("the files of an image cannot be read: {error}"));
        vec![problem.fix("see environment/ of the tasks")]
    })?;
    Ok(demand)
}
