//! Budgets are never overdrawn: the sum of records, questions and the models' own counts stays below, and the run says
//! why it stopped and continues with a higher budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aec_judge::verdict::Outcome;
use aec_ledger::record::TrialRecord;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::evolve::voices::{cycle, skill};
use crate::evolve::world::{LESSON, prices, task_number, usual};
use crate::evolve::{Said, World};

/// Dollars and tokens of a run: its trials, including attempts that were cut off, and its questions.
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

/// The tokens that the models themselves count: a quarter of the bytes, as `voices` counts.
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
    // With the same budget it stops again without overspending; with a higher one it finishes.
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

/// A question under way when a process was killed may have been billed: it counts once, however often it is resumed.
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
    // Two of them are known to be lost; the third is noticed when the run is resumed.
    let shown = world.data("evolve report w-1")["cost"]["voices_usd"].as_f64().unwrap();
    assert!((shown - 2.0 * bound).abs() < 1e-9, "{shown} instead of {}", 2.0 * bound);
    // A budget that these have used up does not allow another.
    let refused = world.json(&format!("evolve resume w-1 --max-cost {:.4}", 3.2 * bound));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.envelope()["data"]["reason"].as_str().unwrap().contains("budget"), "{refused:?}");
    assert_eq!(world.voices.asked("evolver").len(), 3);
}

/// Every attempt is paid for, including one that was cut off and repeated: the report shows what the budget counts.
#[test]
fn what_is_reported_is_what_was_paid_for() {
    let silent = Arc::new(AtomicBool::new(true));
    let heard = Arc::clone(&silent);
    let world = World::with(move |body| match body["model"].as_str() {
        Some("solver") if task_number(body).is_multiple_of(2) && heard.load(Ordering::Relaxed) => {
            Said::Silence
        }
        _ => usual(body),
    });
    world.evolution(&[SOLVER]);
    let run = world.start("evolve run -c evolution.yaml");
    world.voices.wait_for("solver", 4);
    run.signal(Signal::KILL);
    run.end();
    // The user stops the next session in the middle of its work, too.
    let run = world.start("evolve resume w-1");
    world.voices.wait_for("solver", 5);
    assert_eq!(world.run("evolve stop w-1 --force").code, Some(0));
    run.end();
    let shown = |data: &Value| data["cost"]["total_usd"].as_f64().unwrap();
    let (dollars, _) = spent(&world, "evolve/w-1", "evolve-w-1");
    assert!(dollars > 0.0, "what was cut off has its price");
    let said = shown(&world.data("evolve report w-1"));
    assert!((said - dollars).abs() < 1e-6, "{said} is shown, {dollars} was spent");
    silent.store(false, Ordering::Relaxed);
    let data = world.data("evolve resume w-1");
    let (dollars, _) = spent(&world, "evolve/w-1", "evolve-w-1");
    assert!((shown(&data) - dollars).abs() < 1e-6, "{} is shown, {dollars} was spent", shown(&data));
    let cancelled = |record: &&TrialRecord| record.outcome == Outcome::Cancelled;
    assert!(world.records("evolve-w-1").values().filter(cancelled).count() >= 2);
}

#[test]
fn what_has_no_price_is_counted_and_said() {
    let world = World::new();
    world.env.write("configs/prices.toml", prices(&[("evolver", 3.0)]));
    let data = world.evolve();
    let trials = world.records("evolve-w-1").len();
    let cost = &data["cost"];
    assert_eq!((&cost["unpriced_trials"], &cost["unpriced_calls"]), (&json!(trials), &json!(0)), "{cost}");
    assert!(cost["total_usd"].as_f64().unwrap() > 0.0);
    let said = format!("{trials} trials without a known price");
    let report = world.run("evolve report w-1 --html report.html").stdout;
    assert!(
        report.contains(&format!(
            "cost ${:.4} and {said}: trials unpriced",
            cost["total_usd"].as_f64().unwrap()
        )),
        "{report}"
    );
    assert!(world.env.read("report.html").contains(&said));
    let history = world.run("evolve history").stdout;
    assert!(history.contains(&format!("and {trials} unpriced")), "{history}");
    assert_eq!(world.data("evolve history")["runs"][0]["unpriced"], trials);
    // The calls of a proposing model count as well.
    world.env.write("configs/prices.toml", prices(&[("solver", 3.0)]));
    let data = world.evolve();
    assert_eq!((&data["cost"]["unpriced_trials"], &data["cost"]["unpriced_calls"]), (&json!(0), &json!(3)));
    let report = world.run("evolve report w-2").stdout;
    assert!(report.contains("and 3 calls without a known price"), "{report}");
}

