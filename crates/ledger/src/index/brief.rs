//! Reads many rows cheaply: only the columns that statistics need, borrowed from the database.

use std::collections::HashMap;

use aec_base::digest::Digest;
use aec_judge::settle::order::AnswerOrder;
use aec_judge::verdict::Outcome;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::query::Filter;
use super::row::{foreign, order};
use super::{Index, IndexError};

const COLUMNS: &str = "experiment_id, trial_id, attempt, repetition, task_number, agent_number, dataset_id, outcome, \
    fault_kind, reward, cost_usd, tokens_in, tokens_out, model_calls, total_seconds, latest, judged";

/// The part of an attempt that statistics need.
#[derive(Clone, Copy, Debug)]
pub struct Brief<'a> {
    pub experiment_id: &'a str,
    pub trial_id: &'a str,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The repetition, from 1.
    pub repetition: u32,
    pub task: &'a SharedTask,
    pub agent: &'a SharedAgent,
    pub dataset_id: Option<&'a str>,
    pub outcome: Outcome,
    pub fault_kind: Option<&'a str>,
    pub reward: Option<f64>,
    /// How the reward was reached, as in [`super::Row`].
    pub judged: Option<&'a str>,
    pub cost_usd: Option<f64>,
    pub tokens_in: Option<u64>,
    pub tokens_out: Option<u64>,
    /// Calls that were or may have been billed.
    pub model_calls: u64,
    pub total_seconds: f64,
    /// Whether no later attempt at the trial is known.
    pub is_latest: bool,
}

/// What attempts at one task share.
#[derive(Clone, Debug)]
pub struct SharedTask {
    /// Identifies the task within this index: equal numbers mean equal tasks.
    pub number: i64,
    pub id: String,
    /// Digest of the task's files.
    pub revision: Digest,
    pub domain: String,
    /// The task's own statement, if any.
    pub difficulty: Option<String>,
    pub family: String,
}

/// What attempts of one agent share.
#[derive(Clone, Debug)]
pub struct SharedAgent {
    /// Identifies the agent within this index: equal numbers mean equal agents.
    pub number: i64,
    pub name: String,
    /// Digest of harness, model, parameters and prompt.
    pub digest: Digest,
    pub adapter: String,
    pub model: Option<String>,
    /// Which of several answers counted.
    pub answer_order: AnswerOrder,
}

impl Index {
    /// Visits every row that matches a filter, in no particular order; ignores the filter's limit.
    pub fn each(&self, filter: &Filter, mut take: impl FnMut(&Brief<'_>)) -> Result<(), IndexError> {
        // One consistent view of the tables while other processes write.
        let view = self.connection.unchecked_transaction()?;
        let (tasks, agents) = (tasks(&view)?, agents(&view)?);
        let conditions = filter.conditions();
        let table = if self.is_wide(filter)? { "records NOT INDEXED" } else { "records" };
        let sql = format!("SELECT {COLUMNS} FROM {table}{}", conditions.text());
        let mut query = view.prepare(&sql)?;
        let mut rows = query.query(rusqlite::params_from_iter(conditions.values))?;
        while let Some(row) = rows.next()? {
            let number = |at: usize| row.get::<_, i64>(at);
            let task = tasks.get(&number(4)?).ok_or_else(|| foreign(4, "there is no such task"))?;
            let agent = agents.get(&number(5)?).ok_or_else(|| foreign(5, "there is no such agent"))?;
            take(&brief(row, task, agent)?);
        }
        Ok(())
    }

    /// Whether a filter on experiments matches so many rows that a full scan is quicker than lookups.
    fn is_wide(&self, filter: &Filter) -> Result<bool, IndexError> {
        if filter.experiments.is_empty() {
            return Ok(false);
        }
        let (mut all, mut taken) = (0, 0);
        for one in self.summaries()? {
            all += one.attempts;
            taken += if filter.experiments.iter().any(|id| id == one.experiment_id.as_str()) {
                one.attempts
            } else {
                0
            };
        }
        Ok(taken > all / 4)
    }
}

fn tasks(connection: &Connection) -> rusqlite::Result<HashMap<i64, SharedTask>> {
    let mut query = connection
        .prepare("SELECT task_number, task_id, task_revision, domain, difficulty, family FROM tasks")?;
    let tasks = query.query_map([], |row| {
        Ok(SharedTask {
            number: row.get(0)?,
            id: row.get(1)?,
            revision: row.get::<_, [u8; 32]>(2)?.into(),
            domain: row.get(3)?,
            difficulty: row.get(4)?,
            family: row.get(5)?,
        })
    })?;
    tasks.map(|task| task.map(|task| (task.number, task))).collect()
}

fn agents(connection: &Connection) -> rusqlite::Result<HashMap<i64, SharedAgent>> {
    let mut query = connection
        .prepare("SELECT agent_number, agent, agent_digest, adapter, model, answer_order FROM agents")?;
    let agents = query.query_map([], |row| {
        Ok(SharedAgent {
            number: row.get(0)?,
            name: row.get(1)?,
            digest: row.get::<_, [u8; 32]>(2)?.into(),
            adapter: row.get(3)?,
            model: row.get(4)?,
            answer_order: order(row, 5)?,
        })
    })?;
    agents.map(|agent| agent.map(|agent| (agent.number, agent))).collect()
}

fn brief<'a>(row: &'a Row<'_>, task: &'a SharedTask, agent: &'a SharedAgent) -> rusqlite::Result<Brief<'a>> {
    let text = |at: usize| row.get_ref(at)?.as_str().map_err(|error| foreign(at, error));
    let maybe = |at: usize| match row.get_ref(at)? {
        ValueRef::Null => Ok(None),
        value => value.as_str().map(Some).map_err(|error| foreign(at, error)),
    };
    let tokens = |at: usize| row.get::<_, Option<i64>>(at).map(|count| count.map(i64::cast_unsigned));
    let outcome = text(7)?;
    let known = Outcome::ALL.into_iter().find(|known| known.name() == outcome);
    Ok(Brief {
        experiment_id: text(0)?,
        trial_id: text(1)?,
        attempt: row.get(2)?,
        repetition: row.get(3)?,
        task,
        agent,
        dataset_id: maybe(6)?,
        outcome: known.ok_or_else(|| foreign(7, format!("{outcome} is not an outcome")))?,
        fault_kind: maybe(8)?,
        reward: row.get(9)?,
        judged: maybe(16)?,
        cost_usd: row.get(10)?,
        tokens_in: tokens(11)?,
        tokens_out: tokens(12)?,
        model_calls: row.get::<_, i64>(13)?.cast_unsigned(),
        total_seconds: row.get(14)?,
        is_latest: row.get(15)?,
    })
}
