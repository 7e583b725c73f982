//! Many agents at once: what each has alone, what they share, and how they end.

use aec_xtest::files::names_in;
use serde_json::{Value, json};

use crate::evolve::voices::{cycle, said_by, skill};
use crate::evolve::world::{LESSON, prices, usual};
use crate::evolve::{Said, World};

/// Agents with different ideas, depending on what they are asked to look at.
pub(crate) fn different(body: &Value) -> Said {
    if body["model"] == "solver" {
        return usual(body);
    }
    let (brief, cycle) = (said_by(body, "user"), cycle(body));
    let who = ["first", "second", "third"]
        .into_iter()
        .find(|who| brief.contains(&format!("particular: the {who}")));
    let who = who.unwrap_or("nobody");
    if (who, cycle) == ("second", 1) {
        return skill("units", LESSON).into();
    }
    skill(&format!("{who}-{cycle}"), &format!("The {who} idea of round {cycle} says nothing of any use."))
        .into()
}

pub(crate) const AGENTS: &str =
    "agents: { count: 3, default_model: evolver, nudges: [the first, the second, the third] }";

#[test]
fn agents_share_one_archive_and_go_on_from_what_others_found() {
    let world = World::swarmed();
    let data = world.data("swarm status w-1");
    assert_eq!((&data["state"], &data["kind"]), (&json!("ended"), &json!("swarm")));
    let state = world.state("swarm/w-1");
    assert_eq!(state.candidates[&state.champion].agent, "agent-1");
    // Later cycles of the others begin with the improvement that the second one found.
    let started = world.events("swarm/w-1", "cycle_started");
    let champion = state.champion.to_string();
    assert!(
        started.iter().any(|event| event["agent"] != "agent-1" && event["parent"] == champion),
        "no agent took what another found"
    );
    // Every message to an agent reached its own model and no other.
    for (who, agent) in [("first", "agent-0"), ("second", "agent-1"), ("third", "agent-2")] {
        let asked = world.voices.asked("evolver");
        let told = asked
            .iter()
            .filter(|body| said_by(body, "user").contains(&format!("particular: the {who}")))
            .count();
        let calls = world.events("swarm/w-1", "asked").iter().filter(|event| event["agent"] == agent).count();
        assert_eq!(told, calls, "{who}");
    }
    world.archive("swarm/w-1");
    assert!(world.workspace().here().unwrap().system_prompt().contains(LESSON));
    assert!(data["holdout"]["difference"].as_f64().unwrap() > 0.4, "{data}");
}

#[test]
fn notes_of_one_agent_reach_the_others() {
    let world = World::swarmed();
    let briefs: Vec<String> =
        world.voices.asked("evolver").iter().map(|body| said_by(body, "user")).collect();
    assert!(
        briefs
            .iter()
            .any(|brief| brief.contains("## Notes of other agents") && brief.contains("as the test says"))
    );
}

#[test]
fn models_of_agents_are_their_own() {
    let world = World::with(|body| match body["model"].as_str() {
        Some("solver") => usual(body),
        Some(model) => skill(
            &format!("{model}-{}", cycle(body)),
            &format!("{model} says nothing of any use in round {}.", cycle(body)),
        )
        .into(),
        None => Said::Status(400),
    });
    world.endpoints(&["evolver", "solver", "second"]);
    world.env.write("configs/prices.toml", prices(&[("evolver", 1.0), ("solver", 1.0), ("second", 1.0)]));
    world.swarm(&[
        "agents: { count: 2, default_model: evolver, models: [second] }",
        "evolution: { batch_size: 2, max_cycles: 1, error_rate: 0.5, max_tasks: 12 }",
    ]);
    world.data("swarm run swarm.yaml");
    let model = |agent: &str| {
        let asked = world.events("swarm/w-1", "asked");
        asked.iter().find(|event| event["agent"] == agent).unwrap()["model"].clone()
    };
    assert_eq!((model("agent-0"), model("agent-1")), (json!("second"), json!("evolver")));
}

