//! The results of a run: the layout on disk, the fields of records, the sources of answers, and what must not be there.

use std::collections::BTreeSet;

use aec_judge::settle::order::Source;
use aec_judge::settle::outcome::Boundary;
use aec_judge::verdict::{Judged, Outcome};
use aec_ledger::record::Completeness;
use aec_sandbox::Level;
use aec_xtest::files::{files_below, names_in};
use serde_json::{Value, json};

use crate::run::world::{RIGHT, right, saying};
use crate::run::{Project, Server};

/// Fields of the reference's record that keep their place.
const REFERENCE: [&str; 16] = [
    "/trial_id",
    "/experiment_id",
    "/dataset_id",
    "/timestamp",
    "/task/task_id",
    "/task/domain",
    "/agent/adapter",
    "/agent/model",
    "/agent/configuration",
    "/environment/runtime_image",
    "/environment/compute_backend",
    "/inputs/instruction",
    "/outputs/agent_output/status",
    "/evaluation/reward",
    "/evaluation/validity",
    "/cost/tokens_in",
];

#[test]
fn the_layout_and_the_fields_are_those_of_the_documents() {
    let project = Project::with_tasks(1);
    let server = Server::start(right());
    project.endpoints(&server.url(), &["mine"]);
    project.data("run civil --model mine --harness direct -e x");
    let record = project.record("x");
    let id = record.trial_id.as_str();
    let jobs: Vec<String> = files_below(&project.jobs("x")).into_keys().collect();
    let expected = [
        "agent_result.json",
        "conversation.jsonl",
        "logs/verifier/details.json",
        "logs/verifier/reward.json",
        "output.json",
        "trajectory.jsonl",
    ];
    assert_eq!(jobs, expected.map(|name| format!("{id}/workspace/{name}")));
    assert_eq!(project.record_names("x"), [format!("{id}.json")]);
    let value: Value =
        serde_json::from_str(&project.env.read(format!("artefacts/ledger/x/{id}.json"))).unwrap();
    for field in REFERENCE {
        assert!(value.pointer(field).is_some(), "{field}");
    }
    assert_eq!(project.job_file(&record, "output.json"), RIGHT);
    let reward: Value =
        serde_json::from_str(&project.job_file(&record, "logs/verifier/reward.json")).unwrap();
    assert_eq!(reward, json!({ "reward": 1.0 }));
    let details: Value =
        serde_json::from_str(&project.job_file(&record, "logs/verifier/details.json")).unwrap();
    assert_eq!(Some(details), record.evaluation.as_ref().unwrap().breakdown);
    // Everything else that the record must contain.
    assert_eq!((record.attempt, record.repetition, record.outcome), (1, 1, Outcome::Scored));
    assert_eq!(record.completeness, Completeness::Complete);
    let plan: Value = serde_json::from_str(&project.env.read("artefacts/ledger/x/_run/plan.json")).unwrap();
    assert_eq!(json!(record.task.task_revision), plan["tasks"][0]["revision"]);
    assert_eq!(json!(record.agent.digest), plan["agents"][0]["digest"]);
    assert_eq!(json!(record.plan), plan["digest"]);
    assert_eq!(record.environment.tool_versions["aec-bench"], env!("CARGO_PKG_VERSION"));
    assert_eq!(record.agent.adapter_revision.as_deref(), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(record.agent.resolved_model.as_deref(), Some("test-model"));
    assert_eq!(record.environment.sandbox, None, "nothing of the agent ran here");
    assert_eq!(record.evaluation.as_ref().unwrap().judged, Judged::Native);
    assert_eq!(record.cost.model_calls, 1);
    assert_eq!((record.cost.tokens_in, record.cost.tokens_out), {
        let stats = server.stats();
        (Some(stats.input_tokens), Some(stats.output_tokens))
    });
    let input = &record.inputs.input_files[0];
    assert_eq!(
        (input.path.as_str(), input.source.as_deref()),
        ("survey.csv", Some("environment/survey.csv"))
    );
    // Conversation and trajectory agree.
    let conversation: Vec<Value> = lines(&project.job_file(&record, "conversation.jsonl"));
    let roles: Vec<&str> = conversation.iter().map(|line| line["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant"]);
    assert_eq!(conversation[1]["content"].as_str().unwrap(), record.inputs.instruction);
    let trajectory = lines(&project.job_file(&record, "trajectory.jsonl"));
    let roles: Vec<&str> = trajectory.iter().map(|line| line["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "model_call", "model_call", "assistant"]);
    assert!(trajectory.iter().all(|line| line["timestamp"].is_string()));
    assert!(
        !names_in(&project.jobs("x")).contains(&"_live".to_owned())
            || names_in(&project.jobs("x/_live")).is_empty()
    );
    project.assert_sound("x");
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Behaviours of models in the next test: how the answer is given, and the result.
const WAYS: &str = r#"
replies: [{text: '{"flow_m3_s": 9}'}]
conversations:
- when: channel-000
  replies:
  - tool_calls:
    - {name: write_file, arguments: {path: output.json, content: '{"flow_m3_s": 3.217, "depth_m": 1.254}'}}
    - {name: submit_answer, arguments: {content: "wrong"}}
- when: channel-001
  replies:
  - text: said on the way
    tool_calls: [{name: submit_answer, arguments: {content: '{"flow_m3_s": 3.217, "depth_m": 0}'}}]
- when: channel-002
  replies: [{text: '{"flow_m3_s": 3.217, "depth_m": 1.254}'}]
- when: channel-003
  replies: [{text: "  "}]
- when: channel-004
  replies: [{tool_calls: [{name: bash, arguments: {command: "true"}}]}]
- when: channel-005
  replies:
  - tool_calls: [{name: bash, arguments: {command: "mkdir d; cd d; seq 10100 | xargs touch"}}]
  - text: done
- when: channel-006
  replies:
  - tool_calls: [{name: bash, arguments: {command: "mkdir output.json; ln -s /etc/passwd l; printf x > 'a b'; touch $'nl\\nx' $'esc\\e[2J' 'é' '-rf' .hidden 'c:d' 'e\\f' CON"}}]
  - text: '{"flow_m3_s": 3.217, "depth_m": 1.254}'
"#;

#[test]
fn successes_and_failures_are_recorded_alike_and_answers_have_a_source() {
    let project = Project::with_tasks(8);
    let model = project.script("ways", WAYS);
    let run =
        project.json(&format!("run civil --model {model} --harness tool_loop --parameter max_turns=2 -e x"));
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    let schema = project.run("schema record");
    let schema = jsonschema::validator_for(&serde_json::from_str(&schema.stdout).unwrap()).unwrap();
    let mut seen = Vec::new();
    for (name, record) in project.records("x") {
        let value: Value =
            serde_json::from_str(&project.env.read(format!("artefacts/ledger/x/{name}"))).unwrap();
        let errors: Vec<String> = schema.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
        let status = record.outputs.agent_output.as_ref().map(|output| output.status);
        let kind = record.fault.as_ref().map(|fault| (fault.boundary, fault.kind.clone()));
        let task = record.task.task_id.trim_start_matches("civil/channel-").to_owned();
        seen.push((
            task.clone(),
            record.outcome,
            record.outputs.output_source,
            record.reward(),
            status,
            kind,
        ));
        assert!(record.attempt == 1 && record.cost.model_calls > 0, "{record:?}");
        let worked = ["000", "004", "005", "006"].contains(&task.as_str());
        assert_eq!(record.environment.sandbox, worked.then_some(Level::Namespaces), "{task}");
    }
    seen.sort_by(|a, b| a.0.cmp(&b.0));
    let said: Vec<String> = seen.iter().map(|row| format!("{row:?}")).collect();
    insta::assert_snapshot!("outcomes", said.join("\n"));
    let find = |task: &str| seen.iter().find(|row| row.0 == task).unwrap().clone();
    assert_eq!(
        (find("000").2, find("000").3),
        (Some(Source::Submitted), Some(0.0)),
        "what is submitted comes first, although the file was right"
    );
    assert_eq!((find("001").2, find("001").3), (Some(Source::Submitted), Some(0.5)));
    assert_eq!((find("002").2, find("002").3), (Some(Source::FinalText), Some(1.0)));
    assert_eq!(
        find("003").5,
        Some((Boundary::Provider, Some("empty".to_owned()))),
        "a model that says nothing"
    );
    assert_eq!(find("004").5, Some((Boundary::Harness, Some("turn_limit_reached".to_owned()))));
    assert_eq!(find("005").1, Outcome::AgentFault, "more files than may be submitted");
    assert_eq!(seen.len(), 8, "hostile names stop nothing");
    project.assert_sound("x");
}

/// The record and the only request of a tool loop's run with these variables.
fn under(
    variables: &[(&str, &str)],
    extra: &str,
) -> (aec_ledger::record::TrialRecord, Vec<Value>, Value, Project) {
    let mut project = Project::with_tasks(1);
    let server = Server::start(saying(
        "replies:\n- tool_calls:\n  - {name: bash, arguments: {command: 'echo begun; sleep 20'}}\n",
    ));
    project.endpoints(&server.url(), &["mine", "other"]);
    for (name, value) in variables {
        project.env.set(name, value);
    }
    let line = format!("civil --model mine --harness tool_loop --parameter max_turns=1 -e x {extra}");
    let run = project.json(&format!("run {line}"));
    assert_eq!(run.code, Some(0), "{run:?}");
    let plan: Value = serde_json::from_str(&project.env.read("artefacts/ledger/x/_run/plan.json")).unwrap();
    for (name, _) in variables {
        let said = project.run(&format!("run {line} --dry-run"));
        assert!(said.stderr.contains(name), "{name} took part and is named: {said:?}");
    }
    (project.record("x"), server.bodies(), plan, project)
}

#[test]
fn agent_model_names_the_model() {
    let (record, bodies, plan, _) = under(&[("AGENT_MODEL", "other")], "--parameter command_timeout=1");
    assert_eq!(record.agent.model.as_deref(), Some("other"));
    assert_eq!(plan["agents"][0]["model"], "other");
    assert_eq!(bodies.len(), 1);
}

#[test]
fn agent_instruction_is_the_prompt() {
    let text = "Write 1 to `/workspace/other.json`.";
    let (record, bodies, plan, _) = under(&[("AGENT_INSTRUCTION", text)], "--parameter command_timeout=1");
    assert_eq!(record.inputs.instruction, text);
    assert_eq!(record.outputs.agent_output.unwrap().output_path, "/workspace/other.json");
    assert_eq!(plan["conditions"]["instruction"], text);
    assert!(bodies[0]["messages"].to_string().contains("other.json"));
}

#[test]
fn agent_max_tokens_limits_answers() {
    let (record, bodies, plan, _) = under(&[("AGENT_MAX_TOKENS", "777")], "--parameter command_timeout=1");
    assert_eq!(record.agent.configuration["max_tokens"], 777);
    assert_eq!(plan["agents"][0]["parameters"]["max_tokens"], 777);
    assert!(bodies[0].to_string().contains(":777"), "{}", bodies[0]);
    let (record, bodies, ..) = under(&[], "--parameter command_timeout=1");
    assert_eq!(record.agent.configuration["max_tokens"], 16384, "the documented default");
    assert!(bodies[0].to_string().contains(":16384"));
}

#[test]
fn agent_max_turns_limits_the_loop() {
    // It overrides the experiment, as variables do.
    let (record, bodies, ..) = under(&[("AGENT_MAX_TURNS", "3")], "--parameter command_timeout=1");
    assert_eq!((record.agent.configuration["max_turns"].clone(), bodies.len()), (json!(3), 3));
    assert_eq!(record.outputs.agent_result["turns_used"], 3);
}

#[test]
fn agent_command_timeout_limits_commands() {
    let (record, _, plan, project) = under(&[("AGENT_COMMAND_TIMEOUT", "1")], "");
    assert_eq!(record.agent.configuration["command_timeout"], 1);
    assert_eq!(plan["agents"][0]["parameters"]["command_timeout"], 1);
    assert!(project.job_file(&record, "trajectory.jsonl").contains("[timed out after 1 s]"));
    assert!(record.timing.agent_seconds.unwrap() < 19.0);
}

#[test]
fn agent_tools_json_replaces_the_tools() {
    let tools = r#"[{"name":"calc","source":"tools/calc.py","description":"Calculates."}]"#;
    let (_, bodies, plan, _) = under(&[("AGENT_TOOLS_JSON", tools)], "--parameter command_timeout=1");
    let names: BTreeSet<&str> = bodies[0]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert!(names.contains("calc") && names.contains("bash"), "{names:?}");
    assert_eq!(plan["conditions"]["tools"][0]["source"], "tools/calc.py");
}

#[test]
fn agent_api_version_is_sent_to_azure() {
    let mut project = Project::with_tasks(1);
    let server = Server::start(right());
    project.env.set("AZURE_OPENAI_API_KEY", "azure-key-canary-1");
    project.env.set("AZURE_OPENAI_ENDPOINT", &server.url());
    let version = |project: &Project, id: &str| {
        project.data(&format!("run civil --model gpt-4.1 --harness direct -e {id}"));
        server.server().requests().last().unwrap().path.clone()
    };
    assert!(version(&project, "x").contains("api-version=2024-10-21"), "the documented default");
    project.env.set("AGENT_API_VERSION", "2025-01-01-preview");
    assert!(version(&project, "y").contains("api-version=2025-01-01-preview"));
}

#[test]
fn variables_that_say_nothing_useful_are_refused() {
    for (name, value) in [
        ("AGENT_MAX_TOKENS", "many"),
        ("AGENT_MAX_TOKENS", "0"),
        ("AGENT_MAX_TURNS", "-1"),
        ("AGENT_COMMAND_TIMEOUT", "1.5"),
        ("AGENT_TOOLS_JSON", "{"),
        ("AGENT_TOOLS_JSON", "{}"),
        ("AGENT_TOOLS_JSON", "[{\"nam\": 1}]"),
    ] {
        let mut project = Project::with_tasks(1);
        project.env.set(name, value);
        let (id, what) = project.refusal("run civil --model offline/echo --harness tool_loop", 3);
        assert!(id == "E038" && what.contains(name), "{what}");
    }
    // An empty variable counts as not set.
    let mut project = Project::with_tasks(1);
    project.env.set("AGENT_MODEL", " ");
    assert_eq!(
        project.data("run civil --model offline/echo --harness direct --dry-run")["agents"][0]["model"],
        "offline/echo"
    );
}

#[test]
fn secrets_are_nowhere() {
    const KEY: &str = "sk-canary-7f3a9b2c";
    const HEADER: &str = "header-canary-51d2";
    let mut project = Project::with_tasks(2);
    // The model says the key, and an agent writes it to a file.
    let replies = format!(
        "replies:\n- text: 'the key is {KEY}'\n  tool_calls:\n  - {{name: bash, arguments: {{command: 'echo {KEY} {HEADER}; echo {KEY} > stolen; env'}}}}\n\
         - text: '{{\"flow_m3_s\": 3.217, \"depth_m\": 1.254, \"note\": \"{HEADER}\"}}'\n"
    );
    let server = Server::saying(&replies);
    project.env.write(".env", format!("MY_MODEL_KEY={KEY}\n"));
    project.env.set("ORGANISATION", HEADER);
    project.env.write(
        "configs/endpoints.toml",
        format!(
            "[[endpoint]]\nendpoint_id = \"mine\"\nmodel = \"m\"\nurl = \"{}/v1\"\nkey = \"MY_MODEL_KEY\"\nheaders = {{ x-organisation = \"${{ORGANISATION}}\" }}\n",
            server.url()
        ),
    );
    for harness in ["direct", "tool_loop"] {
        let run =
            project.json(&format!("run civil --model mine --harness {harness} -e {harness} --record tape"));
        assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
        assert!(!run.stdout.contains(KEY) && !run.stderr.contains(KEY), "{run:?}");
    }
    let sent = server.server().requests();
    assert!(sent.iter().all(|request| request.headers["authorization"].to_str().unwrap().contains(KEY)));
    assert!(sent.iter().all(|request| request.headers["x-organisation"].to_str().unwrap() == HEADER));
    for place in ["artefacts", "jobs", "tape"] {
        for (name, bytes) in files_below(&project.env.path(place)) {
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains(KEY) && !text.contains(HEADER), "{place}/{name}: {text}");
        }
    }
    // A trial that contained a secret is an agent fault, not a score.
    let outcomes: BTreeSet<Outcome> =
        project.records("tool_loop").values().map(|record| record.outcome).collect();
    assert_eq!(outcomes, BTreeSet::from([Outcome::AgentFault]));
    for experiment in ["direct", "tool_loop"] {
        project.assert_sound(experiment);
    }
}

#[test]
fn training_data_has_each_answer_once_and_results_as_the_model_was_told() {
    let project = Project::with_tasks(1);
    let model = project.script(
        "two",
        "replies:\n- text: Both.\n  tool_calls:\n  - {name: list_files, arguments: {}}\n  \
         - {name: bash, arguments: not an object}\n- text: '{}'\n",
    );
    project.data(&format!("run civil --model {model} --harness tool_loop -e x"));
    let run = project.run("export sft -e x --min-reward 0 --output rows.jsonl");
    assert_eq!(run.code, Some(0), "{run:?}");
    let row: Value = serde_json::from_str(&project.env.read("rows.jsonl")).unwrap();
    let messages = row["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool", "assistant"]);
    let called: Vec<&Value> =
        messages[2]["tool_calls"].as_array().unwrap().iter().map(|call| &call["id"]).collect();
    assert_eq!(called, [&messages[3]["tool_call_id"], &messages[4]["tool_call_id"]]);
    let refusal = messages[4]["content"].as_str().unwrap();
    assert!(!refusal.starts_with('\n') && !refusal.contains("exit code"), "{refusal}");
}
