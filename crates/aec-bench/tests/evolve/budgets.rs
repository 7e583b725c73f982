//! Budgets are never overdrawn: what records, questions and the models themselves add up to stays below, and the run
//! says why it stopped and goes on with more.

use rustix::process::Signal;
use serde_json::Value;

use crate::voices::cycle;
use crate::world::{prices, usual};
use crate::{Said, World};

/// Dollars and tokens of a run: its trials, attempts that were cut off included, and its questions.
fn spent(world: &World, run: &str, experiment: &str) -> (f64, u64) {
    let (mut dollars, mut tokens) = (0.0, 0);
    for record in world.records(experiment).values() {
        let cost = &record.cost;
        dollars += cost.estimated_cost_usd.unwrap();
        tokens += cost.tokens_in.unwrap_or(0) + cost.tokens_out.unwrap_or(0) + cost.unconfirmed_tokens;
    }
    for event in world.events(run, "answered") {
        dollars += event["cost_usd"].as_f64().unwrap();
        tokens += event["tokens"].as_u64().unwrap();
    }
    (dollars, tokens)
}

/// What the models themselves say that they took, in tokens: a quarter of the bytes, as `voices` counts.
fn billed(world: &World, model: &str, price: f64) -> f64 {
    let tokens = |body: &Value| body["messages"].to_string().len().div_ceil(4);
    let all: usize = world.voices.asked(model).iter().map(tokens).sum();
    f64::from(u32::try_from(all).unwrap()) * price / 1e6
}

const SOLVER: &str = "solver: { name: s, harness: direct, model: solver, parameters: { max_tokens: 60 } }";
const EVOLVER: &str = "models: { evolver: evolver, evolver_max_tokens: 300 }";

#[test]
fn a_budget_in_dollars_is_never_overdrawn() {
    let world = World::new();
    // A trial takes about 0.2 cents, a question about 3.
    world.env.write("configs/prices.toml", prices(&[("evolver", 30.0), ("solver", 10.0)]));
    world.evolution(&["budget: { max_cost_usd: 0.12 }", SOLVER, EVOLVER]);
    let run = world.json("evolve run -c evolution.yaml");
    assert_eq!(run.code, Some(1), "{run:?}");
    let data = run.envelope()["data"].clone();
    assert_eq!(data["state"], "stopped");
    assert!(data["reason"].as_str().unwrap().contains("the budget is used up"), "{data}");
    let problem = run.envelope()["errors"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(problem["id"], "X060");
    assert!(problem["fix"].as_str().unwrap().contains("evolve resume w-1"), "{problem}");
    let (dollars, _) = spent(&world, "evolve/w-1", "evolve-w-1");
    assert!(dollars > 0.0 && dollars <= 0.12, "{dollars}");
    assert!(billed(&world, "solver", 10.0) + billed(&world, "evolver", 30.0) <= 0.12);
    // Without more it stops again, without spending what is not there; with more it comes to its end.
    let again = world.json("evolve resume w-1");
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(spent(&world, "evolve/w-1", "evolve-w-1").0 <= 0.12);
    let data = world.data("evolve resume w-1 --max-cost 5");
    assert_eq!((&data["state"], &data["accepted"]), (&Value::from("ended"), &Value::from(1)));
    let (dollars, _) = spent(&world, "evolve/w-1", "evolve-w-1");
    assert!(dollars > 0.12 && dollars <= 5.0, "{dollars}");
    let shown = data["cost"]["total_usd"].as_f64().unwrap();
    assert!((shown - dollars).abs() < 1e-6, "{shown} is shown, {dollars} was spent");
}

#[test]
fn a_budget_in_tokens_is_never_overdrawn() {
    let world = World::new();
    world.evolution(&["budget: { max_tokens: 15000 }", SOLVER, EVOLVER]);
    let run = world.json("evolve run -c evolution.yaml");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.envelope()["data"]["reason"].as_str().unwrap().contains("the budget is used up"), "{run:?}");
    let (_, tokens) = spent(&world, "evolve/w-1", "evolve-w-1");
    assert!(tokens > 1_000 && tokens <= 15_000, "{tokens}");
    let data = world.data("evolve resume w-1 --max-total-tokens 5000000");
    assert_eq!(data["state"], "ended");
    let (_, all) = spent(&world, "evolve/w-1", "evolve-w-1");
    assert!(all > tokens && data["cost"]["tokens"] == all, "{all}: {}", data["cost"]);
}

#[test]
fn a_model_without_a_price_is_no_way_around_a_budget() {
    let world = World::new();
    world.env.write("configs/prices.toml", "schema_version = 1\n");
    world.evolution(&["budget: { max_cost_usd: 5.0 }", SOLVER]);
    let run = world.json("evolve run -c evolution.yaml");
    assert_ne!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("price"), "{run:?}");
    assert_eq!(
        world.voices.asked("evolver").len() + world.voices.asked("solver").len(),
        0,
        "nothing was asked"
    );
}

/// What was asked when a process was killed may have been billed: it counts, once, however often the run is resumed.
#[test]
fn a_question_that_was_cut_off_stays_paid_for() {
    let world = World::with(|body| match body["model"].as_str() {
        Some("evolver") if cycle(body) == 1 => Said::Silence,
        _ => usual(body),
    });
    world.evolution(&["max_cycles: 1", SOLVER]);
    let cut = |line: &str, times: usize| {
        let run = world.start(line);
        world.voices.wait_for("evolver", times);
        run.signal(Signal::KILL);
        run.end();
    };
    cut("evolve run -c evolution.yaml", 1);
    let bound = world.events("evolve/w-1", "asked")[0]["at_most_usd"].as_f64().unwrap();
    assert!(bound > 0.0);
    cut("evolve resume w-1", 2);
    cut("evolve resume w-1", 3);
    let asked = world.events("evolve/w-1", "asked");
    assert_eq!((asked.len(), world.events("evolve/w-1", "answered").len()), (3, 0));
    // Two of them are known to be lost; the third is found out when somebody goes on.
    let shown = world.data("evolve report w-1")["cost"]["voices_usd"].as_f64().unwrap();
    assert!((shown - 2.0 * bound).abs() < 1e-9, "{shown} instead of {}", 2.0 * bound);
    // A budget that these have used up does not allow another.
    let refused = world.json(&format!("evolve resume w-1 --max-cost {:.4}", 3.2 * bound));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.envelope()["data"]["reason"].as_str().unwrap().contains("budget"), "{refused:?}");
    assert_eq!(world.voices.asked("evolver").len(), 3);
}
