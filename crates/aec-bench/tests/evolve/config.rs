//! `evolution.yaml` and `swarm.yaml`: the samples load as printed, every key has its effect, and unknown keys are
//! refused with their line.

use aec_base::env::Env;
use aec_evolve::config::{Evolution, Strategy, Swarm};
use serde_json::{Value, json};

use crate::evolve::voices::{said_by, skill};
use crate::evolve::world::{LESSON, TASKS, prices, solved, task_number, usual};
use crate::evolve::{Said, World};

const SAMPLE: &str = "workspace_path: workspaces/voltage-drop-evo

models:
  classifier: env:AWS_HAIKU_MODEL_ID
  evolver:    env:AWS_SONNET_MODEL_ID

solver:
  name: solver-v1
  harness: rlm
  model: env:AWS_SONNET_MODEL_ID
  client:
    kind: bedrock
    settings: {}

generate:
  template: voltage-drop
  count: 10
  seed: 999
  difficulties: [\"easy\", \"medium\"]

tasks:
  domains: [electrical]
  include_patterns: [\"electrical/*\"]
  exclude_patterns: []

backend: local
batch_size: 5
max_cycles: 10
improvement_threshold: 0.01
stagnation_window: 5
timeout: 1800
harness_config: experiment.yaml      # optional
";

const SWARM_SAMPLE: &str = "task:
  workspace: ./workspaces/my-swarm
  task_path: tasks/electrical/voltage-drop

agents:
  count: 4
  default_model: au.anthropic.claude-sonnet-4-6

budget:
  max_cost_usd: 20.0
  eval_budget_usd: 5.0
  wind_down_threshold: 0.8
  final_threshold: 0.95

evaluation:
  timeout: 300
  backend: local

evolution:
  batch_size: 1
  improvement_threshold: 0.01

heartbeat:
  pivot_after: 5
";

#[test]
fn the_samples_load_as_they_are_printed() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    std::fs::write(root.join("evolution.yaml"), SAMPLE).unwrap();
    std::fs::write(root.join("swarm.yaml"), SWARM_SAMPLE).unwrap();
    let experiment =
        "agents:\n  - { name: a, harness: direct, model: gpt-4.1 }\ncompute: { backend: docker }\n";
    std::fs::write(root.join("experiment.yaml"), experiment).unwrap();
    let env = Env::from_shell(
        [
            ("AWS_HAIKU_MODEL_ID", "au.anthropic.claude-haiku"),
            ("AWS_SONNET_MODEL_ID", "au.anthropic.claude-sonnet"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    let told = Evolution::read(&root.join("evolution.yaml"), root, &env).unwrap();
    assert_eq!(told.workspace, root.join("workspaces/voltage-drop-evo"));
    assert_eq!(told.evolver.model, "au.anthropic.claude-sonnet");
    assert_eq!(told.classifier.unwrap().model, "au.anthropic.claude-haiku");
    let solver = told.solver.unwrap();
    assert_eq!(
        (solver.name.as_str(), solver.model.as_deref()),
        ("solver-v1", Some("au.anthropic.claude-sonnet"))
    );
    let generate = told.generate.unwrap();
    assert_eq!((generate.template.as_str(), generate.count, generate.seed), ("voltage-drop", 10, 999));
    assert_eq!(generate.difficulties, ["easy", "medium"]);
    assert_eq!((told.batch_size, told.max_cycles, told.stagnation_window), (5, 10, 5));
    assert!((told.acceptance.improvement_threshold - 0.01).abs() < 1e-12);
    assert!((told.limits.timeout_override.unwrap().get() - 1800.0).abs() < 1e-9);
    assert_eq!(told.backend.unwrap().name(), "local", "the file itself comes before harness_config");
    let told = Swarm::read(&root.join("swarm.yaml"), root, &env).unwrap();
    assert_eq!(told.workspace, root.join("workspaces/my-swarm"));
    assert_eq!(told.task_path.unwrap(), root.join("tasks/electrical/voltage-drop"));
    assert_eq!(told.models, ["au.anthropic.claude-sonnet-4-6"; 4]);
    assert_eq!((told.max_cost_usd, told.eval_budget_usd), (20.0, Some(5.0)));
    assert_eq!((told.wind_down_threshold, told.final_threshold), (0.8, 0.95));
    assert_eq!((told.batch_size, told.pivot_after), (1, 5));
    // The error names a variable that is not set, and a file that does not exist.
    std::fs::remove_file(root.join("experiment.yaml")).unwrap();
    let problems = Evolution::read(&root.join("evolution.yaml"), root, &Env::from_shell([])).unwrap_err();
    let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
    for word in ["AWS_HAIKU_MODEL_ID", "AWS_SONNET_MODEL_ID", "experiment.yaml"] {
        assert!(said.iter().any(|said| said.contains(word)), "{word}: {said:?}");
    }
}

/// The data of a dry run of the evolution file.
fn preview(world: &World) -> Value {
    let data = world.data("evolve run -c evolution.yaml --dry-run");
    assert_eq!(data["dry_run"], true);
    data
}

#[test]
fn keys_of_an_evolution_reach_its_settings() {
    let world = World::new();
    world.evolution(&[
        "models: { evolver: evolver, evolver_temperature: 0.2, evolver_max_tokens: 900, classifier: classifier, classifier_temperature: 0.1 }",
        "batch_size: 3",
        "max_cycles: 7",
        "improvement_threshold: 0.05",
        "stagnation_window: 2",
        "timeout: 45",
        "strategy: qd",
        "acceptance: { error_rate: 0.1, max_tasks: 50 }",
        "holdout: { tasks: 1 }",
        "budget: { max_cost_usd: 1.5, max_tokens: 9000000 }",
        "concurrency: 2",
        "backend: local",
    ]);
    let data = preview(&world);
    let told = &data["settings"];
    assert_eq!(told["evolvers"], json!([{ "model": "evolver", "temperature": 0.2, "max_tokens": 900 }]));
    assert_eq!(told["classifier"]["temperature"], 0.1);
    assert_eq!(
        (&told["batch_size"], &told["max_cycles"], &told["stagnation_window"]),
        (&json!(3), &json!(7), &json!(2))
    );
    assert_eq!(
        (&told["timeout_override"], &told["strategy"], &told["holdout"]),
        (&json!(45), &json!("qd"), &json!(1))
    );
    assert_eq!(
        told["acceptance"],
        json!({ "error_rate": 0.1, "max_tasks": 50, "improvement_threshold": 0.05 })
    );
    assert_eq!((&told["max_cost_usd"], &told["max_tokens"]), (&json!(1.5), &json!(9_000_000)));
    assert_eq!((&told["concurrency"], &told["backend"]), (&json!(2), &json!("local")));
    assert_eq!((&data["horizon"], &data["needed_evidence"]), (&json!(7), &json!(70.0)));
    // Flags take precedence over the file.
    let data = world
        .data("evolve run -c evolution.yaml --dry-run --max-cost 0.5 --max-total-tokens 77 --concurrency 9");
    let told = &data["settings"];
    assert_eq!(
        (&told["max_cost_usd"], &told["max_tokens"], &told["concurrency"]),
        (&json!(0.5), &json!(77), &json!(9))
    );
}

#[test]
fn temperatures_and_limits_of_voices_reach_the_models() {
    let world = World::with(|body| match body["model"].as_str() {
        Some("classifier") => "[]".into(),
        _ => usual(body),
    });
    world.evolution(&[
        "models: { evolver: evolver, evolver_temperature: 0.2, evolver_max_tokens: 900, classifier: classifier, classifier_temperature: 0.15 }",
        "max_cycles: 1",
    ]);
    world.evolve();
    let (evolver, classifier) = (world.voices.asked("evolver"), world.voices.asked("classifier"));
    assert_eq!(evolver.len(), 1);
    assert_eq!(evolver[0]["temperature"], 0.2);
    let limit = |body: &Value| body.get("max_tokens").or_else(|| body.get("max_completion_tokens")).cloned();
    assert_eq!(limit(&evolver[0]), Some(json!(900)));
    assert!(
        !classifier.is_empty() && classifier.iter().all(|body| body["temperature"] == 0.15),
        "{classifier:?}"
    );
    let asked: Vec<Value> = world.events("evolve/w-1", "asked");
    assert!(asked.iter().any(|event| event["role"] == "classifier" && event["model"] == "classifier"));
    assert!(
        world.events("evolve/w-1", "answered").iter().all(|event| event["cost_usd"].as_f64().unwrap() > 0.0)
    );
}

#[test]
fn the_solver_is_the_agent_that_the_file_names() {
    let world = World::new();
    world.endpoints(&["evolver", "solver", "other"]);
    world.evolution(&["solver: { name: other-v2, harness: direct, model: solver, parameters: { temperature: 0.4, max_tokens: 321 } }", "max_cycles: 1"]);
    world.evolve();
    let asked = world.voices.asked("solver");
    assert!(asked.iter().all(|body| body["temperature"] == 0.4), "{:?}", asked[0]);
    for record in world.records("evolve-w-1").values() {
        assert_eq!(record.agent.configuration["max_tokens"], 321);
        assert!(record.inputs.system_prompt.is_some());
    }
    // Without a solver, it is the workspace's harness with the evolver's model.
    world.evolution(&["-solver"]);
    let told = preview(&world)["settings"]["solver"].clone();
    assert_eq!((&told["harness"], &told["model"]), (&json!("direct"), &json!("evolver")));
    // A solver's own prompt contradicts the workspace.
    world.evolution(&["solver: { name: s, harness: direct, model: solver, system_prompt_file: p.md }"]);
    world.refuses("evolve run -c evolution.yaml", (3, "X007"), &["system_prompt_file", "prompts/system.md"]);
    // A harness that ignores prompts cannot be improved by one.
    world.evolution(&["solver: { name: s, harness: oracle }"]);
    world.refuses("evolve run -c evolution.yaml", (3, "X023"), &["oracle", "nothing to improve"]);
}

#[test]
fn harness_config_fills_in_what_is_not_said() {
    let world = World::new();
    let experiment = "agents:\n  - { name: borrowed, harness: direct, model: solver, parameters: { max_tokens: 77 } }\n\
                      compute: { backend: local, resource_limits: { timeout_override: 33, memory_mb: 700 } }\n";
    world.env.write("experiment.yaml", experiment);
    world.evolution(&["-solver", "harness_config: experiment.yaml"]);
    let told = preview(&world)["settings"].clone();
    assert_eq!((&told["solver"]["name"], &told["timeout_override"]), (&json!("borrowed"), &json!(33)));
    assert_eq!((&told["memory_mb"], &told["solver"]["parameters"]["max_tokens"]), (&json!(700), &json!(77)));
    // Keys in the file take precedence.
    world.evolution(&["harness_config: experiment.yaml", "timeout: 20"]);
    let told = preview(&world)["settings"].clone();
    assert_eq!((&told["solver"]["name"], &told["timeout_override"]), (&json!("solver-v1"), &json!(20)));
    assert_eq!(told["memory_mb"], 700, "what is not said is still filled in");
    world.evolution(&["harness_config: ../experiment.yaml"]);
    world.refuses("evolve run -c evolution.yaml", (3, "X020"), &["harness_config"]);
    world.env.write(
        "experiment.yaml",
        "agents:\n  - { name: b, harness: direct, model: solver, system_prompt_file: p.md }\n",
    );
    world.env.write("p.md", "Mine.\n");
    world.evolution(&["-solver", "harness_config: experiment.yaml"]);
    world.refuses("evolve run -c evolution.yaml", (3, "X021"), &["its own system prompt"]);
}

#[test]
fn a_backend_that_cannot_be_used_is_refused_before_anything_is_run() {
    for (file, refusal, said) in [
        ("backend: modal", (4, "B022"), "MODAL_TOKEN_ID"),
        ("backend: harbor", (3, "E023"), "cannot be a job of Harbor"),
    ] {
        let world = World::new();
        world.evolution(&[file]);
        world.refuses("evolve run -c evolution.yaml", refusal, &[said]);
        assert_eq!(world.voices.asked("solver").len(), 0);
    }
}

#[test]
fn tasks_are_those_of_the_selection() {
    let world = World::new();
    world.task("structural/channel-100", "hard");
    world.task("structural/channel-101", "medium");
    for (tasks, wanted) in [
        ("tasks: { domains: [structural] }", vec!["structural/channel-100", "structural/channel-101"]),
        ("tasks: { difficulties: [hard] }", vec!["structural/channel-100"]),
        (
            "tasks: { include_patterns: ['civil/channel-00[12]'] }",
            vec!["civil/channel-001", "civil/channel-002"],
        ),
        (
            "tasks: { include_patterns: ['structural/*'], exclude_patterns: ['*/channel-101'] }",
            vec!["structural/channel-100"],
        ),
    ] {
        world.evolution(&[
            tasks,
            "max_cycles: 1",
            "holdout: { tasks: 0 }",
            "batch_size: 2",
            "acceptance: { max_tasks: 12, error_rate: 0.9 }",
        ]);
        // Too few tasks to divide: the run says so, and goes on.
        let data = world.json("evolve run -c evolution.yaml");
        assert_eq!((data.code, data.errors()[0].0.as_str()), (Some(0), "X042"), "{data:?}");
        let data = data.envelope()["data"].clone();
        let run = format!("evolve/{}", data["run"].as_str().unwrap());
        let mut used: Vec<String> = world
            .events(&run, "measured")
            .iter()
            .flat_map(|event| event["tasks"].as_array().unwrap().clone())
            .map(|task| task["task_id"].as_str().unwrap().to_owned())
            .collect();
        used.sort();
        used.dedup();
        assert_eq!(used, wanted, "{tasks}");
    }
    // A dataset is a selection as well.
    let made = world.run("dataset create --name hard-ones --version 1.0.0 --difficulty hard");
    assert_eq!(made.code, Some(0), "{made:?}");
    world.evolution(&[
        "tasks: { dataset: hard-ones@1.0.0 }",
        "max_cycles: 1",
        "holdout: { tasks: 0 }",
        "batch_size: 1",
        "acceptance: { max_tasks: 12, error_rate: 0.9 }",
    ]);
    let data = world.json("evolve run -c evolution.yaml").envelope()["data"].clone();
    let started = &world.events(&format!("evolve/{}", data["run"].as_str().unwrap()), "cycle_started")[0];
    assert_eq!(started["tasks"][0]["task_id"], "structural/channel-100");
    world.evolution(&["tasks: { dataset: nobody@1.0.0 }"]);
    let refused = world.json("evolve run -c evolution.yaml");
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.errors()[0].1.contains("nobody"), "{refused:?}");
}

#[test]
fn tasks_are_made_from_the_template_tier_by_tier() {
    let world = World::with(|body| match body["model"].as_str() {
        Some("solver") => "{}".into(),
        _ => usual(body),
    });
    let lines =
        ["-tasks", "max_cycles: 1", "batch_size: 3", "acceptance: { max_tasks: 12, error_rate: 0.5 }"];
    let made = |seed: u32| {
        let generate = format!(
            "generate: {{ template: voltage-drop, count: 3, seed: {seed}, difficulties: [easy, hard] }}"
        );
        world.evolution(&[lines.as_slice(), &[generate.as_str()]].concat());
        let data = world.evolve();
        let run = format!("evolve/{}", data["run"].as_str().unwrap());
        let tasks = world.events(&run, "cycle_started")[0]["tasks"].as_array().unwrap().clone();
        let names: Vec<String> =
            tasks.iter().map(|task| task["task_id"].as_str().unwrap().to_owned()).collect();
        assert!(
            tasks.iter().all(|task| world
                .env
                .path(task["task_path"].as_str().unwrap())
                .join("task.toml")
                .is_file())
        );
        names
    };
    let first = made(1);
    assert_eq!(first.len(), 3);
    assert!(
        first.iter().any(|name| name.contains("-easy-")) && first.iter().any(|name| name.contains("-hard-")),
        "{first:?}"
    );
    assert!(!first.iter().any(|name| name.contains("-medium-")));
    assert_ne!(made(2), first, "another seed gives other tasks");
    for (generate, id, word) in [
        ("generate: { template: voltage-drop, difficulties: [impossible] }", "X047", "impossible"),
        ("generate: { count: 3 }", "X006", "generate.template"),
    ] {
        world.evolution(&["-tasks", generate]);
        let refusal = world.refusal("evolve run -c evolution.yaml", 3);
        assert_eq!(refusal["id"], id, "{refusal}");
        assert!(refusal.to_string().contains(word), "{refusal}");
    }
    world.evolution(&["-tasks", "generate: { template: no-such-template }"]);
    let refused = world.json("evolve run -c evolution.yaml");
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.errors()[0].1.contains("no-such-template"), "{refused:?}");
}

#[test]
fn batch_size_and_max_cycles_are_kept() {
    let world = World::new();
    world.evolution(&["batch_size: 2", "max_cycles: 2"]);
    let data = world.evolve();
    assert_eq!(data["cycles"].as_array().unwrap().len(), 2);
    for event in world.events("evolve/w-1", "cycle_started") {
        assert_eq!(event["tasks"].as_array().unwrap().len(), 2);
    }
    for event in world.events("evolve/w-1", "measured") {
        assert!(event["tasks"].as_array().unwrap().len() <= 2);
    }
}

#[test]
fn a_gain_below_the_threshold_is_none() {
    // The lesson helps on one task of six; that is more than 0.01 and less than 0.9.
    let world = World::new();
    // A test against such a high threshold needs many tasks.
    for index in TASKS..94 {
        world.task(&format!("civil/channel-{index:03}"), "easy");
    }
    world.evolution(&[
        "improvement_threshold: 0.9",
        "acceptance: { max_tasks: 60, error_rate: 0.5 }",
        "max_cycles: 2",
    ]);
    let data = world.evolve();
    assert_eq!(data["accepted"], 0);
    let units = &world.events("evolve/w-1", "decided")[1];
    assert!(units["standing"]["difference"].as_f64().unwrap() > 0.5, "{units}");
    assert_ne!(units["rejection"], Value::Null);
    world.evolution(&["max_cycles: 2"]);
    assert_eq!(world.evolve()["accepted"], 1);
}

#[test]
fn stagnation_widens_the_search_and_then_ends_it() {
    let world = World::with(|body| match body["model"].as_str() {
        Some("solver") => solved(task_number(body).is_multiple_of(6)),
        _ => usual(body),
    });
    world.evolution(&[
        "stagnation_window: 2",
        "max_cycles: 9",
        "models: { evolver: evolver, evolver_temperature: 0.5 }",
    ]);
    let data = world.evolve();
    assert_eq!(data["reason"], "nothing was accepted for too long");
    assert_eq!(data["cycles"].as_array().unwrap().len(), 4);
    let widened = world.events("evolve/w-1", "widened");
    assert_eq!((widened.len(), &widened[0]["cycle"]), (1, &json!(2)));
    let evolver = world.voices.asked("evolver");
    let temperatures: Vec<f64> = evolver.iter().map(|body| body["temperature"].as_f64().unwrap()).collect();
    assert_eq!(temperatures, [0.5, 0.5, 0.8, 0.8], "a wider search draws more freely");
    assert!(said_by(&evolver[2], "user").contains("fundamentally different"));
    assert!(!said_by(&evolver[1], "user").contains("fundamentally different"));
    let scopes: Vec<Value> =
        world.events("evolve/w-1", "cycle_started").iter().map(|event| event["scope"].clone()).collect();
    assert_eq!(scopes[2], "comprehensive");
}

#[test]
fn the_timeout_ends_agents_that_never_answer() {
    let world = World::with(|body| match body["model"].as_str() {
        Some("solver") => Said::Silence,
        _ => usual(body),
    });
    world.evolution(&[
        "timeout: 1",
        "max_cycles: 1",
        "batch_size: 1",
        "tasks: { include_patterns: ['civil/channel-001'] }",
        "holdout: { tasks: 0 }",
        "acceptance: { error_rate: 0.9 }",
    ]);
    let run = world.json("evolve run -c evolution.yaml");
    assert_eq!(run.envelope()["data"]["state"], "ended", "{run:?}");
    let records = world.records("evolve-w-1");
    assert!(!records.is_empty());
    for record in records.values() {
        assert!(record.fault.as_ref().and_then(|fault| fault.kind.as_deref()).is_some(), "{record:?}");
        assert_eq!(record.environment.timeout_sec, Some(1));
    }
}

#[test]
fn a_search_over_an_archive_crosses_what_behaves_differently() {
    // One idea makes the prompt long, which gives another cell; in the third cycle skills are crossed.
    let long = "Write down what is given, then what is asked for, then the formula. ".repeat(20);
    let world = World::with(move |body| match body["model"].as_str() {
        Some("solver") => solved(task_number(body).is_multiple_of(2)),
        _ if crate::evolve::voices::cycle(body) == 1 => skill("long", &long).into(),
        _ => skill("units", LESSON).into(),
    });
    world.evolution(&["strategy: qd", "max_cycles: 3", "stagnation_window: 9"]);
    world.evolve();
    let started = world.events("evolve/w-1", "cycle_started");
    assert_eq!(started[2]["way"], "crossover", "{started:?}");
    assert_ne!(started[2]["partner"], Value::Null);
    assert_eq!(world.voices.asked("evolver").len(), 2, "crossing calls no model");
    assert!(world.state("evolve/w-1").archive.cells.len() >= 2);
    // A hill climb never crosses.
    world.evolution(&["strategy: hill_climb", "max_cycles: 3", "stagnation_window: 9"]);
    world.evolve();
    assert!(world.events("evolve/w-2", "cycle_started").iter().all(|event| event["way"] == "mutation"));
}

#[test]
fn what_cannot_ever_be_accepted_is_said_at_once() {
    let world = World::new();
    world.evolution(&["acceptance: { max_tasks: 3 }", "max_cycles: 10"]);
    world.refuses(
        "evolve run -c evolution.yaml",
        (3, "X022"),
        &["nothing could ever be accepted", "3 tasks", "fewer cycles"],
    );
}

#[test]
fn a_second_run_says_that_its_holdout_was_looked_at() {
    let world = World::new();
    world.evolution(&["-generate", "tasks: {}", "holdout: { tasks: 1 }"]);
    let first = world.json("evolve run -c evolution.yaml");
    assert_eq!((first.code, first.errors().iter().any(|error| error.0 == "X048")), (Some(0), false));
    for command in ["evolve run -c evolution.yaml --dry-run", "evolve run -c evolution.yaml"] {
        let again = world.json(command);
        let said = again.errors().into_iter().find(|error| error.0 == "X048").unwrap();
        assert!(said.1.contains("1 of 1 task kept for the end") && said.1.contains("w-1"), "{said:?}");
        assert_eq!(again.code, Some(0), "a warning fails neither");
    }
    // Lessons from one workspace may have been copied into another.
    world.data("evolve init workspaces/other --harness direct");
    world.evolution(&["workspace_path: workspaces/other", "holdout: { tasks: 1 }"]);
    let other = world.json("evolve run -c evolution.yaml --dry-run");
    assert!(other.errors().iter().any(|error| error.0 == "X048"), "{other:?}");
}

#[test]
fn a_workspace_lies_in_the_project() {
    let world = World::new();
    for path in ["../w", "workspaces/../../w", "/tmp/w"] {
        world.evolution(&[&format!("workspace_path: {path}")]);
        world.refuses("evolve run -c evolution.yaml", (3, "X005"), &["leads out of the project"]);
        world.swarm(&[&format!("task: {{ workspace: {path}, task_path: tasks }}")]);
        world.refuses("swarm run swarm.yaml", (3, "X005"), &["leads out of the project"]);
    }
}

#[test]
fn the_holdout_is_as_large_as_is_said() {
    let world = World::new();
    for (tasks, wanted) in [(0, None), (3, Some(3))] {
        world.evolution(&[&format!("holdout: {{ tasks: {tasks} }}")]);
        let run = format!("evolve/{}", world.evolve()["run"].as_str().unwrap());
        let measured = world.events(&run, "holdout_measured");
        assert_eq!(measured.first().map(|event| event["pairs"].as_u64().unwrap()), wanted, "{measured:?}");
        // The next round begins with the same candidate.
        let before = world.state(&run).started.baseline;
        assert_eq!(world.run(&format!("evolve rollback workspaces/w {}", before.hex())).code, Some(0));
    }
}

#[test]
fn what_is_no_key_or_no_value_is_refused_with_its_line() {
    let world = World::new();
    for (line, id, words) in [
        ("structural_weight: 0.5", "X003", vec!["structural_weight"]),
        ("discipline_balanced: true", "X003", vec!["discipline_balanced"]),
        ("temperature: 0.5", "X003", vec!["temperature"]),
        ("models: { evolver: evolver, evolver_temprature: 1 }", "X003", vec!["evolver_temperature"]),
        ("models: { evolver: evolver, evolver_temperature: 11 }", "X005", vec!["between 0 and 10"]),
        ("models: { evolver: evolver, evolver_temperature: hot }", "X004", vec!["evolver_temperature"]),
        ("solver: { name: s, harness: direct, model: solver, colour: red }", "X003", vec!["colour"]),
        ("tasks: { domain: [civil] }", "X003", vec!["domains"]),
        ("batch_size: 0", "X005", vec!["batch_size"]),
        ("batch_size: many", "X004", vec!["batch_size"]),
        ("max_cycles: -1", "X005", vec!["max_cycles"]),
        ("improvement_threshold: 1.5", "X005", vec!["improvement_threshold"]),
        ("strategy: best", "X005", vec!["hill_climb"]),
        ("acceptance: { error_rate: 0 }", "X005", vec!["error_rate"]),
        ("acceptance: { errors: 0.1 }", "X003", vec!["error_rate"]),
        ("holdout: { task: 3 }", "X003", vec!["tasks"]),
        ("budget: { max_cost_usd: -1 }", "X005", vec!["max_cost_usd"]),
        ("budget: { max_tokens: 0 }", "X005", vec!["max_tokens", "above 0"]),
        ("budget: { max_cost: 1 }", "X003", vec!["max_cost_usd"]),
        ("generate: { template: voltage-drop, tiers: [easy] }", "X003", vec!["tiers"]),
        ("backend: cloud", "X005", vec!["local"]),
        ("timeout: soon", "X004", vec!["timeout"]),
    ] {
        world.evolution(&[line]);
        let text = world.env.read("evolution.yaml");
        let number = text.lines().position(|known| known == line).unwrap() + 1;
        let run = world.json("evolve run -c evolution.yaml");
        assert_eq!(run.code, Some(3), "{line}: {run:?}");
        let error = run.envelope()["errors"][0].clone();
        let shown = error["id"].as_str().unwrap();
        // The document reader distinguishes a wrong type from a bad value.
        assert!(
            shown == id || (["X004", "X005"].contains(&shown) && ["X004", "X005"].contains(&id)),
            "{line}: {error}"
        );
        assert_eq!(error["line"], number, "{line}: {error}");
        for word in words {
            assert!(error.to_string().contains(word), "{line}: `{word}`: {error}");
        }
    }
    // No valid key, and all unknown keys at once.
    world.env.write("evolution.yaml", "colour: red\nsize: 3\n");
    let run = world.json("evolve run -c evolution.yaml");
    let ids: Vec<String> = run.errors().into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids.iter().filter(|id| *id == "X003").count(), 2, "{run:?}");
    assert!(ids.iter().filter(|id| *id == "X006").count() >= 3, "{run:?}");
    let missing = world.json("evolve run -c nowhere.yaml");
    assert_eq!(missing.code, Some(3), "{missing:?}");
    assert!(!world.directory("evolve").exists(), "nothing was begun");
}

#[test]
fn what_is_no_key_or_no_value_of_a_swarm_is_refused_with_its_line() {
    let world = World::new();
    for (line, words) in [
        ("agents: { count: 65, default_model: evolver }", vec!["agents.count"]),
        ("agents: { count: 1, default_model: evolver, nudges: [a, b] }", vec!["agents.nudges"]),
        ("agents: { count: 1, default_model: evolver, models: [evolver, evolver] }", vec!["agents.models"]),
        ("agents: { count: 1, default_model: evolver, cross_agent: true }", vec!["cross_agent"]),
        ("budget: { max_cost_usd: 0 }", vec!["max_cost_usd"]),
        ("budget: { max_cost_usd: 1, max_tokens: 0 }", vec!["budget.max_tokens"]),
        ("budget: { max_cost_usd: 1, eval_budget_usd: 2 }", vec!["eval_budget_usd"]),
        (
            "budget: { max_cost_usd: 1, wind_down_threshold: 0.9, final_threshold: 0.5 }",
            vec!["wind_down_threshold"],
        ),
        ("budget: { max_cost_usd: 1, pool: 3 }", vec!["pool"]),
        ("evaluation: { parallel: 3 }", vec!["parallel"]),
        ("evolution: { batchsize: 3 }", vec!["batch_size"]),
        ("heartbeat: { pivot_after: 0 }", vec!["pivot_after"]),
        ("heartbeat: { interval: 3 }", vec!["interval"]),
        ("channels: [a]", vec!["channels"]),
    ] {
        world.swarm(&[line]);
        let text = world.env.read("swarm.yaml");
        let number = text.lines().position(|known| known == line).unwrap() + 1;
        let run = world.json("swarm run swarm.yaml");
        assert_eq!(run.code, Some(3), "{line}: {run:?}");
        let error = run.envelope()["errors"][0].clone();
        assert_eq!(error["line"], number, "{line}: {error}");
        assert!(error["fix"].is_string(), "{line}: {error}");
        for word in words {
            assert!(error.to_string().contains(word), "{line}: `{word}`: {error}");
        }
    }
    world.env.write("swarm.yaml", "agents: { count: 2 }\n");
    let run = world.json("swarm run swarm.yaml");
    assert_eq!(run.errors().iter().filter(|(id, _)| id == "X006").count(), 4, "{run:?}");
    world.swarm(&["task: { workspace: workspaces/w, task_path: elsewhere }"]);
    world.refuses("swarm run swarm.yaml", (3, "X046"), &["task.task_path"]);
}

#[test]
fn keys_of_a_swarm_reach_its_settings() {
    let world = World::new();
    world.endpoints(&["evolver", "solver", "second"]);
    let costs = [("evolver", 1.0), ("solver", 1.0), ("second", 1.0)];
    world.env.write("configs/prices.toml", prices(&costs));
    world.swarm(&[
        "agents: { count: 3, default_model: evolver, models: [second], nudges: ['look at signs'], max_restarts: 1 }",
        "budget: { max_cost_usd: 4.0, eval_budget_usd: 3.0, max_tokens: 5000000, wind_down_threshold: 0.5, final_threshold: 0.6 }",
        "evaluation: { timeout: 44, backend: local, concurrency: 2 }",
        "evolution: { batch_size: 2, improvement_threshold: 0.03, max_cycles: 4, error_rate: 0.1, max_tasks: 60 }",
        "heartbeat: { pivot_after: 2 }",
        "holdout: { tasks: 1 }",
    ]);
    let data = world.data("swarm run swarm.yaml --dry-run");
    let told = &data["settings"];
    let models: Vec<&Value> =
        told["evolvers"].as_array().unwrap().iter().map(|voice| &voice["model"]).collect();
    assert_eq!(models, ["second", "evolver", "evolver"]);
    assert_eq!(told["nudges"], json!(["look at signs", null, null]));
    assert_eq!(
        (&told["max_restarts"], &told["pivot_after"], &told["holdout"]),
        (&json!(1), &json!(2), &json!(1))
    );
    assert_eq!((&told["max_cost_usd"], &told["eval_budget_usd"]), (&json!(4.0), &json!(3.0)));
    assert_eq!((&told["wind_down_threshold"], &told["final_threshold"]), (&json!(0.5), &json!(0.6)));
    assert_eq!((&told["timeout_override"], &told["concurrency"]), (&json!(44), &json!(2)));
    assert_eq!((&told["batch_size"], &told["max_cycles"]), (&json!(2), &json!(4)));
    assert_eq!(
        told["acceptance"],
        json!({ "error_rate": 0.1, "max_tasks": 60, "improvement_threshold": 0.03 })
    );
    assert_eq!(data["horizon"], 12);
    assert_eq!(told["tasks"]["include_patterns"], json!([]), "all tasks lie below the root");
    world.swarm(&["task: { workspace: workspaces/w, task_path: tasks/civil/channel-003 }"]);
    world.refuses(
        "swarm run swarm.yaml",
        (3, "X040"),
        &["every selected task is kept for the end", "holdout.tasks"],
    );
    world.swarm(&[
        "task: { workspace: workspaces/w, task_path: tasks/civil/channel-003 }",
        "holdout: { tasks: 0 }",
        "agents: { count: 1, default_model: evolver }",
        "evolution: { max_cycles: 1, error_rate: 0.9 }",
    ]);
    let few = world.json("swarm run --config swarm.yaml --dry-run");
    assert_eq!(few.errors()[0].0, "X042", "{few:?}");
    let told = few.envelope()["data"]["settings"].clone();
    assert_eq!(told["tasks"]["include_patterns"], json!(["civil/channel-003"]));
    assert_eq!(Strategy::Qd.name(), told["strategy"], "a swarm searches over its archive");
}
