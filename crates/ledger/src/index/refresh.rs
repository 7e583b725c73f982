//! Brings the index up to date with one check of each experiment's directory. Only directories that changed are
//! listed, and only files that the index does not know are read.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aec_base::document::Shared;
use aec_base::name::Name;
use aec_base::parallel;
use aec_base::problem::Problem;
use rusqlite::{TransactionBehavior, params};

use super::row::Row;
use super::{Index, IndexError, store};
use crate::FAMILY;
use crate::read::{Listing, RecordFile, stranger};

/// Two changes within this time may leave the same modification time, so a younger time proves nothing.
const RACY: Duration = Duration::from_secs(1);

/// Files read before they are written to the index.
const CHUNK: usize = 4096;

#[derive(Clone, Debug, Default)]
pub struct Refreshed {
    pub added: usize,
    /// Rows removed because their records no longer exist.
    pub removed: usize,
    /// Files that are not readable records, whether or not known before.
    pub broken: usize,
    /// Problems of these files, and of directories that cannot be listed.
    pub problems: Vec<Problem>,
}

/// Values that show whether a file or directory changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: i64,
    inode: i64,
}

impl Stamp {
    fn of(path: &Path) -> io::Result<Self> {
        let found = fs_err::symlink_metadata(path)?;
        let modified = found.mtime().saturating_mul(1_000_000_000).saturating_add(found.mtime_nsec());
        Ok(Self { modified, inode: found.ino().cast_signed() })
    }

    /// The stamp, if any later change is sure to alter it.
    fn settled(self) -> Option<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let modified = Duration::from_nanos(u64::try_from(self.modified).ok()?);
        now.checked_sub(modified).filter(|age| *age >= RACY).map(|_| self)
    }
}

