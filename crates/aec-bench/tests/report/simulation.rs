//! Whether intervals and comparisons have their stated error rates, with agents that make mistakes like `sim`.

use aec_base::content::ContentStore;
use aec_base::digest::Hasher;
use aec_judge::scorer::{Answers, score};
use aec_ledger::example;
use aec_report::compare::{Arm, Question, Sample, VerdictKind, compare};
use aec_report::stats::{Cluster, Confidence, bootstrap_bca, clustered_mean_logit};
use aec_run::harness::sim;

use crate::report::world::{World, of_agent, of_task, rewarded};

const TEMPLATES: [&str; 8] = [
    "structural/bolt-group-loading",
    "structural/column-buckling",
    "civil/mannings-pipe-capacity",
    "civil/stopping-sight-distance",
    "electrical/cable-sizing",
    "ground/rankine-earth-pressure",
    "maritime/berthing-energy",
    "mechanical/pump-power-npsh",
];
/// Rewards of each task from which runs are drawn.
const DRAWS: usize = 60;

/// The rewards that an agent of this skill earns, for every task of a population.
fn population(skill: f64) -> Vec<Vec<f64>> {
    let world = World::new();
    for template in TEMPLATES {
        let run = world.run(&format!("generate task {template} --instances 12 --seed 11 --quiet"));
        assert_eq!(run.code, Some(0), "{run:?}");
    }
    let mut found = Vec::new();
    let root = world.env.path("tasks");
    collect(&root, &mut found);
    found.sort();
    found
        .iter()
        .map(|task| {
            let answers = Answers::parse(&std::fs::read(task.join("answers.json")).unwrap()).unwrap();
            let right = std::fs::read_to_string(task.join("fixtures/golden_pass.json")).unwrap();
            (0..DRAWS)
                .map(|draw| {
                    let mut hasher = Hasher::default();
                    hasher.part(task.strip_prefix(&root).unwrap().to_string_lossy().as_bytes());
                    hasher.part(&draw.to_le_bytes());
                    let left = sim::answer(&right, hasher.finish().bytes(), 1, skill);
                    left.map_or(0.0, |left| score(&answers, left.as_bytes()).reward)
                })
                .collect()
        })
        .collect()
}

fn collect(directory: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.join("answers.json").exists() {
            found.push(path);
        } else if path.is_dir() {
            collect(&path, found);
        }
    }
}

/// Random numbers below a count, the same every time.
struct Luck(u64);

impl Luck {
    fn below(&mut self, count: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % count as u64).unwrap()
    }
}

#[test]
fn intervals_cover_as_often_as_they_say() {
    const RUNS: usize = 1000;
    for skill in [0.55, 0.8] {
        let tasks = population(skill);
        assert!(tasks.len() >= 90, "{}", tasks.len());
        let mean = |rewards: &Vec<f64>| rewards.iter().sum::<f64>() / rewards.len() as f64;
        let truth = tasks.iter().map(mean).sum::<f64>() / tasks.len() as f64;
        let mut luck = Luck(7);
        let (mut covered, mut covered_by_bootstrap) = (0, 0);
        for run in 0..RUNS {
            let clusters: Vec<Cluster> = (0..40)
                .map(|_| {
                    let task = &tasks[luck.below(tasks.len())];
                    (0..3).map(|_| task[luck.below(task.len())]).collect()
                })
                .collect();
            let estimate = clustered_mean_logit(&clusters, Confidence::default()).unwrap();
            covered += usize::from(estimate.interval.unwrap().contains(truth));
            let bootstrap = bootstrap_bca(&clusters, 400, Confidence::default(), run as u64);
            covered_by_bootstrap += usize::from(bootstrap.unwrap().contains(truth));
        }
        eprintln!(
            "skill {skill}, mean {truth:.3}: {covered} of {RUNS} intervals cover, {covered_by_bootstrap} by bootstrap"
        );
        assert!((930..=970).contains(&covered), "skill {skill}: {covered} of {RUNS}");
        assert!(
            (890..=975).contains(&covered_by_bootstrap),
            "skill {skill}: {covered_by_bootstrap} of {RUNS}"
        );
    }
}

/// The trials of an agent on some tasks of a population.
fn arm(agent: &str, tasks: &[Vec<f64>], chosen: &[usize], luck: &mut Luck, store: &ContentStore) -> Arm {
    let mut samples = Vec::new();
    for (place, task) in chosen.iter().enumerate() {
        for repetition in 1..=3 {
            let mut record = example::record(agent, &format!("{agent}-{place}-{repetition}"), 1);
            of_task(&mut record, &format!("task-{place}"));
            of_agent(&mut record, agent);
            record.repetition = repetition;
            record.outputs.trajectory_path = None;
            rewarded(&mut record, tasks[*task][luck.below(DRAWS)]);
            samples.push(Sample::read(&record, store));
        }
    }
    Arm { name: agent.to_owned(), samples, withheld: Vec::new() }
}

#[test]
fn comparisons_err_no_more_often_than_they_say() {
    const RUNS: usize = 400;
    let world = World::new();
    let store = world.ledger().contents();
    let (same, better) = (population(0.7), population(0.9));
    let mut luck = Luck(11);
    let (mut false_alarms, mut found) = (0, 0);
    for _ in 0..RUNS {
        let chosen: Vec<usize> = (0..16).map(|_| luck.below(same.len())).collect();
        let base = arm("base", &same, &chosen, &mut luck, &store);
        for (other, count) in [(&same, &mut false_alarms), (&better, &mut found)] {
            let other = arm("other", other, &chosen, &mut luck, &store);
            let kind = compare(&base, &other, &Question::default()).verdict.kind;
            *count += usize::from(matches!(kind, VerdictKind::Improved | VerdictKind::Regressed));
        }
    }
    eprintln!("of {RUNS} comparisons: {false_alarms} false alarms, {found} of a real difference found");
    // 5 % of 400 is 20; three standard errors are 13.
    assert!(false_alarms <= 33, "{false_alarms} of {RUNS}");
    assert!(found > RUNS * 3 / 4, "{found} of {RUNS}");
}
