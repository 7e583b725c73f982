//! Plans that Harbor carries out.

use std::collections::BTreeSet;

use aec_judge::verdict::Outcome;
use aec_xtest::files::{files_below, names_in};
use serde_json::Value;

use crate::harbor::{ROOM, VERSION, jobs, project, project_of, told, verdicts};
use crate::run::world::{RIGHT, Server};

const EXPERIMENT: &str =
    "agents:\n  - {name: oracle, harness: oracle}\n  - {name: nop, harness: nop}\nrepetitions: 2\n";

/// Oracle and nop over two tasks, twice: the same verdicts as in rooms of this machine, trial by trial.
fn same_verdicts(version: &str) {
    let project = project_of(version, 2);
    project.env.write("experiment.yaml", EXPERIMENT);
    let plan =
        project.data(&format!("plan -c experiment.yaml -e there -b harbor --harbor-environment {ROOM}"));
    project.data("run -c experiment.yaml -e here -b local");
    let done =
        project.data(&format!("run -c experiment.yaml -e there -b harbor --harbor-environment {ROOM}"));
    assert_eq!((&done["recorded"], &done["all"]["executed"]), (&Value::from(8), &Value::from(8)));
    assert_eq!(verdicts(&project, "there"), verdicts(&project, "here"));
    assert_eq!(jobs(&project, "there").len(), 1, "agents with the same trials share a job");

    let planned: Vec<String> = plan["trials"]
        .as_array()
        .unwrap()
        .iter()
        .map(|trial| trial["trial_id"].as_str().unwrap().to_owned())
        .collect();
    for record in project.records("there").values() {
        assert!(planned.contains(&record.trial_id.to_string()));
        assert_eq!((record.attempt, told(record, "verification").as_str()), (1, "agrees"), "{record:?}");
        assert_eq!(record.environment.compute_backend, "harbor");
        assert_eq!(record.environment.runtime_image, format!("harbor:{ROOM}"));
        assert_eq!(record.environment.tool_versions["harbor"], version);
        let evidence = |name: &str| record.all_artefacts().any(|artefact| artefact.path == name);
        assert!(evidence("harbor/result.json") && evidence("harbor/verifier/test-stdout.txt"));
    }
    project.assert_sound("there");

    let again = project.data("run --resume there");
    assert_eq!(again["recorded"], 0);
    assert_eq!(jobs(&project, "there").len(), 1, "nothing is left to do");

    // The same job, imported as a job of another user.
    let job = jobs(&project, "there").remove(0);
    let brought = project.data(&format!("import {} -e brought", job.display()));
    let counts = |data: &Value| {
        let all = [data, &data["verification"]];
        ["found", "imported", "skipped", "refused", "unfinished", "agree", "disagree", "unverified"]
            .map(|key| all.iter().find_map(|data| data[key].as_u64()).unwrap())
    };
    assert_eq!(counts(&brought), [8, 8, 0, 0, 0, 8, 0, 0]);
    let again = project.data(&format!("import {} -e brought", job.display()));
    assert_eq!(counts(&again), [8, 0, 8, 0, 0, 0, 0, 0]);
    project.assert_sound("brought");
    let (id, _) = project.refusal(&format!("import {} -e there", job.display()), 3);
    assert_eq!(id, "H020");
}

#[test]
#[cfg_attr(
    not(all(python312, packages, root)),
    ignore = "needs Harbor: root, the Python package index and a Python 3.12"
)]
fn verdicts_are_those_of_the_local_backend() {
    same_verdicts(VERSION);
}

#[test]
#[cfg_attr(
    not(all(python312, packages, root, full)),
    ignore = "needs Harbor: root, the Python package index and a Python 3.12; and AEC_TEST=full: it is long"
)]
fn verdicts_are_the_same_under_the_older_version() {
    same_verdicts("0.24.0");
}

#[test]
#[cfg_attr(
    not(all(python312, packages, root)),
    ignore = "needs Harbor: root, the Python package index and a Python 3.12"
)]
fn an_environment_that_fails_is_nobodys_zero_and_is_tried_again() {
    let mut project = project(2);
    project.env.set("LOCAL_ROOM_FAILS", "channel-001");
    let run = project.json(&format!(
        "run civil/* --harness oracle -e broken -b harbor --harbor-environment {ROOM} --max-attempts 2"
    ));
    assert_eq!(run.code, Some(1), "{run:?}");
    let records: Vec<_> = project.records("broken").into_values().collect();
    assert_eq!(records.len(), 3, "one that worked, and two attempts at the other");
    let broken: Vec<_> = records.iter().filter(|record| record.outcome == Outcome::InfraFault).collect();
    assert_eq!(broken.iter().map(|record| record.attempt).collect::<BTreeSet<_>>(), BTreeSet::from([1, 2]));
    for record in broken {
        let fault = record.fault.as_ref().unwrap();
        assert_eq!((fault.boundary.name(), record.reward()), ("sandbox", None));
        assert!(fault.message.contains("asked to fail at the start"), "{fault:?}");
    }
    assert_eq!(jobs(&project, "broken").len(), 2);
    project.assert_sound("broken");
}

