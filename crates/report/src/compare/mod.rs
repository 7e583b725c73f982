//! `report compare`: two runs against each other, task by task, with what the difference is worth.

mod arm;
mod metric;
mod verdict;

pub use arm::{Arm, Sample};
pub use metric::{Metric, Side};
pub use verdict::{Verdict, VerdictKind};

use std::collections::BTreeMap;

use aec_base::digest::Digest;
use serde::Serialize;

use crate::frame::{Difference, Frame};
use crate::stats::{
    Bounds, Cluster, Confidence, Design, EffectSize, Estimate, Goal, Interval, PermutationTest, effect_size,
    holm, mcnemar_exact, minimal_detectable_effect, paired_difference, paired_permutation,
    repetitions_needed, task_correlation, tasks_needed, unpaired_difference, variance_components,
};

/// Every draw of a comparison comes from here: the same records give the same answer.
const SEED: u64 = 0x00c0_4da7;

/// What a comparison is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// A loss that is small enough to be none.
    pub margin: f64,
    /// The difference that the run should have been able to see.
    pub detect: f64,
    /// How sure it is to be.
    pub goal: Goal,
}

impl Default for Question {
    fn default() -> Self {
        Self { margin: 0.02, detect: 0.05, goal: Goal::default() }
    }
}

/// Two runs against each other.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The first run.
    pub base: String,
    /// The second run.
    pub other: String,
    /// What is not the same around them.
    pub frame: Vec<Difference>,
    /// How they were put side by side.
    pub alignment: Alignment,
    /// What became of the reward.
    pub reward: RewardChange,
    /// The table: reward and workflow.
    pub metrics: Vec<Metric>,
    /// The same by difficulty, family and task.
    pub by: Breakdowns,
    /// What a comparison of this size can see.
    pub power: Power,
    /// What to make of it.
    pub verdict: Verdict,
}

/// How two runs were put side by side.
#[derive(Clone, Debug, Serialize)]
pub struct Alignment {
    /// Whether tasks could be paired.
    pub paired: bool,
    /// Tasks that both did, at the same revision.
    pub tasks: usize,
    /// Tasks that only the first did.
    pub only_base: usize,
    /// Tasks that only the second did.
    pub only_other: usize,
    /// Repetitions that both did.
    pub repetitions: usize,
}

/// What became of the reward; differences are the second less the first.
#[derive(Clone, Debug, Serialize)]
pub struct RewardChange {
    /// The difference of the means over the tasks that count.
    pub difference: Option<f64>,
    /// How far off it may be.
    pub interval: Option<Interval>,
    pub standard_error: Option<f64>,
    /// How likely a difference like this is without any, by flipping signs of tasks.
    pub permutation: Option<PermutationTest>,
    /// The difference in units of its own spread.
    pub effect_size: Option<EffectSize>,
    /// Tasks and repetitions that one solved and the other did not.
    pub mcnemar: Option<McNemar>,
}

/// Repetitions that one run solved and the other did not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct McNemar {
    /// Solved by the first alone.
    pub base_only: usize,
    /// Solved by the second alone.
    pub other_only: usize,
    /// Exact, two-sided. Repetitions of one task are taken to be independent, which they are not quite.
    pub p_value: f64,
}

/// The comparison in parts.
#[derive(Clone, Debug, Serialize)]
pub struct Breakdowns {
    pub difficulty: Vec<Part>,
    pub family: Vec<Part>,
    pub task: Vec<Part>,
}

/// One part of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// What it is a part of.
    pub name: String,
    /// Tasks that both did.
    pub tasks: usize,
    /// Mean reward of the first.
    pub base: Side,
    /// Mean reward of the second.
    pub other: Side,
    /// Trials of the first with any reward.
    pub base_nonzero: usize,
    /// Trials of the second with any reward.
    pub other_nonzero: usize,
    pub difference: Option<f64>,
    /// How far off it may be.
    pub interval: Option<Interval>,
    /// How likely it is without any difference; absent for fewer than two tasks.
    pub p_value: Option<f64>,
    /// The same, raised because several parts were looked at (Holm).
    pub adjusted_p_value: Option<f64>,
}

