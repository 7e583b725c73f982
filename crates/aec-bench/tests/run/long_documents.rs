//! The long-document harnesses through the program: the worked example of the documentation, plans, records, replay.

use std::path::{Path, PathBuf};

use aec_judge::scorer::STANDARD_VERIFY_PY;
use aec_xtest::files::files_below;
use serde_json::{Value, json};

use crate::run::Project;

const GUIDE: &str = include_str!("../../../../docs/harnesses.md");

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/long-documents")
}

/// A project with the files of the worked example.
fn project() -> Project {
    let project = Project::empty();
    for (name, content) in files_below(&example()) {
        project.env.write(name, content);
    }
    project
}

/// The commands of the worked example, each with its documented output lines.
fn console() -> Vec<(&'static str, Vec<&'static str>)> {
    let chapter = GUIDE.split("\n## A worked example\n").nth(1).unwrap();
    let block = chapter.split("```console\n").nth(1).unwrap().split("```").next().unwrap();
    let mut commands: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in block.lines().filter(|line| *line != "…") {
        match line.strip_prefix("$ ") {
            Some(command) => commands.push((command, Vec::new())),
            None => commands.last_mut().unwrap().1.push(line),
        }
    }
    commands
}

#[test]
fn the_worked_example_of_the_guide_does_what_the_guide_says() {
    let project = project();
    let commands = console();
    assert!(commands.len() >= 4, "{commands:?}");
    for (command, expected) in commands {
        let Some(arguments) = command.strip_prefix("aec-bench ") else { continue };
        if arguments.starts_with("init ") {
            // The project exists already.
            continue;
        }
        let run = project.run(arguments);
        assert_eq!(run.code, Some(0), "{command}: {run:?}");
        let printed = format!("{}{}", run.stdout, run.stderr);
        for line in expected {
            assert!(printed.contains(line), "{command}: {line:?} is not in\n{printed}");
        }
    }
    let verifier = example().join("tasks/ground/borehole-summary/tests/verify.py");
    assert_eq!(std::fs::read_to_string(verifier).unwrap(), STANDARD_VERIFY_PY);
}

#[test]
fn records_have_planes_settings_and_the_sources_of_every_fact() {
    let project = project();
    project.data("run --config experiment.yaml");
    let records = project.records("boreholes");
    assert_eq!(records.len(), 2);
    for record in records.values() {
        let record = serde_json::to_value(record).unwrap();
        assert_eq!(record["evaluation"]["reward"], 1.0, "{record}");
        let result = find(&record, "planes").unwrap();
        let (main, subcalls) = (&result["main"]["calls"], &result["subcalls"]["calls"]);
        let by_plan = find(&record, "forecast");
        let expected = if by_plan.is_some() { (1, 5) } else { (3, 3) };
        assert_eq!((main, subcalls), (&json!(expected.0), &json!(expected.1)));
        if let Some(forecast) = by_plan {
            assert_eq!(forecast["calls"], 6, "the forecast was right");
        }
        assert!(find(&record, "settings").is_some());
    }
}

/// The value of a key, wherever it is.
fn find<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    match value {
        Value::Object(object) => {
            object.get(key).or_else(|| object.values().find_map(|value| find(value, key)))
        }
        Value::Array(list) => list.iter().find_map(|value| find(value, key)),
        _ => None,
    }
}

#[test]
fn a_recorded_run_is_had_again_without_a_model() {
    let project = project();
    project.data("run --config experiment.yaml --record tape");
    for name in ["rlm-replies.yaml", "lambda-replies.yaml"] {
        project.env.write(name, "replies: [{text: nothing}]\n");
    }
    project.data("run --config experiment.yaml --replay tape --experiment-id again");
    assert_eq!(project.records("again").len(), 2);
    for record in project.records("again").values() {
        assert_eq!(serde_json::to_value(record).unwrap()["evaluation"]["reward"], 1.0);
    }
}

#[test]
fn what_cannot_be_carried_out_is_refused_before_anything_is_run() {
    let project = project();
    let task = "tasks/ground/borehole-summary";
    for (file, text, why) in [
        ("rlm.toml", "[guardrails]\nmax_turn = 1\n", "max_turn"),
        ("rlm.toml", "[inputs.x]\ntype = 'string'\nsource = 'no/such.md'\n", "no/such.md"),
        ("rlm.toml", "[inputs.x]\ntype = 'string'\nsource = 'tests/answers.json'\n", "shown to agents"),
        ("lambda-rlm.toml", "[template]\ndefinition = 'no.toml'\n", "no.toml"),
        ("lambda-rlm.toml", "[planner]\ncontext_window_chars = 2_000\naccuracy_target = 0.94\n", "would do"),
        ("report_template.toml", "[[sections]]\nid = 'a'\ntitle = 'A'\ndepends_on = ['a']\n", "depends on"),
    ] {
        let place = format!("{task}/{file}");
        let before = std::fs::read_to_string(project.env.path(&place)).unwrap();
        project.env.write(&place, text);
        let (id, told) = project.refusal("plan --config experiment.yaml", 3);
        assert!(id == "E045" && told.contains(why), "{id}: {told}");
        // Validation finds the same problems, except for plans, which depend on the agent.
        if why != "would do" {
            let run = project.json("task validate ground/borehole-summary");
            assert!(
                run.errors().iter().any(|(id, told)| id.starts_with('O') && told.contains(why)),
                "{run:?}"
            );
        }
        project.env.write(&place, before);
    }
    assert_eq!(project.json("task validate ground/borehole-summary").code, Some(0));
    let forecast = project.data("plan --config experiment.yaml")["forecasts"][0].clone();
    assert_eq!((&forecast["agent"], &forecast["calls"]), (&json!("by-plan"), &json!(6)));
    assert_eq!(forecast["tasks"][0]["task_id"], "ground/borehole-summary");
}

