//! The database: its tables, and how it is opened, rebuilt and written.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use aec_base::digest::Digest;
use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{CachedStatement, Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior, params};

use super::IndexError;
use super::row::{AGENTS, COLUMNS, Row, TASKS, moment};

/// The version of the tables. An index of another version is rebuilt.
const VERSION: i64 = 4;

/// How long one process waits for another.
const PATIENCE: Duration = Duration::from_secs(10);

/// `records` has one row per readable record file; `latest` marks the highest attempt of each trial. Values that many
/// records share are stored once in `tasks` and `agents`, so that rows are narrow and scans quick. `record_counts`
/// holds everything that totals need, `record_times` is the order of lists. `totals` stores the sums of every
/// experiment that is `counted`, because adding up a hundred thousand rows takes as long as everything else together.
const TABLES: &str = "
    CREATE TABLE records (
        experiment_id TEXT NOT NULL, trial_id TEXT NOT NULL, attempt INTEGER NOT NULL, repetition INTEGER NOT NULL,
        task_number INTEGER NOT NULL, agent_number INTEGER NOT NULL, dataset_id TEXT, outcome TEXT NOT NULL,
        fault_boundary TEXT, fault_kind TEXT, fault_message TEXT, reward REAL, cost_usd REAL, tokens_in INTEGER,
        tokens_out INTEGER, model_calls INTEGER NOT NULL, timestamp TEXT NOT NULL, total_seconds REAL NOT NULL,
        agent_seconds REAL, completeness TEXT NOT NULL, record BLOB NOT NULL, size INTEGER NOT NULL,
        moment INTEGER NOT NULL, latest INTEGER NOT NULL, key BLOB NOT NULL, plan BLOB NOT NULL,
        judged TEXT
    );
    CREATE TABLE tasks (
        task_number INTEGER PRIMARY KEY, same BLOB NOT NULL UNIQUE, task_id TEXT NOT NULL,
        task_revision BLOB NOT NULL, domain TEXT NOT NULL, difficulty TEXT, visibility TEXT, family TEXT NOT NULL
    );
    CREATE TABLE agents (
        agent_number INTEGER PRIMARY KEY, same BLOB NOT NULL UNIQUE, agent TEXT NOT NULL,
        agent_digest BLOB NOT NULL, adapter TEXT NOT NULL, model TEXT, answer_order TEXT NOT NULL
    );
    CREATE UNIQUE INDEX record_names ON records (experiment_id, trial_id, attempt);
    CREATE INDEX record_counts ON records (experiment_id, latest, outcome, reward, cost_usd, moment);
    CREATE INDEX record_times ON records (moment, experiment_id, trial_id, attempt, latest);
    CREATE TABLE directories (
        experiment_id TEXT PRIMARY KEY, modified INTEGER, inode INTEGER, counted INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE TABLE totals (
        experiment_id TEXT NOT NULL, latest INTEGER NOT NULL, outcome TEXT NOT NULL, count INTEGER NOT NULL,
        rewards REAL NOT NULL, cost REAL NOT NULL, priced INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
        PRIMARY KEY (experiment_id, latest, outcome)
    ) WITHOUT ROWID;
    CREATE TABLE broken (
        experiment_id TEXT NOT NULL, file TEXT NOT NULL, modified INTEGER, inode INTEGER,
        id TEXT, what TEXT NOT NULL, why TEXT, fix TEXT,
        PRIMARY KEY (experiment_id, file)
    ) WITHOUT ROWID;";

/// Opens the file; creates it, or rebuilds it if it is damaged.
pub(super) fn open(path: &Path) -> Result<Connection, IndexError> {
    let begun = Instant::now();
    loop {
        match open_once(path) {
            // SQLite itself does not wait for other processes when it switches to the write-ahead log.
            Err(IndexError::Database(error)) if is_busy(&error) && begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(25));
            }
            opened => return opened,
        }
    }
}

fn open_once(path: &Path) -> Result<Connection, IndexError> {
    if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
        return Err(IndexError::NotAFile);
    }
    let error = match open_sound(path) {
        Err(error) if is_damage(&error) => error,
        opened => return opened,
    };
    tracing::debug!(%error, "the index is made anew");
    let connection = connect(path)?;
    if reset(&connection).is_ok() {
        return Ok(connection);
    }
    drop(connection);
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        // If removal fails, `open_sound` below fails as well.
        fs::remove_file(name).ok();
    }
    open_sound(path)
}

