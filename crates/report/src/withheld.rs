//! Trials that packages withheld: they were run, so they are part of every denominator.

use std::collections::BTreeSet;

use aec_ledger::expected::Absent;
use aec_ledger::index::Filter;

use crate::missing::{Places, takes};
use crate::selection::{Agent, Selection, Task};

/// A trial whose record a package withheld.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld {
    pub experiment: String,
    pub trial: String,
    /// Absent if no plan names the trial; then it may be of any task and agent of its experiment.
    pub of: Option<(Task, Agent)>,
}

impl Selection {
    /// Adds trials that packages withheld and that the filter would accept; one that no plan names is accepted.
    pub fn note_withheld(&mut self, absent: &[Absent], filter: &Filter) {
        if absent.is_empty() {
            return;
        }
        let places = Places::of(&self.tasks);
        let known = absent.iter().map(|absent| Withheld {
            experiment: absent.trial.experiment_id.to_string(),
            trial: absent.trial.trial_id.to_string(),
            of: absent.planned.as_ref().map(|planned| {
                let task = places.task(&self.tasks, &planned.task_id, planned.task_revision);
                let agent = Agent {
                    name: planned.agent.clone(),
                    harness: planned.harness.clone(),
                    model: planned.model.clone(),
                    digest: planned.agent_digest,
                };
                (task, agent)
            }),
        });
        let fits = |withheld: &Withheld| {
            withheld.of.as_ref().is_none_or(|(task, agent)| takes(filter, task, agent, true))
        };
        let found: Vec<Withheld> = known.filter(fits).collect();
        self.withheld.extend(found);
    }

    /// For each withheld trial, the names of the groups that it belongs to: one if a plan names it, else all groups of
    /// its experiment.
    pub(crate) fn withheld_by(&self, name: impl Fn(&Task, &Agent) -> String) -> Vec<Vec<String>> {
        let group = |withheld: &Withheld| match &withheld.of {
            Some((task, agent)) => vec![name(task, agent)],
            None => {
                let of_experiment =
                    |at: usize| self.experiments.get(at).is_some_and(|known| known.id == withheld.experiment);
                let trials = self.trials.iter().filter(|trial| of_experiment(trial.experiment));
                let names: BTreeSet<String> =
                    trials.map(|trial| name(&self.tasks[trial.task], &self.agents[trial.agent])).collect();
                names.into_iter().collect()
            }
        };
        self.withheld.iter().map(group).collect()
    }

    /// What the reader must know about rewards that were not given here.
    pub fn foreign(&self) -> Option<String> {
        let count = |judged: &str| {
            let is =
                |trial: &&crate::selection::Trial| trial.foreign == Some(judged) && trial.counted().is_some();
            self.trials.iter().filter(is).count()
        };
        let (elsewhere, trusted) = (count("elsewhere"), count("trusted"));
        let packaged = self.trials.iter().filter(|trial| {
            let experiment = &self.experiments[trial.experiment].id;
            trial.foreign.is_none() && trial.counted().is_some() && self.packages.contains(experiment)
        });
        let packaged = packaged.count();
        let mut said = Vec::new();
        if packaged > 0 {
            said.push(format!("{packaged} came with a package and were not repeated here"));
        }
        if elsewhere > 0 {
            said.push(format!(
                "{elsewhere} were given by the program that ran the trial and not repeated here"
            ));
        }
        if trusted > 0 {
            said.push(format!(
                "{trusted} are trusted because of --trust-rewards, although nothing says that they were given for \
                 these tasks"
            ));
        }
        (!said.is_empty()).then(|| format!("of the rewards, {}", said.join(", and ")))
    }
}

/// How many of some withheld trials a filter on records would accept.
pub fn fitting<'a>(absent: &'a [Absent], filter: &'a Filter) -> impl Iterator<Item = &'a Absent> {
    let fits = move |absent: &&Absent| {
        let Some(planned) = &absent.planned else { return true };
        let task = crate::missing::stub(&planned.task_id, planned.task_revision);
        let agent = Agent {
            name: planned.agent.clone(),
            harness: planned.harness.clone(),
            model: planned.model.clone(),
            digest: planned.agent_digest,
        };
        filter.outcome.is_none() && takes(filter, &task, &agent, true)
    };
    absent.iter().filter(fits)
}
