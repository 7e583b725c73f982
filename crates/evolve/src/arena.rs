//! Runs candidates: the solver with each candidate's prompt, on the same tasks, through the same code as every other
//! trial. Trials that are already recorded are not repeated.

use std::sync::Arc;

use aec_base::content::ContentStore;
use aec_base::problem::Problem;
use aec_model::client::Client;
use aec_model::meter::{Account, Budget};
use aec_run::affordable::unaffordable;
use aec_run::agents;
use aec_run::campaign::{Step, StepError, StepRunner};
use aec_run::event::StopReason;
use aec_run::experiment::Agent;
use aec_run::plan::{PlannedAgent, PlannedTask};
use aec_run::planning::{Frame, Places, plan_prompted};
use aec_task::task::Task;

use crate::analyse::{Looked, look};
use crate::supply::Item;
use crate::workspace::candidate::Candidate;

/// Why a run cannot continue for now.
#[derive(Debug)]
pub enum Halt {
    Stopped(StopReason),
    Problems(Vec<Problem>),
}

impl From<Vec<Problem>> for Halt {
    fn from(problems: Vec<Problem>) -> Self {
        Self::Problems(problems)
    }
}

impl From<Problem> for Halt {
    fn from(problem: Problem) -> Self {
        Self::Problems(vec![problem])
    }
}

impl From<std::io::Error> for Halt {
    fn from(error: std::io::Error) -> Self {
        Self::Stopped(StopReason::Storage(error.to_string()))
    }
}

pub struct Arena {
    pub steps: Arc<StepRunner>,
    pub places: Places,
    /// The part that all steps have in common.
    pub frame: Frame,
    /// The agent whose prompt is improved.
    pub solver: Agent,
    pub client: Client,
    /// Pays for trials.
    pub account: Account,
    /// What one trial may take.
    pub trial_budget: Budget,
    pub contents: ContentStore,
}

/// The solver with a candidate's prompt, in the form that plans need.
pub fn planned(places: &Places, solver: &Agent, candidate: &Candidate) -> Result<PlannedAgent, Vec<Problem>> {
    plan_prompted(places, solver, candidate.name(), candidate.system_prompt())
}

impl Arena {
    /// Runs candidates on tasks; returns for each of them what was seen on each task.
    pub async fn measure(&self, arms: &[&Candidate], items: &[Item]) -> Result<Vec<Vec<Looked>>, Halt> {
        let mut tasks: Vec<Task> = Vec::new();
        let mut planned_tasks: Vec<PlannedTask> = Vec::new();
        let mut places = Vec::with_capacity(items.len());
        for item in items {
            let known = tasks.iter().position(|task| task.id == item.task.id);
            places.push(known.unwrap_or_else(|| {
                tasks.push(item.task.clone());
                planned_tasks.push(PlannedTask {
                    task_id: item.reference.task_id.clone(),
                    task_path: item.reference.task_path.clone(),
                    revision: item.reference.revision,
                });
                tasks.len() - 1
            }));
        }
        let planned: Vec<PlannedAgent> = arms
            .iter()
            .map(|candidate| planned(&self.places, &self.solver, candidate))
            .collect::<Result<_, _>>()?;
        let highest = items.iter().map(|item| item.reference.repetition).max().unwrap_or(1);
        let plan = self.frame.step(&tasks, planned_tasks, planned, highest)?;
        let prepared = agents::prepare(&plan, &self.places.root, &self.client)?;
        let problems = unaffordable(&tasks, &plan.conditions, &prepared, &self.account, self.trial_budget);
        if !problems.is_empty() {
            return Err(Halt::Problems(problems));
        }
        let mut trials = Vec::with_capacity(arms.len() * items.len());
        for agent in 0..arms.len() {
            for (item, task) in items.iter().zip(&places) {
                trials.push(plan.trial(*task, agent, item.reference.repetition));
            }
        }
        let step = Step { plan, agents: prepared, tasks, trials, account: self.account.clone() };
        let records = self.steps.carry_out(step).await.map_err(|error| match error {
            StepError::Stopped(reason) => Halt::Stopped(reason),
            StepError::Problems(problems) => Halt::Problems(problems),
        })?;
        let looked = records
            .iter()
            .zip(items.iter().cycle())
            .map(|(record, item)| look(record, &item.task, &self.contents))
            .collect::<Vec<_>>();
        let mut looked = looked.into_iter();
        Ok(arms.iter().map(|_| looked.by_ref().take(items.len()).collect()).collect())
    }
}
