//! Defects of another program that this one must not have: a test for each row of its lists, E1 to E18 of evolution and
//! S1 to S10 of swarms.

use std::collections::BTreeSet;
use std::sync::Arc;

use aec_evolve::event::{Event, Purpose};
use aec_evolve::state::State;
use aec_xtest::files::names_in;
use serde_json::{Value, json};

use crate::evolve::swarms::{AGENTS, different};
use crate::evolve::voices::{actions, cycle, said_by, skill};
use crate::evolve::world::{LESSON, RIGHT, TASKS, WRONG, prices, solved, task_number, usual};
use crate::evolve::{Said, Voices, World};

/// A solver that is good from the start, and that a change makes worse.
fn spoilt(body: &Value) -> Said {
    match body["model"].as_str() {
        Some("solver") => solved(!said_by(body, "system").contains("Round early")),
        _ => match cycle(body) {
            1 => skill("rounding", "Round early and round often, always.").into(),
            other => {
                skill(&format!("idea-{other}"), &format!("Idea number {other} says nothing of any use."))
                    .into()
            }
        },
    }
}

#[test]
fn e1_a_child_is_judged_by_its_own_score() {
    let world = World::with(spoilt);
    world.evolution(&["max_cycles: 1"]);
    world.evolve();
    let entries = world.entries("evolve/w-1");
    let place =
        |wanted: &dyn Fn(&Event) -> bool| entries.iter().position(|entry| wanted(&entry.event)).unwrap();
    let proposed = place(&|event| matches!(event, Event::Proposed(_)));
    let measured = place(&|event| matches!(event, Event::Measured(seen) if seen.purpose == Purpose::Screen));
    let decided = place(&|event| matches!(event, Event::Decided(_)));
    assert!(proposed < measured && measured < decided, "a child is measured before anything is decided");
    let decided = &world.events("evolve/w-1", "decided")[0];
    assert_eq!(decided["rejection"], "worse_than_parent");
    assert_eq!(decided["standing"]["difference"], -1.0, "its own rewards count, not those of its parent");
    assert_eq!(world.workspace().here().unwrap().id, world.state("evolve/w-1").started.baseline);
}

#[test]
fn e2_the_best_is_the_best_by_measured_score() {
    let world = World::finished();
    let state = world.state("evolve/w-1");
    assert_eq!(
        state.cycles.last().map(|cycle| cycle.accepted),
        Some(false),
        "the last candidate was not accepted"
    );
    assert!(
        state.candidates[&state.champion].edits.iter().any(|edit| edit.skill.as_deref() == Some("units"))
    );
    let mean = |id| state.mean(id).unwrap();
    assert!(mean(state.champion) > mean(state.started.baseline));
    // The first candidate was useless, and was not accepted merely because of a short window.
    assert_eq!(world.data("evolve report w-1")["cycles"][0]["accepted"], false);
}

#[test]
fn e3_a_worse_child_is_not_taken_up_again() {
    let world = World::with(spoilt);
    world.evolve();
    let state = world.state("evolve/w-1");
    let bad = state.cycles[0].candidate.unwrap();
    for cycle in &state.cycles[1..] {
        assert_eq!(cycle.parent, state.started.baseline, "cycles go on from what is best");
        assert_ne!(cycle.parent, bad);
    }
    assert!(!world.env.path("workspaces/w/skills/rounding").exists());
    // The same idea again is not measured again.
    let same = World::with(|body| match body["model"].as_str() {
        Some("solver") => solved(task_number(body).is_multiple_of(2)),
        _ => skill("same", "This says nothing of any use, ever.").into(),
    });
    same.evolution(&["max_cycles: 2"]);
    let data = same.evolve();
    assert!(data["cycles"][1]["outcome"].as_str().unwrap().contains("was tried before"), "{data}");
}

