//! Many rows at little cost: the columns that statistics need, borrowed from the database.

use aec_base::digest::Digest;
use aec_judge::verdict::Outcome;
use rusqlite::Row;
use rusqlite::types::ValueRef;

use super::query::Filter;
use super::{Index, IndexError};

const COLUMNS: &str = "experiment_id, trial_id, attempt, repetition, task_id, task_revision, domain, difficulty, \
    family, agent, agent_digest, adapter, model, dataset_id, outcome, fault_kind, reward, cost_usd, tokens_in, \
    tokens_out, model_calls, total_seconds, latest, visibility";

/// What statistics need of one attempt.
#[derive(Clone, Copy, Debug)]
pub struct Brief<'a> {
    /// The experiment.
    pub experiment_id: &'a str,
    /// The trial.
    pub trial_id: &'a str,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The repetition, from 1.
    pub repetition: u32,
    /// The task.
    pub task_id: &'a str,
    /// Digest of the task's files.
    pub task_revision: Digest,
    /// Discipline.
    pub domain: &'a str,
    /// How hard the task is, if it says.
    pub difficulty: Option<&'a str>,
    /// Who may see the task, if it says.
    pub visibility: Option<&'a str>,
    /// The task's family.
    pub family: &'a str,
    /// The agent's name.
    pub agent: &'a str,
    /// Digest of harness, model, parameters and prompt.
    pub agent_digest: Digest,
    /// The harness.
    pub adapter: &'a str,
    /// The model.
    pub model: Option<&'a str>,
    /// The dataset.
    pub dataset_id: Option<&'a str>,
    /// What became of it.
    pub outcome: Outcome,
    /// The kind of the fault.
    pub fault_kind: Option<&'a str>,
    /// The reward.
    pub reward: Option<f64>,
    /// Dollars.
    pub cost_usd: Option<f64>,
    /// Input tokens.
    pub tokens_in: Option<u64>,
    /// Output tokens.
    pub tokens_out: Option<u64>,
    /// Calls that were or may have been billed.
    pub model_calls: u64,
    /// From start to end.
    pub total_seconds: f64,
    /// Whether no later attempt at the trial is known.
    pub is_latest: bool,
}

impl Index {
    /// Shows every row that a filter takes, in no particular order and whatever the filter's limit.
    pub fn each(&self, filter: &Filter, mut take: impl FnMut(&Brief<'_>)) -> Result<(), IndexError> {
        let conditions = filter.conditions();
        let sql = format!("SELECT {COLUMNS} FROM records{}", conditions.text());
        let mut query = self.connection.prepare(&sql)?;
        let mut rows = query.query(rusqlite::params_from_iter(conditions.values))?;
        while let Some(row) = rows.next()? {
            take(&brief(row)?);
        }
        Ok(())
    }
}

fn brief<'a>(row: &'a Row<'_>) -> rusqlite::Result<Brief<'a>> {
    let text = |at: usize| row.get_ref(at)?.as_str().map_err(|error| super::row::foreign(at, error));
    let maybe = |at: usize| match row.get_ref(at)? {
        ValueRef::Null => Ok(None),
        value => value.as_str().map(Some).map_err(|error| super::row::foreign(at, error)),
    };
    let digest = |at: usize| row.get::<_, [u8; 32]>(at).map(Digest::from);
    let tokens = |at: usize| row.get::<_, Option<i64>>(at).map(|count| count.map(i64::cast_unsigned));
    let outcome = text(14)?;
    let known = Outcome::ALL.into_iter().find(|known| known.name() == outcome);
    Ok(Brief {
        experiment_id: text(0)?,
        trial_id: text(1)?,
        attempt: row.get(2)?,
        repetition: row.get(3)?,
        task_id: text(4)?,
        task_revision: digest(5)?,
        domain: text(6)?,
        difficulty: maybe(7)?,
        family: text(8)?,
        agent: text(9)?,
        agent_digest: digest(10)?,
        adapter: text(11)?,
        model: maybe(12)?,
        dataset_id: maybe(13)?,
        outcome: known.ok_or_else(|| super::row::foreign(14, format!("{outcome} is not an outcome")))?,
        fault_kind: maybe(15)?,
        reward: row.get(16)?,
        cost_usd: row.get(17)?,
        tokens_in: tokens(18)?,
        tokens_out: tokens(19)?,
        model_calls: row.get::<_, i64>(20)?.cast_unsigned(),
        total_seconds: row.get(21)?,
        is_latest: row.get(22)?,
        visibility: maybe(23)?,
    })
}