#[test]
fn one_agent_is_stopped_and_the_others_go_on() {
    let world = World::with(|body| {
        let hangs = body["model"] == "evolver" && said_by(body, "user").contains("particular: the second");
        if hangs { Said::Silence } else { different(body) }
    });
    world.swarm(&[AGENTS]);
    let mut run = world.start("swarm run swarm.yaml");
    // All three have asked; the second one gets no answer.
    world.voices.wait_for("evolver", 3);
    let unknown = world.refusal("swarm stop w-1 --agent agent-9", 3);
    assert_eq!(unknown["id"], "X036");
    assert!(unknown["fix"].as_str().unwrap().contains("agent-1"), "{unknown}");
    let asked = world.data("swarm stop w-1 --agent agent-1");
    assert_eq!((&asked["running"], &asked["agent"]), (&json!(true), &json!("agent-1")));
    run.wait_for("agent-1: retired: the user stopped it");
    let (code, _, said) = run.end();
    assert_eq!(code, Some(0), "{said}");
    let state = world.state("swarm/w-1");
    let retired: Vec<&String> =
        state.lanes.iter().filter(|(_, lane)| lane.retired.is_some()).map(|(name, _)| name).collect();
    assert_eq!(retired, ["agent-1"]);
    assert_eq!(
        (state.lanes["agent-0"].cycle, state.lanes["agent-2"].cycle),
        (3, 3),
        "the others came to their end"
    );
    let data = world.data("swarm status w-1");
    assert_eq!(data["agents"][1]["retired"], "the user stopped it");
    assert_eq!(world.data("swarm stop w-1")["running"], false, "there is nothing to stop");
}

