//! Models that answer nonsense or worse, broken workspaces and logs, machines without git: each case has a clear
//! outcome, and nothing outside the run's directories is touched.

use std::os::unix::fs::symlink;

use aec_xtest::files::names_in;
use serde_json::{Value, json};

use crate::evolve::voices::{actions, skill};
use crate::evolve::world::{PLACES, WRONG, assert_only, usual};
use crate::evolve::{Said, Voices, World};

/// One cycle of an evolver that always gives this reply. Returns the event of the proposal.
fn cycle_with(reply: &str) -> (World, Value) {
    let said = reply.to_owned();
    let world =
        World::with(move |body| if body["model"] == "solver" { WRONG.into() } else { said.clone().into() });
    world.evolution(&["max_cycles: 1", "batch_size: 1", "acceptance: { error_rate: 0.5, max_tasks: 12 }"]);
    let before = world.files();
    let data = world.evolve();
    assert_eq!(data["state"], "ended", "{data}");
    assert_only(&before, &world.files(), &PLACES);
    let event = world
        .events("evolve/w-1", "proposed")
        .into_iter()
        .chain(world.events("evolve/w-1", "not_proposed"))
        .next();
    (world, event.unwrap())
}

#[test]
fn actions_that_reach_for_other_places_are_dropped() {
    let body = "A text that is long enough to be a skill.";
    let reach = |name: &str| json!({ "type": "write_skill", "name": name, "description": "d", "body": body });
    let (world, event) = cycle_with(&actions(&json!([
        reach("../../escape"),
        reach("/etc/cron.d/evil"),
        reach("a/../../b"),
        reach(".git/hooks/post-commit"),
        reach("nul\u{0}"),
        { "type": "write_file", "path": "/etc/passwd", "content": body },
        { "type": "modify_prompt", "content": body, "path": "../../x" },
        { "type": "delete_skill", "name": "../../tasks" },
    ])));
    assert_eq!(event["event"], "not_proposed", "{event}");
    assert_eq!(event["dropped"].as_array().unwrap().len(), 8, "{event}");
    assert!(event["reason"].as_str().unwrap().contains("8 proposed changes could not be applied"));
    assert_eq!(world.in_workspace().into_keys().collect::<Vec<_>>(), ["manifest.yaml", "prompts/system.md"]);
    assert!(world.env.path("tasks/civil/channel-000/task.toml").is_file());
}

#[test]
fn answers_that_cannot_be_read_cost_a_cycle_and_no_more() {
    let long = "x".repeat(300 * 1024);
    for (reply, why) in [
        ("I would rather not.", "not JSON"),
        ("{\"actions\": \"all of them\"}", "not a list"),
        ("[1, 2, 3]", "no JSON object"),
        ("{\"reasoning\": \"none\"}", "no `actions`"),
        (long.as_str(), "too long"),
        ("{\"actions\": []}", "nothing was proposed"),
    ] {
        let (world, event) = cycle_with(reply);
        assert_eq!(event["event"], "not_proposed");
        assert!(event["reason"].as_str().unwrap().contains(why), "{why}: {event}");
        let asked = world.voices.asked("evolver").len();
        assert_eq!(asked, if why == "nothing was proposed" { 1 } else { 2 }, "one chance to repair it");
    }
}

#[test]
fn an_evolver_that_says_nothing_costs_a_cycle() {
    let (_, event) = cycle_with("");
    assert_eq!(event["event"], "not_proposed", "{event}");
    assert!(event["reason"].as_str().unwrap().contains("empty"), "{event}");
}

#[test]
fn wrong_types_blanks_and_thousands_are_dropped_one_by_one() {
    let good = json!({ "type": "write_skill", "name": "good", "description": "d", "body": "A text that is long enough." });
    let mut many = vec![
        json!(null),
        json!(7),
        json!({ "type": "write_skill", "name": 7, "description": "d", "body": [] }),
        json!({ "type": "write_skill", "name": "a", "description": "", "body": "A text that is long enough." }),
        json!({ "type": "write_skill", "name": "a", "description": "d", "body": "" }),
        json!({ "type": "write_skill", "name": "a", "description": "d", "body": "word ".repeat(2000) }),
        json!({ "type": "modify_prompt", "content": "word ".repeat(4000) }),
        good,
    ];
    many.extend(std::iter::repeat_n(json!({ "type": "delete_skill", "name": "nobody" }), 5000));
    let (world, event) = cycle_with(&actions(&Value::from(many)));
    assert_eq!(event["event"], "proposed", "{event}");
    assert_eq!(event["edits"], json!([{ "kind": "skill_added", "skill": "good" }]));
    let dropped = event["dropped"].as_array().unwrap();
    assert_eq!(dropped.len(), 50, "49 of those that are looked at, and a line for the rest");
    assert!(dropped.last().unwrap()["why"].as_str().unwrap().contains("only 50 are looked at"));
    assert!(world.directory("evolve/w-1").join("events.jsonl").metadata().unwrap().len() < 200_000);
}