#[test]
fn e4_after_a_rejection_the_next_candidate_has_its_chance() {
    // Five failures in a row, with a window of two: the search is widened, and the improvement is still accepted.
    let world = World::with(|body| match body["model"].as_str() {
        Some("solver") => usual(body),
        _ if cycle(body) == 4 => skill("units", LESSON).into(),
        _ => skill(&format!("idea-{}", cycle(body)), &format!("Idea number {} is of no use.", cycle(body)))
            .into(),
    });
    world.evolution(&["stagnation_window: 2", "max_cycles: 5"]);
    let data = world.evolve();
    assert_eq!(world.events("evolve/w-1", "widened").len(), 1);
    assert_eq!((&data["accepted"], &data["cycles"][3]["accepted"]), (&json!(1), &json!(true)), "{data}");
    assert_eq!(world.state("evolve/w-1").lanes["evolve"].dry, 1, "an acceptance begins the count anew");
}

#[test]
fn e5_a_rollback_takes_away_skills_that_came_later() {
    let world = World::finished();
    assert!(world.env.path("workspaces/w/skills/units/SKILL.md").is_file());
    let back = world.run("evolve rollback workspaces/w evolve-w-1-0");
    assert_eq!(back.code, Some(0), "{back:?}");
    assert_eq!(world.in_workspace().into_keys().collect::<Vec<_>>(), ["manifest.yaml", "prompts/system.md"]);
    assert_eq!(world.workspace().here().unwrap().id, world.state("evolve/w-1").started.baseline);
    assert_eq!(world.git("status --porcelain"), "");
}

#[test]
fn e6_the_scope_follows_from_the_score_and_is_kept() {
    let many: Vec<Value> = (0..9)
        .map(|at| json!({ "type": "write_skill", "name": format!("s{at}"), "description": "d", "body": format!("Rule number {at} of nine rules.") }))
        .collect();
    let many = actions(&Value::from(many));
    for (right, scope, count) in [(TASKS, "minimal", 1), (0, "comprehensive", 5)] {
        let many = many.clone();
        let world = World::with(move |body| match body["model"].as_str() {
            Some("solver") => solved((task_number(body) as usize) < right),
            _ => many.clone().into(),
        });
        // The value of a candidate is known after its first cycle.
        world.evolution(&["max_cycles: 2"]);
        world.evolve();
        let started = &world.events("evolve/w-1", "cycle_started")[1];
        assert_eq!(started["scope"], scope);
        let edits = |event: &Value| event["edits"].as_array().map_or(0, Vec::len);
        let proposed = world.events("evolve/w-1", "proposed");
        assert!(proposed.iter().any(|event| edits(event) == count), "{scope}: {proposed:?}");
        let brief = said_by(&world.voices.asked("evolver")[1], "user");
        assert!(brief.contains(&format!("at most {count} change")), "the model is told");
    }
}

#[test]
fn e7_the_archive_holds_behaviour_and_scores_of_the_candidates_themselves() {
    let long = "Write down what is given, then what is asked for, then the formula. ".repeat(20);
    let world = World::with(move |body| match body["model"].as_str() {
        Some("solver") => solved(task_number(body).is_multiple_of(2)),
        _ if cycle(body) == 1 => skill("long", &long).into(),
        _ => skill("short", "Mind the sign of every load.").into(),
    });
    world.evolution(&["strategy: qd", "max_cycles: 3", "stagnation_window: 9"]);
    world.evolve();
    let archive: Value = serde_json::from_str(&world.archive("evolve/w-1")).unwrap();
    let elites: Vec<&Value> = archive["cells"].as_object().unwrap().values().collect();
    assert!(elites.len() >= 2, "{archive}");
    let letters: BTreeSet<u64> =
        elites.iter().map(|elite| elite["behaviour"]["prompt_letters"].as_f64().unwrap().to_bits()).collect();
    assert_eq!(letters.len(), elites.len(), "each has the prompt of its own");
    assert!(elites.iter().all(|elite| elite["behaviour"]["tokens"].as_f64().unwrap() > 0.0), "{archive}");
    assert!(elites.iter().map(|elite| elite["selected"].as_u64().unwrap()).sum::<u64>() >= 2, "{archive}");
    // The proposing model is told what failed.
    let briefs: Vec<String> =
        world.voices.asked("evolver").iter().map(|body| said_by(body, "user")).collect();
    assert!(briefs[1].contains("## Changes that did not help") && briefs[1].contains("adds skill long"));
}

