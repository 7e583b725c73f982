//! One process that executes a plan: it holds the experiment's lock, knows what earlier sessions did and leaves a file
//! about itself.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use aec_base::digest::Digest;
use aec_base::file::write_atomic;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::timestamp::Timestamp;
use aec_ledger::journal;
use aec_ledger::layout::{ExperimentDirectory, Ledger};
use serde::{Deserialize, Serialize};

use crate::control::Wish;
use crate::experiment::FAMILY;
use crate::plan::{Plan, PlannedTrial, differences};
use crate::resume::{Past, past, past_of};
use crate::terms::Terms;

/// The part of a plan that a process executes: every `count`-th trial, beginning with `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// From 0.
    pub index: usize,
    pub count: usize,
}

impl Shard {
    /// `INDEX/COUNT`.
    pub fn parse(text: &str) -> Option<Self> {
        let (index, count) = text.split_once('/')?;
        let shard = Self { index: index.parse().ok()?, count: count.parse().ok()? };
        (shard.index < shard.count).then_some(shard)
    }
}

/// A session's description of itself, in `_run/session-ID.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionFile {
    pub schema_version: u32,
    /// Its id, which begins with its start time.
    pub session: String,
    pub plan: Digest,
    pub shard: Option<Shard>,
    pub pid: u32,
    pub host: String,
    /// `live`, `record`, `replay` or `cache`: where the models' answers came from.
    pub models: String,
    pub tool_version: String,
    pub started_at: Timestamp,
    /// Absent while it runs, and if it was killed.
    pub ended_at: Option<Timestamp>,
    pub recorded: Option<u64>,
    /// Why it stopped before the end of its plan.
    pub stopped: Option<crate::event::StopReason>,
}

/// A running session. It keeps the experiment locked.
#[derive(Debug)]
pub struct Session {
    pub id: String,
    directory: ExperimentDirectory,
    file: SessionFile,
    _locks: Vec<File>,
}

#[derive(Clone, Copy, Debug)]
pub struct Beginning<'a> {
    pub ledger: &'a Ledger,
    pub jobs: &'a Path,
    pub plan: &'a Plan,
    pub shard: Option<Shard>,
    /// Whether the plan may differ from the experiment's.
    pub extend: bool,
    /// Where the models' answers come from.
    pub models: &'a str,
    /// The terms, including those of earlier sessions.
    pub terms: &'a Terms,
    /// Trials to run again, whatever happened to their records.
    pub named: &'a BTreeSet<Name>,
    /// The trials of this process, if it may only read their records: a worker on one of many machines does not use the
    /// index, a database that only one machine may write.
    pub own: Option<&'a [PlannedTrial]>,
}

impl Session {
    /// Locks the experiment, completes what killed sessions had recorded, reads what they did, and stores the plan
    /// last: a plan that is not executed changes nothing.
    pub fn begin(beginning: &Beginning<'_>) -> Result<(Self, journal::Recovered, Past), Vec<Problem>> {
        let Beginning { ledger, plan, shard, models, .. } = *beginning;
        let directory = ledger.experiment(&plan.experiment_id);
        let (locks, recovered, past) = enter(beginning)?;
        let started_at = Timestamp::now_in_milliseconds();
        let mut id = new_id(&started_at);
        if let Some(shard) = shard {
            // Processes on different machines may have the same id.
            id = format!("{id}-{}", shard.index);
        }
        let session = Self {
            id: id.clone(),
            file: SessionFile {
                schema_version: 1,
                session: id,
                plan: plan.digest,
                shard,
                pid: std::process::id(),
                host: host_name(),
                models: models.to_owned(),
                tool_version: plan.tool_version.clone(),
                started_at,
                ended_at: None,
                recorded: None,
                stopped: None,
            },
            directory,
            _locks: locks,
        };
        session.write().map_err(|error| vec![unwritable(session.directory.path(), &error)])?;
        Ok((session, recovered, past))
    }

    /// Stores the plan of a step, to which records refer. The experiment's own plan does not change.
    pub(crate) fn keep_step(&self, plan: &Plan) -> io::Result<()> {
        let kept = self.directory.run().join("plans").join(format!("{}.json", plan.digest.hex()));
        if kept.symlink_metadata().is_ok() {
            return Ok(());
        }
        write_atomic(&kept, plan.to_json().as_bytes())
    }

    pub fn end(&mut self, recorded: u64, stopped: Option<crate::event::StopReason>) -> io::Result<()> {
        self.file.ended_at = Some(Timestamp::now_in_milliseconds());
        self.file.recorded = Some(recorded);
        self.file.stopped = stopped;
        self.write()
    }