#[test]
fn a_task_that_is_copied_is_not_taken() {
    let copied =
        "Read the survey that lies in the workspace, find the discharge and the normal depth of the channel.";
    let (_, event) = cycle_with(&skill("copied", copied));
    assert_eq!(event["event"], "not_proposed", "{event}");
    assert!(event["dropped"][0]["why"].as_str().unwrap().contains("repeats a task word by word"), "{event}");
}

#[test]
fn expected_values_in_a_prompt_are_found() {
    let (world, event) =
        cycle_with(&skill("values", "The flow is 3.217 and the depth is 1.254, always and everywhere."));
    assert_eq!(event["event"], "not_proposed", "{event}");
    assert!(event["reason"].as_str().unwrap().contains("holds expected values"), "{event}");
    assert_eq!(world.state("evolve/w-1").tests, 0);
}

#[test]
fn secrets_that_a_model_repeats_are_not_written_down() {
    let secret = "sk-live-0123456789abcdefghij";
    let body = format!("Always use the key {secret} for everything.");
    let reply = json!({
        "actions": [{ "type": "write_skill", "name": "key", "description": "d", "body": body }],
        "reasoning": format!("the key is {secret}"), "note": format!("{secret}"),
    })
    .to_string();
    let mut world =
        World::with(move |body| if body["model"] == "solver" { WRONG.into() } else { reply.clone().into() });
    world.env.set("MY_API_KEY", secret);
    world.evolution(&["max_cycles: 1", "batch_size: 1", "acceptance: { error_rate: 0.5, max_tasks: 12 }"]);
    world.evolve();
    let holding: Vec<String> = world
        .files()
        .into_iter()
        .filter(|(_, content)| String::from_utf8_lossy(content).contains(secret))
        .map(|(name, _)| name)
        .collect();
    assert!(holding.is_empty(), "{holding:?}");
    let reasoning = world.data("evolve report w-1")["candidates"].to_string();
    assert!(!reasoning.contains(secret), "{reasoning}");
}

#[test]
fn text_of_models_does_not_move_the_cursor() {
    let reply = json!({
        "actions": [{ "type": "write_skill", "name": "key", "description": "d", "body": "Text with \u{1b}[2J\u{7} bells, long enough." }],
        "reasoning": "\u{1b}[31mred", "note": "\u{1b}]0;title\u{7}",
    })
    .to_string();
    let (world, _) = cycle_with(&reply);
    for line in ["evolve report w-1 --diffs", "evolve history workspaces/w", "evolve history"] {
        let run = world.run(line);
        assert!(!run.stdout.contains('\u{1b}') && !run.stdout.contains('\u{7}'), "{run:?}");
    }
}

#[test]
fn a_provider_that_fails_stops_the_run_and_it_goes_on_later() {
    let world = World::with(|body| if body["model"] == "solver" { usual(body) } else { Said::Status(401) });
    let run = world.json("evolve run -c evolution.yaml");
    assert_eq!(run.code, Some(1), "{run:?}");
    let errors = run.errors();
    assert!(
        errors.iter().any(|(id, what)| id == "X060" && what.contains("the evolver failed")),
        "{errors:?}"
    );
    assert_eq!(run.envelope()["data"]["state"], "stopped");
    let voices = Voices::start(usual);
    let text = world.env.read("configs/endpoints.toml").replace(&world.voices.url(), &voices.url());
    world.env.write("configs/endpoints.toml", text);
    let data = world.data("evolve resume w-1");
    assert_eq!((&data["state"], &data["accepted"]), (&json!("ended"), &json!(1)));
}

#[test]
fn what_is_not_there_is_named() {
    let world = World::new();
    world.evolution(&["tasks: { include_patterns: ['nothing/*'] }"]);
    world.refuses(
        "evolve run -c evolution.yaml",
        (3, "X040"),
        &["no task is selected", "aec-bench task list"],
    );
    world.evolution(&["models: { evolver: no-such-model }"]);
    let run = world.json("evolve run -c evolution.yaml");
    assert!(matches!(run.code, Some(3 | 4)), "{run:?}");
    assert!(run.errors()[0].1.contains("no-such-model"), "{run:?}");
    assert!(!world.directory("evolve").exists());
    world.evolution(&["models: { evolver: env:NO_SUCH_VARIABLE }"]);
    world.refuses("evolve run -c evolution.yaml", (3, "X005"), &["NO_SUCH_VARIABLE", "set NO_SUCH_VARIABLE"]);
    world.evolution(&["workspace_path: workspaces/nowhere"]);
    world.refuses("evolve run -c evolution.yaml", (3, "X011"), &["not a workspace", "evolve init"]);
    world.swarm(&["task: { workspace: workspaces/nowhere, task_path: tasks }"]);
    world.refuses("swarm run swarm.yaml", (3, "X011"), &["not a workspace"]);
}

