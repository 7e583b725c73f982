//! The commands around runs: what they print as text and as JSON, and what they leave unchanged.

use std::sync::{Arc, Condvar, Mutex};

use aec_xtest::files::names_in;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::evolve::voices::{cycle, skill};
use crate::evolve::world::{LESSON, assert_only, assert_same, usual};
use crate::evolve::{Said, Voices, World};

/// Replaces what differs from run to run. Names of candidates follow from their files, so only times differ.
fn steady(text: &str) -> String {
    let mut steady = String::new();
    for line in text.lines() {
        let words: Vec<&str> =
            line.split("  ").map(|word| if is_time(word) { "[TIME]" } else { word }).collect();
        steady.push_str(words.join("  ").trim_end());
        steady.push('\n');
    }
    steady
}

fn is_time(word: &str) -> bool {
    let word = word.trim();
    word.len() >= 20 && word.starts_with("20") && word.contains('T') && word.ends_with('Z')
}

#[test]
fn a_workspace_is_made_once() {
    let world = World::bare(Voices::start(usual));
    let made = world.data("evolve init workspaces/mine --harness tool_loop");
    assert_eq!((&made["name"], &made["harness"]), (&json!("mine"), &json!("tool_loop")));
    let manifest = world.env.read("workspaces/mine/manifest.yaml");
    assert!(
        manifest.contains("agent_harness: tool_loop") && manifest.contains("schema_version: 1"),
        "{manifest}"
    );
    assert!(world.env.path("workspaces/mine/.git").is_dir());
    world.refuses("evolve init workspaces/mine", (3, "X010"), &["there is a workspace already"]);
    world.env.write("full/file.txt", "mine");
    world.refuses("evolve init full", (3, "X010"), &["not empty"]);
    let named = world.json("evolve init other --name ../evil");
    assert_eq!(named.code, Some(2), "{named:?}");
    assert!(!world.env.path("other").exists());
    let text = world.run("evolve init other --name good-name -a sim");
    assert!(text.stderr.contains("good-name begins with c-"), "{text:?}");
}

#[test]
fn what_people_see_of_a_run() {
    let world = World::finished();
    insta::assert_snapshot!("report", steady(&world.run("evolve report w-1").stdout));
    insta::assert_snapshot!("history", steady(&world.run("evolve history workspaces/w").stdout));
    insta::assert_snapshot!("diff", world.run("evolve diff workspaces/w evolve-w-1-2").stdout);
}

#[test]
fn runs_and_candidates_are_listed() {
    let world = World::finished();
    let runs = world.run("evolve history");
    assert!(runs.stdout.contains("w-1") && runs.stdout.contains("ended"), "{runs:?}");
    assert_eq!(
        world.data("evolve history workspaces/w --limit 2")["candidates"].as_array().unwrap().len(),
        2
    );
    assert_eq!(world.data("evolve history w")["candidates"].as_array().unwrap().len(), 4, "a name is enough");
    assert_eq!(world.data("swarm history")["total"], 0);
    let none = World::bare(Voices::start(usual)).run("evolve history");
    assert!(none.stderr.contains("No runs yet"), "{none:?}");
    let unknown = world.refusal("evolve report nobody", 3);
    assert_eq!(unknown["id"], "X034");
}

