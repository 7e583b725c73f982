//! Queries of the index: rows by filters, totals, one trial by the beginning of its id.

use std::collections::BTreeMap;

use aec_base::name::Name;
use aec_base::timestamp::Timestamp;
use aec_judge::verdict::Outcome;
use rusqlite::types::Value;
use serde::Serialize;

use super::row::{AGENTS, COLUMNS, Row, TASKS, name, outcome, timestamp};
use super::{Index, IndexError};
use crate::layout::parse_record_name;
use crate::read::RecordFile;
use crate::unknown::Unknown;

/// Fields that a filter can name, and their columns.
pub const FIELDS: [(&str, &str); 19] = [
    ("experiment_id", "experiment_id"),
    ("trial_id", "trial_id"),
    ("attempt", "attempt"),
    ("repetition", "repetition"),
    ("task_id", "task_id"),
    ("domain", "domain"),
    ("difficulty", "difficulty"),
    ("visibility", "visibility"),
    ("family", "family"),
    ("agent", "agent"),
    ("adapter", "adapter"),
    ("harness", "adapter"),
    ("model", "model"),
    ("dataset_id", "dataset_id"),
    ("outcome", "outcome"),
    ("fault", "fault_boundary"),
    ("fault_kind", "fault_kind"),
    ("completeness", "completeness"),
    ("judged", "judged"),
];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attempts {
    /// Only the highest one.
    #[default]
    Latest,
    All,
}

/// The order of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Most recently started first.
    #[default]
    Newest,
    /// By experiment, trial and attempt.
    Id,
}

/// Conditions on rows; a row must satisfy all that are given.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// One of these experiments; empty means any.
    pub experiments: Vec<String>,
    /// Beginning of the trial's id.
    pub trial_prefix: Option<String>,
    /// Beginning of the task's id, in either form.
    pub task_prefix: Option<String>,
    pub agent: Option<String>,
    pub adapter: Option<String>,
    pub model: Option<String>,
    pub outcome: Option<Outcome>,
    pub domain: Option<String>,
    /// The dataset, as `NAME@VERSION`.
    pub dataset: Option<String>,
    /// Fields of [`FIELDS`] with their values; `unknown` matches an absent value. A field that is not in [`FIELDS`]
    /// matches no row.
    pub fields: Vec<(String, String)>,
    pub attempts: Attempts,
    pub order: Order,
    pub limit: Option<usize>,
}

/// Counts and sums over attempts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    pub count: usize,
    /// Number of each outcome that occurs.
    pub outcomes: BTreeMap<Outcome, usize>,
    /// Mean reward of scored attempts, with agent faults as 0.
    pub mean_reward: Option<f64>,
    /// Trials whose rewards are unknown; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Unknown>,
    /// Sum of the known costs in dollars.
    pub cost_usd: f64,
    /// Number of attempts without a known cost.
    pub without_cost: usize,
    #[serde(skip)]
    rewards: f64,
}

/// One experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub experiment_id: Name,
    /// Its trials, each with its latest attempt.
    pub trials: Totals,
    pub attempts: usize,
    /// Sum of the known costs of all attempts in dollars.
    pub cost_usd: f64,
    /// When the first attempt began.
    pub first: Option<Timestamp>,
    /// When the last attempt began.
    pub last: Option<Timestamp>,
}

/// Why an id does not identify one record.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    #[error("there is no such record")]
    Missing,
    #[error("several records begin like this")]
    Ambiguous(Vec<String>),
    #[error(transparent)]
    Index(#[from] IndexError),
}

impl Totals {
    fn add(&mut self, outcome: Outcome, count: usize, rewards: f64, cost: f64, priced: usize) {
        self.count += count;
        *self.outcomes.entry(outcome).or_default() += count;
        self.cost_usd += cost;
        self.without_cost += count - priced;
        if outcome == Outcome::Scored {
            self.rewards += rewards;
        }
        self.mean_reward = mean(self.rewards, self.counted());
        self.note_withheld(0);
    }

