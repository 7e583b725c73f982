//! Killed at any moment, again and again: a run ends with the same result, pays for no trial twice, and loses nothing
//! that was accepted.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use aec_judge::verdict::Outcome;
use aec_xtest::chance::Chance;
use aec_xtest::files::{copy, names_in};
use aec_xtest::running::Running;
use aec_xtest::wait::until;
use rustix::process::Signal;
use serde_json::Value;

use crate::evolve::voices::{cycle, said_by, skill};
use crate::evolve::world::{LESSON, usual};
use crate::evolve::{Said, World};

/// Bytes of the log or of the records, whichever is watched.
fn seen(world: &World, (run, experiment): (&str, &str), records: bool) -> usize {
    if records {
        return names_in(&world.env.path("artefacts/ledger").join(experiment)).len();
    }
    let log = std::fs::read(world.directory(run).join("events.jsonl")).unwrap_or_default();
    String::from_utf8_lossy(&log).matches('\n').count()
}

/// Kills a run a moment after the watched files have grown. Returns whether it was still running.
fn kill(world: &World, names: (&str, &str), mut run: Running, chance: &mut Chance) -> bool {
    let records = chance.up_to(2) == 0;
    let wanted =
        seen(world, names, records) + usize::try_from(chance.up_to(if records { 12 } else { 4 })).unwrap();
    until("what is watched", || seen(world, names, records) >= wanted || run.is_over());
    // Only the moment is random here; nothing waits for anything to be ready.
    let spin = Duration::from_micros(chance.up_to(30_000));
    let begun = Instant::now();
    while begun.elapsed() < spin {
        std::hint::spin_loop();
    }
    let alive = run.signal_if_alive(Signal::KILL);
    run.end();
    alive
}

/// Every requested trial has one result that counts; earlier attempts were cut off.
fn every_trial_has_one_result(world: &World, (run, experiment): (&str, &str)) {
    let mut attempts: BTreeMap<String, Vec<(u32, Outcome)>> = BTreeMap::new();
    for record in world.records(experiment).values() {
        attempts.entry(record.trial_id.to_string()).or_default().push((record.attempt, record.outcome));
    }
    for (trial, made) in &mut attempts {
        made.sort_unstable_by_key(|(attempt, _)| *attempt);
        let scored = made.iter().filter(|(_, outcome)| *outcome == Outcome::Scored).count();
        let cut = made.iter().filter(|(_, outcome)| *outcome == Outcome::Cancelled).count();
        assert!(scored <= 1 && scored + cut == made.len(), "{trial}: {made:?}");
    }
    let measured = world.events(run, "measured");
    for event in &measured {
        for arm in event["arms"].as_array().unwrap() {
            for seen in arm["seen"].as_array().unwrap() {
                let made = &attempts[seen["trial"].as_str().unwrap()];
                assert_eq!(made.last().map(|(_, outcome)| *outcome), Some(Outcome::Scored), "{seen}");
            }
        }
    }
    world.assert_sound(experiment);
}