fn open_sound(path: &Path) -> Result<Connection, IndexError> {
    let connection = connect(path)?;
    prepare(&connection)?;
    if connection.is_readonly("main")? {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY);
        return Err(rusqlite::Error::SqliteFailure(code, None).into());
    }
    Ok(connection)
}

/// An index in memory only.
pub(super) fn in_memory() -> Result<Connection, IndexError> {
    let connection = Connection::open_in_memory()?;
    prepare(&connection)?;
    Ok(connection)
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    // The file may come from another machine; no code in its schema may run.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    Ok(connection)
}

fn prepare(connection: &Connection) -> Result<(), IndexError> {
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "normal")?;
    if version(connection)? == 0 {
        create(connection)?;
    }
    match version(connection)? {
        VERSION => {}
        other => return Err(IndexError::Version(other)),
    }
    for table in ["records", "tasks", "agents", "directories", "totals", "broken"] {
        connection.prepare(&format!("SELECT * FROM {table} LIMIT 0"))?;
    }
    for statement in [insertion(), shared("tasks", &TASKS), shared("agents", &AGENTS)] {
        connection.prepare(&statement)?;
    }
    Ok(())
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Creates the tables, unless another process did so meanwhile.
fn create(connection: &Connection) -> rusqlite::Result<()> {
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    if version(&transaction)? == 0 {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit()
}

/// Removes all rows in one transaction, so that other processes see all of them or none.
pub(super) fn empty(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(
        "DELETE FROM records; DELETE FROM tasks; DELETE FROM agents; DELETE FROM directories; DELETE FROM totals; \
         DELETE FROM broken;",
    )?;
    transaction.commit()
}

/// Recreates the tables, whatever is in the file, even while other processes have it open.
pub(super) fn reset(connection: &Connection) -> Result<(), IndexError> {
    connection.flush_prepared_statement_cache();
    // Reads the schema, so that a write-ahead log is kept. A damaged file may make this fail.
    connection.prepare("SELECT 1 FROM sqlite_schema").ok();
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, true)?;
    let emptied = connection.execute_batch("VACUUM");
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, false)?;
    emptied?;
    prepare(connection)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Whether the file itself is damaged, as opposed to its location being unusable.
fn is_damage(error: &IndexError) -> bool {
    match error {
        IndexError::Version(_) => true,
        IndexError::Database(error) => !matches!(
            error.sqlite_error_code(),
            Some(
                ErrorCode::DatabaseBusy
                    | ErrorCode::DatabaseLocked
                    | ErrorCode::CannotOpen
                    | ErrorCode::ReadOnly
                    | ErrorCode::PermissionDenied
                    | ErrorCode::SystemIoFailure
                    | ErrorCode::DiskFull
                    | ErrorCode::OutOfMemory
            )
        ),
        IndexError::Io(_) | IndexError::NotAFile => false,
    }
}

fn insertion() -> String {
    let places: Vec<String> = (1..=COLUMNS.len() + 3).map(|number| format!("?{number}")).collect();
    format!(
        "INSERT OR REPLACE INTO records ({}, task_number, agent_number, moment, latest) \
         VALUES ({}, NOT EXISTS (SELECT 1 FROM records WHERE experiment_id = ?1 AND trial_id = ?2 AND attempt > ?3))",
        COLUMNS.join(", "),
        places.join(", "),
    )
}

/// Adds a row if it is new; `same` identifies rows, because SQL does not treat two NULLs as equal.
fn shared(table: &str, columns: &[&str]) -> String {
    let places: Vec<String> = (1..=columns.len()).map(|number| format!("?{}", number + 1)).collect();
    format!("INSERT OR IGNORE INTO {table} (same, {}) VALUES (?1, {})", columns.join(", "), places.join(", "))
}

/// The numbers of tasks and agents that many records share.
struct Numbers<'a> {
    insert: CachedStatement<'a>,
    find: CachedStatement<'a>,
    known: HashMap<Digest, i64>,
}

