//! Compares an index with the records that it claims to be made of. Reports read the index, so whoever can change it
//! could change what they show.

use std::collections::{BTreeMap, HashMap};

use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_base::problem::Problem;
use rusqlite::Connection;
use rusqlite::types::Value;

use super::row::{AGENTS, COLUMNS, Row, TASKS, moment};
use super::{Index, IndexError, store};
use crate::FAMILY;
use crate::layout::Ledger;

/// The largest relative difference of equal sums: they are added in different orders.
const SAME: f64 = 1e-9;

/// The index that reports of a ledger read.
#[derive(Debug)]
pub struct IndexAudit {
    index: Index,
    ledger: Ledger,
}

/// The rows of one experiment.
#[derive(Debug)]
pub(crate) struct AuditedRows<'a> {
    audit: &'a IndexAudit,
    experiment: Name,
    /// The digest of each row, and whether a record was compared with it.
    rows: HashMap<(String, u32), (Digest, bool)>,
    latest: HashMap<String, u32>,
    pub(crate) problems: Vec<Problem>,
}

impl IndexAudit {
    /// The index beside the records, brought up to date as reports do; `None` when there is none that they would read.
    pub fn open(ledger: &Ledger) -> Option<Self> {
        if !ledger.index_file().is_file() {
            return None;
        }
        let index = Index::open(ledger).ok()?;
        index.is_kept().then(|| Self { index, ledger: ledger.clone() })
    }

    /// Problems of the index as a whole.
    pub fn problems(&self) -> Vec<Problem> {
        self.find().unwrap_or_else(|error| vec![self.problem(&format!("cannot be read: {error}"))])
    }

    fn find(&self) -> Result<Vec<Problem>, IndexError> {
        let mut problems = Vec::new();
        let connection = &self.index.connection;
        if schema(connection)? != schema(&store::in_memory()?)? {
            problems.push(self.problem("has other tables than this program made"));
        }
        // Totals are computed from an index of the database, which could differ from its table.
        let sound: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        if sound != "ok" {
            problems
                .push(self.problem(&format!("contradicts itself: {}", aec_base::text::printable(&sound))));
        }
        let here = self.ledger.experiments()?;
        let mut query =
            connection.prepare("SELECT experiment_id FROM records UNION SELECT experiment_id FROM totals")?;
        let named = query.query_map([], |row| row.get::<_, String>(0))?;
        for name in named {
            let name = name?;
            if !here.iter().any(|known| known.as_str() == name) {
                let shown = aec_base::text::printable(&name).into_owned();
                problems.push(self.problem(&format!("has an experiment `{shown}` that is not here")));
            }
        }
        Ok(problems)
    }

    fn problem(&self, what: &str) -> Problem {
        Problem::error(format!("the index {what}"))
            .id(FAMILY.number(41))
            .why("lists and reports read it, so they may show something else than the records")
            .fix("run `aec-bench ledger reindex`, and find out who changed it")
            .in_file(self.ledger.index_file())
    }

    /// The rows of an experiment. Call it after its files were listed: every listed file then has its row.
    pub(crate) fn rows(&mut self, experiment: &Name) -> Result<AuditedRows<'_>, IndexError> {
        self.index.refresh()?;
        let audit = &*self;
        let mut found = AuditedRows {
            audit,
            experiment: experiment.clone(),
            rows: HashMap::new(),
            latest: HashMap::new(),
            problems: Vec::new(),
        };
        let sql = format!("{} WHERE experiment_id = ?1", selection());
        let mut query = audit.index.connection.prepare(&sql)?;
        let mut rows = query.query([experiment.as_str()])?;
        while let Some(row) = rows.next()? {
            let (trial, attempt): (String, u32) = (row.get(1)?, row.get(2)?);
            let seal = seal(&values(row)?);
            let latest = found.latest.entry(trial.clone()).or_default();
            *latest = attempt.max(*latest);
            if found.rows.insert((trial.clone(), attempt), (seal, false)).is_some() {
                found.tell(&trial, attempt, "has two rows of", None);
            }
        }
        Ok(found)
    }
}