    /// Adds trials that packages withheld to what is unknown.
    pub fn note_withheld(&mut self, withheld: usize) {
        let unverified = self.of(Outcome::Unverified);
        self.unknown = Unknown::of(self.rewards, self.counted(), withheld, unverified);
    }

    /// The number of attempts behind the mean.
    pub fn counted(&self) -> usize {
        self.outcomes.iter().filter(|(outcome, _)| outcome.is_counted()).map(|(_, count)| count).sum()
    }

    /// The number of attempts with an outcome.
    pub fn of(&self, outcome: Outcome) -> usize {
        self.outcomes.get(&outcome).copied().unwrap_or(0)
    }
}

fn count(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<usize> {
    row.get::<_, u32>(at).map(|count| count as usize)
}

/// Keeps only the preferred ones, if there are any.
fn prefer<T>(items: &mut Vec<T>, preferred: impl Fn(&T) -> bool) {
    if items.iter().any(&preferred) {
        items.retain(preferred);
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of records are far below 2^52")]
fn mean(sum: f64, count: usize) -> Option<f64> {
    (count > 0).then(|| sum / count as f64)
}

/// SQL conditions with their values.
#[derive(Default)]
pub(super) struct Conditions {
    sql: Vec<String>,
    pub(super) values: Vec<Value>,
}

impl Conditions {
    /// Adds a condition on a value; `{}` is its placeholder.
    fn push(&mut self, sql: &str, value: &str) {
        self.values.push(Value::Text(value.to_owned()));
        self.sql.push(sql.replace("{}", &format!("?{}", self.values.len())));
    }

    /// Adds a condition on a column of any table; `{column}` is its placeholder.
    fn on(&mut self, column: &str, sql: &str, value: &str) {
        let sql = sql.replace("{column}", column);
        let shared = [("task", TASKS.as_slice()), ("agent", AGENTS.as_slice())];
        match shared.into_iter().find(|(_, columns)| columns.contains(&column)) {
            Some((one, _)) => {
                let among = format!("{one}_number IN (SELECT {one}_number FROM {one}s WHERE {sql})");
                self.push(&among, value);
            }
            None => self.push(&sql, value),
        }
    }

    pub(super) fn text(&self) -> String {
        if self.sql.is_empty() { String::new() } else { format!(" WHERE {}", self.sql.join(" AND ")) }
    }
}

impl Filter {
    pub(super) fn conditions(&self) -> Conditions {
        let mut conditions = Conditions::default();
        if self.attempts == Attempts::Latest {
            conditions.sql.push("latest = 1".to_owned());
        }
        if let [one] = self.experiments.as_slice() {
            conditions.push("experiment_id = {}", one);
        } else if !self.experiments.is_empty() {
            let list = serde_json::to_string(&self.experiments).unwrap_or_default();
            conditions.push("experiment_id IN (SELECT value FROM json_each({}))", &list);
        }
        let equal = [
            ("agent", &self.agent),
            ("adapter", &self.adapter),
            ("model", &self.model),
            ("domain", &self.domain),
            ("dataset_id", &self.dataset),
        ];
        for (column, value) in equal {
            if let Some(value) = value {
                conditions.on(column, "{column} = {}", value);
            }
        }
        if let Some(outcome) = self.outcome {
            conditions.push("outcome = {}", outcome.name());
        }
        if let Some(prefix) = &self.trial_prefix {
            conditions.push("substr(trial_id, 1, length({})) = {}", prefix);
        }
        if let Some(prefix) = &self.task_prefix {
            let dotted = prefix.replace('/', ".");
            conditions.on("task_id", "substr(replace({column}, '/', '.'), 1, length({})) = {}", &dotted);
        }
        for (field, value) in &self.fields {
            match FIELDS.iter().find(|(known, _)| known == field) {
                Some((_, column)) => {
                    conditions.on(column, "({column} = {} OR ({column} IS NULL AND {} = 'unknown'))", value);
                }
                None => conditions.sql.push("0".to_owned()),
            }
        }
        conditions
    }
}

impl Filter {
    /// Whether the stored totals can answer this filter.
    fn is_of_totals(&self) -> bool {
        let others = [
            &self.trial_prefix,
            &self.task_prefix,
            &self.agent,
            &self.adapter,
            &self.model,
            &self.domain,
            &self.dataset,
        ];
        self.fields.is_empty() && others.into_iter().all(Option::is_none)
    }
}

impl Index {
    /// The rows that match a filter.
    pub fn query(&self, filter: &Filter) -> Result<Vec<Row>, IndexError> {
        let conditions = filter.conditions();
        let order = match filter.order {
            Order::Newest => "moment DESC, experiment_id DESC, trial_id DESC, attempt DESC",
            Order::Id => "experiment_id, trial_id, attempt",
        };
        let limit = filter.limit.map(|limit| format!(" LIMIT {limit}")).unwrap_or_default();
        let columns = [COLUMNS.as_slice(), TASKS.as_slice(), AGENTS.as_slice()].concat().join(", ");
        // A cross join keeps the order of the tables, so rows come in the order of the records.
        let sql = format!(
            "SELECT {columns} FROM records CROSS JOIN tasks USING (task_number) \
             CROSS JOIN agents USING (agent_number){} ORDER BY {order}{limit}",
            conditions.text()
        );
        let mut query = self.connection.prepare(&sql)?;
        let rows = query.query_map(rusqlite::params_from_iter(conditions.values), Row::take)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The record files that match a filter, with their lengths.
    pub fn files(&self, filter: &Filter) -> Result<Vec<(RecordFile, u64)>, IndexError> {
        let conditions = filter.conditions();
        let sql = format!(
            "SELECT experiment_id, trial_id, attempt, size FROM records{} ORDER BY experiment_id, trial_id, attempt",
            conditions.text()
        );
        let mut query = self.connection.prepare(&sql)?;
        let rows = query.query_map(rusqlite::params_from_iter(conditions.values), |row| {
            let file = RecordFile { experiment: name(row, 0)?, trial: name(row, 1)?, attempt: row.get(2)? };
            Ok((file, row.get::<_, i64>(3)?.cast_unsigned()))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The number of rows that match a filter, ignoring its limit.
    pub fn count(&self, filter: &Filter) -> Result<usize, IndexError> {
        Ok(self.totals(filter)?.count)
    }

    /// Counts and sums over the rows that match a filter, ignoring its limit.
    pub fn totals(&self, filter: &Filter) -> Result<Totals, IndexError> {
        let conditions = filter.conditions();
        let sums = if filter.is_of_totals() && self.is_counted()? {
            "sum(count), total(rewards), total(cost), sum(priced) FROM totals"
        } else {
            "count(*), total(reward), total(cost_usd), count(cost_usd) FROM records"
        };
        let sql = format!("SELECT outcome, {sums}{} GROUP BY outcome", conditions.text());
        let mut query = self.connection.prepare(&sql)?;
        let mut rows = query.query(rusqlite::params_from_iter(conditions.values))?;
        let mut totals = Totals::default();
        while let Some(row) = rows.next()? {
            totals.add(outcome(row, 0)?, count(row, 1)?, row.get(2)?, row.get(3)?, count(row, 4)?);
        }
        Ok(totals)
    }

    /// Whether the stored totals are up to date.
    fn is_counted(&self) -> Result<bool, IndexError> {
        let mut stale = self.connection.prepare_cached("SELECT 1 FROM directories WHERE counted = 0")?;
        Ok(!stale.exists([])?)
    }

    /// Every experiment with its counts, sorted by its name.
    pub fn summaries(&self) -> Result<Vec<Summary>, IndexError> {
        let sums = if self.is_counted()? {
            "count, rewards, cost, priced, first, last FROM totals"
        } else {
            "count(*), total(reward), total(cost_usd), count(cost_usd), min(moment), max(moment) FROM records \
             GROUP BY experiment_id, outcome, latest"
        };
        let sql = format!("SELECT experiment_id, outcome, latest, {sums} ORDER BY experiment_id");
        let mut query = self.connection.prepare(&sql)?;
        let mut rows = query.query([])?;
        let mut found: Vec<Summary> = Vec::new();
        while let Some(row) = rows.next()? {
            let experiment_id = name(row, 0)?;
            if found.last().is_none_or(|last| last.experiment_id != experiment_id) {
                found.push(Summary {
                    experiment_id,
                    trials: Totals::default(),
                    attempts: 0,
                    cost_usd: 0.0,
                    first: None,
                    last: None,
                });
            }
            let Some(summary) = found.last_mut() else { continue };
            let (attempts, cost): (usize, f64) = (count(row, 3)?, row.get(5)?);
            if row.get(2)? {
                summary.trials.add(outcome(row, 1)?, attempts, row.get(4)?, cost, count(row, 6)?);
            }
            summary.attempts += attempts;
            summary.cost_usd += cost;
            let (first, last) = (timestamp(row.get(7)?), timestamp(row.get(8)?));
            summary.first = summary.first.take().into_iter().chain(first).min();
            summary.last = summary.last.take().into_iter().chain(last).max();
        }
        Ok(found)
    }

    /// The record that an id identifies: `TRIAL`, `EXPERIMENT/TRIAL`, unique beginnings of both, and `TRIAL.2` for
    /// the second attempt. Without a number it is the latest attempt.
    pub fn find(&self, id: &str) -> Result<Row, FindError> {
        let (experiment, trial) = match id.split_once('/') {
            Some((experiment, trial)) => (Some(experiment), trial),
            None => (None, id),
        };
        let (trial, attempt, mut trials) = match self.trials(experiment, trial)? {
            trials if !trials.is_empty() => (trial.to_owned(), None, trials),
            _ => match parse_record_name(&format!("{trial}.json")) {
                Some((name, attempt @ 2..)) => {
                    let trials = self.trials(experiment, name.as_str())?;
                    (name.to_string(), Some(attempt), trials)
                }
                _ => return Err(FindError::Missing),
            },
        };
        prefer(&mut trials, |found| experiment.is_some_and(|experiment| found.0 == experiment));
        prefer(&mut trials, |found| found.1 == trial);
        let (experiment, trial) = match trials.as_slice() {
            [] => return Err(FindError::Missing),
            [one] => one,
            several => {
                let ids = several.iter().map(|(experiment, trial)| format!("{experiment}/{trial}"));
                return Err(FindError::Ambiguous(ids.collect()));
            }
        };
        let filter = Filter {
            experiments: vec![experiment.clone()],
            fields: std::iter::once(("trial_id".to_owned(), trial.clone()))
                .chain(attempt.map(|attempt| ("attempt".to_owned(), attempt.to_string())))
                .collect(),
            attempts: if attempt.is_some() { Attempts::All } else { Attempts::Latest },
            ..Filter::default()
        };
        self.query(&filter)?.into_iter().next().ok_or(FindError::Missing)
    }

    /// Trials whose ids begin like this, exact ones first, limited to a readable number.
    fn trials(&self, experiment: Option<&str>, trial: &str) -> Result<Vec<(String, String)>, IndexError> {
        let mut query = self.connection.prepare_cached(
            "SELECT DISTINCT experiment_id, trial_id FROM records WHERE latest = 1 \
             AND substr(trial_id, 1, length(?1)) = ?1 AND substr(experiment_id, 1, length(?2)) = ?2 \
             ORDER BY trial_id <> ?1, experiment_id <> ?2, experiment_id, trial_id LIMIT 20",
        )?;
        let rows =
            query.query_map([trial, experiment.unwrap_or_default()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
