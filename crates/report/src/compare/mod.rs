//! `report compare`: compares two runs task by task, with the significance of the difference.

mod arm;
mod metric;
mod verdict;

pub use arm::{Arm, Sample};
pub use metric::{Metric, Side};
pub use verdict::{Verdict, VerdictKind};

use std::collections::BTreeMap;

use aec_base::digest::Digest;
use serde::Serialize;

use crate::faults::{FaultRate, Faults, fault_rates};
use crate::frame::{Difference, Frame};
use crate::stats::{
    Bounds, Cluster, Confidence, Design, EffectSize, Estimate, Goal, Interval, PermutationTest, effect_size,
    holm, mcnemar_exact, minimal_detectable_effect, paired_difference, paired_permutation,
    repetitions_needed, task_correlation, tasks_needed, unpaired_difference, variance_components,
};

/// The seed of all random draws of a comparison: the same records give the same answer.
const SEED: u64 = 0x00c0_4da7;

#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// A loss that is small enough to ignore.
    pub margin: f64,
    /// The difference that the run should be able to detect.
    pub detect: f64,
    pub goal: Goal,
}

impl Default for Question {
    fn default() -> Self {
        Self { margin: 0.02, detect: 0.05, goal: Goal::default() }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    pub base: String,
    pub other: String,
    /// Differences between the frames of the runs.
    pub frame: Vec<Difference>,
    pub alignment: Alignment,
    pub reward: RewardChange,
    /// Trials whose rewards are unknown; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<UnknownTrials>,
    /// Whether the runs differ in faults that are not part of the mean. Empty if there are none.
    pub fault_rates: Vec<FaultRate>,
    /// Reward and workflow.
    pub metrics: Vec<Metric>,
    pub by: Breakdowns,
    /// What a comparison of this size can detect.
    pub power: Power,
    pub verdict: Verdict,
}

/// How the tasks of two runs were matched.
#[derive(Clone, Debug, Serialize)]
pub struct Alignment {
    pub paired: bool,
    /// Tasks that both did, at the same revision.
    pub tasks: usize,
    pub only_base: usize,
    pub only_other: usize,
    pub repetitions: usize,
}

/// Differences are the second run minus the first.
#[derive(Clone, Debug, Serialize)]
pub struct RewardChange {
    /// The difference of the means over the tasks that count.
    pub difference: Option<f64>,
    pub interval: Option<Interval>,
    pub standard_error: Option<f64>,
    /// The probability of such a difference by chance, from flipping the signs of tasks.
    pub permutation: Option<PermutationTest>,
    /// The difference in units of its own standard deviation.
    pub effect_size: Option<EffectSize>,
    pub mcnemar: Option<McNemar>,
}

/// Trials whose rewards are unknown, and the differences that they leave possible.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct UnknownTrials {
    pub base: usize,
    pub other: usize,
    /// The difference if those of the first run earned 1 and those of the second 0; absent if it is not known which
    /// tasks they are.
    pub low: Option<f64>,
    /// The difference in the opposite case.
    pub high: Option<f64>,
}

