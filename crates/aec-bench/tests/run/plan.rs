//! Plans: the documented example, flags, locks, and everything that is refused before the first call.

use std::collections::BTreeSet;

use aec_judge::verdict::Outcome;
use aec_xtest::files::names_in;
use serde_json::{Value, json};

use crate::run::world::{RIGHT, right, saying};
use crate::run::{Project, Server};

/// The example of the configuration reference, word for word.
pub(crate) const DOCUMENTED: &str = r#"experiment_id: exp-20260412-001
name: "Claude vs GPT electrical"
description: "Optional narrative description"

tasks:
  dataset: electrical-v1@1.0.0
  include_patterns: ["electrical/*"]
  exclude_patterns: []
  domains:      ["electrical"]
  difficulties: ["easy", "medium"]

agents:
  - name: claude-tool-loop
    harness: tool_loop
    model: claude-sonnet-4-20250514
    parameters:
      max_turns: 12
    system_prompt_file: prompts/electrical.md   # optional

  - name: gpt4-direct
    harness: direct
    model: gpt-4.1
    parameters:
      max_tokens: 8192

compute:
  backend: modal
  resource_limits:
    timeout_override: 1200
    memory_mb: 8192

repetitions: 3
disable_verification: false
"#;

/// A project for the documented example: three disciplines and difficulties, a dataset and a prompt.
fn documented() -> (Project, Server) {
    let project = Project::empty();
    for (id, difficulty) in [
        ("electrical/drop-a", "easy"),
        ("electrical/drop-b", "medium"),
        ("electrical/drop-c", "hard"),
        ("civil/channel", "easy"),
    ] {
        project.task(id, difficulty);
    }
    project.env.write("prompts/electrical.md", "Be an electrical engineer.\n");
    project.env.write("experiment.yaml", DOCUMENTED);
    let created = project.run("dataset create --name electrical-v1 --version 1.0.0 --domain electrical");
    assert_eq!(created.code, Some(0), "{created:?}");
    let server = Server::start(right());
    project.endpoints(&server.url(), &["claude-sonnet-4-20250514", "gpt-4.1"]);
    (project, server)
}

#[test]
fn the_documented_example_runs_as_written() {
    let (project, server) = documented();
    let data = project.data("run --config experiment.yaml --backend local");
    assert_eq!(data["all"]["planned"], 12, "two tasks, two agents, three repetitions: {data}");
    assert_eq!(data["all"]["outcomes"], json!({ "scored": 12 }));
    assert_eq!(data["all"]["reward_sum"], 12.0);
    let records = project.records("exp-20260412-001");
    assert_eq!(records.len(), 12);
    for record in records.values() {
        assert_eq!(record.dataset_id.as_deref(), Some("electrical-v1@1.0.0"));
        assert_eq!(
            (record.environment.timeout_sec.unwrap(), record.environment.limits.unwrap().memory_mb),
            (1200, 8192)
        );
        assert_eq!(record.environment.compute_backend, "local");
        assert!(["electrical/drop-a", "electrical/drop-b"].contains(&record.task.task_id.as_str()));
        let prompt = record.inputs.system_prompt.as_deref().unwrap();
        let by_file = record.agent.name.as_str() == "claude-tool-loop";
        assert_eq!(prompt.starts_with("Be an electrical engineer."), by_file);
        let (key, value) = if by_file { ("max_turns", 12) } else { ("max_tokens", 8192) };
        assert_eq!(record.agent.configuration[key], value);
        assert_eq!(record.agent.resolved_model.as_deref(), Some("test-model"));
    }
    let repetitions: BTreeSet<(String, String, u32)> = records
        .values()
        .map(|record| (record.task.task_id.clone(), record.agent.name.to_string(), record.repetition))
        .collect();
    assert_eq!(repetitions.len(), 12);
    assert_eq!(server.count(), 12);
    let limits: BTreeSet<u64> =
        server.bodies().iter().map(|body| body["max_tokens"].as_u64().unwrap_or(0)).collect();
    assert!(limits.contains(&8192), "{limits:?}");
    project.assert_sound("exp-20260412-001");
}

