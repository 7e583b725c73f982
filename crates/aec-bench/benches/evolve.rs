//! The cost of evolution besides its trials, the memory of a long swarm, and how often runs without any improvement
//! accept one. The real binary, real rooms, real git.
//!
//! `cargo bench --bench evolve` prints the figures that `docs/performance.md` quotes. Environment: `AEC_BENCH_RUNS=200`,
//! `AEC_BENCH_CYCLES=100`.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints and stops at the first fault"
)]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use aec_evolve::log::entries;
use aec_evolve::state::State;
use aec_xtest::bench::{Place, is_asked_for, median, milliseconds};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_aec-bench");

fn main() {
    if !is_asked_for() {
        return;
    }
    let number = |name: &str, usual: u32| {
        std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
    };
    bookkeeping();
    swarm(number("AEC_BENCH_CYCLES", 100));
    noise(number("AEC_BENCH_RUNS", 200) as usize);
}

/// A project with a workspace.
fn project(name: &str, harness: &str) -> Place {
    let place = Place::new(PROGRAM, name);
    place.run("init --no-example");
    place.run(&format!("evolve init workspaces/w --harness {harness}"));
    place
}

/// A model that proposes another skill in every cycle.
fn evolver(place: &Place, file: &str, word: &str, cycles: u32) {
    let conversations: Vec<Value> = (1..=cycles)
        .map(|cycle| {
            let action = json!({
                "type": "write_skill",
                "name": format!("{word}-{cycle}"),
                "description": format!("piece {cycle} of {word}"),
                "body": format!("In case {cycle} of {word} write down every assumption before you begin."),
            });
            // A new skill replaces an old one.
            let removed =
                json!({ "type": "delete_skill", "name": format!("{word}-{}", cycle.saturating_sub(5)) });
            let text = json!({ "actions": [action, removed], "reasoning": "to have something to measure" })
                .to_string();
            json!({ "when": format!("# Cycle {cycle} of"), "replies": [{ "text": text }] })
        })
        .collect();
    std::fs::write(place.path().join(file), json!({ "conversations": conversations }).to_string()).unwrap();
}

/// An evolution over tasks that are generated on the fly or, without a seed, over those of the project.
fn evolution(place: &Place, solver: &Value, cycles: u32, seed: Option<usize>) {
    let mut file = json!({
        "workspace_path": "workspaces/w",
        "models": { "evolver": "offline/scripted:evolver.json" },
        "solver": solver,
        "batch_size": 5,
        "max_cycles": cycles,
        "improvement_threshold": 0.01,
        "stagnation_window": cycles,
        "acceptance": { "max_tasks": 40 },
    });
    match seed {
        Some(seed) => {
            file["generate"] =
                json!({ "template": "voltage-drop", "count": 20, "seed": seed, "difficulties": ["easy"] });
        }
        None => file["tasks"] = json!({}),
    }
    std::fs::write(place.path().join("evolution.yaml"), file.to_string()).unwrap();
}

/// The same run again and again, each time from its beginning: from the second time on every trial is in the ledger
/// already, so what is left is bookkeeping. Tasks are the project's; making some is no bookkeeping.
fn bookkeeping() {
    const CYCLES: u32 = 20;
    let place = project("evolve-books", "direct");
    place.run("generate task voltage-drop --instances 60 --difficulty easy --seed 3");
    evolver(&place, "evolver.json", "skill", CYCLES);
    let solver = json!({ "name": "solver", "harness": "direct", "model": "offline/scripted:solver.json" });
    std::fs::write(place.path().join("solver.json"), json!({ "replies": [{ "text": "{}" }] }).to_string())
        .unwrap();
    evolution(&place, &solver, CYCLES, None);
    let start = place.median(5, |_| "evolve run -c evolution.yaml --dry-run".to_owned());
    // A budget of one token stops the run before its first call. A new run would have an experiment of its own, without
    // records.
    place.run("evolve run -c evolution.yaml --quiet --max-total-tokens 1");
    shell(&place, "mkdir begun && cp -r artefacts/feedback workspaces begun");
    let resume = "evolve resume w-1 --quiet --max-total-tokens none";
    let with_trials = place.run(resume);
    let mut times: Vec<Duration> = (0..5)
        .map(|_| {
            shell(&place, "rm -rf artefacts/feedback workspaces");
            shell(&place, "cp -r begun/feedback artefacts && cp -r begun/workspaces .");
            place.run(resume)
        })
        .collect();
    let again = median(&mut times);
    let state = state(&place.path().join("artefacts/feedback/evolve/w-1"));
    let each = milliseconds(again.saturating_sub(start)) / f64::from(CYCLES);
    println!(
        "a cycle beside its trials: {each:.1} ms (limit 50); {CYCLES} cycles with {} tests: {:.0} ms, with their trials {:.0} ms, start-up {:.0} ms",
        state.tests,
        milliseconds(again),
        milliseconds(with_trials),
        milliseconds(start),
    );
}