/// Repetitions that one run solved and the other did not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct McNemar {
    pub base_only: usize,
    pub other_only: usize,
    /// Exact, two-sided. Assumes that repetitions of one task are independent, which they are not quite.
    pub p_value: f64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Breakdowns {
    pub difficulty: Vec<Part>,
    pub family: Vec<Part>,
    pub task: Vec<Part>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Part {
    pub name: String,
    /// Tasks that both did.
    pub tasks: usize,
    /// Mean reward of the first run.
    pub base: Side,
    /// Mean reward of the second run.
    pub other: Side,
    /// Trials of the first run with any reward.
    pub base_nonzero: usize,
    /// Trials of the second run with any reward.
    pub other_nonzero: usize,
    pub difference: Option<f64>,
    pub interval: Option<Interval>,
    /// Absent for fewer than two tasks.
    pub p_value: Option<f64>,
    /// Adjusted for several parts (Holm).
    pub adjusted_p_value: Option<f64>,
}

/// What a comparison of this size can detect.
#[derive(Clone, Debug, Serialize)]
pub struct Power {
    /// Probability of finding a difference where there is none.
    pub alpha: f64,
    /// Probability of finding the smallest detectable difference.
    pub power: f64,
    /// The smallest difference that is found with this probability.
    pub minimal_detectable_effect: Option<f64>,
    /// The difference that should be detected.
    pub detect: f64,
    /// Repetitions of these tasks that would suffice; absent if more tasks are needed.
    pub repetitions_needed: Option<usize>,
    /// Tasks with the current number of repetitions that would suffice.
    pub tasks_needed: Option<usize>,
}

type Pairs = Vec<(Cluster, Cluster)>;
/// The trials of the first and of the second run.
type Both<'a> = (Vec<&'a Sample>, Vec<&'a Sample>);

/// Compares two runs. The caller must decide whether their frames are similar enough.
pub fn compare(base: &Arm, other: &Arm, question: &Question) -> Comparison {
    let frame = Frame::of(base.samples.iter().map(|sample| &sample.framed))
        .differences(&Frame::of(other.samples.iter().map(|sample| &sample.framed)));
    let alignment = align(base, other);
    let both: Both<'_> = (base.samples.iter().collect(), other.samples.iter().collect());
    let by_task = pairs(&both, Sample::counted);
    let estimate = difference_of(&by_task, Bounds::REWARD);
    let reward = reward_change(base, other, &by_task, estimate.as_ref());
    let power = power(&by_task, estimate.as_ref(), question);
    let mut verdict = verdict::decide(base, other, &reward, &alignment, &power, question);
    let unknown = unknown(base, other);
    if let Some(unknown) = &unknown {
        let kinds = [(1.0, 0.0), (0.0, 1.0)].map(|assumed| {
            let by_task = assume(base, other, assumed)?;
            let estimate = difference_of(&by_task, Bounds::REWARD);
            let reward = reward_change(base, other, &by_task, estimate.as_ref());
            Some(verdict::decide(base, other, &reward, &alignment, &power, question).kind)
        });
        verdict = verdict.with_unknown(unknown, kinds);
    }
    Comparison {
        base: base.name.clone(),
        other: other.name.clone(),
        fault_rates: faults_of(base, other),
        metrics: metric::table(&both),
        by: breakdowns(&both),
        verdict,
        unknown,
        frame,
        alignment,
        reward,
        power,
    }
}

fn unknown(base: &Arm, other: &Arm) -> Option<UnknownTrials> {
    let (of_base, of_other) = (base.unknown().count(), other.unknown().count());
    let difference = |assumed| {
        let by_task = assume(base, other, assumed)?;
        difference_of(&by_task, Bounds::REWARD).map(|estimate| estimate.mean)
    };
    (of_base + of_other > 0).then(|| UnknownTrials {
        base: of_base,
        other: of_other,
        low: difference((1.0, 0.0)),
        high: difference((0.0, 1.0)),
    })
}

/// The sums by task with these rewards for the unknown trials of both runs; `None` if it is not known which tasks they
/// are.
fn assume(base: &Arm, other: &Arm, assumed: (f64, f64)) -> Option<Pairs> {
    let both: Both<'_> = (base.samples.iter().collect(), other.samples.iter().collect());
    let mut sums = sums_by_task(&both, Sample::counted);
    for task in base.unknown() {
        sums.entry(task?).or_default().1.add(assumed.0);
    }
    for task in other.unknown() {
        sums.entry(task?).or_default().0.add(assumed.1);
    }
    Some(sums.into_values().collect())
}

fn faults_of(base: &Arm, other: &Arm) -> Vec<FaultRate> {
    let count = |arm: &Arm| {
        let mut faults = Faults::default();
        for sample in &arm.samples {
            let kind = sample.facts.error_type.as_deref().and_then(|kind| kind.split_once('/'));
            faults.count(sample.facts.outcome, kind.map(|(_, kind)| kind));
        }
        (faults, arm.samples.iter().filter_map(Sample::counted).count())
    };
    let [first, second] = [base, other].map(|arm| (arm.name.as_str(), count(arm)));
    // The same run twice is one agent, and differs from nobody.
    fault_rates([first, second].map(|(name, (faults, counted))| (name, faults, counted)))
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

/// Sums by task; the second run comes first, because differences are the second minus the first.
pub(super) fn pairs(both: &Both<'_>, value: impl Fn(&Sample) -> Option<f64>) -> Pairs {
    sums_by_task(both, value).into_values().collect()
}

fn sums_by_task<'a>(
    both: &Both<'a>,
    value: impl Fn(&Sample) -> Option<f64>,
) -> BTreeMap<(&'a str, Digest), (Cluster, Cluster)> {
    let mut sums: BTreeMap<(&'a str, Digest), (Cluster, Cluster)> = BTreeMap::new();
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
    sums
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

/// The probability of such differences by chance; absent for fewer than two tasks.
pub(super) fn chance(pairs: &Pairs) -> Option<PermutationTest> {
    let by_task = differences(pairs);
    (by_task.len() > 1).then(|| paired_permutation(&by_task, SEED)).flatten()
}

/// Adjusts p values for several tests.
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
            // Differences that are all equal tell nothing about their variance.
            let error = estimate.standard_error.filter(|error| *error > 0.0)?;
            minimal_detectable_effect(error, estimate.degrees_of_freedom, goal)
        }),
        detect: question.detect,
        repetitions_needed: design.and_then(|design| repetitions_needed(&design, question.detect, goal)),
        tasks_needed: design.and_then(|design| tasks_needed(&design, question.detect, goal)),
    }
}
