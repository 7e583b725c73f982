//! The cost of a cluster: the same offline trials by one local run and by four workers of a real Slurm cluster on the
//! same cores, and how long it takes to submit a large plan.
//!
//! `cargo bench --bench slurm` prints the figures that `docs/performance.md` quotes. Environment: `AEC_BENCH_TRIALS=20000`,
//! `AEC_BENCH_PLANNED=100000`.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints and stops at the first fault"
)]

#[expect(dead_code, reason = "the tests of lost nodes need more of it")]
#[path = "../tests/slurm/cluster.rs"]
mod cluster;

use std::time::{Duration, Instant};

use aec_xtest::bench::{Place, is_asked_for};
use cluster::Cluster;

const PROGRAM: &str = env!("CARGO_BIN_EXE_aec-bench");

/// Workers, one for each virtual node.
const SHARDS: usize = 4;

/// Trials at once: all of them in one local run, a part in each worker.
const AT_ONCE: usize = 32;

fn main() {
    if !is_asked_for() {
        return;
    }
    let number = |name: &str, usual: usize| {
        std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
    };
    let cluster = Cluster::start();
    let place = Place::new(PROGRAM, "slurm");
    place.run("init --no-example");
    place.run("generate task structural/bolt-group-loading --instances 20 --seed 7");
    std::fs::write(place.path().join("replies.yaml"), "replies:\n- text: '{\"utilisation\": 0.5}'\n")
        .unwrap();
    let trials = number("AEC_BENCH_TRIALS", 20_000);
    rates(&place, &cluster, trials);
    submission(&place, &cluster, number("AEC_BENCH_PLANNED", 100_000));
}

/// The time of a command that must succeed.
fn time(place: &Place, cluster: &Cluster, line: &str) -> Duration {
    let started = Instant::now();
    let output = place.command(line).env("SLURM_CONF", cluster.config()).output().unwrap();
    let elapsed = started.elapsed();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    elapsed
}

/// Two sizes of the same experiment give a fixed cost and a rate.
#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn rates(place: &Place, cluster: &Cluster, trials: usize) {
    let small = trials / 5;
    println!(
        "{trials} and {small} offline trials: one call, native scorer, durable record, all files of the layout"
    );
    let engines = [
        ("local", format!("--concurrency {AT_ONCE}")),
        ("slurm", format!("--engine slurm --shards {SHARDS} --concurrency {}", AT_ONCE / SHARDS)),
    ];
    let mut found = Vec::new();
    for (name, flags) in &engines {
        let take = |count: usize| {
            let line = format!(
                "run structural --model offline/scripted:replies.yaml --harness direct -n {} -e {name}-{count} {flags} --quiet",
                count / 20
            );
            time(place, cluster, &line).as_secs_f64()
        };
        let (few, many) = (take(small), take(trials));
        let rate = (trials - small) as f64 / (many - few);
        let fixed = few - small as f64 / rate;
        println!("  {name}: {few:.1} s and {many:.1} s, that is {fixed:.1} s and {rate:.0} trials/s");
        found.push((fixed, rate));
    }
    let (local, slurm) = (found[0], found[1]);
    println!("  fixed cost of the cluster: {:.1} s (limit 8)", slurm.0);
    println!("  its rate is {:.0} % of the local one (limit 75)", 100.0 * slurm.1 / local.1);
}

/// A large plan is divided and submitted; its jobs are held, so that only the submission is measured.
fn submission(place: &Place, cluster: &Cluster, planned: usize) {
    let line = format!(
        "run structural --harness nop -n {} -e large --engine slurm --shards {SHARDS} --sbatch=--hold --detach --quiet",
        planned / 20
    );
    let elapsed = time(place, cluster, &line);
    println!("a plan of {planned} trials is submitted in {:.2} s (limit 5)", elapsed.as_secs_f64());
    time(place, cluster, "runs stop large --force");
}
