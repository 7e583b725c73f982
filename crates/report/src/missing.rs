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
        let places: HashMap<(&str, Digest), usize> =
            self.tasks.iter().enumerate().map(|(at, task)| ((task.id.as_str(), task.revision), at)).collect();
        let mut missing = Vec::new();
        for (task_id, revision) in &plan.tasks {
            let known = places.get(&(*task_id, *revision)).copied();
            let task = known.map_or_else(
                || Task {
                    id: (*task_id).to_owned(),
                    revision: *revision,
                    discipline: task_id.split(['/', '.']).next().unwrap_or_default().to_owned(),
                    difficulty: None,
                    family: (*task_id).to_owned(),
                },
                |at| self.tasks[at].clone(),
            );
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
                if count > 0 && takes(filter, &task, &agent) {
                    missing.push(Missing { task: task.clone(), agent, count });
                }
            }
        }
        self.missing.extend(missing);
    }
}

/// Whether a filter would accept a trial of this task and agent. Filters on properties of records accept none.
fn takes(filter: &Filter, task: &Task, agent: &Agent) -> bool {
    let dotted = |text: &str| text.replace('/', ".");
    let is = |wanted: &Option<String>, found: Option<&str>| {
        wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
    };
    let field = |(name, value): &(String, String)| {
        let found = match name.as_str() {
            "task_id" => Some(task.id.as_str()),
            "domain" => Some(task.discipline.as_str()),
            "difficulty" => task.difficulty.as_deref(),
            "family" => Some(task.family.as_str()),
            "agent" => Some(agent.name.as_str()),
            "adapter" | "harness" => Some(agent.harness.as_str()),
            "model" => agent.model.as_deref(),
            _ => return false,
        };
        found.unwrap_or("unknown") == value
    };
    is(&filter.agent, Some(&agent.name))
        && is(&filter.adapter, Some(&agent.harness))
        && is(&filter.model, agent.model.as_deref())
        && is(&filter.domain, Some(&task.discipline))
        && filter.trial_prefix.is_none()
        && filter.task_prefix.as_deref().is_none_or(|prefix| dotted(&task.id).starts_with(&dotted(prefix)))
        && filter.fields.iter().all(field)
}
