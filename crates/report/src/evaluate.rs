//! `evaluate`: the results of an experiment, over all its trials and by their properties.

use std::collections::BTreeMap;

use aec_base::digest::Digest;
use serde::Serialize;

use crate::faults::{FaultRate, fault_rates};
use crate::group::{Cell, Group, Sum, Unit, cells};
use crate::selection::{Agent, Selection, Task};

#[derive(Clone, Debug, Serialize)]
pub struct Evaluation {
    pub experiments: Vec<String>,
    /// Which trials are treated as alike.
    pub unit: Unit,
    /// Trials of the plans, or as many as there are records where there is no plan.
    pub planned: usize,
    /// Planned trials without a record.
    pub missing: usize,
    pub overall: Group,
    pub by: Tables,
    /// Whether agents differ in faults that are not part of the mean.
    pub fault_rates: Vec<FaultRate>,
    /// Warnings about the numbers.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Tables {
    pub agent: Vec<Group>,
    pub model: Vec<Group>,
    pub harness: Vec<Group>,
    pub difficulty: Vec<Group>,
    pub discipline: Vec<Group>,
    pub family: Vec<Group>,
    pub task: Vec<Group>,
}

pub fn evaluate(selection: &Selection, unit: Unit) -> Evaluation {
    let sums = Sums::new(selection, unit);
    let missing = selection.missing.iter().map(|missing| missing.count).sum();
    let unknown = || "unknown".to_owned();
    let names = agent_names(&selection.agents);
    let agent_name = |agent: &Agent| names.get(&agent.digest).cloned().unwrap_or_else(|| agent.name.clone());
    let overall =
        sums.by(|_, _| "all".to_owned()).pop().unwrap_or_else(|| Sum::default().finish("all".to_owned()));
    let agents = sums.by(|_, agent| agent_name(agent));
    let rates = fault_rates(agents.iter().map(|group| (group.name.as_str(), group.faults, group.counted)));
    let mut notes = notes(selection, &overall);
    notes.extend(rates.iter().filter_map(FaultRate::note));
    Evaluation {
        experiments: selection.experiments.iter().map(|experiment| experiment.id.clone()).collect(),
        unit,
        planned: selection.trials.len() + missing,
        missing,
        overall,
        by: Tables {
            agent: agents,
            model: sums.by(|_, agent| agent.model.clone().unwrap_or_else(|| "none".to_owned())),
            harness: sums.by(|_, agent| agent.harness.clone()),
            difficulty: by_difficulty(sums.by(|task, _| task.difficulty.clone().unwrap_or_else(unknown))),
            discipline: sums.by(|task, _| task.discipline.clone()),
            family: sums.by(|task, _| task.family.clone()),
            task: sums.by(|task, _| task.id.clone()),
        },
        fault_rates: rates,
        notes,
    }
}

/// Distinct names of agents: two agents with one name and different digests get a part of the digest appended.
pub(crate) fn agent_names(agents: &[Agent]) -> BTreeMap<Digest, String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for agent in agents {
        *counts.entry(&agent.name).or_default() += 1;
    }
    agents
        .iter()
        .map(|agent| {
            let alone = counts.get(agent.name.as_str()) == Some(&1);
            let name = if alone {
                agent.name.clone()
            } else {
                format!("{}@{}", agent.name, &agent.digest.hex()[..8])
            };
            (agent.digest, name)
        })
        .collect()
}

/// The trials of a selection, prepared for any grouping.
struct Sums<'a> {
    selection: &'a Selection,
    cells: Vec<Cell>,
    unit: Unit,
    families: Vec<usize>,
}

impl<'a> Sums<'a> {
    fn new(selection: &'a Selection, unit: Unit) -> Self {
        Self { selection, cells: cells(selection), unit, families: families(&selection.tasks) }
    }

    fn by(&self, name: impl Fn(&Task, &Agent) -> String) -> Vec<Group> {
        let selection = self.selection;
        let mut groups: BTreeMap<String, Sum> = BTreeMap::new();
        for cell in &self.cells {
            let name = name(&selection.tasks[cell.task], &selection.agents[cell.agent]);
            groups.entry(name).or_default().add(cell, self.unit.of(&self.families, cell.task));
        }
        for missing in &selection.missing {
            groups.entry(name(&missing.task, &missing.agent)).or_default().miss(missing);
        }
        for names in selection.withheld_by(name) {
            for name in names {
                groups.entry(name).or_default().withhold();
            }
        }
        groups.into_iter().map(|(name, sum)| sum.finish(name)).collect()
    }
}

/// The family of each task, as the number of its first task.
pub(crate) fn families(tasks: &[Task]) -> Vec<usize> {
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    tasks.iter().enumerate().map(|(at, task)| *first.entry(&task.family).or_insert(at)).collect()
}

/// From easy to hard, then all others.
fn by_difficulty(mut groups: Vec<Group>) -> Vec<Group> {
    const ORDER: [&str; 4] = ["easy", "medium", "hard", "expert"];
    let place = |name: &str| ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len());
    groups.sort_by(|a, b| place(&a.name).cmp(&place(&b.name)).then_with(|| a.name.cmp(&b.name)));
    groups
}

fn notes(selection: &Selection, overall: &Group) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(overall.unknown.map(|unknown| unknown.sentence(overall.counted)));
    notes.extend(selection.foreign());
    let missing: usize = selection.missing.iter().map(|missing| missing.count).sum();
    if missing > 0 {
        let planned = missing + selection.trials.len();
        notes.push(format!("{missing} of {planned} planned trials have no record; the mean is without them, the worst case counts them as 0"));
    }
    let mixed = selection.mixed_revisions();
    if let Some((task, count)) = mixed.first() {
        let others = if mixed.len() > 1 { format!(" and {} others", mixed.len() - 1) } else { String::new() };
        notes.push(format!(
            "{count} revisions of {task}{others} are in these numbers; they are different tasks"
        ));
    }
    notes.extend(Selection::mixed_orders(&selection.answer_orders));
    notes
}
