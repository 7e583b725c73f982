//! One process that executes a plan: it holds the experiment's lock, knows what earlier sessions did and leaves a file
//! about itself.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use aec_base::digest::Digest;
use aec_base::file::{ReadError, write_atomic};
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::timestamp::Timestamp;
use aec_judge::verdict::Outcome;
use aec_ledger::chain::Chain;
use aec_ledger::index::{Attempts, Filter, Index};
use aec_ledger::jobs::LIVE;
use aec_ledger::journal;
use aec_ledger::layout::{ExperimentDirectory, Ledger, parse_record_name};
use aec_ledger::package::kept_elsewhere;
use aec_ledger::transcript::{self, TRAJECTORY_FILE};
use aec_model::meter::Amount;
use aec_model::money::MicroDollars;
use serde::{Deserialize, Serialize};

use crate::control::Wish;
use crate::experiment::FAMILY;
use crate::plan::{Plan, PlannedTrial, differences};
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

/// A trial's result in earlier sessions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PastTrial {
    /// Its latest attempt.
    pub attempt: u32,
    pub outcome: Outcome,
    pub reward: Option<f64>,
}

/// What earlier sessions did.
#[derive(Debug, Default)]
pub struct Past {
    /// Trials with a record, by id.
    pub trials: HashMap<Name, PastTrial>,
    /// The known cost of all attempts: recorded ones, and those that were running when a session was killed.
    pub spent: Amount,
    /// Attempts whose cost is not known.
    pub unpriced: u64,
    /// Attempts that a chain lists but whose records are missing, each with its problem.
    pub gone: Vec<(Name, u32, Problem)>,
}

impl Past {
    /// Marks trials with missing records to be run again, if the user named them. The others remain errors.
    pub fn give_up(&mut self, named: &BTreeSet<Name>) {
        let (given_up, gone) =
            std::mem::take(&mut self.gone).into_iter().partition(|(id, _, _)| named.contains(id));
        self.gone = gone;
        let given_up: Vec<(Name, u32, Problem)> = given_up;
        for (id, attempt, _) in given_up {
            let last = PastTrial { attempt, outcome: Outcome::Cancelled, reward: None };
            let known = self.trials.entry(id).or_insert(last);
            if known.attempt < attempt {
                *known = last;
            }
        }
    }

    /// Adds the cost of attempts that were running when a session was killed: it is spent, whether or not it is
    /// recorded yet.
    fn add_left_over(&mut self, live: &Path) {
        let Ok(entries) = fs_err::read_dir(live) else { return };
        for entry in entries.filter_map(Result::ok) {
            let name = entry.file_name().into_string().unwrap_or_default();
            let Some((trial, attempt)) = parse_record_name(&format!("{name}.json")) else { continue };
            if self.trials.get(&trial).is_some_and(|past| past.attempt >= attempt) {
                continue;
            }
            let text = fs_err::read(entry.path().join(TRAJECTORY_FILE)).unwrap_or_default();
            let cost = transcript::cost(&transcript::read(&text));
            let tokens = cost.tokens_in.unwrap_or(0) + cost.tokens_out.unwrap_or(0) + cost.unconfirmed_tokens;
            self.add(cost.estimated_cost_usd, tokens);
        }
    }

    /// Adds the cost of one attempt, in millionths of a dollar as in records; a sum of fractions would lose some.
    fn add(&mut self, dollars: Option<f64>, tokens: u64) {
        self.unpriced += u64::from(dollars.is_none());
        let money =
            dollars.and_then(|dollars| MicroDollars::from_dollars(dollars + 5e-7)).unwrap_or_default();
        self.spent = self.spent.plus(Amount { money, tokens });
    }