#[test]
fn e8_every_harness_gives_the_candidates_prompt_to_its_model() {
    for harness in ["direct", "tool_loop", "rlm"] {
        let world = World::with(move |body| match (body["model"].as_str(), harness) {
            (Some("solver"), "rlm") => {
                let right =
                    said_by(body, "system").contains(LESSON) || said_by(body, "user").contains(LESSON);
                let answer = if right { RIGHT } else { WRONG };
                Said::Call("repl", json!({ "code": format!("FINAL({answer})") }))
            }
            (Some("solver"), _) => solved(said_by(body, "system").contains(LESSON)),
            _ => skill("units", LESSON).into(),
        });
        let solver = format!("solver: {{ name: s, harness: {harness}, model: solver }}");
        world.evolution(&[
            &solver,
            "max_cycles: 1",
            "batch_size: 2",
            "acceptance: { error_rate: 0.5, max_tasks: 12 }",
        ]);
        let data = world.evolve();
        assert_eq!(data["accepted"], 1, "{harness}: the change has no effect: {data}");
        let told = |body: &&Value| body["messages"].to_string().contains(LESSON);
        assert!(world.voices.asked("solver").iter().any(|body| told(&body)), "{harness}");
        assert!(
            world.voices.asked("solver").iter().any(|body| !told(&body)),
            "{harness}: the other side is not told"
        );
        let prompts: BTreeSet<Option<String>> =
            world.records("evolve-w-1").into_values().map(|record| record.inputs.system_prompt).collect();
        assert!(prompts.len() >= 2, "{harness}: {prompts:?}");
    }
}

#[test]
fn e8_reports_by_plan_get_the_candidates_prompt_too() {
    let world = World::with(|body| match body["model"].as_str() {
        Some("solver") => r#"{"depth_m": 1.25}"#.into(),
        _ => skill("units", LESSON).into(),
    });
    let template = "[[sections]]\nid = \"depths\"\ntitle = \"Depths\"\nfields = [{ name = \"depth_m\", dtype = \"float\", unit = \"m\", required = true }]\n\
                    input_mapping = { sources = [\"survey.csv\"] }\n";
    for index in 0..TASKS {
        world.env.write(format!("tasks/civil/channel-{index:03}/report_template.toml"), template);
    }
    world.evolution(&[
        "solver: { name: s, harness: lambda_rlm, model: solver }",
        "max_cycles: 1",
        "batch_size: 1",
        "acceptance: { error_rate: 0.5, max_tasks: 12 }",
    ]);
    let run = world.json("evolve run -c evolution.yaml");
    let told = |body: &&Value| body["messages"].to_string().contains(LESSON);
    assert!(world.voices.asked("solver").iter().any(|body| told(&body)), "{run:?}");
}