#[test]
fn a_dataset_that_is_not_what_it_was_is_refused() {
    let (project, server) = documented();
    project
        .env
        .write("tasks/electrical/drop-c/instruction.md", "# Another\n\nWrite `/workspace/output.json`.\n");
    let run = project.json("run --config experiment.yaml --backend local");
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.errors()[0].1.contains("electrical/drop-c"), "{run:?}");
    std::fs::remove_dir_all(project.env.path("tasks/electrical/drop-c")).unwrap();
    let run = project.json("run --config experiment.yaml --backend local");
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.errors().iter().any(|(_, what)| what.contains("drop-c")), "{run:?}");
    assert_eq!((server.count(), project.record_names("exp-20260412-001").len()), (0, 0));
}

/// The plan of an experiment with these lines.
fn preview(project: &Project, text: &str) -> Value {
    project.env.write("e.yaml", text);
    project.data("run --config e.yaml --dry-run")
}

#[test]
fn every_filter_of_the_file_decides_which_trials_there_are() {
    let mut project = Project::empty();
    for (id, difficulty) in [("civil/a", "easy"), ("civil/b", "hard"), ("ground/c", "medium")] {
        project.task(id, difficulty);
    }
    for (block, expected) in [
        ("{}", "civil/a civil/b ground/c"),
        ("{include_patterns: [\"civil/*\"]}", "civil/a civil/b"),
        ("{exclude_patterns: [\"*/b\"]}", "civil/a ground/c"),
        ("{domains: [ground]}", "ground/c"),
        ("{difficulties: [easy, medium]}", "civil/a ground/c"),
        ("{domains: [civil], difficulties: [hard]}", "civil/b"),
    ] {
        let text = format!("tasks: {block}\nagents: [{{name: a, harness: nop}}]\nrepetitions: 2\n");
        let plan = preview(&project, &text);
        let trials = plan["trials"].as_array().unwrap();
        let tasks: BTreeSet<&str> = trials.iter().map(|trial| trial["task_id"].as_str().unwrap()).collect();
        assert_eq!(tasks.into_iter().collect::<Vec<_>>().join(" "), expected, "{block}");
        assert_eq!(trials.len(), expected.split(' ').count() * 2);
    }
    // A variable names the model; the plan records the model's name.
    let text = "agents: [{name: a, harness: direct, model: $MY_MODEL}]\n";
    project.env.write("e.yaml", text);
    assert_eq!(project.json("run --config e.yaml --dry-run").code, Some(3));
    project.env.set("MY_MODEL", "offline/echo");
    assert_eq!(preview(&project, text)["agents"][0]["model"], "offline/echo");
    // The same with flags.
    let said = project.data("plan --domain civil --exclude */b --model offline/echo --harness direct -n 2");
    assert_eq!((&said["planned_trials"], &said["selected_tasks"]), (&json!(2), &json!(1)));
}