    /// Problems that prevent a run from continuing.
    pub fn problems(&self) -> Vec<Problem> {
        self.gone.iter().map(|(_, _, problem)| problem.clone()).collect()
    }
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
                fs_err::read(entry.path()).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
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

/// What earlier sessions did, for a run that continues. An unreadable record, or one that a chain lists but that is
/// missing, is an error: its trial would be run again as if nothing had happened. `named` are trials that the user
/// wants to run again, whatever happened to their records.
pub fn past(
    ledger: &Ledger,
    jobs: &Path,
    experiment: &Name,
    named: &BTreeSet<Name>,
) -> Result<Past, Vec<Problem>> {
    let (mut past, mut problems) = look_back(ledger, jobs, experiment)?;
    past.give_up(named);
    problems.extend(past.problems());
    if problems.is_empty() { Ok(past) } else { Err(problems) }
}

/// What earlier sessions did and spent, as far as it can be read, and the problems.
pub fn look_back(
    ledger: &Ledger,
    jobs: &Path,
    experiment: &Name,
) -> Result<(Past, Vec<Problem>), Vec<Problem>> {
    let cannot = |error: &dyn std::fmt::Display| {
        vec![
            Problem::error(format!("the ledger cannot be read: {error}"))
                .fix("run `aec-bench ledger reindex`"),
        ]
    };
    let mut filter = Filter { experiments: vec![experiment.to_string()], ..Filter::default() };
    filter.attempts = Attempts::All;
    let (rows, refreshed) =
        Index::ask(ledger, |index| index.query(&filter)).map_err(|error| cannot(&error))?;
    let broken: Vec<Problem> = refreshed
        .problems
        .into_iter()
        .filter(|problem| {
            problem.file.as_ref().is_some_and(|file| file.starts_with(ledger.experiment(experiment).path()))
        })
        .collect();
    let mut past = Past::default();
    let mut known = HashSet::with_capacity(rows.len());
    for row in rows {
        known.insert((row.trial_id.clone(), row.attempt));
        past.add(row.cost_usd, row.tokens_in.unwrap_or(0) + row.tokens_out.unwrap_or(0));
        let found = PastTrial { attempt: row.attempt, outcome: row.outcome, reward: row.reward };
        let latest = past.trials.entry(row.trial_id).or_insert(found);
        if latest.attempt < row.attempt {
            *latest = found;
        }
    }
    past.add_left_over(&jobs.join(experiment.as_str()).join(LIVE));
    past.gone = removed_records(&ledger.experiment(experiment), &known).map_err(|error| cannot(&error))?;
    Ok((past, broken))
}

/// What earlier sessions did with some trials, from their records alone. Spending is not added up: if many processes
/// share a budget, a book does that.
pub fn past_of(directory: &ExperimentDirectory, trials: &[PlannedTrial]) -> Result<Past, Vec<Problem>> {
    /// The part of a record that tells how a trial ended.
    #[derive(Deserialize)]
    struct Brief {
        outcome: Outcome,
        evaluation: Option<BriefEvaluation>,
    }
    #[derive(Deserialize)]
    struct BriefEvaluation {
        reward: Option<f64>,
    }
    let unreadable = |path: &Path, error: &dyn std::fmt::Display| {
        let problem = Problem::error(format!("a record cannot be read: {error}"));
        vec![problem.fix("see `aec-bench ledger verify` and `ledger repair`").in_file(path)]
    };
    let wanted: HashSet<&Name> = trials.iter().map(|trial| &trial.id).collect();
    let mut latest: HashMap<Name, u32> = HashMap::new();
    let entries = fs_err::read_dir(directory.path()).map_err(|error| unreadable(directory.path(), &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(directory.path(), &error))?;
        let Some((trial, attempt)) = entry.file_name().to_str().and_then(parse_record_name) else { continue };
        if wanted.contains(&trial) {
            let known = latest.entry(trial).or_default();
            *known = attempt.max(*known);
        }
    }
    let mut past = Past::default();
    for (trial, attempt) in latest {
        let path = directory.record(&trial, attempt);
        let bytes = fs_err::read(&path).map_err(|error| unreadable(&path, &error))?;
        let brief: Brief = serde_json::from_slice(&bytes).map_err(|error| unreadable(&path, &error))?;
        let reward = brief.evaluation.and_then(|evaluation| evaluation.reward);
        past.trials.insert(trial, PastTrial { attempt, outcome: brief.outcome, reward });
    }
    Ok(past)
}

fn removed_records(
    directory: &ExperimentDirectory,
    known: &HashSet<(Name, u32)>,
) -> io::Result<Vec<(Name, u32, Problem)>> {
    let mut removed = Vec::new();
    let elsewhere =
        kept_elsewhere(directory).map_err(|_| io::Error::other("a note on an import cannot be read"))?;
    for path in directory.chains()? {
        // Links are written before records. A session removes its journal when all its records are in their places, so
        // the journal is checked before the chain is read.
        let is_under_way = directory.has_journal(&path);
        let chain = match Chain::read(&path) {
            Ok(chain) => chain,
            // A session that recorded nothing removes its chain.
            Err(ReadError::Missing) => continue,
            Err(error) => return Err(io::Error::other(error.to_string())),
        };
        for link in chain.links {
            let attempt = (link.trial_id.clone(), link.attempt);
            // The index was read before; this finds what was recorded since.
            let is_here = || directory.record(&link.trial_id, link.attempt).symlink_metadata().is_ok();
            if !known.contains(&attempt) && !elsewhere.contains(&attempt) && !is_under_way && !is_here() {
                let (trial, attempt) = attempt;
                let problem = Problem::error(format!("the record of attempt {attempt} of {trial} is gone"))
                    .id(FAMILY.number(35))
                    .why("the experiment's chain says that it was recorded; running it again would hide it")
                    .fix(format!(
                        "restore it from a copy, or pass `--rerun {trial}` to try again all the same"
                    ))
                    .in_file(directory.record(&trial, attempt));
                removed.push((trial, attempt, problem));
            }
        }
    }
    Ok(removed)
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