impl<'a> Numbers<'a> {
    fn new(transaction: &'a Transaction<'_>, table: &str, columns: &[&str]) -> rusqlite::Result<Self> {
        let number = format!("{}_number", table.trim_end_matches('s'));
        Ok(Self {
            insert: transaction.prepare_cached(&shared(table, columns))?,
            find: transaction.prepare_cached(&format!("SELECT {number} FROM {table} WHERE same = ?1"))?,
            known: HashMap::new(),
        })
    }

    fn number<const N: usize>(&mut self, values: [Value; N]) -> rusqlite::Result<i64> {
        let same = Digest::of(format!("{values:?}").as_bytes());
        if let Some(number) = self.known.get(&same) {
            return Ok(*number);
        }
        let name = Value::Blob(same.bytes().to_vec());
        self.insert.execute(rusqlite::params_from_iter(std::iter::once(name.clone()).chain(values)))?;
        let number = self.find.query_row([name], |row| row.get(0))?;
        self.known.insert(same, number);
        Ok(number)
    }
}

/// Inserts rows in one transaction.
pub(super) fn insert(connection: &mut Connection, rows: &[Row]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    {
        let mut record = transaction.prepare_cached(&insertion())?;
        let mut earlier = transaction.prepare_cached(
            "UPDATE records SET latest = 0 WHERE experiment_id = ?1 AND trial_id = ?2 AND attempt < ?3 AND latest = 1",
        )?;
        let mut directory = transaction.prepare_cached(
            "INSERT INTO directories (experiment_id) VALUES (?1) ON CONFLICT DO UPDATE SET counted = 0",
        )?;
        let mut tasks = Numbers::new(&transaction, "tasks", &TASKS)?;
        let mut agents = Numbers::new(&transaction, "agents", &AGENTS)?;
        let mut experiment = None;
        for row in rows {
            let numbers = [tasks.number(row.task_values())?, agents.number(row.agent_values())?];
            let shared = numbers.into_iter().chain([moment(&row.timestamp)]).map(Value::Integer);
            let values = row.values().into_iter().chain(shared);
            record.execute(rusqlite::params_from_iter(values))?;
            if row.attempt > 1 {
                earlier.execute(params![row.experiment_id.as_str(), row.trial_id.as_str(), row.attempt])?;
            }
            if experiment != Some(&row.experiment_id) {
                directory.execute([row.experiment_id.as_str()])?;
                experiment = Some(&row.experiment_id);
            }
        }
    }
    transaction.commit()
}

/// Removes rows of records that no longer exist; the previous attempt becomes the latest.
pub(super) fn remove(
    connection: &mut Connection,
    experiment: &str,
    gone: &[(String, u32)],
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    {
        let mut delete = transaction.prepare_cached(
            "DELETE FROM records WHERE experiment_id = ?1 AND trial_id = ?2 AND attempt = ?3",
        )?;
        let mut before = transaction.prepare_cached(
            "UPDATE records SET latest = 1 WHERE experiment_id = ?1 AND trial_id = ?2 AND attempt = \
             (SELECT max(attempt) FROM records WHERE experiment_id = ?1 AND trial_id = ?2)",
        )?;
        for (trial, attempt) in gone {
            delete.execute(params![experiment, trial, attempt])?;
            before.execute(params![experiment, trial])?;
        }
        if !gone.is_empty() {
            transaction
                .execute("UPDATE directories SET counted = 0 WHERE experiment_id = ?1", [experiment])?;
        }
    }
    transaction.commit()
}

/// Recomputes the totals of every experiment whose records changed.
pub(super) fn count(connection: &mut Connection) -> rusqlite::Result<()> {
    let stale = "SELECT experiment_id FROM directories WHERE counted = 0";
    if !connection.prepare_cached(stale)?.exists([])? {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(&format!(
        "DELETE FROM totals WHERE experiment_id IN ({stale});
         INSERT INTO totals SELECT experiment_id, latest, outcome, count(*), total(reward), total(cost_usd),
             count(cost_usd), min(moment), max(moment) FROM records INDEXED BY record_counts
             WHERE experiment_id IN ({stale}) GROUP BY experiment_id, latest, outcome;
         UPDATE directories SET counted = 1;"
    ))?;
    transaction.commit()
}
