//! `report behavioral`: by rules, and with a second opinion.

use serde_json::json;

use crate::report::world::{World, called, of_task, rewarded};

fn working() -> World {
    let world = World::new();
    for (at, reward) in [(1, 1.0), (2, 0.0)] {
        let mut record =
            aec_ledger::example::record("x", &format!("0f1e2d3c-0000-8000-8000-00000000020{at}"), 1);
        of_task(&mut record, &format!("task-{at}"));
        rewarded(&mut record, reward);
        record.inputs.input_files = vec![aec_ledger::record::InputFile {
            path: "survey.csv".to_owned(),
            hash: aec_base::digest::Digest::of(b"survey"),
            source: None,
        }];
        let mut events = Vec::new();
        events.extend(called(1, "bash", &json!({"command": "cat survey.csv"}), 0, ""));
        events.extend(called(2, "bash", &json!({"command": "python3 calc.py"}), 1, "NameError: x"));
        events.extend(called(
            3,
            "bash",
            &json!({"command": "python3 calc.py > /workspace/output.json"}),
            0,
            "",
        ));
        if at == 1 {
            events.extend(called(4, "bash", &json!({"command": "cat /workspace/output.json"}), 0, ""));
            events.extend(called(5, "submit_answer", &json!({"answer": "{}"}), 0, ""));
        }
        world.trajectory(&mut record, &events);
        aec_ledger::example::write(&world.ledger(), &record);
    }
    world
}

#[test]
fn the_questions_of_the_workflow_are_answered_offline() {
    let world = working();
    let data = world.data("report behavioral -e x --output behaviour.json");
    let workflow = &data["summary"]["workflow"];
    for (question, yes) in [
        ("inspected_files", 2),
        ("met_errors", 2),
        ("recovered", 2),
        ("wrote_output", 2),
        ("read_back", 1),
        ("submitted", 1),
        ("accepted", 1),
    ] {
        assert_eq!(workflow[question]["yes"], yes, "{question}: {workflow}");
        assert_eq!(workflow[question]["of"], 2, "{question}: {workflow}");
    }
    assert_eq!(data["summary"]["reference_trial_count"], 1);
    assert_eq!(data["trials"].as_array().unwrap().len(), 2);
    let text = world.run("report behavioral -e x").stdout;
    assert!(text.contains("recover from it") && text.contains("exploration"), "{text}");
    assert!(world.env.read("behaviour.json").contains("dominant_bond"));
}

#[test]
fn a_model_gives_a_second_opinion_that_is_kept() {
    let world = working();
    let label = |turn: u32| json!({"turn_index": turn, "bond_type": "execution", "confidence": 0.9, "rationale": "r"});
    let labels = [label(1), label(2), label(3), label(4), label(99)];
    let unsigned = json!({"classifications": labels}).to_string();
    world.env.write("opinion.yaml", format!("replies:\n- text: '{unsigned}'\n"));
    let line =
        "report behavioral -e x --classifier offline/scripted:opinion.yaml --concurrency 1 --allow-unpriced";
    // An answer without the question's token is not the model's own. Before, its labels counted.
    let unsigned = world.json(&format!("{line} --record tape")).envelope()["data"]["classifier"].clone();
    assert_eq!((&unsigned["asked_turns"], &unsigned["missing_turns"]), (&json!(8), &json!(8)), "{unsigned}");
    let tape = world.env.read("tape/calls-000001.jsonl");
    let token = tape.split("RECORD-").nth(1).map(|rest| format!("RECORD-{}", &rest[..16])).unwrap();
    let reply = json!({"token": token, "classifications": labels}).to_string();
    world.env.write(
        "opinion.yaml",
        format!(
            "conversations:\n- when: {token}\n  replies:\n  - text: '{reply}'\nreplies:\n- text: 'no idea'\n"
        ),
    );
    let run = world.json(line);
    let data = run.envelope()["data"]["classifier"].clone();
    // Eight turns in two questions; the fifth turn of the first has no label, and the second answer has none.
    assert_eq!(data["asked_turns"], 8, "{run:?}");
    assert!(data["missing_turns"].as_u64().unwrap() >= 1, "{data}");
    assert_eq!(data["summary"]["bond_distribution"]["execution"], 1.0, "{data}");
    assert!(data["observed_agreement"].as_f64().is_some(), "{data}");
    let again = world.json(line).envelope()["data"]["classifier"].clone();
    assert_eq!(again["cached_turns"].as_u64().unwrap() + again["asked_turns"].as_u64().unwrap(), 8);
    assert!(again["cached_turns"].as_u64().unwrap() >= 4, "known labels are not requested again: {again}");
}