#[test]
#[cfg_attr(
    not(all(python312, packages, root)),
    ignore = "needs Harbor: root, the Python package index and a Python 3.12"
)]
fn the_loop_works_inside_the_environment() {
    let mut project = project(0);
    let replies = format!(
        "replies:\n- tool_calls: [{{name: bash, arguments: {{command: cp survey.csv kept.csv}}}}]\n\
         - tool_calls: [{{name: bash, arguments: {{command: \"echo '{}' > output.json\"}}}}]\n- text: done\n",
        RIGHT.replace('"', "\\\"")
    );
    let server = Server::saying(&replies);
    project.task("civil/open", "easy");
    let toml = project
        .env
        .read("tasks/civil/open/task.toml")
        .replace("allow_internet = false", "allow_internet = true");
    project.env.write("tasks/civil/open/task.toml", toml);
    project.env.write("configs/endpoints.toml", format!(
        "[[endpoint]]\nendpoint_id = \"there\"\nmodel = \"test-model\"\nurl = \"{}/v1\"\nkey = \"THE_MODEL_KEY\"\n",
        server.url()
    ));
    project.env.set("THE_MODEL_KEY", "sk-not-to-be-seen-0123456789");
    let run = project.json(&format!(
        "run civil/open --model there --harness tool_loop -e loop -b harbor --harbor-environment {ROOM} --parameter max_turns=7"
    ));
    assert_eq!(run.code, Some(0), "{run:?}");
    let record = project.record("loop");
    assert_eq!((record.outcome, record.reward()), (Outcome::Scored, Some(1.0)), "{record:?}");
    assert_eq!((told(&record, "turns_used").as_str(), told(&record, "max_turns").as_str()), ("3", "7"));
    let submission = record.outputs.submission.as_ref().unwrap();
    let files: Vec<&str> = submission.files.keys().map(String::as_str).collect();
    assert_eq!(files, ["kept.csv", "output.json", "survey.csv"], "nothing of the loop's own");
    assert!(record.cost.tokens_in.unwrap() > 0 && record.cost.model_calls == 3);
    assert!(project.job_file(&record, "trajectory.jsonl").contains("tool_call"));
    assert_eq!(server.count(), 3);
    project.assert_sound("loop");
    for name in names_in(&project.jobs("loop").join("_harbor")) {
        for (path, bytes) in files_below(&project.jobs("loop").join("_harbor").join(name)) {
            assert!(!String::from_utf8_lossy(&bytes).contains("sk-not-to-be-seen"), "{path}");
        }
    }
}

#[test]
#[cfg_attr(
    not(all(python312, packages, root)),
    ignore = "needs Harbor: root, the Python package index and a Python 3.12"
)]
fn what_harbor_cannot_do_is_refused_before_anything_runs() {
    let mut project = project(1);
    project.endpoints("http://127.0.0.1:9", &["here"]);
    project.env.set("OPENAI_API_KEY", "sk-whatever-123456");
    let base = format!("run civil/* -b harbor --harbor-environment {ROOM} --dry-run");
    for (arguments, id) in [
        ("--harness direct --model openai:gpt-4o", "Y022"),
        ("--harness sim", "Y022"),
        ("--harness tool_loop --model openai:gpt-4o", "Y024"),
    ] {
        let run = project.json(&format!("{base} {arguments}"));
        assert_eq!(run.code, Some(3), "{arguments}: {run:?}");
        assert!(run.errors().iter().any(|(found, _)| found == id), "{arguments}: {run:?}");
    }
    let toml = project.env.read("tasks/civil/channel-000/task.toml");
    project.env.write(
        "tasks/civil/channel-000/task.toml",
        toml.replace("allow_internet = false", "allow_internet = true"),
    );
    for (line, id) in [
        ("run civil/* -b harbor --dry-run --harness tool_loop --model offline/echo", "Y024"),
        ("run civil/* -b harbor --dry-run --harness tool_loop --model here", "Y024"),
        (
            "run civil/* -b harbor --dry-run --harness tool_loop --model openai:gpt-4o --parameter temperature=0.5",
            "Y025",
        ),
        ("run civil/* -b harbor --dry-run --harness tool_loop --model openai:gpt-4o --max-cost 1", "Y026"),
        ("run civil/* -b harbor --dry-run --harness oracle --harbor-environment a;b", "Y027"),
    ] {
        assert_eq!(project.refusal(line, 3).0, id, "{line}");
    }
    let shown =
        project.data("run civil/* -b harbor --dry-run --harness tool_loop --model openai:gpt-4o -e dry");
    let job = &shown["harbor_jobs"][0];
    assert_eq!(job["environment"]["type"], "docker");
    assert_eq!(job["agents"][0]["env"]["OPENAI_API_KEY"], "${OPENAI_API_KEY}");
    assert_eq!(job["tasks"].as_array().unwrap().len(), 1);
    assert!(names_in(&project.env.path("jobs")).is_empty(), "nothing was written");
    let bare = std::env::var("PATH").unwrap();
    project.env.set("PATH", &bare);
    assert_eq!(project.refusal("run civil/* -b harbor --harness oracle", 4).0, "Y020");
}