    /// What the user asked this run to do with `runs stop`.
    pub fn wish(&self) -> Wish {
        match fs_err::read_to_string(stop_file(&self.directory)).as_deref().map(str::trim) {
            Ok("finish") => Wish::Finish,
            Ok("give up") => Wish::GiveUp,
            _ => Wish::GoOn,
        }
    }

    fn write(&self) -> io::Result<()> {
        let path = self.directory.run().join(format!("session-{}.json", self.id));
        let mut text = serde_json::to_string_pretty(&self.file)?;
        text.push('\n');
        write_atomic(&path, text.as_bytes())
    }
}

/// Prepares an experiment for sessions of other processes: like the beginning of a session, without one. Dropping the
/// result releases the lock.
pub fn prepare(beginning: &Beginning<'_>) -> Result<(Hold, Past), Vec<Problem>> {
    let (locks, _, past) = enter(beginning)?;
    Ok((Hold { _locks: locks }, past))
}

/// Locks the experiment, checks that the plan is its plan, completes what killed sessions had recorded, reads what they
/// did and stores plan and terms.
fn enter(beginning: &Beginning<'_>) -> Result<(Vec<File>, journal::Recovered, Past), Vec<Problem>> {
    let Beginning { ledger, jobs, plan, shard, extend, named, own, terms, .. } = *beginning;
    let directory = ledger.experiment(&plan.experiment_id);
    let cannot = |error: &io::Error| vec![unwritable(directory.path(), error)];
    fs_err::create_dir_all(directory.run().join("plans")).map_err(|error| cannot(&error))?;
    let locks = lock(&directory, shard)?;
    if let Some(before) = current_plan(&directory)?
        && before.digest != plan.digest
    {
        if before.conditions != plan.conditions {
            return Err(vec![other_conditions(plan)]);
        }
        if !extend {
            return Err(vec![other_plan(&before, plan)]);
        }
    }
    let recovered = journal::recover(ledger, &plan.experiment_id, jobs).map_err(|error| cannot(&error))?;
    let past = match own {
        Some(trials) => past_of(&directory, trials)?,
        None => past(ledger, jobs, &plan.experiment_id, named)?,
    };
    keep_plan(&directory, plan).map_err(|error| cannot(&error))?;
    // A worker gets its terms from its submitter, which has stored them.
    if own.is_none() {
        terms.keep(&directory).map_err(|error| cannot(&error))?;
    }
    std::fs::remove_file(stop_file(&directory)).ok();
    Ok((locks, recovered, past))
}

/// Asks the sessions of an experiment to stop.
pub fn ask_to_stop(directory: &ExperimentDirectory, wish: Wish) -> io::Result<()> {
    let text = if wish == Wish::GiveUp { "give up\n" } else { "finish\n" };
    write_atomic(&stop_file(directory), text.as_bytes())
}

fn stop_file(directory: &ExperimentDirectory) -> PathBuf {
    directory.run().join("stop")
}

/// The sessions of an experiment, oldest first, and whether a process is running it now.
pub fn sessions(directory: &ExperimentDirectory) -> io::Result<(Vec<SessionFile>, bool)> {
    let mut found = Vec::new();
    let entries = match fs_err::read_dir(directory.run()) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((found, false)),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.starts_with("session-") && name.ends_with(".json")) {
            let session =
                fs_err::read(entry.path()).ok().and_then(|bytes| aec_base::json::from_slice(&bytes).ok());
            found.extend(session);
        }
    }
    found.sort_by(|a: &SessionFile, b: &SessionFile| a.session.cmp(&b.session));
    let busy = match File::open(directory.run().join("lock")) {
        Ok(file) => file.try_lock().is_err(),
        Err(_) => false,
    };
    Ok((found, busy))
}

pub fn current_plan(directory: &ExperimentDirectory) -> Result<Option<Plan>, Vec<Problem>> {
    let path = directory.run().join("plan.json");
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    Plan::read(&path).map(Some)
}

fn keep_plan(directory: &ExperimentDirectory, plan: &Plan) -> io::Result<()> {
    let text = plan.to_json();
    let kept = directory.run().join("plans").join(format!("{}.json", plan.digest.hex()));
    if kept.symlink_metadata().is_err() {
        write_atomic(&kept, text.as_bytes())?;
    }
    write_atomic(&directory.run().join("plan.json"), text.as_bytes())
}

/// Locks a whole experiment for a caller that records in it without executing a plan.
pub fn lock_whole(directory: &ExperimentDirectory) -> Result<Vec<File>, Vec<Problem>> {
    lock(directory, None)
}

