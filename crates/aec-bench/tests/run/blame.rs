//! What an agent can break, and what that costs it: nothing that an agent can cause takes a trial out of its mean.

use aec_judge::settle::outcome::Boundary;
use aec_judge::verdict::Outcome;
use serde_json::{Value, json};

use crate::run::Project;

/// A verifier that is not hardened: it crashes on answers that cannot be read, as most do.
const NAIVE: &str = r#"import json, math, pathlib

EXPECTED = {"flow_m3_s": 3.217, "depth_m": 1.254}
answer = json.loads(pathlib.Path("/workspace/output.json").read_text())
met = [math.isclose(float(answer.get(key, "nan")), value, rel_tol=0.01) for key, value in EXPECTED.items()]
pathlib.Path("/logs/verifier/reward.json").write_text(json.dumps({"reward": sum(met) / len(met)}))
"#;

const TEST_SH: &str =
    "#!/usr/bin/env bash\nset -euo pipefail\nmkdir -p /logs/verifier\npython3 /tests/verify.py\n";

/// Both know the answers of the tasks with odd numbers. Where it knows nothing, the second breaks the verifier.
const AGENT: &str = r#"import json, os, re
number = int(re.search(r"channel-(\d+)", os.environ["AGENT_INSTRUCTION"]).group(1))
right = json.dumps({"flow_m3_s": 6434 / 2000, "depth_m": 2508 / 2000})
with open("/workspace/output.json", "w") as output:
    output.write(right if number % 2 else OTHERWISE)
"#;

fn project(tasks: usize, agents: &[(&str, &str)]) -> Project {
    let project = Project::with_tasks(tasks);
    for number in 0..tasks {
        let tests = format!("tasks/civil/channel-{number:03}/tests");
        project.env.write(format!("{tests}/verify.py"), NAIVE);
        project.env.write(format!("{tests}/test.sh"), TEST_SH);
        std::fs::remove_file(project.env.path(format!("{tests}/answers.json"))).unwrap();
    }
    let mut rows = String::new();
    for (name, program) in agents {
        project.env.write(format!("agent/{name}.py"), program);
        rows.push_str(&format!(
            "- {{name: {name}, harness: command, parameters: {{command: python3 /agent/agent/{name}.py, files: [agent/{name}.py]}}}}\n"
        ));
    }
    project.env.write("e.yaml", format!("experiment_id: x\nagents:\n{rows}"));
    project
}

fn agent<'a>(data: &'a Value, name: &str) -> &'a Value {
    data["agents"].as_array().unwrap().iter().find(|agent| agent["agent"] == name).unwrap()
}

/// The second agent had 1.000 of 5 and the first place; each of its bad trials was a `verifier_fault`, tried again.
#[test]
fn who_breaks_the_verifier_instead_of_being_wrong_gains_nothing() {
    let honest = AGENT.replace("OTHERWISE", "\"{}\"");
    let hostile = AGENT.replace("OTHERWISE", "\"[\" * 100000");
    let project = project(10, &[("honest", &honest), ("hostile", &hostile)]);
    let run = project.json("run --config e.yaml");
    let data = run.envelope()["data"].clone();
    for name in ["honest", "hostile"] {
        let tally = agent(&data, name);
        assert_eq!(tally["outcomes"], json!({ "scored": 10 }), "{name}: {run:?}");
        assert_eq!(tally["reward_sum"], 5.0, "{name}: {tally}");
    }
    let records = project.records("x");
    assert_eq!(records.len(), 20, "nothing was tried again");
    let broken: Vec<_> = records.values().filter(|record| record.fault.is_some()).collect();
    assert_eq!(broken.len(), 5);
    for record in broken {
        let fault = record.fault.as_ref().unwrap();
        assert_eq!((fault.boundary, fault.kind.as_deref()), (Boundary::Harness, Some("broke_verifier")));
        assert!(!fault.retryable && record.agent.name.as_str() == "hostile", "{record:?}");
        let evaluation = record.evaluation.as_ref().unwrap();
        assert!(evaluation.stderr.contains("RecursionError"), "{evaluation:?}");
        assert!(!evaluation.validity.verifier_completed, "{evaluation:?}");
        assert_eq!((evaluation.reward, evaluation.exit_code), (Some(0.0), Some(1)));
        assert_eq!(evaluation.validity.errors, ["it exited with 1"]);
    }
    let board = project.data("report leaderboard -e x");
    let means: Vec<&Value> =
        board["rows"].as_array().unwrap().iter().map(|row| &row["mean_reward"]).collect();
    assert_eq!(means, [&json!(0.5), &json!(0.5)]);
    assert_eq!(project.data("run --resume x --rerun failed")["recorded"], 0);
    project.assert_sound("x");
}

