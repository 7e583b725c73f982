//! Two or more runs side by side.
//!
//! Runs are compared with the first one, by the means of those examples that both have with the same prompt.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use aec_base::problem::Problem;
use indexmap::IndexMap;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF as _, StudentsT};

use crate::results::aggregate::Aggregate;
use crate::results::configuration::{Difference, configurations};
use crate::results::facts::prompt_digest;
use crate::results::metadata::{Cost, Metadata, PASS_THRESHOLD};
use crate::results::moments::{Moments, as_number};
use crate::results::problems;
use crate::results::scan::{Tail, scan};
use crate::results::summary::Summary;
use crate::results::{METADATA_FILE, RESULTS_FILE};

const CONFIDENCE: f64 = 0.95;

#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The runs, in the order in which they were named.
    pub runs: Vec<ComparedRun>,
    /// Each run except the first, compared with the first.
    pub against_first: Vec<Paired>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ComparedRun {
    pub path: PathBuf,
    pub env_id: String,
    pub model: String,
    /// Replaces the environment's name.
    pub name: Option<String>,
    pub date: Option<String>,
    /// Whether all its rollouts have a row; absent if its metadata does not tell.
    pub complete: Option<bool>,
    pub is_torn: bool,
    pub cost: Option<Cost>,
    pub summary: Summary,
}

#[derive(Clone, Debug, Serialize)]
pub struct Paired {
    /// The run, counted from 0 in the order of [`Comparison::runs`].
    pub run: usize,
    /// Examples that both have, with the same prompt.
    pub pairs: u64,
    /// Examples that both have, but with different prompts. They are not compared.
    pub other_prompt: u64,
    /// Examples that only the first run has.
    pub only_first: u64,
    /// Examples that only this run has.
    pub only_this: u64,
    /// The settings that differ.
    pub configuration: Vec<Difference>,
    /// The reward; absent without a pair.
    pub reward: Option<MeanDifference>,
    /// Metrics that both have.
    pub metrics: IndexMap<String, MeanDifference>,
    /// Mean numbers of tokens per rollout, this run's minus the first run's.
    pub usage: Option<UsageDifference>,
}

/// The mean over paired examples of this run's mean minus that of the first run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeanDifference {
    pub pairs: u64,
    /// Mean of the first run over these examples.
    pub first: f64,
    /// Mean of this run over these examples.
    pub this: f64,
    pub difference: f64,
    /// Absent with one pair.
    pub standard_error: Option<f64>,
    /// The lower end of the 95 % interval, by Student's t; absent with one pair.
    pub low: Option<f64>,
    pub high: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct UsageDifference {
    pub input_tokens: f64,
    pub output_tokens: f64,
}

struct Loaded {
    metadata: Metadata,
    aggregate: Aggregate,
    /// Digests of the examples' prompts.
    prompts: HashMap<i64, Option<u64>>,
    is_torn: bool,
}

/// Compares runs. Their files are only read, so another process may be writing to them.
pub fn compare<P: AsRef<Path>>(runs: &[P]) -> Result<Comparison, Problem> {
    if runs.len() < 2 {
        return Err(problems::error(39, format!("there is nothing to compare {} run with", runs.len()))
            .fix("name two or more directories of runs"));
    }
    let loaded = runs.iter().map(|run| load(run.as_ref())).collect::<Result<Vec<_>, _>>()?;
    let against_first =
        loaded.iter().enumerate().skip(1).map(|(index, run)| pair(index, &loaded[0], run)).collect();
    let compared = |(path, run): (&P, Loaded)| ComparedRun {
        path: path.as_ref().to_owned(),
        summary: run.aggregate.summary(),
        env_id: run.metadata.env_id,
        model: run.metadata.model,
        name: run.metadata.name,
        date: run.metadata.date,
        complete: run.metadata.complete,
        is_torn: run.is_torn,
        cost: run.metadata.cost,
    };
    Ok(Comparison { against_first, runs: runs.iter().zip(loaded).map(compared).collect() })
}

fn load(run: &Path) -> Result<Loaded, Problem> {
    let metadata = Metadata::read(&run.join(METADATA_FILE))?;
    let threshold = metadata.pass_threshold.unwrap_or(PASS_THRESHOLD);
    let mut prompts = HashMap::new();
    let aggregate = Aggregate::new(metadata.rollouts_of_example(), threshold);
    let scanned = scan(&run.join(RESULTS_FILE), aggregate, |facts, line| {
        prompts.entry(facts.example_id).or_insert_with(|| prompt_digest(line));
    })?;
    let is_torn = matches!(scanned.tail, Tail::Torn { .. });
    Ok(Loaded { metadata, aggregate: scanned.aggregate, prompts, is_torn })
}

fn pair(run: usize, first: &Loaded, this: &Loaded) -> Paired {
    let mut other_prompt = 0;
    let both: Vec<i64> = (this.prompts.iter())
        .filter_map(|(example, prompt)| {
            // If neither run has the prompt, the same example id of the same environment counts as the same example.
            let is_same = first.prompts.get(example)? == prompt
                && (prompt.is_some() || first.metadata.env_id == this.metadata.env_id);
            other_prompt += u64::from(!is_same);
            is_same.then_some(*example)
        })
        .collect();
    let only = |some: &Loaded| some.prompts.len() as u64 - both.len() as u64 - other_prompt;
    let metrics = this.aggregate.metric_names().filter_map(|name| {
        let difference = difference(&both, first.aggregate.metric(name), this.aggregate.metric(name))?;
        Some((name.to_owned(), difference))
    });
    let usage = |run: &Loaded| run.aggregate.summary().usage.map(|usage| usage.mean);
    Paired {
        run,
        pairs: both.len() as u64,
        other_prompt,
        only_first: only(first),
        only_this: only(this),
        configuration: configurations(&first.metadata, &this.metadata),
        reward: difference(&both, first.aggregate.rewards(), this.aggregate.rewards()),
        metrics: metrics.collect(),
        usage: usage(first).zip(usage(this)).map(|(first, this)| UsageDifference {
            input_tokens: this.input_tokens - first.input_tokens,
            output_tokens: this.output_tokens - first.output_tokens,
        }),
    }
}

fn difference(
    both: &[i64],
    first: impl Iterator<Item = (i64, f64)>,
    this: impl Iterator<Item = (i64, f64)>,
) -> Option<MeanDifference> {
    let (first, this): (HashMap<_, _>, HashMap<_, _>) = (first.collect(), this.collect());
    let (mut of_first, mut of_this, mut differences) =
        (Moments::default(), Moments::default(), Moments::default());
    for example in both {
        if let (Some(before), Some(after)) = (first.get(example), this.get(example)) {
            of_first.add(*before);
            of_this.add(*after);
            differences.add(after - before);
        }
    }
    let difference = differences.mean()?;
    let standard_error = differences.standard_error();
    let half = standard_error.and_then(|error| Some(error * quantile(differences.count())?));
    Some(MeanDifference {
        pairs: differences.count(),
        first: of_first.mean()?,
        this: of_this.mean()?,
        difference,
        standard_error,
        low: half.map(|half| difference - half),
        high: half.map(|half| difference + half),
    })
}

/// The half-width of the interval, in standard errors.
fn quantile(count: u64) -> Option<f64> {
    let distribution = StudentsT::new(0.0, 1.0, as_number(count) - 1.0).ok()?;
    Some(distribution.inverse_cdf(f64::midpoint(1.0, CONFIDENCE)))
}