#[test]
fn a_candidate_is_shown_compared_and_written_elsewhere() {
    let world = World::finished();
    let before = world.files();
    let best = world.data("evolve show workspaces/w");
    assert_eq!((&best["kept"], &best["labels"]), (&json!(true), &json!(["evolve-w-1-2"])));
    assert!(best["system_prompt"].as_str().unwrap().contains(LESSON));
    assert_eq!(best["skills"][0]["name"], "units");
    let first = world.data("evolve show workspaces/w evolve-w-1-0");
    assert_eq!(first["skills"], json!([]));
    assert_eq!(best["parents"], json!([first["name"]]));
    let diff = world.data("evolve diff workspaces/w evolve-w-1-0 evolve-w-1-2");
    assert!(diff["diff"].as_str().unwrap().contains("+Always check the units"), "{diff}");
    let same = world.run("evolve diff workspaces/w evolve-w-1-0 evolve-w-1-0");
    assert!(same.stdout.is_empty() && same.stderr.contains("the same"), "{same:?}");
    let alone = world.refusal("evolve diff workspaces/w evolve-w-1-0", 3);
    assert_eq!(alone["id"], "X017");
    assert_eq!(world.refusal("evolve show workspaces/w nobody", 3)["id"], "X013");
    assert_eq!(world.refusal("evolve show elsewhere", 3)["id"], "X011");
    assert_same(&before, &world.files());
    let written = world.data("evolve export workspaces/w evolve-w-1-2 --output out --prompt prompt.md");
    assert_eq!(written["files"], 3);
    assert_eq!(
        world.env.read("out/skills/units/SKILL.md"),
        world.env.read("workspaces/w/skills/units/SKILL.md")
    );
    assert_eq!(world.env.read("prompt.md").trim(), best["system_prompt"].as_str().unwrap().trim());
    assert_only(&before, &world.files(), &["out/", "prompt.md"]);
    world.refuses("evolve export workspaces/w --output out", (3, "X018"), &["does not exist"]);
    world.refuses("evolve export workspaces/w --prompt prompt.md", (3, "X018"), &["does not exist"]);
    let nowhere = world.run("evolve export workspaces/w");
    assert_eq!(nowhere.code, Some(2), "{nowhere:?}");
    assert!(nowhere.stderr.contains("--prompt"), "either is enough: {nowhere:?}");
}

#[test]
fn a_report_needs_no_workspace() {
    let world = World::finished();
    std::fs::remove_dir_all(world.env.path("workspaces/w")).unwrap();
    let page = world.run("evolve report w-1 --html page.html --diffs");
    assert_eq!(page.code, Some(0), "{page:?}");
    assert!(page.stderr.contains("changes are not shown: workspaces/w"), "{page:?}");
    assert!(page.stdout.contains("adds skill units"), "{page:?}");
    let page = world.env.read("page.html");
    assert!(page.contains("Changes are not shown: the workspace workspaces/w is not there"), "{page}");
}

#[test]
fn changes_that_were_not_taken_are_shown_with_their_reasons() {
    let world = World::with(|body| match body["model"].as_str() {
        Some("solver") => usual(body),
        _ => skill("long", &"Very long. ".repeat(500)).into(),
    });
    world.evolution(&["max_cycles: 1"]);
    let run = world.run("evolve run -c evolution.yaml");
    assert_eq!(run.code, Some(0), "{run:?}");
    for shown in [&run.stdout, &run.stderr, &world.run("evolve report w-1").stdout] {
        assert!(shown.contains("nothing is cut to fit"), "{shown}");
    }
    assert!(run.stdout.contains("Proposed and not taken:\nevolve 1: "), "{run:?}");
}

#[test]
fn a_run_whose_directory_was_removed_keeps_its_number() {
    let world = World::finished();
    std::fs::remove_dir_all(world.env.path("artefacts/feedback")).unwrap();
    world.evolution(&["max_cycles: 1"]);
    assert_eq!(world.evolve()["run"], "w-2", "labels and records of w-1 are there");
    std::fs::remove_dir_all(world.env.path("artefacts/feedback")).unwrap();
    std::fs::remove_dir_all(world.env.path("artefacts/ledger")).unwrap();
    assert_eq!(world.evolve()["run"], "w-3", "labels are enough");
}

#[test]
fn a_repository_inside_a_workspace_is_refused_before_anything_is_kept() {
    let world = World::finished();
    world.env.write("workspaces/w/skills/units/.git/HEAD", "ref: refs/heads/main\n");
    world.refuses(
        "evolve rollback workspaces/w evolve-w-1-0",
        (3, "X015"),
        &["skills/units/.git", "take it out"],
    );
    std::fs::remove_dir_all(world.env.path("workspaces/w/skills/units/.git")).unwrap();
    world.data("evolve rollback workspaces/w evolve-w-1-0");
}

