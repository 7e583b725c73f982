//! Which answer counts, and that old plans and records keep their order.

use std::path::Path;

use aec_judge::settle::order::{AnswerOrder, Source};
use aec_judge::verdict::Outcome;
use aec_ledger::record::TrialRecord;

use crate::run::Project;
use crate::run::world::RIGHT;

/// An experiment of two trials, planned and half run by the version in which a written file took precedence over a
/// submission. Its agent writes the right answer and submits a wrong one.
fn made_before() -> Project {
    let project = Project::empty();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run/made_before");
    aec_xtest::files::copy(&fixture, &project.env.dir());
    project
}

/// Source, reward and order of records.
fn told(records: impl IntoIterator<Item = TrialRecord>) -> Vec<(Option<Source>, Option<f64>, AnswerOrder)> {
    let of =
        |record: TrialRecord| (record.outputs.output_source, record.reward(), record.outputs.answer_order);
    records.into_iter().map(of).collect()
}

#[test]
fn an_experiment_goes_on_with_the_order_that_it_began_with() {
    let project = made_before();
    let before = (Some(Source::File), Some(1.0), AnswerOrder::FileFirst);
    assert_eq!(told(project.records("old").into_values()), [before]);
    project.data("run --resume old");
    assert_eq!(told(project.records("old").into_values()), [before, before]);
    project.assert_sound("old");
    // Also if it is planned again.
    project.data("run civil --model offline/scripted:old.yaml --harness tool_loop -e old --extend");
    assert!(told(project.records("old").into_values()).iter().all(|told| *told == before));
    project.data("run civil --model offline/scripted:old.yaml --harness tool_loop -e new");
    let now = (Some(Source::Submitted), Some(0.0), AnswerOrder::SubmittedFirst);
    assert_eq!(told(project.records("new").into_values()), [now, now]);
    let both = project.data("evaluate -e old -e new");
    let notes = both["notes"].to_string();
    assert!(notes.contains("file_first") && notes.contains("submitted_first"), "{both}");
    assert!(!project.data("evaluate -e new")["notes"].to_string().contains("first"));
    let compared = project.run("--json report compare old new --allow-different-frame");
    assert!(compared.stdout.contains("file_first"), "{compared:?}");
}

/// The record of a model that gives these replies on one task.
fn record_of(replies: &str) -> TrialRecord {
    let mut project = Project::with_tasks(1);
    project.env.set("SOME_API_KEY", "sk-canary-7f3a9c51d2");
    let model = project.script("said", replies);
    let run =
        project.json(&format!("run civil --model {model} --harness tool_loop --parameter max_turns=3 -e x"));
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    let kept = aec_xtest::files::files_below(&project.env.path("artefacts"));
    let secret = kept.iter().find(|(_, content)| String::from_utf8_lossy(content).contains("sk-canary"));
    assert_eq!(secret.map(|(path, _)| path), None, "{replies}");
    project.record("x")
}

#[test]
fn a_submission_takes_the_place_of_whatever_is_there() {
    for command in [
        "mkdir output.json; touch output.json/x",
        "ln -s /etc/passwd output.json",
        "touch a; ln a output.json",
    ] {
        let record = record_of(&format!(
            "replies:\n- tool_calls:\n  - {{name: bash, arguments: {{command: '{command}'}}}}\n  \
             - {{name: submit_answer, arguments: {{content: '{RIGHT}'}}}}\n"
        ));
        assert_eq!((record.outcome, record.reward()), (Outcome::Scored, Some(1.0)), "{command}: {record:?}");
        assert_eq!(record.outputs.output_source, Some(Source::Submitted));
    }
}

#[test]
fn a_secret_is_refused_wherever_the_answer_came_from() {
    for replies in [
        "- tool_calls: [{name: submit_answer, arguments: {content: 'sk-canary-7f3a9c51d2'}}]",
        "- tool_calls: [{name: write_file, arguments: {path: output.json, content: 'sk-canary-7f3a9c51d2'}}]\n- text: done",
        "- text: 'it is sk-canary-7f3a9c51d2'",
    ] {
        let record = record_of(&format!("replies:\n{replies}\n"));
        assert_eq!(record.outcome, Outcome::AgentFault, "{replies}: {record:?}");
    }
}

#[test]
fn what_is_said_beside_a_call_is_no_answer() {
    let record = record_of(&format!(
        "replies:\n- text: '{RIGHT}'\n  tool_calls: [{{name: bash, arguments: {{command: 'true'}}}}]\n"
    ));
    assert_eq!((record.outputs.output_source, record.reward()), (None, Some(0.0)), "{record:?}");
}
