//! A cache of the records: one row for each, in a database beside them. The files are authoritative: a faulty index
//! is rebuilt, and an index that cannot be stored is built in memory.

mod audit;
mod brief;
mod query;
mod refresh;
mod row;
mod store;

use std::collections::BTreeSet;
use std::io;

use aec_base::digest::Digest;
use rusqlite::Connection;

use crate::layout::Ledger;
use crate::record::TrialRecord;

pub(crate) use audit::AuditedRows;
pub use audit::IndexAudit;
pub use brief::{Brief, SharedAgent, SharedTask};
pub use query::{Attempts, FIELDS, Filter, FindError, Order, Summary, Totals};
pub use refresh::Refreshed;
pub use row::Row;

#[derive(Debug)]
pub struct Index {
    connection: Connection,
    ledger: Ledger,
    kept: bool,
    /// The only experiments that it reads; absent for all.
    only: Option<BTreeSet<String>>,
}

#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error("the index: {0}")]
    Database(#[from] rusqlite::Error),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the index is not a regular file")]
    NotAFile,
    #[error("the index has format {0}")]
    Version(i64),
}

impl Index {
    /// Opens the index of a ledger. A corrupt index or one of another version is rebuilt; if it cannot be written,
    /// the index is kept in memory. It is not up to date before [`Index::refresh`].
    pub fn open(ledger: &Ledger) -> Result<Self, IndexError> {
        match store::open(&ledger.index_file()) {
            Ok(connection) => Ok(Self { connection, ledger: ledger.clone(), kept: true, only: None }),
            Err(error) => {
                tracing::debug!(%error, "the index is made in memory");
                Self::in_memory(ledger)
            }
        }
    }

    /// An index in memory only.
    pub fn in_memory(ledger: &Ledger) -> Result<Self, IndexError> {
        Ok(Self { connection: store::in_memory()?, ledger: ledger.clone(), kept: false, only: None })
    }

    /// An index of some experiments, or of all if none is named, made anew of their records. What is published is
    /// made of it: the index beside the records may have been changed.
    pub fn of_records(ledger: &Ledger, experiments: &[String]) -> Result<(Self, Refreshed), IndexError> {
        let mut index = Self::in_memory(ledger)?;
        index.only = (!experiments.is_empty()).then(|| experiments.iter().cloned().collect());
        let refreshed = index.refresh()?;
        Ok((index, refreshed))
    }

    /// Opens and refreshes the index and queries it. If the query fails, rebuilds the index; if that fails too, uses
    /// one in memory.
    pub fn ask<T>(
        ledger: &Ledger,
        question: impl Fn(&Self) -> Result<T, IndexError>,
    ) -> Result<(T, Refreshed), IndexError> {
        let answer = |index: &mut Self| {
            let refreshed = index.refresh()?;
            Ok::<_, IndexError>((question(index)?, refreshed))
        };
        let mut index = Self::open(ledger)?;
        let error = match answer(&mut index) {
            Err(error @ IndexError::Database(_)) => error,
            answered => return answered,
        };
        tracing::debug!(%error, "the index is made anew");
        let again = store::reset(&index.connection).and_then(|()| answer(&mut index));
        match again {
            Err(IndexError::Database(_)) => answer(&mut Self::in_memory(ledger)?),
            answered => answered,
        }
    }

    /// Empties the index and reads every record.
    pub fn rebuild(&mut self) -> Result<Refreshed, IndexError> {
        let emptied = store::empty(&mut self.connection).map_err(IndexError::from);
        match emptied.and_then(|()| self.refresh()) {
            Err(IndexError::Database(error)) => {
                tracing::debug!(%error, "the index is made anew");
                store::reset(&self.connection)?;
                self.refresh()
            }
            rebuilt => rebuilt,
        }
    }

    /// Whether the index outlives this process.
    pub fn is_kept(&self) -> bool {
        self.kept
    }

    /// Adds a record that was just written, without looking at anything else.
    pub fn add(&mut self, record: &TrialRecord, digest: Digest, size: u64) -> Result<(), IndexError> {
        self.add_all(&[(record, digest, size)])
    }

    /// Adds records that were just written, each with the digest and the length of its file.
    pub fn add_all(&mut self, records: &[(&TrialRecord, Digest, u64)]) -> Result<(), IndexError> {
        let rows: Vec<Row> =
            records.iter().map(|(record, digest, size)| Row::new(record, *digest, *size)).collect();
        Ok(store::insert(&mut self.connection, &rows)?)
    }
}

#[cfg(test)]
mod tests;