#[test]
fn an_evolution_that_is_killed_comes_to_the_same_end() {
    const NAMES: (&str, &str) = ("evolve/w-1", "evolve-w-1");
    let kills = if aec_xtest::full() { 50 } else { 8 };
    let world = World::new();
    let fresh = tempfile::tempdir().unwrap();
    copy(&world.env.dir(), &fresh.path().join("work"));
    let tape = tempfile::tempdir().unwrap();
    let tape = tape.path().join("tape");
    let tape = tape.to_str().unwrap();
    let whole = world.data(&format!("evolve run -c evolution.yaml --record {tape}"));
    let (archive, champion) = (world.archive(NAMES.0), world.state(NAMES.0).champion);
    let cycles = |data: &Value| {
        let cycles = data["cycles"].as_array().unwrap();
        cycles
            .iter()
            .map(|cycle| (cycle["candidate"].clone(), cycle["accepted"].clone(), cycle["standing"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(whole["accepted"], 1);
    world.voices.forget();
    let mut chance = Chance(20_261_117);
    let (mut killed, mut ends) = (0, 0);
    while killed < kills || ends == 0 {
        std::fs::remove_dir_all(world.env.dir()).unwrap();
        copy(&fresh.path().join("work"), &world.env.dir());
        let mut over = false;
        while !over {
            let begun = seen(&world, NAMES, false) > 0;
            if !begun && world.directory(NAMES.0).exists() {
                // It was killed before it wrote anything, so there is nothing to resume.
                std::fs::remove_dir_all(world.directory(NAMES.0)).unwrap();
            }
            let line = if begun { "evolve resume w-1" } else { "evolve run -c evolution.yaml" };
            let line = format!("{line} --replay {tape}");
            if killed < kills {
                killed += u32::from(kill(&world, NAMES, world.start(&line), &mut chance));
            } else {
                world.data(&line);
            }
            over = seen(&world, NAMES, false) > 0 && world.state(NAMES.0).ending.is_some();
        }
        ends += 1;
        assert_eq!(world.archive(NAMES.0), archive);
        let state = world.state(NAMES.0);
        assert_eq!(state.champion, champion);
        let data = world.data("evolve report w-1");
        assert_eq!(cycles(&data), cycles(&whole));
        assert_eq!(data["holdout"], whole["holdout"]);
        let here = world.workspace().here().unwrap();
        assert_eq!(here.id, champion, "the workspace shows the best");
        assert_eq!(world.git("status --porcelain"), "");
        every_trial_has_one_result(&world, NAMES);
    }
    assert_eq!(
        world.voices.asked("solver").len() + world.voices.asked("evolver").len(),
        0,
        "everything was on the tape"
    );
    eprintln!("{killed} kills, {ends} runs came to their end");
}

/// A swarm whose agents look at different things; one of them finds the improvement.
fn many(body: &Value) -> Said {
    if body["model"] == "solver" {
        return usual(body);
    }
    let (brief, cycle) = (said_by(body, "user"), cycle(body));
    let who = ["first", "second", "third"]
        .into_iter()
        .find(|who| brief.contains(&format!("particular: the {who}")))
        .unwrap();
    if (who, cycle) == ("second", 2) {
        return skill("units", LESSON).into();
    }
    skill(&format!("{who}-{cycle}"), &format!("The {who} idea of round {cycle} says nothing of any use."))
        .into()
}

const AGENTS: &str =
    "agents: { count: 3, default_model: evolver, nudges: [the first, the second, the third] }";

#[test]
fn a_swarm_that_is_killed_loses_nothing_that_was_accepted() {
    const NAMES: (&str, &str) = ("swarm/w-1", "swarm-w-1");
    let kills = if aec_xtest::full() { 50 } else { 6 };
    let mut chance = Chance(7);
    let mut killed = 0;
    while killed < kills {
        let world = World::with(many);
        world.swarm(&[AGENTS]);
        let mut over = false;
        while !over {
            let begun = seen(&world, NAMES, false) > 0;
            if !begun && world.directory(NAMES.0).exists() {
                std::fs::remove_dir_all(world.directory(NAMES.0)).unwrap();
            }
            let line = if begun { "swarm resume w-1" } else { "swarm run swarm.yaml" };
            if killed < kills {
                killed += u32::from(kill(&world, NAMES, world.start(line), &mut chance));
            } else {
                world.data(line);
            }
            over = seen(&world, NAMES, false) > 0 && world.state(NAMES.0).ending.is_some();
            everything_accepted_is_there(&world, NAMES.0);
        }
        world.archive(NAMES.0);
        every_trial_has_one_result(&world, NAMES);
        let state = world.state(NAMES.0);
        assert_eq!(world.workspace().here().unwrap().id, state.champion);
        assert_eq!(state.cycles.len(), 9, "every agent has used its cycles");
        assert_eq!(state.candidates[&state.champion].status, aec_evolve::state::Status::Accepted);
    }
    eprintln!("{killed} kills");
}

fn everything_accepted_is_there(world: &World, run: &str) {
    if !world.directory(run).join("events.jsonl").is_file() || seen(world, (run, ""), false) == 0 {
        return;
    }
    let decided = world.events(run, "decided");
    let accepted: Vec<String> = decided
        .iter()
        .filter(|event| event["rejection"].is_null())
        .map(|event| event["candidate"].as_str().unwrap().to_owned())
        .collect();
    if accepted.is_empty() {
        return;
    }
    let history = world.data("evolve history workspaces/w");
    for id in accepted {
        let workspace = world.workspace();
        assert_eq!(workspace.load(id.parse().unwrap()).unwrap().id.to_string(), id);
        assert!(
            history["candidates"].as_array().unwrap().iter().any(|version| version["candidate"] == id),
            "{id}"
        );
    }
}
