//! Transcripts written by version 0.1.0 are read and written unchanged, and every view of one agrees.

use std::path::Path;

use aec_ledger::transcript::chat::{Message, Role};
use aec_ledger::transcript::{Event, conversation, counts, lines, messages, read, turns};
use serde_json::Value;

use crate::report::world::World;

/// The harness, and the number of its turns, calls, failed calls, and calls that submit an answer.
const TRANSCRIPTS: [(&str, [u64; 4]); 5] = [
    ("tool_loop", [5, 7, 3, 1]),
    ("direct", [1, 0, 0, 0]),
    ("rlm", [3, 3, 1, 0]),
    // The harness starts the program, which is not a call of the model.
    ("command", [3, 0, 0, 0]),
    ("imported", [3, 4, 2, 1]),
];

fn file(harness: &str, name: &str) -> Option<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/report/transcripts");
    std::fs::read_to_string(directory.join(harness).join(name)).ok()
}

fn events(harness: &str) -> Vec<Event> {
    read(file(harness, "trajectory.jsonl").unwrap().as_bytes())
}

#[test]
fn what_was_written_is_written_the_same() {
    for (harness, _) in TRANSCRIPTS {
        let (events, text) = (events(harness), file(harness, "trajectory.jsonl").unwrap());
        assert_eq!(lines(&events), text, "{harness}");
        let torn = format!("{text}{{\"step\":9,\"role\":\"assis");
        assert_eq!(read(torn.as_bytes()), events, "{harness}: a torn end is left out");
        // An import stores the messages of its source in this file.
        if harness != "imported" {
            assert_eq!(
                conversation::lines(&events),
                file(harness, "conversation.jsonl").unwrap(),
                "{harness}"
            );
        }
    }
}

#[test]
fn views_of_one_transcript_agree() {
    for (harness, expected) in TRANSCRIPTS {
        let events = events(harness);
        let messages = messages(&events);
        let turns = turns(events.clone());
        let counts = counts(&turns);
        let counted = [counts.turns, counts.tool_calls, counts.tool_errors, counts.submit_calls];
        assert_eq!(counted, expected, "{harness}");
        let said: Vec<&Message> = messages.iter().filter(|message| message.role == Role::Assistant).collect();
        let texts: Vec<&str> = said.iter().map(|message| message.text.as_str()).collect();
        assert_eq!(texts, turns.iter().map(|turn| turn.text.as_str()).collect::<Vec<_>>(), "{harness}");
        for (message, turn) in said.iter().zip(&turns) {
            assert_eq!(message.reasoning.as_deref().unwrap_or_default(), turn.reasoning);
            let called: Vec<(&str, &str)> =
                message.tool_calls.iter().map(|call| (call.id.as_str(), call.name.as_str())).collect();
            let calls: Vec<(&str, &str)> =
                turn.calls.iter().map(|call| (call.id.as_str(), call.name.as_str())).collect();
            assert_eq!(called, calls, "{harness}: the calls of one answer are one message");
            for (call, result) in turn.calls.iter().zip(turn.results_in_order()) {
                assert_eq!(result.unwrap().call_id, call.id, "{harness}: every call has its result");
            }
        }
        let failed = messages.iter().filter(|message| message.is_error).count();
        assert_eq!(failed as u64, counts.tool_errors, "{harness}");
        assert_tools_answer(harness, &messages);
    }
}

/// Providers refuse a conversation in which a result does not follow the message with its call.
fn assert_tools_answer(harness: &str, messages: &[Message]) {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        if message.role == Role::Tool {
            assert_eq!(message.tool_call_id.as_deref(), Some(open.remove(0)), "{harness}");
        } else {
            assert!(open.is_empty(), "{harness}: {open:?} were not answered");
            open = message.tool_calls.iter().map(|call| call.id.as_str()).collect();
        }
    }
}

#[test]
fn reports_and_training_data_tell_what_the_views_tell() {
    let mut world = World::new();
    for (harness, _) in TRANSCRIPTS {
        let events: Vec<Value> = file(harness, "trajectory.jsonl")
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let mut with = aec_ledger::example::record(harness, "0f1e2d3c-0000-8000-8000-000000000001", 1);
        world.trajectory(&mut with, &events);
        world.add(harness, |record| (record.outputs, record.timing) = (with.outputs, with.timing));
    }
    for (harness, expected) in TRANSCRIPTS {
        let traces = world.data(&format!("report traces -e {harness}"));
        let trial = &traces["trials"][0];
        let told = ["turns_used", "tool_calls", "tool_errors", "submit_calls"]
            .map(|key| trial[key].as_u64().unwrap());
        assert_eq!(told, expected, "{harness}");
        let behaviour = world.data(&format!("report behavioral -e {harness}"));
        let features = &behaviour["trials"][0]["features"];
        let told = [
            &features["turns"],
            &features["tool_calls"],
            &features["tool_errors"]["count"],
            &features["submit_calls"],
        ];
        assert_eq!(told.map(|number| number.as_u64().unwrap()), expected, "{harness}: {features}");
        let line = format!("export sft -e {harness} --thoughts --min-reward 0 -o {harness}.jsonl");
        assert_eq!(world.run(&line).code, Some(0), "{harness}");
        let row: Value = serde_json::from_str(&world.env.read(format!("{harness}.jsonl"))).unwrap();
        let written = row["messages"].as_array().unwrap();
        let said = written.iter().filter(|message| message["role"] == "assistant").count();
        assert_eq!(said as u64, expected[0], "{harness}");
        if let Some(before) = file(harness, "sft.jsonl") {
            let before: Value = serde_json::from_str(&before).unwrap();
            assert_eq!(row["messages"], before["messages"], "{harness}");
        }
    }
}