impl Index {
    /// Brings the index up to date. It does not notice a record changed in place; `verify` does.
    pub fn refresh(&mut self) -> Result<Refreshed, IndexError> {
        let mut refreshed = Refreshed::default();
        let mut experiments = self.ledger.experiments()?;
        if let Some(only) = &self.only {
            experiments.retain(|experiment| only.contains(experiment.as_str()));
        }
        let known = self.known()?;
        for gone in
            known.keys().filter(|known| !experiments.iter().any(|name| name.as_str() == known.as_str()))
        {
            refreshed.removed += self.forget(gone)?;
        }
        let reopened = self.changed_broken_files()?;
        for experiment in &experiments {
            let path = self.ledger.experiment(experiment).path().to_path_buf();
            let unchanged = |stamp: Stamp| {
                let same = known.get(experiment.as_str()).is_some_and(|known| *known == Some(stamp));
                same && !reopened.iter().any(|name| name == experiment.as_str())
            };
            let looked = match Stamp::of(&path) {
                Ok(stamp) if unchanged(stamp) => continue,
                Ok(stamp) => self.refresh_experiment(experiment, stamp, &mut refreshed),
                Err(error) => Err(error.into()),
            };
            match looked {
                // It disappeared after the experiments were listed; the next refresh removes it.
                Err(IndexError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
                Err(IndexError::Io(error)) => {
                    let problem =
                        Problem::error(format!("experiment `{experiment}` cannot be listed: {error}"));
                    let problem = problem.id(FAMILY.id(Shared::Unreadable)).fix("check its permissions");
                    refreshed.problems.push(problem.in_file(path));
                }
                looked => looked?,
            }
        }
        store::count(&mut self.connection)?;
        let broken = self.broken()?;
        refreshed.broken = broken.len();
        refreshed.problems.extend(broken);
        Ok(refreshed)
    }

    fn refresh_experiment(
        &mut self,
        experiment: &Name,
        stamp: Stamp,
        refreshed: &mut Refreshed,
    ) -> Result<(), IndexError> {
        // The rows are read before the files: a record that appears meanwhile is then read twice, but never missed.
        let rows = self.names(experiment)?;
        let Listing { files, strangers } = self.ledger.list(experiment)?;
        // Must be decided now, right after the directory was listed.
        let stamp = stamp.settled();
        let (unknown, gone) = differences(&rows, files);
        let mut broken = Vec::new();
        for chunk in unknown.chunks(CHUNK) {
            let ledger = &self.ledger;
            let read = parallel::map(chunk, 64, |file| {
                let stored = file.read(ledger)?;
                Ok::<_, Box<crate::read::Broken>>(Row::new(&stored.record, stored.digest, stored.size))
            });
            let mut found = Vec::with_capacity(chunk.len());
            for (file, read) in chunk.iter().zip(read) {
                match read {
                    Ok(row) => found.push(row),
                    Err(problem) => broken.push((file.file_name(), problem.problem)),
                }
            }
            store::insert(&mut self.connection, &found)?;
            refreshed.added += found.len();
        }
        store::remove(&mut self.connection, experiment.as_str(), &gone)?;
        refreshed.removed += gone.len();
        let directory = self.ledger.experiment(experiment).path().to_path_buf();
        broken.extend(strangers.into_iter().map(|name| {
            let problem = stranger(&directory.join(&name));
            (name, problem)
        }));
        self.note(experiment, stamp, &directory, &broken)
    }

    /// The experiments in the index, with the stamps of their directories.
    fn known(&self) -> rusqlite::Result<BTreeMap<String, Option<Stamp>>> {
        let mut query =
            self.connection.prepare_cached("SELECT experiment_id, modified, inode FROM directories")?;
        let rows = query.query_map([], |row| Ok((row.get(0)?, stamp(row, 1)?)))?;
        rows.collect()
    }

    /// Trials and attempts of an experiment, sorted.
    fn names(&self, experiment: &Name) -> rusqlite::Result<Vec<(String, u32)>> {
        let mut query = self.connection.prepare_cached(
            "SELECT trial_id, attempt FROM records WHERE experiment_id = ?1 ORDER BY trial_id, attempt",
        )?;
        let rows = query.query_map([experiment.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    }

    /// Experiments with a broken file that has changed since.
    fn changed_broken_files(&self) -> rusqlite::Result<Vec<String>> {
        let mut query =
            self.connection.prepare_cached("SELECT experiment_id, file, modified, inode FROM broken")?;
        let mut rows = query.query([])?;
        let mut changed: Vec<String> = Vec::new();
        while let Some(row) = rows.next()? {
            let (experiment, file): (String, String) = (row.get(0)?, row.get(1)?);
            let then = stamp(row, 2)?;
            let now = Stamp::of(&self.ledger.root().join(&experiment).join(file)).ok();
            if (now.is_none() || now != then) && changed.last() != Some(&experiment) {
                changed.push(experiment);
            }
        }
        Ok(changed)
    }

    /// The problems of files that are not readable records.
    fn broken(&self) -> rusqlite::Result<Vec<Problem>> {
        let mut query = self.connection.prepare_cached(
            "SELECT experiment_id, file, id, what, why, fix FROM broken ORDER BY experiment_id, file",
        )?;
        let rows = query.query_map([], |row| {
            let (experiment, file): (String, String) = (row.get(0)?, row.get(1)?);
            let mut problem = Problem::error(row.get::<_, String>(3)?);
            (problem.id, problem.why, problem.fix) = (row.get(2)?, row.get(4)?, row.get(5)?);
            Ok(problem.in_file(self.ledger.root().join(experiment).join(file)))
        })?;
        rows.collect()
    }

    /// Stores the stamp of an experiment and its broken files.
    fn note(
        &mut self,
        experiment: &Name,
        stamp: Option<Stamp>,
        directory: &Path,
        broken: &[(String, Problem)],
    ) -> Result<(), IndexError> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute("DELETE FROM broken WHERE experiment_id = ?1", [experiment.as_str()])?;
        for (file, problem) in broken {
            let stamp = Stamp::of(&directory.join(file)).ok().and_then(Stamp::settled);
            transaction.execute(
                "INSERT OR REPLACE INTO broken VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                params![
                    experiment.as_str(),
                    file,
                    stamp.map(|stamp| stamp.modified),
                    stamp.map(|stamp| stamp.inode),
                    problem.id,
                    problem.what,
                    problem.why,
                    problem.fix,
                ],
            )?;
        }
        transaction.execute(
            "INSERT INTO directories (experiment_id, modified, inode) VALUES (?1, ?2, ?3) \
             ON CONFLICT DO UPDATE SET modified = ?2, inode = ?3",
            params![experiment.as_str(), stamp.map(|stamp| stamp.modified), stamp.map(|stamp| stamp.inode)],
        )?;
        Ok(transaction.commit()?)
    }

    /// Removes an experiment that no longer exists; returns how many records it had.
    pub(crate) fn forget(&mut self, experiment: &str) -> rusqlite::Result<usize> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let removed = transaction.execute("DELETE FROM records WHERE experiment_id = ?1", [experiment])?;
        transaction.execute("DELETE FROM broken WHERE experiment_id = ?1", [experiment])?;
        transaction.execute("DELETE FROM totals WHERE experiment_id = ?1", [experiment])?;
        transaction.execute("DELETE FROM directories WHERE experiment_id = ?1", [experiment])?;
        transaction.commit()?;
        Ok(removed)
    }
}

fn stamp(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Option<Stamp>> {
    let (modified, inode): (Option<i64>, Option<i64>) = (row.get(at)?, row.get(at + 1)?);
    Ok(modified.zip(inode).map(|(modified, inode)| Stamp { modified, inode }))
}

/// Files without a row, and rows without a file. Both lists are sorted by trial and attempt.
fn differences(rows: &[(String, u32)], files: Vec<RecordFile>) -> (Vec<RecordFile>, Vec<(String, u32)>) {
    let (mut unknown, mut gone) = (Vec::new(), Vec::new());
    let mut rows = rows.iter().peekable();
    for file in files {
        let here = (file.trial.as_str(), file.attempt);
        while let Some(row) = rows.next_if(|row| (row.0.as_str(), row.1) < here) {
            gone.push(row.clone());
        }
        if rows.next_if(|row| (row.0.as_str(), row.1) == here).is_none() {
            unknown.push(file);
        }
    }
    gone.extend(rows.cloned());
    (unknown, gone)
}