/// The tasks kept for the end are used only once: a run that cannot pay for them stops until the budget is raised.
#[test]
fn a_budget_that_does_not_reach_the_end_stops_the_run_before_it() {
    let lesson = |body: &Value| match body["model"].as_str() {
        Some("evolver") => skill("units", LESSON).into(),
        _ => usual(body),
    };
    let lines = ["max_cycles: 1", "concurrency: 1", SOLVER, EVOLVER];
    let enough = World::with(lesson);
    enough.env.write("configs/prices.toml", prices(&[("evolver", 1.0), ("solver", 100.0)]));
    enough.evolution(&lines);
    let all = enough.evolve()["cost"]["total_usd"].as_f64().unwrap();
    let last = enough.events("evolve/w-1", "measured").last().unwrap().clone();
    assert_eq!(last["purpose"], "holdout");
    let kept: f64 = last["arms"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|arm| arm["seen"].as_array().unwrap())
        .map(|seen| seen["cost_usd"].as_f64().unwrap())
        .sum();
    let world = World::with(lesson);
    world.env.write("configs/prices.toml", prices(&[("evolver", 1.0), ("solver", 100.0)]));
    world.evolution(&lines);
    // Raises the budget in steps smaller than a trial until the cycle is over: a trial before the holdout is paid for,
    // and the next one, which costs the same, is not.
    let trial = kept / 4.0;
    let mut most = all - kept;
    let mut run = world.json(&format!("evolve run -c evolution.yaml --max-cost {most:.6}"));
    while run.envelope()["data"]["cycles"].as_array().unwrap().is_empty() {
        assert_eq!(run.code, Some(1), "{run:?}");
        most += trial / 2.0;
        run = world.json(&format!("evolve resume w-1 --max-cost {most:.6}"));
    }
    assert_eq!(run.code, Some(1), "{run:?}");
    let data = run.envelope()["data"].clone();
    assert_eq!((&data["state"], &data["accepted"]), (&json!("stopped"), &json!(1)), "{data}");
    assert!(data["reason"].as_str().unwrap().contains("the budget is used up"), "{data}");
    assert_eq!((&data["cycles"].as_array().unwrap().len(), &data["holdout"]), (&1, &Value::Null));
    let data = world.data("evolve resume w-1 --max-cost 50");
    assert_eq!((&data["state"], &data["holdout"]["pairs"]), (&json!("ended"), &json!(2)), "{data}");
}

/// Numbers of the tasks that a run with the usual tasks keeps for the end.
fn kept_for_the_end() -> Vec<u32> {
    let started = World::finished().events("evolve/w-1", "run_started")[0].clone();
    let tasks = started["division"]["holdout"].as_array().unwrap().clone();
    let number =
        |task: &Value| task["task_id"].as_str().unwrap().rsplit('-').next().unwrap().parse().unwrap();
    tasks.iter().map(number).collect()
}

#[test]
fn a_provider_that_fails_at_the_end_does_not_use_up_the_holdout() {
    let kept = kept_for_the_end();
    let fails = Arc::new(AtomicBool::new(true));
    let heard = Arc::clone(&fails);
    let world = World::with(move |body| match body["model"].as_str() {
        Some("solver") if kept.contains(&task_number(body)) && heard.load(Ordering::Relaxed) => {
            Said::Status(401)
        }
        _ => usual(body),
    });
    for line in ["evolve run -c evolution.yaml", "evolve resume w-1"] {
        let run = world.json(line);
        assert_eq!(run.code, Some(1), "{run:?}");
        let data = run.envelope()["data"].clone();
        assert_eq!((&data["state"], &data["holdout"]), (&json!("stopped"), &Value::Null), "{data}");
        assert!(
            data["reason"]
                .as_str()
                .unwrap()
                .contains("most trials of the holdout have no reward: infra_fault"),
            "{data}"
        );
    }
    fails.store(false, Ordering::Relaxed);
    let data = world.data("evolve resume w-1");
    let holdout = &data["holdout"];
    assert_eq!(
        (&data["state"], &holdout["pairs"], &holdout["left_out"]),
        (&json!("ended"), &json!(2), &json!(0))
    );
}

#[test]
fn tasks_of_the_end_that_do_not_count_are_told() {
    let broken = kept_for_the_end()[0];
    let world = World::with(move |body| match body["model"].as_str() {
        Some("solver") if task_number(body) == broken => Said::Status(401),
        _ => usual(body),
    });
    let run = world.run("evolve run -c evolution.yaml");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("over 1 task; 1 task left out, without a reward on both sides"), "{run:?}");
    assert!(!run.stderr.contains("-0.000") && !run.stdout.contains("-0.000"), "{run:?}");
}
