//! `report leaderboard`: ranks agents over one or more experiments.

use serde::Serialize;

use crate::evaluate::{agent_names, families};
use crate::faults::{FaultRate, fault_rates};
use crate::group::{Group, Sum, Unit, cells};
use crate::selection::{Agent, Selection};
use crate::stats::Interval;

/// Best first.
#[derive(Clone, Debug, Serialize)]
pub struct Leaderboard {
    pub experiments: Vec<String>,
    /// Which trials are treated as alike.
    pub unit: Unit,
    /// Tasks of all agents together.
    pub tasks: usize,
    pub rows: Vec<Row>,
    /// Whether agents differ in faults that are not part of the mean.
    pub fault_rates: Vec<FaultRate>,
    /// Warnings about the order.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Rank by mean reward, with what is unknown as 0, from 1; absent without a mean.
    pub rank: Option<usize>,
    /// The ranks that the intervals allow.
    pub ranks: Option<(usize, usize)>,
    pub agent: String,
    pub harness: String,
    pub model: Option<String>,
    pub experiments: usize,
    #[serde(flatten)]
    pub group: Group,
}

pub fn leaderboard(selection: &Selection, unit: Unit) -> Leaderboard {
    let names = agent_names(&selection.agents);
    let families = families(&selection.tasks);
    let mut sums = vec![Sum::default(); selection.agents.len()];
    let mut taken = vec![std::collections::BTreeSet::new(); selection.agents.len()];
    for cell in cells(selection) {
        sums[cell.agent].add(&cell, unit.of(&families, cell.task));
    }
    for trial in &selection.trials {
        taken[trial.agent].insert(trial.experiment);
    }
    for missing in &selection.missing {
        if let Some(at) = selection.agents.iter().position(|agent| *agent == missing.agent) {
            sums[at].miss(missing);
        }
    }
    let mut agents = selection.agents.clone();
    // An agent may have nothing but trials that were withheld.
    for withheld in &selection.withheld {
        if let Some((_, agent)) = &withheld.of
            && !agents.contains(agent)
        {
            agents.push(agent.clone());
        }
    }
    sums.resize_with(agents.len(), Sum::default);
    taken.resize_with(agents.len(), std::collections::BTreeSet::new);
    for names in selection.withheld_by(|_, agent| agent.digest.to_string()) {
        let is_its = |(agent, _): &(&Agent, &mut Sum)| names.contains(&agent.digest.to_string());
        agents.iter().zip(&mut sums).filter(is_its).for_each(|(_, sum)| sum.withhold());
    }
    let mut rows: Vec<Row> = agents
        .iter()
        .zip(sums)
        .zip(&taken)
        .map(|((agent, sum), experiments)| {
            let name = names.get(&agent.digest).cloned().unwrap_or_else(|| agent.name.clone());
            Row {
                rank: None,
                ranks: None,
                agent: name.clone(),
                harness: agent.harness.clone(),
                model: agent.model.clone(),
                experiments: experiments.len(),
                group: sum.finish(name),
            }
        })
        .collect();
    let mean = |row: &Row| row.group.sure_mean().unwrap_or(f64::NEG_INFINITY);
    rows.sort_by(|a, b| mean(b).total_cmp(&mean(a)).then_with(|| a.agent.cmp(&b.agent)));
    rank(&mut rows);
    let rates = fault_rates(rows.iter().map(|row| (row.agent.as_str(), row.group.faults, row.group.counted)));
    let mut notes = notes(selection, &rows);
    notes.extend(rates.iter().filter_map(FaultRate::note));
    Leaderboard {
        experiments: selection.experiments.iter().map(|experiment| experiment.id.clone()).collect(),
        unit,
        tasks: selection.tasks.len(),
        fault_rates: rates,
        notes,
        rows,
    }
}

/// Agents with the same mean share a rank; trials whose rewards are unknown count as 0 in it. An agent may have any
/// rank that the intervals do not rule out; without an interval, nothing is ruled out.
fn rank(rows: &mut [Row]) {
    let means: Vec<Option<f64>> = rows.iter().map(|row| row.group.sure_mean()).collect();
    let spans: Vec<Option<Interval>> = rows
        .iter()
        .map(|row| {
            row.group
                .sure_interval()
                .or_else(|| row.group.mean_reward.map(|_| Interval { low: 0.0, high: 1.0 }))
        })
        .collect();
    let ranked = means.iter().flatten().count();
    for (row, (mean, span)) in rows.iter_mut().zip(means.iter().zip(&spans)) {
        let (Some(mean), Some(span)) = (mean, span) else { continue };
        let above = means.iter().flatten().filter(|other| *other > mean).count();
        let surely_above = spans.iter().flatten().filter(|other| other.low > span.high).count();
        let surely_below = spans.iter().flatten().filter(|other| other.high < span.low).count();
        row.rank = Some(above + 1);
        row.ranks = Some((surely_above + 1, ranked - surely_below));
    }
}

fn notes(selection: &Selection, rows: &[Row]) -> Vec<String> {
    let mut notes = Vec::new();
    let counts: Vec<usize> = rows.iter().map(|row| row.group.tasks).collect();
    if let (Some(least), Some(most)) = (counts.iter().min(), counts.iter().max())
        && least < most
    {
        notes.push(format!(
            "agents did not do the same tasks ({least} to {most}); `report compare` pairs those that they share"
        ));
    }
    let missing: usize = selection.missing.iter().map(|missing| missing.count).sum();
    if missing > 0 {
        notes.push(format!("{missing} planned trials have no record; WORST counts them as 0"));
    }
    for row in rows {
        let unknown = row.group.unknown.map(|unknown| unknown.sentence(row.group.counted));
        notes.extend(unknown.map(|said| format!("{}: {said}", row.agent)));
    }
    notes.extend(selection.foreign());
    notes.extend(Selection::mixed_orders(&selection.answer_orders));
    notes
}
