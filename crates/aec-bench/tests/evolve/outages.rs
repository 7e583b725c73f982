//! What stops a run, what it then reports, and how it continues: models that fail, budgets that are used up, workspaces
//! that are gone or edited.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use aec_xtest::Run;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::evolve::swarms::{AGENTS, different};
use crate::evolve::voices::cycle;
use crate::evolve::world::{WRONG, prices, usual};
use crate::evolve::{Said, World};

/// Models of which one fails until the test repairs it.
fn failing(model: &'static str, answer: fn(&Value) -> Said) -> (World, Arc<AtomicBool>) {
    let broken = Arc::new(AtomicBool::new(true));
    let shared = Arc::clone(&broken);
    let world = World::with(move |body| {
        if body["model"] == model && shared.load(Ordering::Relaxed) {
            Said::Status(401)
        } else {
            answer(body)
        }
    });
    (world, broken)
}

/// The problem with this id that a run reported.
fn told(run: &Run, id: &str) -> Value {
    let errors = run.envelope()["errors"].as_array().unwrap().clone();
    errors.into_iter().find(|error| error["id"] == id).unwrap_or_else(|| panic!("{id}: {run:?}"))
}

const SHORT: &str = "evolution: { batch_size: 2, max_cycles: 1, error_rate: 0.5, max_tasks: 12 }";
const SOLVER: &str = "solver: { name: s, harness: direct, model: solver, parameters: { max_tokens: 60 } }";

#[test]
fn a_swarm_whose_agents_all_fail_stops_and_goes_on_when_the_fault_has_passed() {
    let (world, broken) = failing("evolver", different);
    world.swarm(&[AGENTS, SHORT]);
    let run = world.json("swarm run swarm.yaml");
    assert_eq!(run.code, Some(1), "{run:?}");
    let data = run.envelope()["data"].clone();
    assert_eq!(data["state"], "stopped", "{run:?}");
    assert!(
        data["reason"].as_str().unwrap().starts_with("every agent was retired: the evolver failed"),
        "{data}"
    );
    assert!(told(&run, "X050")["fix"].as_str().unwrap().contains("models check"), "{run:?}");
    assert!(told(&run, "X060")["fix"].as_str().unwrap().contains("swarm resume w-1"), "{run:?}");
    let failed = world.events("swarm/w-1", "agent_failed");
    assert_eq!(failed.len(), 9, "three failures of each of three agents: {failed:?}");
    broken.store(false, Ordering::Relaxed);
    let data = world.data("swarm resume w-1");
    assert_eq!((&data["state"], &data["accepted"]), (&json!("ended"), &json!(1)));
    assert!(data["agents"].as_array().unwrap().iter().all(|agent| agent["retired"].is_null()), "{data}");
    world.archive("swarm/w-1");
}

