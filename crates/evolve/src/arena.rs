//! Candidates at work: the solver with each candidate's prompt, on the same tasks, through the same machine as every
//! other trial. What was measured before is not measured again.

use std::sync::Arc;

use aec_base::content::ContentStore;
use aec_base::problem::Problem;
use aec_model::client::Client;
use aec_model::meter::Account;
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

/// Why a run cannot go on for now.
#[derive(Debug)]
pub enum Halt {
    /// No further trial is started.
    Stopped(StopReason),
    /// Something is wrong.
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

/// Lets candidates work.
pub struct Arena {
    /// Carries out trials.
    pub steps: Arc<StepRunner>,
    /// The project.
    pub places: Places,
    /// What all steps have in common.
    pub frame: Frame,
    /// The agent whose prompt is improved.
    pub solver: Agent,
    /// Calls models.
    pub client: Client,
    /// Who pays for trials.
    pub account: Account,
    /// Contents of the ledger.
    pub contents: ContentStore,
}

/// The solver with a candidate's prompt, as plans have it.
pub fn planned(places: &Places, solver: &Agent, candidate: &Candidate) -> Result<PlannedAgent, Vec<Problem>> {
    plan_prompted(places, solver, candidate.name(), candidate.system_prompt())
}

impl Arena {
    /// Lets candidates work on tasks: for each of them, what was seen on each task.
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
