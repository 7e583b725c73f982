//! What earlier sessions of an experiment did and spent.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::path::Path;

use aec_base::decimal::known_sum;
use aec_base::file::ReadError;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_judge::settle::outcome::{Fault, is_crash};
use aec_judge::verdict::Outcome;
use aec_ledger::chain::Chain;
use aec_ledger::imported::kept_elsewhere;
use aec_ledger::index::{Attempts, Filter, Index};
use aec_ledger::jobs::LIVE;
use aec_ledger::layout::{ExperimentDirectory, Ledger, parse_record_name};
use aec_ledger::transcript::{self, TRAJECTORY_FILE};
use aec_model::meter::Amount;
use aec_model::money::MicroDollars;
use serde::Deserialize;

use crate::experiment::FAMILY;
use crate::plan::PlannedTrial;

/// A trial's result in earlier sessions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PastTrial {
    /// Its latest attempt.
    pub attempt: u32,
    pub outcome: Outcome,
    pub reward: Option<f64>,
    /// Whether the agent's program ended with an error and left no answer.
    pub crashed: bool,
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
    /// The known cost in dollars; `None` if no attempt has one, which is not a cost of nothing.
    pub fn known_dollars(&self) -> Option<f64> {
        let money = self.spent.money;
        known_sum(money.dollars(), money == MicroDollars::ZERO, self.unpriced)
    }

    /// Marks trials with missing records to be run again, if the user named them. The others remain errors.
    pub fn give_up(&mut self, named: &BTreeSet<Name>) {
        let (given_up, gone) =
            std::mem::take(&mut self.gone).into_iter().partition(|(id, _, _)| named.contains(id));
        self.gone = gone;
        let given_up: Vec<(Name, u32, Problem)> = given_up;
        for (id, attempt, _) in given_up {
            let last = PastTrial { attempt, outcome: Outcome::Cancelled, reward: None, crashed: false };
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
            self.add(cost.estimated_cost_usd, cost.tokens());
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
        past.add(row.cost_usd, row.tokens_in.unwrap_or(0).saturating_add(row.tokens_out.unwrap_or(0)));
        let crashed = is_crash(row.outcome, row.fault_kind.as_deref());
        let found = PastTrial { attempt: row.attempt, outcome: row.outcome, reward: row.reward, crashed };
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
        fault: Option<Fault>,
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
        let brief: Brief = aec_base::json::from_slice(&bytes).map_err(|error| unreadable(&path, &error))?;
        let reward = brief.evaluation.and_then(|evaluation| evaluation.reward);
        let kind = brief.fault.as_ref().and_then(|fault| fault.kind.as_deref());
        let crashed = is_crash(brief.outcome, kind);
        past.trials.insert(trial, PastTrial { attempt, outcome: brief.outcome, reward, crashed });
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
