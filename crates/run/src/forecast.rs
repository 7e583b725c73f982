//! Forecasts for agents that work by plan, before the first call; and the tasks whose files they cannot use.

use std::sync::Arc;

use aec_base::digest::Digest;
use aec_base::parallel;
use aec_base::problem::Problem;
use aec_model::money::MicroDollars;
use aec_task::task::Task;
use serde::Serialize;

use crate::experiment::{FAMILY, Harness};
use crate::harness::lambda_rlm::{self, Forecast};
use crate::harness::{PreparedAgent, rlm};
use crate::parameters::Parameters;
use crate::plan::{Conditions, Plan, PlannedAgent, PlannedTrial};
use crate::task::PreparedTask;

/// Number of tasks that one thread takes at a time.
const CHUNK: usize = 4;

/// The forecast of an agent's trials.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AgentForecast {
    pub agent: String,
    /// All its trials to run together; the accuracy is that of the worst.
    #[serde(flatten)]
    pub all: Forecast,
    /// One trial of each task.
    pub tasks: Vec<TaskForecast>,
}

/// The forecast of one trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskForecast {
    pub task_id: String,
    #[serde(flatten)]
    pub forecast: Forecast,
}

/// Forecasts for the trials to run. A task that cannot be planned is left out: planning the experiment has already
/// refused it.
pub fn forecasts(
    plan: &Plan,
    tasks: &[Task],
    agents: &[Arc<PreparedAgent>],
    trials: &[&PlannedTrial],
) -> Vec<AgentForecast> {
    let by_plan = agents.iter().enumerate().filter(|(_, agent)| agent.harness == Harness::LambdaRlm);
    by_plan
        .map(|(index, agent)| {
            let count = |task: usize| {
                trials.iter().filter(|trial| trial.agent == index && trial.task == task).count() as u64
            };
            let numbered: Vec<(usize, &Task)> = tasks.iter().enumerate().collect();
            let made = parallel::map(&numbered, CHUNK, |(number, task)| {
                let times = count(*number);
                let prepared = (times > 0).then(|| prepared(task, &plan.conditions).ok()).flatten()?;
                let own = agent.system_prompt.as_deref();
                let forecast =
                    lambda_rlm::forecast(&prepared, &agent.parameters, own, agent.model.as_ref()).ok()?;
                Some((times, TaskForecast { task_id: task.id.as_str().to_owned(), forecast }))
            });
            let mut all = Forecast {
                calls: 0,
                input_tokens: 0,
                output_tokens: 0,
                accuracy: 1.0,
                cost: Some(MicroDollars::ZERO),
            };
            let mut tasks = Vec::new();
            for (times, one) in made.into_iter().flatten() {
                let own = &one.forecast;
                all.calls = all.calls.saturating_add(own.calls.saturating_mul(times));
                all.input_tokens = all.input_tokens.saturating_add(own.input_tokens.saturating_mul(times));
                all.output_tokens = all.output_tokens.saturating_add(own.output_tokens.saturating_mul(times));
                all.accuracy = all.accuracy.min(own.accuracy);
                let cost = own.cost.map(|cost| MicroDollars(cost.0.saturating_mul(times)));
                all.cost = all.cost.zip(cost).map(|(sum, cost)| sum.plus(cost));
                tasks.push(one);
            }
            AgentForecast { agent: agent.name.clone(), all, tasks }
        })
        .collect()
}

/// Tasks whose files for the long-document harnesses are faulty, or that have no plan of the required accuracy.
pub(crate) fn unplannable(tasks: &[Task], agents: &[PlannedAgent], conditions: &Conditions) -> Vec<Problem> {
    let mut problems = Vec::new();
    for agent in agents {
        if !matches!(agent.harness, Harness::Rlm | Harness::LambdaRlm) {
            continue;
        }
        let Ok(parameters) = Parameters::read(agent.name.as_str(), agent.harness, &agent.parameters) else {
            continue;
        };
        let found = parallel::map(tasks, CHUNK, |task| {
            let prepared = prepared(task, conditions)?;
            match agent.harness {
                Harness::Rlm => rlm::check(&prepared),
                _ => lambda_rlm::forecast(&prepared, &parameters, agent.system_prompt.as_deref(), None)
                    .map(drop),
            }
        });
        for (task, found) in tasks.iter().zip(found) {
            if let Err(why) = found {
                let what = format!("agent `{}` cannot work on this task: {why}", agent.name);
                problems.push(
                    Problem::error(what)
                        .id(FAMILY.number(45))
                        .about(task.id.as_str())
                        .fix("correct the files of the task, or leave the task or the agent out"),
                );
            }
        }
    }
    problems
}

fn prepared(task: &Task, conditions: &Conditions) -> Result<PreparedTask, String> {
    // The digest is only used in records, and there are none here.
    PreparedTask::read(task.clone(), Digest::of(b""), conditions).map_err(|problem| problem.to_string())
}
