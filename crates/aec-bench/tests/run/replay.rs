//! A recorded experiment can be repeated without a model: the records are the same except for times.

use std::collections::BTreeMap;

use aec_model_server::Options;
use aec_xtest::files::{copy, files_below};
use serde_json::Value;

use crate::run::world::saying;
use crate::run::{Project, Server};

const REPLIES: &str = r#"
replies:
- text: Let me see.
  tool_calls:
  - {name: list_files, arguments: {}}
  - {name: bash, arguments: {command: "cat survey.csv; echo oops >&2; exit 3"}}
  - {name: write_file, arguments: {path: notes.md, content: "a note\n"}}
- tool_calls:
  - {name: bash, arguments: "not json"}
  - {name: write_file, arguments: {path: output.json, content: '{"flow_m3_s": 3.217, "depth_m": 1.2}'}}
- text: done
conversations:
- when: channel-001
  replies: [{text: '{"flow_m3_s": 3.217, "depth_m": 1.254}'}]
- when: channel-002
  replies: [{tool_calls: [{name: submit_answer, arguments: {content: '{"depth_m": 1.254}'}}]}]
"#;

const EXPERIMENT: &str = "experiment_id: x\nagents:\n\
    - {name: direct, harness: direct, model: mine}\n\
    - {name: loop, harness: tool_loop, model: mine, parameters: {max_turns: 4, snapshots: true}}\n\
    - {name: short, harness: tool_loop, model: mine, parameters: {max_turns: 1, temperature: 0.5}}\n\
    repetitions: 2\n";

/// A JSON value without fields that depend on the clock.
fn timeless(bytes: &[u8]) -> Value {
    let mut value: Value = serde_json::from_slice(bytes).unwrap();
    let object = value.as_object_mut().unwrap();
    for key in ["timestamp", "timing", "duration_ms", "occurred_at"] {
        object.remove(key);
    }
    value
}

/// The records of an experiment as text, without times.
fn records(project: &Project) -> BTreeMap<String, String> {
    let names = project.record_names("x").into_iter();
    names
        .map(|name| {
            let bytes = std::fs::read(project.ledger("x").join(&name)).unwrap();
            (name, serde_json::to_string_pretty(&timeless(&bytes)).unwrap())
        })
        .collect()
}

/// The files of `jobs`; times are removed from lines that contain them.
fn jobs(project: &Project) -> BTreeMap<String, String> {
    let lines = |bytes: &[u8]| {
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| timeless(line).to_string()).collect::<Vec<_>>().join("\n")
    };
    files_below(&project.jobs("x"))
        .into_iter()
        .map(|(name, bytes)| {
            let text =
                if name.ends_with(".jsonl") { lines(&bytes) } else { String::from_utf8(bytes).unwrap() };
            (name, text)
        })
        .collect()
}

#[test]
fn a_recorded_experiment_is_replayed_byte_for_byte() {
    let project = Project::with_tasks(4);
    let faults =
        ["server=0.1", "overlong=0.1", "filter=0.05", "auth=0.05"].map(|fault| fault.parse().unwrap());
    let server = Server::start(Options { faults: faults.to_vec(), seed: 7, ..saying(REPLIES) });
    project.endpoints(&server.url(), &["mine"]);
    project.env.write("e.yaml", EXPERIMENT);
    let recorded = project.json("run --config e.yaml --record tape");
    assert!(matches!(recorded.code, Some(0 | 1)), "{recorded:?}");
    let outcomes = recorded.envelope()["data"]["all"]["outcomes"].clone();
    assert!(outcomes["scored"].as_u64().unwrap() > 10, "{outcomes}");
    assert!(server.stats().faults.len() > 1, "some calls went wrong: {:?}", server.stats());
    let asked = server.count();
    let url = server.url();
    drop(server);

    let copied = Project::empty();
    copied.endpoints(&url, &["mine"]);
    copied.env.write("e.yaml", EXPERIMENT);
    for directory in ["tasks", "tape"] {
        copy(&project.env.path(directory), &copied.env.path(directory));
    }
    // A server on this port would notice a call.
    let port = url.rsplit(':').next().unwrap().parse().unwrap();
    let silent = Server::start(Options { port, ..saying(REPLIES) });
    let replayed = copied.json("run --config e.yaml --replay tape --concurrency 3");
    assert_eq!(replayed.code, recorded.code, "{replayed:?}");
    assert_eq!(silent.count(), 0, "{asked} calls were recorded, none is made again");
    assert_eq!(replayed.envelope()["data"]["all"]["outcomes"], outcomes);
    let (ours, theirs) = (records(&project), records(&copied));
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    for (name, text) in &ours {
        similar(name, text, &theirs[name]);
    }
    let (ours, theirs) = (jobs(&project), jobs(&copied));
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    for (name, text) in &ours {
        similar(name, text, &theirs[name]);
    }
    for project in [&project, &copied] {
        project.assert_sound("x");
    }
    // A call that is not on the tape is an infra fault, and no model is called.
    let other =
        copied.json("run civil --model mine --harness direct -e y --parameter max_tokens=9 --replay tape");
    assert_eq!(other.envelope()["data"]["all"]["outcomes"]["infra_fault"], 4, "{other:?}");
    assert_eq!(silent.count(), 0);
}

/// Reports where two texts differ.
fn similar(name: &str, ours: &str, theirs: &str) {
    let differing = ours.lines().zip(theirs.lines()).find(|(a, b)| a != b);
    assert!(ours == theirs, "{name}: {differing:?}");
}