/// The ids of the trials of a plan.
fn ids(project: &Project, line: &str) -> BTreeSet<String> {
    let data = project.data(line);
    let trials = data["trials"].as_array().unwrap();
    trials.iter().map(|trial| trial["trial_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn ids_follow_from_task_agent_and_repetition() {
    let project = Project::with_tasks(3);
    let line = "plan civil --model offline/echo --harness direct -n 2 -e x";
    let first = ids(&project, line);
    assert_eq!(first.len(), 6);
    assert_eq!(ids(&project, line), first, "the same inputs give the same ids");
    assert_eq!(
        ids(&project, "plan civil --model offline/echo --harness direct -n 3 -e x")
            .intersection(&first)
            .count(),
        6
    );
    assert_eq!(
        ids(&project, &format!("{line} --parameter max_tokens=100")).intersection(&first).count(),
        0,
        "another agent"
    );
    assert_eq!(
        ids(&project, &line.replace("-e x", "-e y")).intersection(&first).count(),
        0,
        "another experiment"
    );
    project.env.write("tasks/civil/channel-001/environment/survey.csv", "x,z\n0,2\n");
    assert_eq!(ids(&project, line).intersection(&first).count(), 4, "one task of three is another");
    // Without an id, the experiment is named after the plan.
    let unnamed = "plan civil --model offline/echo --harness direct";
    let id = project.data(unnamed)["experiment_id"].clone();
    assert!(id.as_str().unwrap().starts_with("exp-"), "{id}");
    assert_eq!(project.data(unnamed)["experiment_id"], id);
    assert_ne!(project.data(&format!("{unnamed} -n 2"))["experiment_id"], id);
}

#[test]
fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    let project = Project::with_tasks(2);
    let server = Server::start(right());
    project.endpoints(&server.url(), &["gpt-4.1"]);
    let line = "run civil --model gpt-4.1 --harness direct -e x";
    let before = project.run(&format!("{line} --dry-run"));
    assert_eq!(before.code, Some(0), "{before:?}");
    insta::assert_snapshot!("dry_run", before.snapshot());
    assert!(!project.env.path("artefacts/ledger/x").exists());
    assert!(!project.env.path("jobs/x").exists());
    assert_eq!(server.count(), 0);
    let ceiling = project.data(&format!("{line} --dry-run"))["cost_ceiling"].as_u64();
    let done = project.data(&format!("{line} --allow-unpriced"));
    if let Some(ceiling) = ceiling {
        assert!(done["spent"].as_u64().unwrap() <= ceiling, "{done}");
    }
    let after = project.data(&format!("{line} --dry-run"));
    assert_eq!((&after["trials_to_run"], &after["done_trials"]), (&json!(0), &json!(2)));
    assert_eq!(after["outcomes"], json!({ "scored": 2 }));
    let id = after["trials"][0]["trial_id"].as_str().unwrap();
    let again = project.data(&format!("{line} --dry-run --rerun {id}"));
    assert_eq!(again["trials_to_run"], 1);
    assert_eq!(again["trials"][0]["attempt"], 2);
}

#[test]
fn limits_of_the_experiment_hold_and_are_recorded() {
    let project = Project::with_tasks(1);
    // Three quarters of a gigabyte is more than the task allows and less than the experiment allows.
    let eats = "python3 -c \"b = bytearray(700 << 20); print(len(b))\" && echo fits";
    let model = project.script(
        "eater",
        &format!(
            "replies:\n- tool_calls:\n  - {{name: bash, arguments: {{command: '{eats}'}}}}\n- text: done\n"
        ),
    );
    let line = format!("run civil --model {model} --harness tool_loop");
    project.data(&format!("{line} -e small"));
    let record = project.record("small");
    assert_eq!(
        (record.environment.limits.unwrap().memory_mb, record.environment.timeout_sec.unwrap()),
        (512, 60)
    );
    let trajectory = project.job_file(&record, "trajectory.jsonl");
    assert!(!trajectory.contains("fits\\n"), "{trajectory}");
    project.data(&format!("{line} -e large --memory-mb 1024"));
    let record = project.record("large");
    assert_eq!(record.environment.limits.unwrap().memory_mb, 1024);
    let trajectory = project.job_file(&record, "trajectory.jsonl");
    assert!(trajectory.contains("fits\\n"), "{trajectory}");

    let model = project.script(
        "sleeper",
        "replies:\n- tool_calls:\n  - {name: bash, arguments: {command: 'echo 1 > output.json; sleep 50'}}\n- text: done\n",
    );
    project.env.write(
        "e.yaml",
        format!(
            "experiment_id: short\nagents: [{{name: a, harness: tool_loop, model: \"{model}\"}}]\n\
             compute: {{backend: local, resource_limits: {{timeout_override: 1, memory_mb: 256}}}}\n"
        ),
    );
    let data = project.data("run --config e.yaml");
    assert_eq!(data["all"]["outcomes"], json!({ "scored": 1 }), "what it left is judged");
    let record = project.record("short");
    assert_eq!(
        (record.environment.timeout_sec.unwrap(), record.environment.limits.unwrap().memory_mb),
        (1, 256)
    );
    assert_eq!(record.fault.as_ref().unwrap().kind.as_deref(), Some("timeout"));
    assert_eq!(record.reward(), Some(0.0));
    assert!(record.timing.agent_seconds.unwrap() < 30.0);
}

#[test]
fn submissions_that_are_not_verified_have_no_reward_and_are_in_no_mean() {
    let project = Project::with_tasks(2);
    let model = project.script("right", &format!("replies:\n- text: '{RIGHT}'\n"));
    project.env.write(
        "e.yaml",
        format!(
            "experiment_id: x\nagents: [{{name: a, harness: direct, model: \"{model}\"}}]\ndisable_verification: true\n"
        ),
    );
    for line in ["run --config e.yaml", "run civil --model MODEL --harness direct --no-verify -e y"] {
        let data = project.data(&line.replace("MODEL", &model));
        assert_eq!(data["all"]["outcomes"], json!({ "unverified": 2 }));
        assert_eq!(data["all"]["reward_sum"], 0.0);
    }
    for record in project.records("x").values() {
        assert_eq!(record.outcome, Outcome::Unverified);
        assert!(record.evaluation.is_none() && record.reward().is_none());
        assert_eq!(project.job_file(record, "output.json"), RIGHT, "the submission is kept");
        let stem = project.jobs("x").join(record.trial_id.as_str());
        assert!(!stem.join("workspace/logs").exists(), "nothing was judged");
    }
    let shown = project.run("runs status x");
    assert!(shown.stdout.contains("- of 0") || !shown.stdout.contains("0.0000"), "{shown:?}");
    let listed = project.run("ledger list -e x");
    assert!(listed.stdout.contains("2 unverified") && !listed.stdout.contains("mean"), "{listed:?}");
}

#[test]
fn a_locked_plan_is_carried_out_as_it_is_or_not_at_all() {
    let project = Project::with_tasks(2);
    project.env.write("prompts/p.md", "Be brief.\n");
    let model = project.script("right", &format!("replies:\n- text: '{RIGHT}'\n"));
    let plan = format!(
        "plan civil --model {model} --harness direct --system-prompt-file prompts/p.md --timeout 30 --memory-mb 300 -e x"
    );
    let locked = project.data(&format!("{plan} --lock plan.json"));
    assert_eq!(locked["locked"], "plan.json");
    let again = project.json(&format!("{plan} --lock plan.json"));
    assert_eq!(again.code, Some(3), "a lock is not overwritten: {again:?}");
    project.data(&format!("{plan} --lock plan.json --force"));
    let whole = project.env.read("plan.json");

    // Attack 40: limits, repetitions or agents edited in the file.
    for (from, to) in [
        ("\"timeout_override\": 30", "\"timeout_override\": 3000"),
        ("\"memory_mb\": 300", "\"memory_mb\": 30000"),
        ("\"repetitions\": 1", "\"repetitions\": 2"),
        ("\"max_tokens\": 16384", "\"max_tokens\": 99999"),
        ("Be brief.", "Be right."),
        ("civil/channel-001\"", "civil/channel-000\""),
    ] {
        assert!(whole.contains(from), "{from}: {whole}");
        project.env.write("plan.json", whole.replace(from, to));
        assert_eq!(project.refusal("run --plan plan.json", 3).0, "E030", "{to}");
    }
    for (text, id) in [("", "E001"), ("{}", "E003"), ("[1]", ""), ("\u{0}", "")] {
        project.env.write("plan.json", text);
        let run = project.json("run --plan plan.json");
        assert_eq!(run.code, Some(3), "{text}: {run:?}");
        assert!(id.is_empty() || run.errors()[0].0.starts_with('E'), "{run:?}");
    }
    project.env.write("plan.json", &whole);

    let original = project.env.read("prompts/p.md");
    project.env.write("prompts/p.md", "Be brief!\n");
    assert_eq!(project.refusal("run --plan plan.json", 3).0, "E033");
    project.env.write("prompts/p.md", original);
    let file = "tasks/civil/channel-001/tests/answers.json";
    let original = project.env.read(file);
    project.env.write(file, original.replace("3.217", "3.5"));
    assert_eq!(project.refusal("run --plan plan.json", 3).0, "E033");
    project.env.write(file, original);
    let moved = project.env.path("elsewhere");
    std::fs::rename(project.env.path("tasks/civil/channel-001"), &moved).unwrap();
    let gone = project.json("run --plan plan.json");
    assert_eq!((gone.code, gone.errors()[0].0.as_str()), (Some(3), "E033"), "{gone:?}");
    std::fs::rename(&moved, project.env.path("tasks/civil/channel-001")).unwrap();
    assert_eq!(project.record_names("x").len(), 0, "nothing was run");

    // Flags that would change a locked plan are refused.
    for flag in [
        "--timeout 3",
        "-n 2",
        "--no-verify",
        "--model offline/echo",
        "--sandbox none",
        "--allow-leaks",
        "-e other",
        "--tasks-root tasks",
        "--backend local",
    ] {
        let run = project.run(&format!("run --plan plan.json {flag}"));
        assert_eq!(run.code, Some(2), "{flag}: {run:?}");
    }
    let data = project.data("run --plan plan.json");
    assert_eq!(data["all"]["outcomes"], json!({ "scored": 2 }));
    assert_eq!(data["plan"], locked["plan"]);
    for record in project.records("x").values() {
        assert_eq!(record.plan.to_string(), locked["plan"].as_str().unwrap());
        assert_eq!(
            (record.environment.timeout_sec.unwrap(), record.environment.limits.unwrap().memory_mb),
            (30, 300)
        );
    }
}

#[test]
fn another_plan_under_the_same_id_needs_a_word() {
    let project = Project::with_tasks(2);
    let line = "run civil --harness nop -e x";
    project.data(line);
    let refused = project.run(&format!("{line} -n 2"));
    insta::assert_snapshot!("another_plan", refused.snapshot());
    assert_eq!(project.record_names("x").len(), 2);
    for change in ["--timeout 7", "--no-verify", "--parameter timeout_sec=9", "--exclude */channel-000"] {
        assert_eq!(project.refusal(&format!("{line} {change}"), 3).0, "E036", "{change}");
    }
    let extended = project.data(&format!("{line} -n 2 --extend"));
    assert_eq!((&extended["all"]["executed"], &extended["recorded"]), (&json!(4), &json!(2)));
    assert_eq!(project.refusal(line, 3).0, "E036", "the experiment has the larger plan now");
    project.assert_sound("x");
}

#[test]
fn what_cannot_be_run_is_said_before_anything_is() {
    let project = Project::with_tasks(2);
    std::fs::remove_dir_all(project.env.path("tasks/civil/channel-001/solution")).unwrap();
    project.env.write("binary.md", [0xff, 0xfe, 0x00]);
    std::os::unix::fs::symlink("/etc/passwd", project.env.path("link.md")).unwrap();
    let mut said = String::new();
    for (line, code) in [
        ("run", 2),
        ("run civil", 2),
        ("run civil --harness direct", 2),
        ("run civil --harness nop --backend modal", 4),
        ("run civil --harness oracle", 3),
        ("run nowhere --harness nop", 3),
        ("run civil --harness nop --parameter max_turns=3", 3),
        ("run civil --harness tool_loop --model offline/echo --parameter max_turns=0", 3),
        ("run civil --harness tool_loop --model offline/echo --parameter max_turn=1", 3),
        ("run civil --harness direct --model offline/echo --parameter max_turns", 2),
        ("run civil --harness direct --model nobody-knows-this", 3),
        ("run civil --harness direct --model offline/echo --system-prompt-file missing.md", 3),
        ("run civil --harness direct --model offline/echo --system-prompt-file ../../etc/passwd", 2),
        ("run civil --harness direct --model offline/echo --system-prompt-file /etc/passwd", 2),
        ("run civil --harness direct --model offline/echo --system-prompt-file binary.md", 3),
        ("run civil --harness direct --model offline/echo --system-prompt-file link.md", 3),
        ("run civil --harness nop -e ../x", 2),
        ("run civil --harness nop --shard 2/2", 2),
        ("run civil --harness nop --shard 1", 2),
        ("run civil --harness nop --shard -1/2", 2),
        ("run civil --harness nop --max-time soon", 2),
        ("run civil --harness nop --max-time 0", 2),
        ("run civil --harness nop --max-time -5m", 2),
        ("run civil --harness nop --max-time NaN", 2),
        ("run civil --harness nop --rerun everything", 2),
        ("run civil --harness nop --concurrency 0", 2),
        ("run civil --harness nop -n 0", 2),
        ("run --resume nothing", 3),
        ("run --plan missing.json", 3),
        ("run --plan plan.json --resume x", 2),
    ] {
        let run = project.run(line);
        assert_eq!(run.code, Some(code), "{line}: {run:?}");
        said.push_str(&format!("$ aec-bench {line}\n{}{}\n", run.stdout, run.stderr));
    }
    insta::assert_snapshot!("refusals", said);
    assert!(
        !project.env.path("artefacts/ledger").exists()
            || names_in(&project.env.path("artefacts/ledger")).is_empty()
    );
}

#[test]
fn a_server_gets_no_request_of_a_plan_that_is_refused() {
    let project = Project::with_tasks(1);
    let server = Server::start(saying("replies:\n- text: x\n"));
    project.endpoints(&server.url(), &["mine"]);
    project.env.write(
        "e.yaml",
        "agents:\n- {name: good, harness: direct, model: mine}\n- {name: bad, harness: direct, model: mine, parameters: {max_turns: 1}}\n",
    );
    assert_eq!(project.refusal("run --config e.yaml", 3).0, "E020");
    assert_eq!(server.count(), 0);
}