impl AuditedRows<'_> {
    /// Takes the row of a record as it is.
    pub(crate) fn pass(&mut self, row: &Row) {
        if let Some((_, compared)) = self.rows.get_mut(&(row.trial_id.to_string(), row.attempt)) {
            *compared = true;
        }
    }

    /// Compares the row of a readable record.
    pub(crate) fn compare(&mut self, row: &Row) {
        let key = (row.trial_id.to_string(), row.attempt);
        let is_latest = self.latest.get(&key.0) == Some(&row.attempt);
        let expected = expected(row, is_latest);
        let is_same = match self.rows.get_mut(&key) {
            None => return self.tell(&key.0, key.1, "leaves out", None),
            Some((found, compared)) => {
                *compared = true;
                *found == seal(&expected)
            }
        };
        if !is_same {
            let names = self.differing(&key, &expected).unwrap_or_default();
            self.tell(&key.0, key.1, "says something else than the record of", Some(names.join(", ")));
        }
    }

    /// The columns of a row that have other values.
    fn differing(&self, key: &(String, u32), expected: &[Value]) -> Result<Vec<&'static str>, IndexError> {
        let sql = format!("{} WHERE experiment_id = ?1 AND trial_id = ?2 AND attempt = ?3", selection());
        let experiment = self.experiment.as_str();
        let connection = &self.audit.index.connection;
        let found = connection.query_row(&sql, rusqlite::params![experiment, key.0, key.1], values)?;
        let names = columns().zip(expected.iter().zip(&found));
        Ok(names.filter(|(_, (expected, found))| expected != found).map(|(name, _)| name).collect())
    }

    fn tell(&mut self, trial: &str, attempt: u32, what: &str, which: Option<String>) {
        let id = format!("{}/{}", self.experiment, crate::layout::stem(trial, attempt));
        let shown = aec_base::text::printable(&id).into_owned();
        let which =
            which.filter(|names| !names.is_empty()).map(|names| format!(": {names}")).unwrap_or_default();
        self.problems.push(self.audit.problem(&format!("{what} `{shown}`{which}")).about(shown));
    }

    /// The problems found, with those of rows without a record and of sums.
    pub(crate) fn finish(mut self) -> Vec<Problem> {
        let mut extra: Vec<(String, u32)> =
            self.rows.iter().filter(|(_, (_, compared))| !compared).map(|(key, _)| key.clone()).collect();
        extra.sort();
        let directory = self.audit.ledger.experiment(&self.experiment);
        for (trial, attempt) in extra {
            // It may have appeared after the files were listed.
            let is_here = Name::parse(&trial)
                .is_ok_and(|trial| directory.record(&trial, attempt).symlink_metadata().is_ok());
            if !is_here {
                self.tell(&trial, attempt, "has a row without a record:", None);
            }
        }
        match self.sums() {
            Ok(true) => {}
            Ok(false) => {
                let what = format!("has other sums for `{}` than its records", self.experiment);
                self.problems.push(self.audit.problem(&what).about(self.experiment.to_string()));
            }
            Err(error) => self.problems.push(self.audit.problem(&format!("cannot be read: {error}"))),
        }
        self.problems
    }

    /// Whether the stored sums of the experiment are those of its rows.
    fn sums(&self) -> Result<bool, IndexError> {
        let connection = &self.audit.index.connection;
        let read = |sql: &str| -> Result<BTreeMap<(bool, String), [f64; 6]>, IndexError> {
            let mut query = connection.prepare(sql)?;
            let rows = query.query_map([self.experiment.as_str()], |row| {
                let mut sums = [0.0; 6];
                for (at, sum) in sums.iter_mut().enumerate() {
                    *sum = row.get::<_, Option<f64>>(at + 2)?.unwrap_or_default();
                }
                Ok(((row.get(0)?, row.get(1)?), sums))
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        };
        let stored = read(
            "SELECT latest, outcome, count, rewards, cost, priced, first, last FROM totals \
             WHERE experiment_id = ?1",
        )?;
        let counted = read(
            "SELECT latest, outcome, count(*), total(reward), total(cost_usd), count(cost_usd), min(moment), \
             max(moment) FROM records NOT INDEXED WHERE experiment_id = ?1 GROUP BY latest, outcome",
        )?;
        let is_close = |a: &f64, b: &f64| (a - b).abs() <= SAME * a.abs().max(1.0);
        let same = |key: &(bool, String), sums: &[f64; 6]| {
            counted.get(key).is_some_and(|other| sums.iter().zip(other).all(|(a, b)| is_close(a, b)))
        };
        Ok(stored.len() == counted.len() && stored.iter().all(|(key, sums)| same(key, sums)))
    }
}

/// Every object of a database, with the statement that made it.
fn schema(connection: &Connection) -> rusqlite::Result<Vec<(String, String, Option<String>)>> {
    let mut query = connection.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name")?;
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    rows.collect()
}

fn columns() -> impl Iterator<Item = &'static str> {
    COLUMNS.into_iter().chain(TASKS).chain(AGENTS).chain(["moment", "latest"])
}

fn selection() -> String {
    let columns: Vec<&str> = columns().collect();
    format!(
        "SELECT {} FROM records CROSS JOIN tasks USING (task_number) \
         CROSS JOIN agents USING (agent_number)",
        columns.join(", ")
    )
}

fn values(row: &rusqlite::Row<'_>) -> rusqlite::Result<Vec<Value>> {
    (0..columns().count()).map(|at| row.get(at)).collect()
}

fn expected(row: &Row, is_latest: bool) -> Vec<Value> {
    let more = [Value::Integer(moment(&row.timestamp)), Value::Integer(is_latest.into())];
    row.values().into_iter().chain(row.task_values()).chain(row.agent_values()).chain(more).collect()
}

fn seal(values: &[Value]) -> Digest {
    Digest::of(format!("{values:?}").as_bytes())
}