#[test]
fn a_broken_workspace_is_left_alone() {
    let world = World::new();
    let manifest = world.env.read("workspaces/w/manifest.yaml");
    let prompt = world.env.read("workspaces/w/prompts/system.md");
    let refuses = |id: &str, words: &[&str]| world.refuses("evolve run -c evolution.yaml", (3, id), words);
    world.env.write("workspaces/w/manifest.yaml", format!("{manifest}colour: red\n"));
    refuses("X003", &["colour"]);
    world.env.write("workspaces/w/manifest.yaml", "name: [");
    refuses("X002", &["manifest.yaml"]);
    world.env.write("workspaces/w/manifest.yaml", &manifest);
    world.env.write("workspaces/w/prompts/system.md", [0xff, 0xfe, 0x00]);
    refuses("X001", &["not text"]);
    world.env.write("workspaces/w/prompts/system.md", "\n");
    refuses("X001", &["empty"]);
    world.env.write("workspaces/w/prompts/system.md", &prompt);
    symlink("/etc/passwd", world.env.path("workspaces/w/prompts/link.md")).unwrap();
    refuses("X015", &["link"]);
    std::fs::remove_file(world.env.path("workspaces/w/prompts/link.md")).unwrap();
    world.env.write("workspaces/w/skills/bad/SKILL.md", "no head at all\n");
    refuses("X002", &["SKILL.md"]);
    std::fs::remove_dir_all(world.env.path("workspaces/w/skills/bad")).unwrap();
    assert_eq!(world.run("evolve run -c evolution.yaml --dry-run").code, Some(0));
}

#[test]
fn a_broken_log_is_named_and_not_touched() {
    let world = World::finished();
    let path = world.directory("evolve/w-1").join("events.jsonl");
    let whole = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    for (text, id) in [
        (String::new(), "X032"),
        ("garbage\n".to_owned(), "X032"),
        (format!("{}\n{}\n", lines[0], lines[2]), "X032"),
        (format!("{}\n", lines[0].replacen("\"schema_version\":1", "\"schema_version\":9", 1)), "X031"),
    ] {
        std::fs::write(&path, &text).unwrap();
        let refusal = world.refusal("evolve resume w-1", 3);
        assert_eq!(refusal["id"], id, "{refusal}");
        assert!(refusal["fix"].is_string());
        assert_eq!(world.refusal("evolve report w-1", 3)["id"], id);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "nothing was changed");
        let listed = world.json("evolve history");
        assert_eq!(listed.errors()[0].0, id, "the list names it too: {listed:?}");
    }
    // A kill leaves half a line at the end: the rest is there, and the run continues.
    let before: String = lines[..lines.len() - 1].join("\n") + "\n";
    std::fs::write(&path, format!("{before}{}", &lines[lines.len() - 1][..20])).unwrap();
    let data = world.data("evolve resume w-1");
    assert_eq!((&data["state"], &data["accepted"]), (&json!("ended"), &json!(1)));
}

#[test]
fn a_run_of_another_process_is_left_alone() {
    let world = World::finished();
    let lock = std::fs::File::options().write(true).open(world.directory("evolve/w-1").join("lock")).unwrap();
    lock.lock().unwrap();
    world.refuses("evolve resume w-1", (3, "X035"), &["being carried out", "stop"]);
    assert_eq!(world.data("evolve stop w-1")["running"], true);
    drop(lock);
    let held = std::fs::File::create(world.env.path("workspaces/w/.git/aec-bench-lock")).unwrap();
    held.lock().unwrap();
    world.refuses("evolve run -c evolution.yaml", (3, "X012"), &["in use"]);
    world.refuses("evolve rollback workspaces/w evolve-w-1-0", (3, "X012"), &["in use"]);
    assert_eq!(names_in(&world.directory("evolve")), ["w-1"]);
}

#[test]
fn without_git_the_program_says_so() {
    let mut world = World::new();
    let python = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|directory| directory.join("python3"))
        .find(|file| file.is_file())
        .unwrap();
    let place = world.env.path("../bin");
    std::fs::create_dir(&place).unwrap();
    symlink(python, place.join("python3")).unwrap();
    world.env.set("PATH", place.to_str().unwrap());
    for line in [
        "evolve run -c evolution.yaml",
        "swarm run swarm.yaml",
        "evolve init other",
        "evolve history workspaces/w",
    ] {
        world.refuses(line, (4, "X016"), &["no git", "install git"]);
    }
}