#[test]
fn e9_both_sides_of_a_test_work_on_the_same_tasks_that_nobody_learns_from() {
    let world = World::finished();
    let mut tested: BTreeSet<String> = BTreeSet::new();
    let mut learned: BTreeSet<String> = BTreeSet::new();
    let mut pairs = 0;
    for event in world.events("evolve/w-1", "measured") {
        let names = event["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|task| task["task_id"].as_str().unwrap().to_owned());
        match event["purpose"].as_str().unwrap() {
            "accept" => {
                tested.extend(names);
                let arms = event["arms"].as_array().unwrap();
                assert_eq!(arms.len(), 2);
                for arm in arms {
                    assert_eq!(
                        arm["seen"].as_array().unwrap().len(),
                        event["tasks"].as_array().unwrap().len()
                    );
                }
                pairs += event["tasks"].as_array().unwrap().len();
            }
            "learn" | "screen" => learned.extend(names),
            _ => {}
        }
    }
    assert!(pairs >= 8 && tested.is_disjoint(&learned), "{tested:?} {learned:?}");
    assert!(tested.len() >= 4, "tests use all of their side: {tested:?}");
    for event in world.events("evolve/w-1", "decided") {
        let standing = &event["standing"];
        assert!(standing["low"].as_f64() <= standing["difference"].as_f64());
        assert!(standing["difference"].as_f64() <= standing["high"].as_f64());
    }
}

#[test]
fn e10_what_cannot_work_is_found_before_anything_is_begun() {
    let world = World::new();
    world.evolution(&["tasks: { domains: [maritime] }"]);
    world.refuses("evolve run -c evolution.yaml", (3, "X040"), &["no task is selected"]);
    world.evolution(&["backend: modal"]);
    world.refuses("evolve run -c evolution.yaml", (4, "B022"), &["modal"]);
    world.env.write(
        "experiment.yaml",
        "agents: [{ name: a, harness: direct, model: solver }]\ncompute: { backend: harbor }\n",
    );
    world.evolution(&["harness_config: experiment.yaml"]);
    world.refuses("evolve run -c evolution.yaml", (3, "E023"), &["Harbor"]);
    assert!(!world.directory("evolve").exists());
}

#[test]
fn e11_a_bad_action_is_dropped_and_the_rest_is_done() {
    let world = World::with(|body| {
        match body["model"].as_str() {
        Some("solver") => usual(body),
        _ => actions(&json!([
            { "type": "write_skill", "name": "../../outside", "description": "d", "body": "Out of the workspace with this." },
            { "type": "write_skill", "name": "blank", "description": " ", "body": "A body that is long enough." },
            { "type": "write_skill", "name": "units", "description": "About units", "body": LESSON },
        ]))
        .into(),
    }
    });
    world.evolution(&["max_cycles: 1"]);
    let data = world.evolve();
    assert_eq!(data["accepted"], 1);
    let proposed = &world.events("evolve/w-1", "proposed")[0];
    assert_eq!(
        (proposed["edits"].as_array().unwrap().len(), proposed["dropped"].as_array().unwrap().len()),
        (1, 2)
    );
    assert_eq!(names_in(&world.env.path("workspaces/w/skills")), ["units"]);
}

#[test]
fn e12_what_is_too_long_is_not_taken_and_nothing_is_cut() {
    let long = "This sentence is repeated until it is far too long. ".repeat(100);
    let prompt = "A prompt of exactly the right kind, with a last sentence that must not be lost. THE END.";
    let many: Vec<Value> = ["z-last", "a-first"]
        .into_iter()
        .map(|name| json!({ "type": "write_skill", "name": name, "description": "d", "body": format!("{name} {LESSON}") }))
        .chain([json!({ "type": "modify_skill", "name": "a-first", "body": long }), json!({ "type": "modify_prompt", "content": prompt })])
        .collect();
    let reply = actions(&Value::from(many));
    let world =
        World::with(move |body| if body["model"] == "solver" { usual(body) } else { reply.clone().into() });
    world.evolution(&["max_cycles: 1"]);
    assert_eq!(world.evolve()["accepted"], 1);
    assert_eq!(
        names_in(&world.env.path("workspaces/w/skills")),
        ["a-first", "z-last"],
        "no tail is taken away"
    );
    assert_eq!(world.env.read("workspaces/w/prompts/system.md").trim(), prompt);
    let dropped = world.events("evolve/w-1", "proposed")[0]["dropped"].clone();
    assert!(
        dropped[0]["why"].as_str().unwrap().contains("more than 4000; nothing is cut to fit"),
        "{dropped}"
    );
    let brief = said_by(&world.voices.asked("evolver")[0], "user");
    assert!(
        brief.contains("at most 4000 letters") && brief.contains("at most 8000 letters"),
        "the limits are told"
    );
}

#[test]
fn e13_nothing_of_a_run_lies_in_the_workspace_or_its_commits() {
    let world = World::finished();
    assert_eq!(
        world.in_workspace().into_keys().collect::<Vec<_>>(),
        ["manifest.yaml", "prompts/system.md", "skills/units/SKILL.md"]
    );
    for reference in world.git("for-each-ref --format=%(refname) refs/aec-bench/candidates").lines() {
        for path in world.git(&format!("ls-tree -r --name-only {reference}")).lines() {
            assert!(
                path == "manifest.yaml" || path == "prompts/system.md" || path.ends_with("/SKILL.md"),
                "{path}"
            );
        }
    }
}

#[test]
fn e14_the_brief_is_made_from_what_was_seen() {
    let world = World::new();
    world.evolution(&["max_cycles: 1"]);
    world.evolve();
    let brief = said_by(&world.voices.asked("evolver")[0], "user");
    for part in
        ["## How it fails", "`flow_m3_s`", "## A task that it failed, numbers masked", "## The prompt now"]
    {
        assert!(brief.contains(part), "{part}: {brief}");
    }
    assert!(!brief.contains("3.217") && !brief.contains("1.254"), "right answers are not told");
    // A score that nothing supplies has no key either.
    world.evolution(&["ideal_pattern: E-V"]);
    assert_eq!(world.refusal("evolve run -c evolution.yaml", 3)["id"], "X003");
}

#[test]
fn e15_what_models_take_that_propose_is_recorded_and_nothing_leaks() {
    let world = World::with(|body| if body["model"] == "classifier" { "[]".into() } else { usual(body) });
    world.evolution(&["models: { evolver: evolver, classifier: classifier }", "max_cycles: 1"]);
    let data = world.evolve();
    let cost = |role: &str| -> f64 {
        let answered = world.events("evolve/w-1", "answered");
        answered
            .iter()
            .filter(|event| event["role"] == role)
            .map(|event| event["cost_usd"].as_f64().unwrap())
            .sum()
    };
    assert!(cost("evolver") > 0.0 && cost("classifier") > 0.0);
    let shown = data["cost"]["voices_usd"].as_f64().unwrap();
    assert!((shown - cost("evolver") - cost("classifier")).abs() < 1e-9, "{shown}");
    assert!(names_in(&world.env.path("jobs/_live")).is_empty());
    assert_eq!(names_in(&world.directory("evolve/w-1")), ["archive.json", "events.jsonl", "lock"]);
}

#[test]
fn e15_trials_run_side_by_side() {
    // Both trials of a batch must be under way before either is answered.
    let waiting = Arc::new((std::sync::Mutex::new(0), std::sync::Condvar::new()));
    let shared = Arc::clone(&waiting);
    let world = World::with(move |body| {
        if body["model"] == "solver" {
            let (count, changed) = &*shared;
            let mut count = count.lock().unwrap();
            *count += 1;
            changed.notify_all();
            while *count < 2 {
                count = changed.wait(count).unwrap();
            }
        }
        usual(body)
    });
    world.evolution(&["batch_size: 2", "concurrency: 2", "max_cycles: 1"]);
    world.evolve();
    assert!(*waiting.0.lock().unwrap() >= 2);
}

#[test]
fn e16_the_history_is_the_whole_list() {
    let world = World::finished();
    let history = world.data("evolve history workspaces/w");
    let candidates = history["candidates"].as_array().unwrap();
    assert_eq!(candidates.len(), 4);
    for candidate in candidates {
        for key in ["candidate", "name", "revision", "parents", "labels", "committed_at", "summary"] {
            assert!(!candidate[key].is_null(), "{key}: {candidate}");
        }
    }
    assert_eq!(history["current"], world.data("evolve report w-1")["best"]);
    let runs = world.data("evolve history");
    assert_eq!((&runs["total"], &runs["runs"][0]["run"]), (&json!(1), &json!("w-1")));
    assert_eq!(runs["runs"][0]["cycles"], 3);
}

#[test]
fn e17_a_run_that_was_stopped_knows_everything_when_it_goes_on() {
    // The long version, with kills at any moment, is in `kills`.
    let world = World::new();
    let mut run = world.start("evolve run -c evolution.yaml");
    run.wait_for("cycle 1:");
    run.signal(rustix::process::Signal::KILL);
    run.end();
    let before = world.entries("evolve/w-1");
    let data = world.data("evolve resume w-1");
    assert_eq!((&data["state"], &data["accepted"]), (&json!("ended"), &json!(1)));
    assert_eq!(world.entries("evolve/w-1")[..before.len()], before, "what was known stays");
    let cycles: Vec<u64> =
        data["cycles"].as_array().unwrap().iter().map(|cycle| cycle["cycle"].as_u64().unwrap()).collect();
    assert_eq!(cycles, [1, 2, 3]);
}

#[test]
fn e18_no_key_is_silently_ignored() {
    // `config` tests the effect of each key; here are those that the other program ignores.
    let world = World::new();
    world.evolution(&["discipline_balanced: true"]);
    assert_eq!(world.refusal("evolve run -c evolution.yaml", 3)["id"], "X003");
    world.evolution(&[
        "models: { evolver: evolver, evolver_temperature: 0.33 }",
        "tasks: { difficulties: [easy] }",
        "max_cycles: 1",
    ]);
    world.evolve();
    assert_eq!(world.voices.asked("evolver")[0]["temperature"], 0.33);
}

#[test]
fn s1_changes_of_the_prompt_are_kept_and_hold_no_context() {
    let prompt = format!("Work like a careful engineer. {LESSON}");
    let told = prompt.clone();
    let world = World::with(move |body| match body["model"].as_str() {
        Some("solver") => usual(body),
        _ => actions(&json!([{ "type": "modify_prompt", "content": told }])).into(),
    });
    world.swarm(&[
        "agents: { count: 1, default_model: evolver, nudges: [a word of context] }",
        "evolution: { batch_size: 2, max_cycles: 1, error_rate: 0.5, max_tasks: 16 }",
    ]);
    assert_eq!(world.data("swarm run swarm.yaml")["accepted"], 1);
    let best = world.workspace().load(world.state("swarm/w-1").champion).unwrap();
    assert_eq!(best.prompt.trim(), prompt);
    assert!(said_by(&world.voices.asked("evolver")[0], "user").contains("a word of context"));
    assert!(!best.files.values().any(|file| String::from_utf8_lossy(file).contains("a word of context")));
}

#[test]
fn s2_the_best_candidate_can_be_taken_out_whole() {
    let world = World::swarmed();
    let data = world.data("swarm best w-1 --output best");
    let state = world.state("swarm/w-1");
    assert_eq!(data["candidate"], state.champion.to_string());
    assert!(world.env.read("best/skills/units/SKILL.md").contains(LESSON));
    for elite in state.archive.cells.values() {
        assert_eq!(
            world.workspace().load(elite.candidate).unwrap().id,
            elite.candidate,
            "every elite is whole"
        );
    }
}

#[test]
fn s3_parents_come_from_the_shared_archive_and_failures_are_told() {
    let world = World::swarmed();
    let state = world.state("swarm/w-1");
    let crossed = world.events("swarm/w-1", "cycle_started").iter().any(|event| {
        let parent = event["parent"].as_str().unwrap().parse().unwrap();
        state.candidates.get(&parent).is_some_and(|known| known.cycle > 0 && event["agent"] != known.agent)
    });
    assert!(crossed, "an agent goes on from what another one made");
    assert!(!state.buried.is_empty());
    let briefs: Vec<String> =
        world.voices.asked("evolver").iter().map(|body| said_by(body, "user")).collect();
    assert!(briefs.iter().any(|brief| brief.contains("## Changes that did not help")));
}

#[test]
fn s4_what_is_seen_adds_up_over_batches_of_one() {
    let world = World::with(|body| if body["model"] == "solver" { WRONG.into() } else { different(body) });
    world.swarm(&[
        "agents: { count: 1, default_model: evolver }",
        "evolution: { batch_size: 1, max_cycles: 3, error_rate: 0.5, max_tasks: 12 }",
    ]);
    world.data("swarm run swarm.yaml");
    let briefs: Vec<String> =
        world.voices.asked("evolver").iter().map(|body| said_by(body, "user")).collect();
    assert!(briefs[0].contains("in 1 trial\n"), "{}", briefs[0]);
    let last = briefs.last().unwrap();
    assert!(last.contains(" trials\n") && !last.contains("`flow_m3_s` far too low in 1 trial\n"), "{last}");
}

#[test]
fn s5_what_timed_out_or_was_stopped_works_on_nothing_any_more() {
    // An agent that is stopped during a question leaves nothing running: its tree stays unchanged.
    let is_late =
        |body: &Value| body["model"] == "evolver" && said_by(body, "user").contains("particular: the second");
    let world = World::with(move |body| if is_late(body) { Said::Silence } else { different(body) });
    world.swarm(&[AGENTS]);
    let mut run = world.start("swarm run swarm.yaml");
    world.voices.wait_until(|asked| asked.iter().any(is_late));
    world.data("swarm stop w-1 --agent agent-1");
    run.wait_for("agent-1: retired");
    let (code, ..) = run.end();
    assert_eq!(code, Some(0));
    assert!(!world.directory("swarm/w-1").join("agents/agent-1").exists());
    let after: Vec<Value> = world.events("swarm/w-1", "proposed");
    assert!(after.iter().all(|event| event["agent"] != "agent-1"));
}

#[test]
fn s6_money_is_set_aside_before_it_is_spent() {
    // `swarms` tests phases and shares of the budget; here a swarm with almost no budget spends nothing.
    let world = World::with(different);
    world.env.write("configs/prices.toml", prices(&[("evolver", 1.0), ("solver", 1000.0)]));
    world.swarm(&[AGENTS, "budget: { max_cost_usd: 0.0001 }"]);
    world.refuses("swarm run swarm.yaml", (3, "E055"), &["cannot be called once"]);
    assert_eq!(world.voices.asked("evolver").len() + world.voices.asked("solver").len(), 0);
}

#[test]
fn s7_resume_stop_and_status_do_what_they_say() {
    let world = World::with(|body| {
        let hangs = body["model"] == "evolver" && cycle(body) == 2;
        if hangs { Said::Silence } else { different(body) }
    });
    world.swarm(&[AGENTS]);
    let run = world.start("swarm run swarm.yaml");
    world.voices.wait_for("evolver", 4);
    assert_eq!(world.data("swarm status w-1")["state"], "running");
    assert_eq!(world.data("swarm stop w-1 --force")["running"], true);
    let (code, ..) = run.end();
    assert_eq!(code, Some(130));
    let status = world.data("swarm status w-1");
    assert_eq!((&status["run"], &status["state"]), (&json!("w-1"), &json!("stopped")));
    let refused = world.refusal("swarm status w-9", 3);
    assert_eq!(refused["id"], "X034");
    let cycles = status["cycles"].as_array().unwrap().len();
    drop(run_again(&world));
    let after = world.data("swarm status w-1");
    assert!(after["cycles"].as_array().unwrap().len() > cycles || after["state"] == "ended", "{after}");
}

/// The same swarm with models that answer.
fn run_again(world: &World) -> Voices {
    let voices = Voices::start(different);
    let text = world.env.read("configs/endpoints.toml").replace(&world.voices.url(), &voices.url());
    world.env.write("configs/endpoints.toml", text);
    assert_eq!(world.data("swarm resume w-1")["state"], "ended");
    voices
}

#[test]
fn s8_each_run_has_its_own_log_which_adds_up_to_its_archive() {
    let world = World::with(different);
    world.swarm(&[AGENTS, "evolution: { batch_size: 2, max_cycles: 1, error_rate: 0.5, max_tasks: 12 }"]);
    world.data("swarm run swarm.yaml");
    world.data("swarm run swarm.yaml");
    assert_eq!(names_in(&world.directory("swarm")), ["w-1", "w-2"]);
    for run in ["swarm/w-1", "swarm/w-2"] {
        let entries = world.entries(run);
        assert!(entries.iter().enumerate().all(|(at, entry)| entry.sequence == at as u64));
        let again = State::replay(&entries).unwrap();
        let file = std::fs::read_to_string(world.directory(run).join("archive.json")).unwrap();
        assert_eq!(again.archive.to_json(), file, "byte for byte");
        assert!(again.spend().usd > 0.0, "money is part of the log");
    }
}

#[test]
fn s9_agents_share_no_session_and_no_output() {
    // Agents are tasks of one process, but each runs commands in its own rooms and sees no output of others.
    let world = World::with(|body| match body["model"].as_str() {
        Some("solver")
            if body["messages"].as_array().unwrap().iter().any(|message| message["role"] == "tool") =>
        {
            let printed = said_by(body, "tool");
            let own = format!("task {}", task_number(body));
            if printed.contains(&own) && printed.matches("task ").count() == 1 {
                RIGHT.into()
            } else {
                WRONG.into()
            }
        }
        Some("solver") => {
            let command = format!(
                "test -e /workspace/mark && echo found; echo task {}; touch /workspace/mark",
                task_number(body)
            );
            Said::Call("bash", json!({ "command": command }))
        }
        _ => different(body),
    });
    world.swarm(&[
        AGENTS,
        "solver: { name: s, harness: tool_loop, model: solver }",
        "evolution: { batch_size: 1, max_cycles: 1, error_rate: 0.5, max_tasks: 12 }",
    ]);
    world.data("swarm run swarm.yaml");
    let records = world.records("swarm-w-1");
    assert!(records.len() >= 6);
    for record in records.values() {
        assert_eq!(record.reward(), Some(1.0), "an agent saw the output of another");
    }
}

#[test]
fn s10_agents_work_in_rooms_and_see_no_answers() {
    let world = World::with(|body| match body["model"].as_str() {
        Some("solver")
            if body["messages"].as_array().unwrap().iter().any(|message| message["role"] == "tool") =>
        {
            solved(!said_by(body, "tool").contains("answers.json"))
        }
        Some("solver") => Said::Call(
            "bash",
            json!({ "command": "find / -maxdepth 5 -name answers.json -not -path '/proc/*' 2>/dev/null; ls /workspace/.. /tests 2>&1; true" }),
        ),
        _ => different(body),
    });
    world.swarm(&[
        AGENTS,
        "solver: { name: s, harness: tool_loop, model: solver }",
        "evolution: { batch_size: 1, max_cycles: 1, error_rate: 0.5, max_tasks: 12 }",
    ]);
    world.data("swarm run swarm.yaml");
    let records = world.records("swarm-w-1");
    for record in records.values() {
        assert_eq!(record.reward(), Some(1.0), "an agent found the answers");
        let level = serde_json::to_value(record.environment.sandbox).unwrap();
        assert_eq!(level, "namespaces", "{:?}", record.environment);
    }
    assert!(!records.is_empty());
}
