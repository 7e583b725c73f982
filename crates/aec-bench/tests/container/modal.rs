//! Runs in Modal's sandboxes: the real client, against servers of our own that speak its interface and run commands.

use aec_test::TestEnv;
use aec_test::modal::ModalServers;

use crate::runs::{fill, records, write_task};

/// A project whose runs find Modal's client and the servers.
fn project(servers: &ModalServers, tasks: usize) -> TestEnv {
    let mut env = TestEnv::new(env!("CARGO_BIN_EXE_aec-bench"));
    let path = std::env::var("PATH").unwrap();
    env.set("PATH", &format!("{}:{path}", servers.programs.display()));
    env.set("MODAL_SERVER_URL", &servers.address);
    env.set("MODAL_TOKEN_ID", "ak-test");
    env.set("MODAL_TOKEN_SECRET", "as-canary-value");
    fill(&env, tasks);
    env
}

#[test]
fn the_same_experiment_gives_the_same_verdicts_here_and_in_modals_sandboxes() {
    let Some(servers) = ModalServers::start() else { return };
    let env = project(&servers, 1);
    env.write(
        "script.json",
        r#"{"replies": [
          {"tool_calls": [{"name": "bash", "arguments": {"command": "id -u; cat survey.csv; echo '{\"flow\": 3.2}' > output.json"}}]},
          {"text": "done"}]}"#,
    );
    let here = env.run(["--json", "run", "-c", "experiment.yaml", "-e", "here"]);
    assert_eq!(here.code, Some(0), "{here:?}");
    let there = env.run(["--json", "run", "-c", "experiment.yaml", "-e", "there", "--backend", "modal"]);
    assert_eq!(there.code, Some(0), "{there:?}");
    let found = records(&env, "there");
    assert_eq!(found.len(), 3);
    assert_eq!(found, records(&env, "here"));
    // An agent that does nothing needs no room; each of the others has one, and every verifier.
    assert_eq!(servers.calls("SandboxCreateV2"), 5);
    assert_eq!(servers.calls("SandboxTerminateV2"), 5, "every sandbox is ended");
    let id = {
        let listed = env.run(["--json", "ledger", "list", "-e", "there", "--agent", "loop"]).data();
        listed["records"][0]["trial_id"].as_str().unwrap().to_owned()
    };
    let record = env.run(["--json", "ledger", "show", &id]).data().to_string();
    assert!(record.contains("\"modal\"") && record.contains("1.6.4"), "{record}");
    let everything = env.run(["runs", "status", "there"]).stdout + &there.stdout + &there.stderr + &record;
    assert!(!everything.contains("as-canary-value"), "keys stay where they are");
}

#[test]
fn faults_of_modal_have_kinds() {
    let Some(servers) = ModalServers::start() else { return };
    let mut env = project(&servers, 0);
    write_task(&env, "civil/broken", "FROM python:3.12-slim\nRUN false\n");
    let arguments = ["run", "civil", "--harness", "oracle", "--backend", "modal", "-e", "x"];
    let run = env.run(arguments);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("image_build") && !run.stderr.contains("tried again"), "{run:?}");
    // Without credentials nothing begins, and the doctor says what is missing.
    env.set("MODAL_TOKEN_SECRET", "");
    let run = env.run(["--json", "run", "civil", "--harness", "oracle", "--backend", "modal"]);
    assert_eq!((run.code, run.errors()[0].0.as_str()), (Some(4), "B022"), "{run:?}");
    assert!(run.stdout.contains("MODAL_TOKEN_SECRET is not set"), "{run:?}");
    let doctor = env.run(["doctor"]);
    assert!(doctor.stdout.contains("MODAL_TOKEN_SECRET"), "{doctor:?}");
}