/// What a comparison of this size can see.
#[derive(Clone, Debug, Serialize)]
pub struct Power {
    /// Chance of finding a difference where there is none.
    pub alpha: f64,
    /// Chance of finding the smallest one that can be seen.
    pub power: f64,
    /// The smallest difference that is found so often.
    pub minimal_detectable_effect: Option<f64>,
    /// The difference that should be seen.
    pub detect: f64,
    /// Repetitions of these tasks that would do; absent when more tasks are needed.
    pub repetitions_needed: Option<usize>,
    /// Tasks with as many repetitions as now that would do.
    pub tasks_needed: Option<usize>,
}

type Pairs = Vec<(Cluster, Cluster)>;
/// The trials of both sides: the first run's and the second's.
type Both<'a> = (Vec<&'a Sample>, Vec<&'a Sample>);

/// Compares two runs. Whether their frames are near enough is for the caller to say.
pub fn compare(base: &Arm, other: &Arm, question: &Question) -> Comparison {
    let frame = Frame::of(base.samples.iter().map(|sample| &sample.framed))
        .differences(&Frame::of(other.samples.iter().map(|sample| &sample.framed)));
    let alignment = align(base, other);
    let both: Both<'_> = (base.samples.iter().collect(), other.samples.iter().collect());
    let by_task = pairs(&both, Sample::counted);
    let estimate = difference_of(&by_task, Bounds::REWARD);
    let reward = reward_change(base, other, &by_task, estimate.as_ref());
    let power = power(&by_task, estimate.as_ref(), question);
    Comparison {
        base: base.name.clone(),
        other: other.name.clone(),
        metrics: metric::table(&both),
        by: breakdowns(&both),
        verdict: verdict::decide(base, other, &reward, &alignment, &power, question),
        frame,
        alignment,
        reward,
        power,
    }
}

fn align(base: &Arm, other: &Arm) -> Alignment {
    let (first, second) = (base.tasks(), other.tasks());
    let both = first.intersection(&second).count();
    Alignment {
        paired: both > 0,
        tasks: both,
        only_base: first.len() - both,
        only_other: second.len() - both,
        repetitions: base.places().intersection(&other.places()).count(),
    }
}

/// Sums by task; the second run comes first, since differences are taken from the first.
pub(super) fn pairs(both: &Both<'_>, value: impl Fn(&Sample) -> Option<f64>) -> Pairs {
    let mut sums: BTreeMap<(&str, Digest), (Cluster, Cluster)> = BTreeMap::new();
    for sample in &both.1 {
        if let Some(value) = value(sample) {
            sums.entry(sample.task()).or_default().0.add(value);
        }
    }
    for sample in &both.0 {
        if let Some(value) = value(sample) {
            sums.entry(sample.task()).or_default().1.add(value);
        }
    }
    sums.into_values().collect()
}

/// The difference of a mean, over the tasks that both did if there are any.
pub(super) fn difference_of(pairs: &Pairs, bounds: Bounds) -> Option<Estimate> {
    let confidence = Confidence::default();
    paired_difference(pairs, bounds, confidence).or_else(|| {
        let some = |side: fn(&(Cluster, Cluster)) -> Cluster| -> Vec<Cluster> {
            pairs.iter().map(side).filter(|cluster| cluster.count > 0).collect()
        };
        unpaired_difference(&some(|pair| pair.0), &some(|pair| pair.1), bounds, confidence)
    })
}

/// The differences of the means of tasks that both did.
fn differences(pairs: &Pairs) -> Vec<f64> {
    pairs.iter().filter_map(|(second, first)| Some(second.mean()? - first.mean()?)).collect()
}

/// How likely differences like these are without any; nothing can be said of fewer than two tasks.
pub(super) fn chance(pairs: &Pairs) -> Option<PermutationTest> {
    let by_task = differences(pairs);
    (by_task.len() > 1).then(|| paired_permutation(&by_task, SEED)).flatten()
}

/// Raises chances because several were looked at.
pub(super) fn adjust<'a>(chances: impl Iterator<Item = (Option<f64>, &'a mut Option<f64>)>) {
    let (tested, places): (Vec<f64>, Vec<&mut Option<f64>>) =
        chances.filter_map(|(chance, place)| Some((chance?, place))).unzip();
    if let Some(adjusted) = holm(&tested) {
        places.into_iter().zip(adjusted).for_each(|(place, adjusted)| *place = Some(adjusted));
    }
}