/// Phases of a swarm, in order.
fn phases(world: &World) -> Vec<String> {
    let changed = world.events("swarm/w-1", "phase_changed");
    changed.iter().map(|event| event["phase"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_swarm_without_money_stops_and_goes_on_with_more() {
    let world = World::with(different);
    // A question may cost half a dollar: the budget covers the first one, but not a later one.
    world.env.write("configs/prices.toml", prices(&[("evolver", 30.0), ("solver", 10.0)]));
    world.swarm(&[AGENTS, SOLVER, SHORT, "budget: { max_cost_usd: 0.56, eval_budget_usd: 0.2 }"]);
    let run = world.json("swarm run swarm.yaml");
    assert_eq!(run.code, Some(1), "{run:?}");
    let data = run.envelope()["data"].clone();
    assert_eq!((&data["state"], &data["phase"]), (&json!("stopped"), &json!("exhausted")), "{run:?}");
    assert!(data["reason"].as_str().unwrap().contains("the budget is used up"), "{data}");
    assert!(told(&run, "X060")["fix"].as_str().unwrap().contains("--max-cost"), "{run:?}");
    assert_eq!(world.json("swarm resume w-1").code, Some(1), "without more it stops again");
    let data = world.data("swarm resume w-1 --max-cost 20");
    assert_eq!((&data["state"], &data["reason"]), (&json!("ended"), &json!("all cycles were used")));
    assert_eq!((&data["phase"], &data["accepted"]), (&json!("exploring"), &json!(1)));
    assert_eq!(data["holdout"]["pairs"], 2, "the tasks kept for the end are used at the real end: {data}");
    let phases = phases(&world);
    assert_eq!(phases.first().map(String::as_str), Some("exhausted"), "{phases:?}");
    assert_eq!(phases.last().map(String::as_str), Some("exploring"), "{phases:?}");
    world.archive("swarm/w-1");
}

#[test]
fn a_budget_that_a_session_was_given_holds_for_the_next() {
    let (world, broken) = failing("evolver", usual);
    // The bound of a solver's call fits once, and no more after some calls.
    world.evolution(&["budget: { max_cost_usd: 100 }", SOLVER]);
    world.env.write("configs/prices.toml", prices(&[("evolver", 30.0), ("solver", 100_000.0)]));
    let run = world.json("evolve run -c evolution.yaml");
    assert!(run.envelope()["data"]["reason"].as_str().unwrap().contains("the budget is used up"), "{run:?}");
    let run = world.json("evolve resume w-1 --max-cost 50000");
    assert!(run.envelope()["data"]["reason"].as_str().unwrap().contains("the evolver failed"), "{run:?}");
    assert_eq!(run.envelope()["data"]["settings"]["max_cost_usd"], 50_000.0);
    broken.store(false, Ordering::Relaxed);
    assert_eq!(world.data("evolve resume w-1")["state"], "ended", "nothing but its id is needed");
}

#[test]
fn a_swarm_that_has_used_its_budget_as_planned_goes_on_while_its_holdout_is_unseen() {
    let world = World::with(|body| if body["model"] == "solver" { WRONG.into() } else { different(body) });
    world.env.write("configs/prices.toml", prices(&[("evolver", 30.0), ("solver", 10.0)]));
    world.swarm(&[
        "agents: { count: 1, default_model: evolver }",
        SOLVER,
        "budget: { max_cost_usd: 2.0, wind_down_threshold: 0.005, final_threshold: 0.01 }",
        "evolution: { batch_size: 2, max_cycles: 2, error_rate: 0.5, max_tasks: 12 }",
    ]);
    let data = world.data("swarm run swarm.yaml");
    assert_eq!((&data["state"], &data["reason"]), (&json!("ended"), &json!("the budget is used up")));
    assert_eq!(data["cycles"].as_array().unwrap().len(), 1);
    world.refuses("swarm resume w-1", (3, "X037"), &["the budget is used up", "--max-cost above"]);
    let data = world.data("swarm resume w-1 --max-cost 200");
    assert_eq!((&data["state"], &data["reason"]), (&json!("ended"), &json!("all cycles were used")));
    assert_eq!(data["cycles"].as_array().unwrap().len(), 2);
    assert_eq!(phases(&world), ["final", "exploring"]);
    world.archive("swarm/w-1");
}

#[test]
fn why_a_run_stopped_is_told_with_its_id_and_what_to_do() {
    for (model, id) in [("evolver", "X050"), ("solver", "X051")] {
        let (world, _) = failing(model, usual);
        let run = world.json("evolve run -c evolution.yaml");
        assert_eq!(run.code, Some(1), "{run:?}");
        assert!(!told(&run, id)["fix"].as_str().unwrap().is_empty());
        assert!(told(&run, "X060")["fix"].as_str().unwrap().contains("evolve resume w-1"));
    }
}

/// The usual models; when the second candidate is requested, the test edits a file of the workspace.
fn edited(name: &'static str, text: &'static str) -> World {
    let place: Arc<OnceLock<PathBuf>> = Arc::default();
    let shared = Arc::clone(&place);
    let world = World::with(move |body| {
        if body["model"] == "evolver" && cycle(body) == 2 {
            std::fs::write(shared.get().unwrap().join(name), text).unwrap();
        }
        usual(body)
    });
    place.set(world.env.path("workspaces/w")).unwrap();
    world
}

#[test]
fn a_file_that_stops_a_run_is_named() {
    let world = edited("manifest.yaml", "name: [\n");
    let run = world.json("evolve run -c evolution.yaml");
    assert_eq!(run.code, Some(1), "{run:?}");
    let reason = run.envelope()["data"]["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("workspaces/w/manifest.yaml"), "{reason}");
    let errors = run.envelope()["errors"].as_array().unwrap().clone();
    assert!(
        errors.iter().any(|error| error["file"].as_str().is_some_and(|file| file.ends_with("manifest.yaml")))
    );
}

#[test]
fn an_edit_by_hand_that_hides_the_best_is_told() {
    let world = edited("prompts/system.md", "Somebody wrote this by hand.\n");
    let run = world.json("evolve run -c evolution.yaml");
    assert_eq!((run.code, &run.envelope()["data"]["accepted"]), (Some(0), &json!(1)), "{run:?}");
    let best = run.envelope()["data"]["best"].as_str().unwrap().to_owned();
    let hidden = told(&run, "X019");
    let fix = hidden["fix"].as_str().unwrap();
    assert!(fix.contains(&format!("evolve rollback workspaces/w {best}")), "{hidden}");
    assert!(world.env.read("workspaces/w/prompts/system.md").contains("by hand"), "nothing is overwritten");
    world.data(&format!("evolve rollback workspaces/w {best}"));
    assert!(world.workspace().here().unwrap().system_prompt().contains(crate::evolve::world::LESSON));
}

#[test]
fn a_resume_that_cannot_begin_leaves_the_log_as_it_was() {
    let (world, broken) = failing("evolver", usual);
    assert_eq!(world.json("evolve run -c evolution.yaml").code, Some(1));
    broken.store(false, Ordering::Relaxed);
    let (here, elsewhere) = (world.env.path("workspaces/w"), world.env.path("workspaces/away"));
    std::fs::rename(&here, &elsewhere).unwrap();
    world.refuses("evolve resume w-1", (3, "X011"), &["not a workspace"]);
    std::fs::rename(&elsewhere, &here).unwrap();
    let endpoints = world.env.read("configs/endpoints.toml");
    world.env.write("configs/endpoints.toml", "");
    let log = world.env.read("artefacts/feedback/evolve/w-1/events.jsonl");
    assert_ne!(world.json("evolve resume w-1").code, Some(0));
    assert_eq!(world.env.read("artefacts/feedback/evolve/w-1/events.jsonl"), log);
    let reason = world.data("evolve report w-1")["reason"].clone();
    assert!(reason.as_str().unwrap().contains("the evolver failed"), "{reason}");
    world.env.write("configs/endpoints.toml", endpoints);
    assert_eq!(world.data("evolve resume w-1")["state"], "ended");
}

#[test]
fn nobody_writes_to_the_log_of_a_live_run_even_without_its_lock() {
    let world = World::with(|body| if body["model"] == "evolver" { Said::Silence } else { usual(body) });
    let run = world.start("evolve run -c evolution.yaml");
    world.voices.wait_for("evolver", 1);
    let log = "artefacts/feedback/evolve/w-1/events.jsonl";
    std::fs::remove_file(world.directory("evolve/w-1").join("lock")).unwrap();
    let before = world.env.read(log);
    assert_eq!(world.refusal("evolve resume w-1", 3)["id"], "X012");
    assert_eq!(world.env.read(log), before);
    run.signal(Signal::KILL);
    run.end();
}

#[test]
fn a_run_records_where_it_began_to() {
    let (world, broken) = failing("evolver", usual);
    assert_eq!(world.json("evolve run -c evolution.yaml --ledger-root alt").code, Some(1));
    broken.store(false, Ordering::Relaxed);
    world.refuses(
        "evolve resume w-1 --ledger-root other",
        (3, "X039"),
        &["began with alt", "leave --ledger-root out"],
    );
    assert_eq!(world.data("evolve resume w-1")["state"], "ended");
    let is_there = |ledger: &str| Path::new(&world.env.path(ledger)).join("evolve-w-1").exists();
    assert_eq!((is_there("alt"), is_there("artefacts/ledger"), is_there("other")), (true, false, false));
}