/// A broken task is still told from a broken answer.
#[test]
fn a_verifier_that_is_broken_for_everybody_is_the_tasks() {
    let honest = AGENT.replace("OTHERWISE", "\"{}\"");
    let project = project(1, &[("honest", &honest)]);
    project.env.write("tasks/civil/channel-000/tests/verify.py", "raise SystemExit(3)\n");
    let run = project.json("run --config e.yaml --max-attempts 1");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert_eq!(agent(&run.envelope()["data"], "honest")["outcomes"], json!({ "verifier_fault": 1 }));
    let records = project.records("x");
    let fault = records.values().next().unwrap().fault.clone().unwrap();
    assert_eq!((fault.boundary, fault.kind.as_deref()), (Boundary::Verifier, Some("exit_code")));
    // Without a golden answer nobody can tell, and nobody gains.
    std::fs::remove_file(project.env.path("tasks/civil/channel-000/tests/fixtures/golden_pass.json"))
        .unwrap();
    let run = project.json("run --config e.yaml -e y");
    assert_eq!(agent(&run.envelope()["data"], "honest")["outcomes"], json!({ "agent_fault": 1 }), "{run:?}");
    let records = project.records("y");
    assert_eq!(records.len(), 1, "it is not tried again");
    let fault = records.values().next().unwrap().fault.clone().unwrap();
    assert_eq!((fault.boundary, fault.kind.as_deref()), (Boundary::Verifier, Some("unproven")));
}

/// An ordinary user's freezing failed on a directory without permissions, and the agent got another attempt.
#[test]
#[cfg_attr(not(ordinary_user), ignore = "needs root, and a working copy that other users can read")]
fn what_an_agent_leaves_unreadable_is_its_own_loss() {
    let leaving = "import os\nopen('/workspace/output.json', 'w').write('[')\n\
                   os.makedirs('/workspace/shut/in')\nos.chmod('/workspace/shut', 0)\n\
                   os.chmod('/workspace/output.json', 0)\nos.chmod('/workspace', 0)\n";
    let mut project = project(1, &[("leaving", leaving)]);
    project.env.set("PATH", "/usr/bin:/bin");
    project.env.become_ordinary_user();
    let owner =
        std::process::Command::new("chown").args(["-R", "65534:65534"]).arg(project.env.dir()).status();
    assert!(owner.unwrap().success());
    let run = project.json("run --config e.yaml");
    assert_eq!(run.envelope()["data"]["all"]["outcomes"], json!({ "scored": 1 }), "{run:?}");
    let records = project.records("x");
    assert_eq!(records.len(), 1);
    let record = records.values().next().unwrap();
    assert_eq!((record.outcome, record.reward()), (Outcome::Scored, Some(0.0)));
    let refused = &record.outputs.submission.as_ref().unwrap().refused;
    let named: Vec<&str> = refused.iter().map(|refused| refused.path.as_str()).collect();
    assert_eq!(named, ["output.json", "shut"]);
}

/// A program that could not even start looked like an agent that scored 0, and the run ended with code 0.
#[test]
fn a_program_that_crashes_is_reported_as_what_it_is() {
    let honest = AGENT.replace("OTHERWISE", "\"{}\"");
    let crashing = "import NoSuchModule\n";
    let project = project(2, &[("honest", &honest), ("crashing", crashing)]);
    let run = project.json("run --config e.yaml");
    assert_eq!(run.code, Some(1), "{run:?}");
    let envelope = run.envelope();
    let tally = agent(&envelope["data"], "crashing");
    assert_eq!((&tally["crashed"], &tally["outcomes"]), (&json!(2), &json!({ "scored": 2 })), "{tally}");
    let said = tally["traceback"].as_str().unwrap();
    assert!(said.starts_with("Traceback (most recent call last):\n"), "{said}");
    assert!(said.ends_with("ModuleNotFoundError: No module named 'NoSuchModule'"), "{said}");
    assert_eq!(agent(&envelope["data"], "honest")["crashed"], 0);
    let problem = &envelope["errors"].as_array().unwrap()[0];
    assert_eq!(problem["id"], "E063", "{problem}");
    assert!(problem["what"].as_str().unwrap().contains("crashing crashed in every trial"), "{problem}");
    assert_eq!(problem["why"], "ModuleNotFoundError: No module named 'NoSuchModule'");
    let crashed: Vec<_> =
        project.records("x").into_values().filter(|record| record.fault.is_some()).collect();
    assert_eq!(crashed.len(), 2);
    for record in crashed {
        assert_eq!(record.fault.unwrap().kind.as_deref(), Some("crashed"));
        assert_eq!(record.evaluation.unwrap().reward, Some(0.0), "it counts");
    }
    let data = project.data("evaluate -e x");
    let rows = data["by"]["agent"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == "crashing").unwrap();
    assert_eq!(row["faults"], json!({ "uncounted": 0, "agents": 2, "crashed": 2 }));
    let text = project.run("run --config e.yaml -e again");
    assert_eq!(text.code, Some(1), "{text:?}");
    let shown = format!("{}{}", text.stdout, text.stderr);
    assert!(shown.contains("    ModuleNotFoundError: No module named 'NoSuchModule'\n"), "{shown}");
    assert!(shown.contains("crashed"), "{shown}");
}