fn reward_change(base: &Arm, other: &Arm, by_task: &Pairs, estimate: Option<&Estimate>) -> RewardChange {
    RewardChange {
        difference: estimate.map(|estimate| estimate.mean),
        interval: estimate.and_then(|estimate| estimate.interval),
        standard_error: estimate.and_then(|estimate| estimate.standard_error),
        permutation: chance(by_task),
        effect_size: effect_size(&differences(by_task)),
        mcnemar: mcnemar(base, other),
    }
}

fn mcnemar(base: &Arm, other: &Arm) -> Option<McNemar> {
    let (first, second) = (base.solved(), other.solved());
    let both: Vec<(bool, bool)> =
        first.iter().filter_map(|(place, solved)| Some((*solved, *second.get(place)?))).collect();
    let count = |wanted: (bool, bool)| both.iter().filter(|pair| **pair == wanted).count();
    let (base_only, other_only) = (count((true, false)), count((false, true)));
    (!both.is_empty()).then(|| McNemar {
        base_only,
        other_only,
        p_value: mcnemar_exact(base_only, other_only),
    })
}

fn breakdowns(both: &Both<'_>) -> Breakdowns {
    Breakdowns {
        difficulty: parts(both, |sample| sample.difficulty.as_deref().unwrap_or("unknown")),
        family: parts(both, |sample| &sample.facts.family),
        task: parts(both, |sample| &sample.facts.task_id),
    }
}

fn parts<'a>(both: &Both<'a>, name: impl Fn(&'a Sample) -> &'a str) -> Vec<Part> {
    let mut named: BTreeMap<&str, Both<'a>> = BTreeMap::new();
    for sample in &both.0 {
        named.entry(name(sample)).or_default().0.push(sample);
    }
    for sample in &both.1 {
        named.entry(name(sample)).or_default().1.push(sample);
    }
    let mut parts: Vec<Part> = named.iter().map(|(name, both)| part(name, both)).collect();
    adjust(parts.iter_mut().map(|part| (part.p_value, &mut part.adjusted_p_value)));
    parts
}

fn part(name: &str, both: &Both<'_>) -> Part {
    let by_task = pairs(both, Sample::counted);
    let estimate = difference_of(&by_task, Bounds::REWARD);
    let nonzero = |samples: &[&Sample]| {
        samples.iter().filter_map(|sample| sample.counted()).filter(|reward| *reward > 0.0).count()
    };
    Part {
        name: name.to_owned(),
        tasks: by_task.iter().filter(|(a, b)| a.count > 0 && b.count > 0).count(),
        base: Side::mean(&both.0, Sample::counted),
        other: Side::mean(&both.1, Sample::counted),
        base_nonzero: nonzero(&both.0),
        other_nonzero: nonzero(&both.1),
        difference: estimate.as_ref().map(|estimate| estimate.mean),
        interval: estimate.as_ref().and_then(|estimate| estimate.interval),
        p_value: chance(&by_task).map(|test| test.p_value),
        adjusted_p_value: None,
    }
}

fn power(by_task: &Pairs, estimate: Option<&Estimate>, question: &Question) -> Power {
    let both: Pairs = by_task.iter().filter(|(a, b)| a.count > 0 && b.count > 0).copied().collect();
    let all: Vec<Cluster> = both.iter().flat_map(|(a, b)| [*a, *b]).collect();
    let design = variance_components(&all).map(|variance| Design {
        tasks: both.len(),
        repetitions: all.iter().map(|one| one.count).sum::<usize>().div_ceil(all.len().max(1)),
        between: variance.between,
        within: variance.within,
        correlation: task_correlation(&both).unwrap_or(0.0),
    });
    let goal = question.goal;
    Power {
        alpha: goal.alpha,
        power: goal.power,
        minimal_detectable_effect: estimate.and_then(|estimate| {
            // Differences that are all the same say nothing about how much they scatter.
            let error = estimate.standard_error.filter(|error| *error > 0.0)?;
            minimal_detectable_effect(error, estimate.degrees_of_freedom, goal)
        }),
        detect: question.detect,
        repetitions_needed: design.and_then(|design| repetitions_needed(&design, question.detect, goal)),
        tasks_needed: design.and_then(|design| tasks_needed(&design, question.detect, goal)),
    }
}