#[test]
fn a_report_is_a_page_as_well() {
    let world = World::finished();
    let before = world.files();
    let data = world.data("evolve report w-1 --diffs");
    let diffs = data["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|candidate| candidate["diff"].is_string())
        .count();
    assert_eq!(diffs, 3);
    let page = world.run("evolve report w-1 --html page.html");
    assert_eq!(page.code, Some(0), "{page:?}");
    assert!(world.env.read("page.html").contains("<html"), "a page");
    assert_only(&before, &world.files(), &["page.html"]);
    assert_eq!(world.data("evolve report w")["run"], "w-1", "a beginning is enough");
}

#[test]
fn a_rollback_keeps_what_was_changed_by_hand() {
    let world = World::finished();
    world.env.write("workspaces/w/prompts/system.md", "I wrote this myself, by hand.\n");
    world.env.write("workspaces/w/notes/mine.txt", "mine\n");
    let by_hand = world.in_workspace();
    let shown = world.run("evolve show workspaces/w");
    assert!(shown.stderr.contains("changed by hand"), "{shown:?}");
    let back = world.data("evolve rollback workspaces/w evolve-w-1-0");
    assert_eq!(world.in_workspace().into_keys().collect::<Vec<_>>(), ["manifest.yaml", "prompts/system.md"]);
    let id = back["before"].as_str().unwrap();
    let again = world.data(&format!("evolve rollback workspaces/w {id}"));
    assert_eq!(again["candidate"], id);
    assert_eq!(world.in_workspace(), by_hand, "exactly what was there");
    let version = world.data("evolve history workspaces/w")["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .find(|version| version["candidate"] == id)
        .cloned()
        .unwrap();
    assert_eq!(version["summary"], "changed by hand");
    world.refuses("evolve rollback workspaces/w nobody", (3, "X013"), &["nobody"]);
}

#[test]
fn a_dry_run_writes_nothing() {
    let world = World::new();
    let before = world.files();
    let lock = world.env.path("workspaces/w/.git/aec-bench-lock");
    let shown = world.run("evolve run -c evolution.yaml --dry-run");
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for part in ["3 cycles of 4 tasks each, strategy hill_climb", "error rate of 0.2", "without a budget"] {
        assert!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
    let swarm = world.run("swarm run swarm.yaml --dry-run");
    assert_eq!(swarm.code, Some(0), "{swarm:?}");
    assert!(!lock.exists(), "not even a lock");
    assert_same(&before, &world.files());
    assert_eq!(world.voices.asked("evolver").len() + world.voices.asked("solver").len(), 0);
}

#[test]
fn a_run_that_is_over_is_not_resumed() {
    let world = World::finished();
    world.refuses("evolve resume w-1", (3, "X037"), &["is over: all cycles were used", "begin a new run"]);
    world.refuses("swarm resume w-1", (3, "X034"), &["is no run"]);
    let stopped = world.data("evolve stop w-1");
    assert_eq!(stopped["running"], false);
}

/// Models that never answer the question of the second cycle.
fn hanging(body: &Value) -> Said {
    if body["model"] == "evolver" && cycle(body) == 2 { Said::Silence } else { usual(body) }
}

fn answering(world: &World) -> Voices {
    let voices = Voices::start(usual);
    let text = world.env.read("configs/endpoints.toml").replace(&world.voices.url(), &voices.url());
    world.env.write("configs/endpoints.toml", text);
    voices
}

#[test]
fn ctrl_c_stops_a_run_which_goes_on_later() {
    // The question of the second cycle is answered after Ctrl-C was pressed.
    let pressed = Arc::new((Mutex::new(false), Condvar::new()));
    let shared = Arc::clone(&pressed);
    let world = World::with(move |body| {
        if body["model"] == "evolver" && cycle(body) == 2 {
            let (pressed, changed) = &*shared;
            drop(changed.wait_while(pressed.lock().unwrap(), |pressed| !*pressed).unwrap());
        }
        usual(body)
    });
    let run = world.start("evolve run -c evolution.yaml");
    world.voices.wait_for_cycle(2);
    run.signal(Signal::INT);
    *pressed.0.lock().unwrap() = true;
    pressed.1.notify_all();
    let (code, output, _) = run.end();
    assert_eq!(code, Some(130), "{output}");
    assert_eq!(world.data("evolve report w-1")["state"], "stopped");
    assert!(
        world.events("evolve/w-1", "stopped")[0]["reason"].as_str().unwrap().contains("the user stopped it")
    );
    let data = world.data("evolve resume w-1");
    assert_eq!((&data["state"], &data["accepted"]), (&json!("ended"), &json!(1)));
}

#[test]
fn stop_asks_from_outside() {
    let world = World::with(hanging);
    let run = world.start("evolve run -c evolution.yaml");
    world.voices.wait_for("evolver", 2);
    // Meanwhile no other process may touch the run or its workspace.
    let busy = world.refusal("evolve resume w-1", 3);
    assert_eq!(busy["id"], "X035", "{busy}");
    let held = world.refusal("evolve run -c evolution.yaml", 3);
    assert_eq!(held["id"], "X012", "{held}");
    assert_eq!(world.refusal("evolve rollback workspaces/w evolve-w-1-0", 3)["id"], "X012");
    assert_eq!(world.data("evolve report w-1")["state"], "running");
    assert_eq!(world.data("evolve stop w-1 --force")["running"], true);
    let (code, ..) = run.end();
    assert_eq!(code, Some(130));
    let _voices = answering(&world);
    assert_eq!(world.data("evolve resume w-1 --max-cost 3")["state"], "ended");
    assert_eq!(names_in(&world.directory("evolve")), ["w-1"]);
}

#[test]
fn a_swarm_is_shown_and_its_best_taken_out() {
    let world = World::swarmed();
    let status = world.run("swarm status w-1");
    for part in ["w-1  ended", "agent-0", "agent-2", "Archive"] {
        assert!(status.stdout.contains(part), "{part}: {status:?}");
    }
    let runs = world.data("swarm history");
    assert_eq!((&runs["total"], &runs["runs"][0]["state"]), (&json!(1), &json!("ended")));
    let best = world.run("swarm best w-1 --limit 1 --output best");
    assert_eq!(best.code, Some(0), "{best:?}");
    assert!(world.env.read("best/skills/units/SKILL.md").contains(LESSON));
    world.refuses("swarm best w-1 --output best", (3, "X018"), &["does not exist"]);
    assert_eq!(world.data("evolve report w-1")["kind"], "swarm", "a report is for both");
    world.refuses("swarm resume w-1", (3, "X037"), &["is over"]);
}

#[test]
fn a_run_tells_its_trials_and_its_log_as_events() {
    let world = World::new();
    world.evolution(&[]);
    let dry = world.run("evolve run -c evolution.yaml --dry-run --events events.jsonl");
    assert_eq!(dry.code, Some(2), "{dry:?}");
    assert!(!world.env.path("events.jsonl").exists());
    world.data("evolve run -c evolution.yaml --events events.jsonl");
    let text = world.env.read("events.jsonl");
    let told: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((told[0]["event"].as_str(), told[0]["command"].as_str()), (Some("opened"), Some("evolve")));
    let ended = told.iter().filter(|line| line["event"] == "trial_ended").count();
    assert_eq!(ended, world.records("evolve-w-1").len());
    for entry in world.entries("evolve/w-1").iter().skip(1) {
        let entry = serde_json::to_value(entry).unwrap();
        assert!(told.contains(&entry), "{entry} is not among the events");
    }
}
