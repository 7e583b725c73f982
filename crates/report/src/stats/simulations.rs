//! Agents with known true means: how often intervals contain them, and how often tests find a difference wrongly.

use super::random::Generator;
use super::*;

const RUNS: u32 = 1000;
const TASKS: usize = 40;
/// Resamples for a bootstrap that is repeated a thousand times.
const RESAMPLES: usize = 500;

/// A number between 0 and 1.
fn uniform(generator: &mut Generator) -> f64 {
    // 53 bits, as many as a double has.
    real((generator.word() >> 11) as usize) / 2.0_f64.powi(53)
}

fn chance(generator: &mut Generator, probability: f64) -> bool {
    uniform(generator) < probability
}

/// How a trial is rewarded, given the probability of success at its task.
#[derive(Clone, Copy)]
enum Rewards {
    /// 0 or 1.
    Whole,
    /// The share of four parts that were right.
    Parts,
    /// 1, or else 0, 0.25 or 0.5 with equal probabilities.
    Partial,
}

impl Rewards {
    fn draw(self, generator: &mut Generator, success: f64) -> f64 {
        match self {
            Self::Whole => f64::from(chance(generator, success)),
            Self::Parts => (0..4).map(|_| f64::from(chance(generator, success)) / 4.0).sum(),
            Self::Partial if chance(generator, success) => 1.0,
            Self::Partial => {
                f64::from(chance(generator, 2.0 / 3.0)) * if chance(generator, 0.5) { 0.25 } else { 0.5 }
            }
        }
    }

    fn mean(self, success: f64) -> f64 {
        match self {
            Self::Whole | Self::Parts => success,
            Self::Partial => success + (1.0 - success) * 0.25,
        }
    }
}

/// An agent whose probabilities of success at tasks have a beta distribution.
struct Agent {
    /// Quantiles of the distribution, all equally likely, so that the true mean is known exactly.
    chances: Vec<f64>,
    rewards: Rewards,
    /// Repetitions of each task; absent if they vary from 1 to 5.
    repetitions: Option<usize>,
}

impl Agent {
    fn new(mean: f64, concentration: f64, rewards: Rewards, repetitions: Option<usize>) -> Self {
        let (a, b) = (mean * concentration, (1.0 - mean) * concentration);
        let chances =
            (0..512).map(|at| distribution::beta_quantile(a, b, (real(at) + 0.5) / 512.0)).collect();
        Self { chances, rewards, repetitions }
    }

    fn true_mean(&self) -> f64 {
        self.chances.iter().map(|success| self.rewards.mean(*success)).sum::<f64>() / real(self.chances.len())
    }

    fn task(&self, generator: &mut Generator) -> f64 {
        self.chances[generator.two_below(512)[0]]
    }

    fn trials(&self, generator: &mut Generator, success: f64) -> Cluster {
        let repetitions = self.repetitions.unwrap_or_else(|| 1 + generator.two_below(5)[0]);
        (0..repetitions).map(|_| self.rewards.draw(generator, success)).collect()
    }

    fn run(&self, generator: &mut Generator) -> Vec<Cluster> {
        (0..TASKS)
            .map(|_| {
                let success = self.task(generator);
                self.trials(generator, success)
            })
            .collect()
    }
}

/// Shares of runs in which the t interval, the interval of log-odds and the bootstrap contain the true mean.
fn coverage(name: &str, agent: &Agent) -> [f64; 3] {
    let truth = agent.true_mean();
    let mut hits = [0_u32; 3];
    for run in 0..RUNS {
        let clusters = agent.run(&mut Generator::new(1, u64::from(run)));
        let confidence = Confidence::default();
        let intervals = [
            clustered_mean(&clusters, Bounds::REWARD, confidence).unwrap().interval,
            clustered_mean_logit(&clusters, confidence).unwrap().interval,
            bootstrap_bca(&clusters, RESAMPLES, confidence, u64::from(run)),
        ];
        for (hits, interval) in hits.iter_mut().zip(intervals) {
            *hits += u32::from(interval.is_some_and(|interval| interval.contains(truth)));
        }
    }
    let shares = hits.map(|hits| f64::from(hits) / f64::from(RUNS));
    println!(
        "{name}, true mean {truth:.3}: t {:.3}, log-odds {:.3}, BCa {:.3}",
        shares[0], shares[1], shares[2]
    );
    shares
}

#[test]
fn intervals_cover_as_often_as_they_say() {
    let three = Some(3);
    for (name, agent) in [
        ("whole rewards, even difficulties", Agent::new(0.5, 2.0, Rewards::Whole, three)),
        ("whole rewards, easy and hard tasks", Agent::new(0.4, 0.7, Rewards::Whole, three)),
        ("whole rewards, similar tasks", Agent::new(0.3, 10.0, Rewards::Whole, three)),
        ("rewards for parts", Agent::new(0.6, 2.0, Rewards::Parts, three)),
        ("partial rewards", Agent::new(0.4, 1.0, Rewards::Partial, three)),
        ("1 to 5 repetitions", Agent::new(0.5, 2.0, Rewards::Whole, None)),
        ("1 to 5 repetitions, partial rewards", Agent::new(0.5, 1.0, Rewards::Partial, None)),
    ] {
        let [t, log_odds, bca] = coverage(name, &agent);
        assert!((0.93..=0.97).contains(&t), "{name}: {t}");
        assert!((0.93..=0.97).contains(&log_odds), "{name}: {log_odds}");
        assert!((0.91..=0.97).contains(&bca), "{name}: {bca}");
    }
}

