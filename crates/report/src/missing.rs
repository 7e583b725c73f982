//! Planned trials without a record. If a mean silently left them out, stopping early could improve it.

use std::collections::HashMap;

use aec_base::digest::Digest;
use aec_ledger::expected::Expected;
use aec_ledger::index::Filter;

use crate::selection::{Agent, Missing, Selection, Task};

impl Selection {
    /// Adds the trials of a plan that have no record and that the filter would accept.
    pub fn note_missing(&mut self, plan: &Expected<'_>, filter: &Filter) {
        let id = plan.experiment_id;
        let mut recorded: HashMap<(usize, usize), usize> = HashMap::new();
        let is_this = |trial: &crate::selection::Trial| self.experiments[trial.experiment].id == id;
        for trial in self.trials.iter().filter(|trial| is_this(trial)) {
            *recorded.entry((trial.task, trial.agent)).or_default() += 1;
        }
        for withheld in self.withheld.iter().filter(|withheld| withheld.experiment == id) {
            let has_record = self.trials.iter().any(|trial| is_this(trial) && *trial.id == *withheld.trial);
            let place = withheld.of.as_ref().and_then(|(task, agent)| {
                let task = self.tasks.iter().position(|known| known == task)?;
                Some((task, self.agents.iter().position(|known| known == agent)?))
            });
            if let Some(place) = place.filter(|_| !has_record) {
                *recorded.entry(place).or_default() += 1;
            }
        }
        let places = Places::of(&self.tasks);
        let mut missing = Vec::new();
        for (task_id, revision) in &plan.tasks {
            let known = places.position(task_id, *revision);
            let task = places.task(&self.tasks, task_id, *revision);
            for agent in &plan.agents {
                let at = self
                    .agents
                    .iter()
                    .position(|other| other.name == agent.name && other.digest == agent.digest);
                let done = known.zip(at).and_then(|key| recorded.get(&key)).copied().unwrap_or(0);
                let count = plan.repetitions.saturating_sub(done);
                let agent = Agent {
                    name: agent.name.to_owned(),
                    harness: agent.harness.to_owned(),
                    model: agent.model.map(str::to_owned),
                    digest: agent.digest,
                };
                if count > 0 && takes(filter, &task, &agent, false) {
                    missing.push(Missing { task: task.clone(), agent, count });
                }
            }
        }
        self.missing.extend(missing);
    }
}

/// The places of tasks by id and revision.
pub(crate) struct Places(HashMap<(String, Digest), usize>);

impl Places {
    pub(crate) fn of(tasks: &[Task]) -> Self {
        Self(tasks.iter().enumerate().map(|(at, task)| ((task.id.clone(), task.revision), at)).collect())
    }

    pub(crate) fn position(&self, id: &str, revision: Digest) -> Option<usize> {
        self.0.get(&(id.to_owned(), revision)).copied()
    }

    /// The task, with what its id says if no record tells more.
    pub(crate) fn task(&self, tasks: &[Task], id: &str, revision: Digest) -> Task {
        self.position(id, revision).map_or_else(|| stub(id, revision), |at| tasks[at].clone())
    }
}

/// A task of which only a plan speaks.
pub(crate) fn stub(id: &str, revision: Digest) -> Task {
    Task {
        id: id.to_owned(),
        revision,
        discipline: id.split(['/', '.']).next().unwrap_or_default().to_owned(),
        difficulty: None,
        family: id.to_owned(),
    }
}

/// Whether a filter would accept a trial of this task and agent, of which there is no record. `doubt` is the answer where
/// only a record would tell.
pub(crate) fn takes(filter: &Filter, task: &Task, agent: &Agent, doubt: bool) -> bool {
    // Only the id of such a task is known.
    let is_stub = *task == stub(&task.id, task.revision);
    let dotted = |text: &str| text.replace('/', ".");
    let is = |wanted: &Option<String>, found: Option<&str>| {
        wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
    };
    let field = |(name, value): &(String, String)| {
        let found = match name.as_str() {
            "task_id" => Some(task.id.as_str()),
            "domain" | "difficulty" | "family" if is_stub && doubt => return true,
            "domain" => Some(task.discipline.as_str()),
            "difficulty" => task.difficulty.as_deref(),
            "family" => Some(task.family.as_str()),
            "agent" => Some(agent.name.as_str()),
            "adapter" | "harness" => Some(agent.harness.as_str()),
            "model" => agent.model.as_deref(),
            _ => return doubt,
        };
        found.unwrap_or("unknown") == value
    };
    is(&filter.agent, Some(&agent.name))
        && is(&filter.adapter, Some(&agent.harness))
        && is(&filter.model, agent.model.as_deref())
        && (is_stub && doubt || is(&filter.domain, Some(&task.discipline)))
        && (doubt || filter.trial_prefix.is_none())
        && filter.task_prefix.as_deref().is_none_or(|prefix| dotted(&task.id).starts_with(&dotted(prefix)))
        && filter.fields.iter().all(field)
}