#[test]
fn a_system_prompt_is_part_of_what_is_expected() {
    let project = project();
    let plain = project.data("plan --config experiment.yaml")["forecasts"][0].clone();
    let experiment = std::fs::read_to_string(project.env.path("experiment.yaml")).unwrap();
    let model = "model: offline/scripted:lambda-replies.yaml";
    let with_prompt = experiment.replace(model, &format!("{model}\n    system_prompt_file: own.md"));
    project.env.write("experiment.yaml", with_prompt);
    project.env.write("own.md", "Check every unit twice. ".repeat(10));
    let told = project.data("plan --config experiment.yaml")["forecasts"][0].clone();
    let tokens = |forecast: &Value| forecast["input_tokens"].as_u64().unwrap();
    // 239 letters and an empty line in each of six calls, four letters a token.
    assert!((tokens(&told) - tokens(&plain)).abs_diff(6 * 241 / 4) <= 2, "{told} {plain}");
    project.data("run --config experiment.yaml");
    for record in project.records("boreholes").values() {
        assert_eq!(record.reward(), Some(1.0));
        let by_plan = record.agent.name.as_str() == "by-plan";
        let own = record.inputs.system_prompt.as_deref().is_some_and(|text| text.starts_with("Check every"));
        assert_eq!(own, by_plan);
    }
    // If the prompt leaves no space for the sources, there is no plan.
    project.env.write("own.md", "Check every unit twice. ".repeat(1000));
    let (id, told) = project.refusal("plan --config experiment.yaml --experiment-id y", 3);
    assert!(id == "E045" && told.contains("there is no plan"), "{id}: {told}");
}

/// The first row of the only saved evaluation.
fn row(project: &Project) -> Value {
    let files = files_below(&project.env.path("outputs"));
    let (_, rows) = files.iter().find(|(name, _)| name.ends_with("results.jsonl")).unwrap();
    serde_json::from_slice(rows.split(|byte| *byte == b'\n').next().unwrap()).unwrap()
}

#[test]
fn evaluations_can_be_driven_by_these_harnesses() {
    for (harness, replies, turns) in [("rlm", "rlm-replies", 3_u32), ("lambda_rlm", "lambda-replies", 1)] {
        let project = project();
        let model = format!("offline/scripted:{replies}.yaml");
        let arguments = format!("{{\"harness\":\"{harness}\"}}");
        let line = format!("eval run --task ground/borehole-summary -m {model} -n 1 -r 1 -s -a {arguments}");
        let run = project.run(&line);
        assert_eq!(run.code, Some(0), "{run:?}");
        let row = row(&project);
        assert_eq!((&row["reward"], &row["stop_condition"]), (&json!(1.0), &json!("harness_done")), "{row}");
        assert_eq!(
            (&row["metrics"]["num_turns"], &row["info"]["harness"]),
            (&json!(f64::from(turns)), &json!(harness))
        );
        assert!(row["token_usage"]["input_tokens"].as_f64().unwrap() > 100.0, "{row}");
        assert!(row["completion"].as_array().unwrap().len() >= turns as usize);
    }
    // A package contains nothing that these harnesses could work with.
    let project = project();
    let export = project.run("prime export --name aec-small --output-dir packages");
    assert_eq!(export.code, Some(0), "{export:?}");
    let model = "offline/scripted:rlm-replies.yaml";
    let run = project
        .json(&format!("eval run ./packages/aec_small -m {model} -n 1 -r 1 -a {{\"harness\":\"rlm\"}}"));
    assert!(run.errors().iter().any(|(id, _)| id == "R066"), "{run:?}");
}

#[test]
fn evaluations_hold_policies_to_the_limits_of_the_task() {
    let project = project();
    let place = "tasks/ground/borehole-summary/rlm.toml";
    let rules = std::fs::read_to_string(project.env.path(place)).unwrap();
    project.env.write(place, rules.replace("max_iterations = 20", "max_iterations = 2"));
    std::fs::remove_file(project.env.path("tasks/ground/borehole-summary/lambda-rlm.toml")).unwrap();
    let busy = "replies: [{tool_calls: [{name: list_files, arguments: {}}]}]\n";
    let model = project.script("busy", busy);
    let run = project.run(&format!("eval run --task ground/borehole-summary -m {model} -n 1 -r 1 -s"));
    assert_eq!(run.code, Some(0), "{run:?}");
    let row = row(&project);
    assert_eq!(
        (&row["metrics"]["num_turns"], &row["stop_condition"]),
        (&json!(2.0), &json!("max_turns_reached"))
    );
}