fn shell(place: &Place, line: &str) {
    let done = Command::new("sh").args(["-c", line]).current_dir(place.path()).status().unwrap();
    assert!(done.success(), "{line}");
}

fn state(directory: &Path) -> State {
    State::replay(&entries(directory).unwrap()).unwrap()
}

/// Eight agents, many cycles: measures memory, and checks that the log alone reproduces the archive.
fn swarm(cycles: u32) {
    let run = |cycles: u32| {
        let place = project(&format!("evolve-swarm-{cycles}"), "direct");
        let models: Vec<String> = (0..8)
            .map(|agent| {
                let file = format!("evolver-{agent}.json");
                evolver(&place, &file, &format!("agent{agent}"), cycles);
                format!("offline/scripted:{file}")
            })
            .collect();
        std::fs::write(
            place.path().join("solver.json"),
            json!({ "replies": [{ "text": "{}" }] }).to_string(),
        )
        .unwrap();
        let file = json!({
            "task": { "workspace": "workspaces/w", "generate": { "template": "voltage-drop", "count": 100, "seed": 3, "difficulties": ["easy"] } },
            "agents": { "count": 8, "default_model": models[0], "models": models },
            "solver": { "name": "solver", "harness": "direct", "model": "offline/scripted:solver.json" },
            "budget": { "max_cost_usd": 20.0 },
            "evolution": { "batch_size": 5, "max_cycles": cycles, "max_tasks": 40, "error_rate": 0.5 },
            "evaluation": { "concurrency": 16 },
        });
        std::fs::write(place.path().join("swarm.yaml"), file.to_string()).unwrap();
        let started = std::time::Instant::now();
        let memory = place.peak_memory("swarm run swarm.yaml --json");
        let time = started.elapsed();
        let directory = place.path().join("artefacts/feedback/swarm/w-1");
        let kept = std::fs::read_to_string(directory.join("archive.json")).unwrap();
        let begun = std::time::Instant::now();
        let state = state(&directory);
        let replayed = begun.elapsed();
        assert_eq!(state.archive.to_json(), kept, "the log gives the archive, byte for byte");
        (memory, time, replayed, state)
    };
    let (small, ..) = run(cycles.div_ceil(10));
    let (memory, time, replayed, state) = run(cycles);
    println!(
        "a swarm of 8 agents and {} cycles ({} candidates, {} tests): {:.1} s, {memory:.0} MB at most, a tenth of it {small:.0} MB; its log is \
         replayed in {:.0} ms to the same archive, byte for byte",
        state.cycles.len(),
        state.candidates.len() - 1,
        state.tests,
        time.as_secs_f64(),
        milliseconds(replayed),
    );
}

/// Runs in which no change helps: how many of them accept one.
fn noise(runs: usize) {
    const CYCLES: u32 = 5;
    let place = project("evolve-noise", "sim");
    evolver(&place, "evolver.json", "skill", CYCLES);
    let (mut accepting, mut trials) = (0, 0);
    let started = std::time::Instant::now();
    for seed in 0..runs {
        evolution(
            &place,
            &json!({ "name": "solver", "harness": "sim", "parameters": { "skill": 0.5, "seed": seed } }),
            CYCLES,
            Some(seed),
        );
        place.run("evolve run -c evolution.yaml --quiet");
        let state = state(&place.path().join(format!("artefacts/feedback/evolve/w-{}", seed + 1)));
        accepting += usize::from(!state.accepted.is_empty());
        trials += state.candidates.values().map(|known| known.tally.trials).sum::<usize>();
        // Every run begins with the same workspace and an empty ledger.
        let baseline = aec_evolve::workspace::candidate::name(state.started.baseline);
        place.run(&format!("evolve rollback workspaces/w {baseline}"));
        for directory in ["artefacts/ledger", "jobs"] {
            std::fs::remove_dir_all(place.path().join(directory)).unwrap();
        }
    }
    println!(
        "runs in which nothing helps: {accepting} of {runs} accepted a change at an error rate of 0.05 (limit {}); {trials} trials, {:.0} s",
        (runs * 15).div_ceil(200),
        started.elapsed().as_secs_f64(),
    );
}