#[test]
fn log_odds_keep_the_promise_longer_near_the_ends() {
    let three = Some(3);
    for (name, agent, least) in [
        ("mean 0.9, whole rewards", Agent::new(0.9, 2.0, Rewards::Whole, three), 0.93),
        ("mean 0.1, 1 to 5 repetitions", Agent::new(0.1, 2.0, Rewards::Whole, None), 0.93),
        ("mean 0.97, whole rewards", Agent::new(0.97, 2.0, Rewards::Whole, three), 0.93),
        ("mean 0.97, similar tasks", Agent::new(0.97, 10.0, Rewards::Whole, three), 0.93),
        // A few hard tasks decide the mean, and a run may meet none of them. No interval can account for those.
        ("mean 0.97, rewards for parts", Agent::new(0.97, 2.0, Rewards::Parts, three), 0.88),
        ("mean 0.97, partial rewards", Agent::new(0.96, 2.0, Rewards::Partial, three), 0.88),
    ] {
        let [t, log_odds, _] = coverage(name, &agent);
        assert!(log_odds >= least && log_odds > t, "{name}: {log_odds} against {t}");
    }
}

/// Probabilities of success of two agents at a task that is similar for both but not the same: each has an advantage at
/// some tasks, and neither overall.
fn chances_of_pair(generator: &mut Generator, agent: &Agent) -> [f64; 2] {
    let shared = agent.task(generator);
    [(); 2].map(|()| f64::midpoint(shared, agent.task(generator)))
}

fn pair(generator: &mut Generator, agent: &Agent) -> Vec<(Cluster, Cluster)> {
    (0..TASKS)
        .map(|_| {
            let [first, second] = chances_of_pair(generator, agent);
            (agent.trials(generator, first), agent.trials(generator, second))
        })
        .collect()
}

#[test]
fn differences_are_covered_as_often_as_they_say() {
    for agent in [
        Agent::new(0.5, 1.0, Rewards::Whole, Some(3)),
        Agent::new(0.6, 2.0, Rewards::Partial, None),
        Agent::new(0.85, 2.0, Rewards::Whole, None),
    ] {
        let (mut paired, mut unpaired) = (0, 0);
        for run in 0..RUNS {
            let mut generator = Generator::new(2, u64::from(run));
            let confidence = Confidence::default();
            let covers = |estimate: Option<Estimate>| {
                u32::from(estimate.unwrap().interval.is_some_and(|interval| interval.contains(0.0)))
            };
            paired += covers(paired_difference(&pair(&mut generator, &agent), Bounds::REWARD, confidence));
            let runs = [(); 2].map(|()| agent.run(&mut generator));
            unpaired += covers(unpaired_difference(&runs[0], &runs[1], Bounds::REWARD, confidence));
        }
        for (name, hits) in [("paired", paired), ("unpaired", unpaired)] {
            let share = f64::from(hits) / f64::from(RUNS);
            println!("{name} difference at mean {:.2}: {share:.3}", agent.true_mean());
            assert!((0.93..=0.97).contains(&share), "{name}: {share}");
        }
    }
}

/// How often the exact test of 24 tasks, the drawn test of 60 and `McNemar`'s test, which treats every repetition as a
/// separate task, find a difference at 5 % where there is none.
fn rejections(name: &str, reward: impl Fn(&mut Generator, f64) -> f64) -> [f64; 3] {
    let agent = Agent::new(0.5, 0.7, Rewards::Whole, Some(5));
    let mut rejections = [0_u32; 3];
    for run in 0..RUNS {
        let mut generator = Generator::new(3, u64::from(run));
        let mut better = [0; 2];
        let differences: Vec<f64> = (0..60)
            .map(|_| {
                // Repetitions of a task depend on each other through the advantage that one agent has there.
                let chances = chances_of_pair(&mut generator, &agent);
                let mut sum = 0.0;
                for _ in 0..5 {
                    let [first, second] = chances.map(|success| reward(&mut generator, success));
                    better[0] += usize::from(first > second);
                    better[1] += usize::from(second > first);
                    sum += first - second;
                }
                sum / 5.0
            })
            .collect();
        let few = paired_permutation(&differences[..24], 1).unwrap();
        let all = paired_permutation_with(&differences, 999, u64::from(run)).unwrap();
        assert!(few.exact);
        let p_values = [few.p_value, all.p_value, mcnemar_exact(better[0], better[1])];
        for (rejections, p_value) in rejections.iter_mut().zip(p_values) {
            *rejections += u32::from(p_value <= 0.05);
        }
    }
    let shares = rejections.map(|rejections| f64::from(rejections) / f64::from(RUNS));
    println!(
        "rejected, {name}: exact {:.3}, drawn {:.3}, trials as tasks {:.3}",
        shares[0], shares[1], shares[2]
    );
    shares
}

#[test]
fn the_permutation_test_keeps_its_level_and_counting_trials_does_not() {
    // The Monte-Carlo error is 0.0069.
    let [exact, drawn, trials_as_tasks] =
        rejections("continuous rewards", |generator, success| success * uniform(generator));
    assert!((0.03..=0.07).contains(&exact), "{exact}");
    assert!((0.03..=0.07).contains(&drawn), "{drawn}");
    assert!(trials_as_tasks > 0.1, "{trials_as_tasks}");
    // Sums of whole rewards are often equal, which counts against a difference, so the actual level is below 5 %.
    let [exact, drawn, trials_as_tasks] =
        rejections("whole rewards", |generator, success| f64::from(chance(generator, success)));
    assert!((0.02..=0.06).contains(&exact), "{exact}");
    assert!((0.02..=0.06).contains(&drawn), "{drawn}");
    assert!(trials_as_tasks > 0.09, "{trials_as_tasks}");
}