/// Locks the whole experiment, or one shard of it beside others of the same count.
fn lock(directory: &ExperimentDirectory, shard: Option<Shard>) -> Result<Vec<File>, Vec<Problem>> {
    let open = |name: &str| {
        let path = directory.run().join(name);
        let opened = File::options().read(true).write(true).create(true).truncate(false).open(path);
        opened.map_err(|error| vec![unwritable(directory.path(), &error)])
    };
    let mut locks = Vec::new();
    let whole = open("lock")?;
    let mut last = match shard {
        None if !patiently(|| whole.try_lock().is_ok()) => return Err(taken(whole)),
        None => whole,
        Some(_) if !patiently(|| whole.try_lock_shared().is_ok()) => return Err(taken(whole)),
        Some(Shard { index, count }) => {
            locks.push(whole);
            let beside = open(&format!("lock-of-{count}"))?;
            if !patiently(|| beside.try_lock_shared().is_ok()) || others_count(directory, count) {
                let problem = Problem::error("shards of another count are being run").id(FAMILY.number(34));
                let problem = problem.why("two runs of one experiment would do the same trials");
                return Err(vec![problem.fix("use the same COUNT for all shards, or wait for the others")]);
            }
            locks.push(beside);
            let part = open(&format!("lock-{index}-of-{count}"))?;
            if !patiently(|| part.try_lock().is_ok()) {
                return Err(taken(part));
            }
            part
        }
    };
    let who = format!("process {} on {} since {}\n", std::process::id(), host_name(), Timestamp::now());
    last.set_len(0)
        .and_then(|()| last.write_all(who.as_bytes()))
        .map_err(|error| vec![unwritable(directory.path(), &error)])?;
    locks.push(last);
    Ok(locks)
}

/// Whether shards of another count are running.
fn others_count(directory: &ExperimentDirectory, count: usize) -> bool {
    let Ok(entries) = fs_err::read_dir(directory.run()) else { return false };
    entries.filter_map(Result::ok).any(|entry| {
        let name = entry.file_name();
        let other = name
            .to_str()
            .and_then(|name| name.strip_prefix("lock-of-"))
            .is_some_and(|n| n != count.to_string());
        other && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_err())
    })
}

/// Whether a shard is running, on any machine: the lock ends with its process.
pub fn is_live(directory: &ExperimentDirectory, shard: Shard) -> bool {
    let path = directory.run().join(format!("lock-{}-of-{}", shard.index, shard.count));
    File::open(path).is_ok_and(|file| file.try_lock_shared().is_err())
}

/// How many shards of this count are running.
pub fn live_shards(directory: &ExperimentDirectory, count: usize) -> usize {
    (0..count).filter(|index| is_live(directory, Shard { index: *index, count })).count()
}

/// Retries for a moment, because a process that only checks whether an experiment is running holds its lock briefly.
fn patiently(attempt: impl Fn() -> bool) -> bool {
    for _ in 0..10 {
        if attempt() {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    false
}

fn taken(mut file: File) -> Vec<Problem> {
    let mut who = String::new();
    file.read_to_string(&mut who).ok();
    let who = who.trim();
    let by = if who.is_empty() { String::new() } else { format!(" by {}", aec_base::text::printable(who)) };
    let problem = Problem::error(format!("the experiment is being run{by}"))
        .id(FAMILY.number(34))
        .why("two runs of one experiment would do the same trials");
    vec![problem.fix("wait for it, or stop it with `aec-bench runs stop`")]
}

/// Holds an experiment, so that no process can run it meanwhile.
#[derive(Debug)]
pub struct Hold {
    _locks: Vec<File>,
}

/// Holds an experiment that no process is running.
pub fn hold(directory: &ExperimentDirectory) -> Result<Hold, Vec<Problem>> {
    fs_err::create_dir_all(directory.run()).map_err(|error| vec![unwritable(directory.path(), &error)])?;
    Ok(Hold { _locks: lock(directory, None)? })
}

fn host_name() -> String {
    fs_err::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// The start time and the process id, so that session ids sort by time and are unique.
pub fn new_id(started: &Timestamp) -> String {
    let moment: String = started.as_str().chars().filter(char::is_ascii_digit).collect();
    format!("{moment}-{:x}", std::process::id())
}

fn other_plan(before: &Plan, after: &Plan) -> Problem {
    Problem::error(format!("the experiment `{}` has another plan", after.experiment_id))
        .id(FAMILY.number(36))
        .why(differences(before, after).join("; "))
        .fix("give this one its own id with --experiment-id, or add to the experiment with --extend")
}

/// Trials under other conditions are different trials, although their ids are the same.
fn other_conditions(after: &Plan) -> Problem {
    Problem::error(format!("the experiment `{}` was run under other conditions", after.experiment_id))
        .id(FAMILY.number(36))
        .why("backend, sandbox, limits or verification differ, so the recorded trials are not those of this plan")
        .fix("give this one its own id with --experiment-id")
}

fn unwritable(path: &Path, error: &io::Error) -> Problem {
    Problem::error(format!("the ledger cannot be written: {error}"))
        .fix("check the directory, its permissions and the free space")
        .in_file(path)
}