#[test]
fn an_agent_that_fails_too_often_is_retired() {
    let world = World::with(|body| {
        let fails = body["model"] == "evolver" && said_by(body, "user").contains("particular: the second");
        if fails { Said::Status(401) } else { different(body) }
    });
    let agents = AGENTS.replace("count: 3", "count: 3, max_restarts: 2");
    world.swarm(&[&agents, "evolution: { batch_size: 2, max_cycles: 1, error_rate: 0.5, max_tasks: 12 }"]);
    let run = world.json("swarm run swarm.yaml");
    assert_eq!(run.envelope()["data"]["state"], "ended", "{run:?}");
    let failed = world.events("swarm/w-1", "agent_failed");
    assert_eq!(failed.iter().map(|event| event["failures"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2]);
    let retired = world.events("swarm/w-1", "agent_retired");
    assert_eq!((retired.len(), &retired[0]["agent"]), (1, &json!("agent-1")));
    assert!(retired[0]["reason"].as_str().unwrap().contains("2 times in a row"), "{retired:?}");
}

#[test]
fn agents_without_progress_change_their_ways() {
    let world = World::with(|body| match body["model"].as_str() {
        Some("solver") => usual(body),
        // Always the same proposal: nothing is new after the first time.
        _ => skill("same", "This says nothing of any use, ever.").into(),
    });
    world.swarm(&[
        "agents: { count: 1, default_model: evolver }",
        "heartbeat: { pivot_after: 2 }",
        "evolution: { batch_size: 2, max_cycles: 4, error_rate: 0.5, max_tasks: 16 }",
    ]);
    world.data("swarm run swarm.yaml");
    let pivoted = world.events("swarm/w-1", "pivoted");
    assert!(!pivoted.is_empty());
    assert_eq!(pivoted[0]["way"], "crossover");
    world.swarm(&[
        "agents: { count: 1, default_model: evolver }",
        "heartbeat: { pivot_after: 9 }",
        "evolution: { batch_size: 2, max_cycles: 4, error_rate: 0.5, max_tasks: 16 }",
    ]);
    world.data("swarm run swarm.yaml");
    assert_eq!(world.events("swarm/w-2", "pivoted").len(), 0);
}

#[test]
fn the_money_has_phases_and_is_never_overdrawn() {
    let world = World::with(different);
    world.env.write("configs/prices.toml", prices(&[("evolver", 30.0), ("solver", 10.0)]));
    let solver = "solver: { name: s, harness: direct, model: solver, parameters: { max_tokens: 60 } }";
    world.swarm(&[
        AGENTS,
        solver,
        "budget: { max_cost_usd: 1.5, wind_down_threshold: 0.3, final_threshold: 0.5 }",
        "evolution: { batch_size: 2, max_cycles: 9, error_rate: 0.5, max_tasks: 20 }",
    ]);
    let run = world.json("swarm run swarm.yaml");
    let data = run.envelope()["data"].clone();
    assert_eq!(
        (&data["state"], &data["reason"]),
        (&json!("ended"), &json!("the budget is used up")),
        "{run:?}"
    );
    let phases: Vec<Value> =
        world.events("swarm/w-1", "phase_changed").iter().map(|event| event["phase"].clone()).collect();
    assert_eq!(phases[..2], [json!("winding_down"), json!("final")], "{phases:?}");
    // All planned cycles are done and the tasks kept for the end are used, so the swarm is over.
    assert_eq!(data["holdout"]["pairs"], 2, "{data}");
    world.refuses("swarm resume w-1 --max-cost 50", (3, "X037"), &["kept for the end", "begin a new run"]);
    // The same is true for a swarm that was killed right after those tasks were used.
    let log = world.directory("swarm/w-1").join("events.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    let used = text.find("\"purpose\":\"holdout\"").unwrap();
    let cut = used + text[used..].find('\n').unwrap() + 1;
    std::fs::write(&log, &text[..cut]).unwrap();
    let begun = world.events("swarm/w-1", "cycle_started").len();
    let data = world.data("swarm resume w-1 --max-cost 50");
    assert_eq!((&data["state"], &data["reason"]), (&json!("ended"), &json!("the budget is used up")));
    assert_eq!(world.events("swarm/w-1", "cycle_started").len(), begun);
    // After the final threshold no cycle begins.
    let after: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .skip_while(|line| line["phase"] != "final")
        .filter(|line| line["event"] == "cycle_started")
        .collect();
    assert_eq!(after.len(), 0);
    let trials: f64 =
        world.records("swarm-w-1").values().map(|record| record.cost.estimated_cost_usd.unwrap()).sum();
    let questions: f64 =
        world.events("swarm/w-1", "answered").iter().map(|event| event["cost_usd"].as_f64().unwrap()).sum();
    assert!(trials + questions <= 1.5, "{trials} {questions}");
    // When it winds down, agents work only on the best candidate, with at most one change.
    let careful = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .skip_while(|line| line["phase"] != "winding_down")
        .filter(|line| line["event"] == "cycle_started");
    for started in careful {
        assert_eq!((&started["scope"], &started["way"]), (&json!("minimal"), &json!("mutation")));
    }
}

#[test]
fn what_trials_may_take_is_a_part_of_the_whole() {
    let world = World::with(different);
    world.env.write("configs/prices.toml", prices(&[("evolver", 1.0), ("solver", 10.0)]));
    let solver = "solver: { name: s, harness: direct, model: solver, parameters: { max_tokens: 60 } }";
    world.swarm(&[AGENTS, solver, "budget: { max_cost_usd: 20.0, eval_budget_usd: 0.1 }"]);
    let run = world.json("swarm run swarm.yaml");
    let data = run.envelope()["data"].clone();
    assert_eq!((run.code, &data["state"]), (Some(1), &json!("stopped")), "{run:?}");
    assert!(data["reason"].as_str().unwrap().contains("the budget is used up"), "{data}");
    let trials: f64 =
        world.records("swarm-w-1").values().map(|record| record.cost.estimated_cost_usd.unwrap()).sum();
    assert!(trials > 0.0 && trials <= 0.1, "{trials}");
}

#[test]
fn every_agent_has_a_tree_of_its_own() {
    let world = World::with(different);
    world.swarm(&[AGENTS, "evolution: { batch_size: 2, max_cycles: 1, error_rate: 0.5, max_tasks: 12 }"]);
    world.data("swarm run swarm.yaml");
    let trees = world.directory("swarm/w-1").join("agents");
    assert_eq!(names_in(&trees), ["agent-0", "agent-1", "agent-2"]);
    assert!(trees.join("agent-1/skills/units/SKILL.md").is_file());
    assert!(!trees.join("agent-0/skills/units/SKILL.md").exists());
}
