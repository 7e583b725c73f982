//! Lessons of `sim` through the program: a prompt with lessons makes the agent better, and the record names them.

use aec_ledger::record::TrialRecord;
use serde_json::{Value, json};

use crate::run::Project;

const EXPERIMENT: &str = "experiment_id: x
agents:
  - { name: untaught, harness: sim, parameters: PARAMETERS }
  - { name: taught, harness: sim, parameters: PARAMETERS, system_prompt_file: prompts/taught.md }
  - { name: misled, harness: sim, parameters: PARAMETERS, system_prompt_file: prompts/misled.md }
";

const PARAMETERS: &str =
    r#"{ skill: 0.2, lessons: { "check the units": 0.6, "show your work": 0.2, "round early": -0.3 } }"#;

const TAUGHT: &str = "You are an engineer. Always CHECK\n  the units, and show your\twork.\n";

/// The harness's own summary of its work.
fn said(project: &Project, record: &TrialRecord) -> Value {
    serde_json::from_str(&project.job_file(record, "agent_result.json")).unwrap()
}

#[test]
fn a_system_prompt_with_the_right_lessons_makes_every_answer_right() {
    let project = Project::with_tasks(4);
    project.env.write("prompts/taught.md", TAUGHT);
    project.env.write("prompts/misled.md", "Round early.\n");
    project.env.write("experiment.yaml", EXPERIMENT.replace("PARAMETERS", PARAMETERS));
    project.data("run --config experiment.yaml");
    let records = project.records("x");
    assert_eq!(records.len(), 12);
    for record in records.values() {
        let said = said(&project, record);
        let prompt = record.inputs.system_prompt.as_deref();
        assert_eq!(record.agent.configuration["skill"], 0.2, "the plan says what was given");
        let lessons = json!({ "check the units": 0.6, "round early": -0.3, "show your work": 0.2 });
        assert_eq!(record.agent.configuration["lessons"], lessons);
        match record.agent.name.as_str() {
            "taught" => {
                assert_eq!((record.reward(), prompt), (Some(1.0), Some(TAUGHT)), "{said}");
                assert_eq!((&said["skill"], &said["faults"]), (&json!(1.0), &json!([])));
                assert_eq!(said["lessons"], json!(["check the units", "show your work"]));
            }
            "misled" => {
                // Without any skill there is always a mistake, although the scorer forgives words around an answer.
                assert_eq!(prompt, Some("Round early.\n"));
                assert_eq!((&said["skill"], &said["lessons"]), (&json!(0.0), &json!(["round early"])));
                assert_ne!(said["faults"], json!([]));
            }
            _ => {
                assert_eq!((prompt, &said["skill"], &said["lessons"]), (None, &json!(0.2), &json!([])));
            }
        }
    }
    project.assert_sound("x");
}

#[test]
fn lessons_that_make_no_sense_are_refused_before_anything_is_run() {
    let project = Project::with_tasks(1);
    for lessons in
        ["[check the units]", "{ check the units: 1.5 }", "{ '': 0.5 }", "{ check the units: .1.1 }"]
    {
        let text = format!("agents: [{{ name: a, harness: sim, parameters: {{ lessons: {lessons} }} }}]\n");
        project.env.write("experiment.yaml", text);
        let (id, told) = project.refusal("plan --config experiment.yaml", 3);
        assert_eq!(id, "E021", "{told}");
        assert!(
            told.contains(
                "`lessons` of agent `a` is not a map from texts that are not empty to numbers from -1 to 1"
            ),
            "{told}"
        );
    }
    // The file's reader refuses YAML's not-a-number.
    let text = "agents: [{ name: a, harness: sim, parameters: { lessons: { a: .nan } } }]\n";
    project.env.write("experiment.yaml", text);
    project.refusal("plan --config experiment.yaml", 3);
}
