//! What can go wrong with containers, and what becomes of it: an outcome of a kind, never a reward.

use aec_container::{Engine, EngineLimits, TaskImage};
use serde_json::Value;

use crate::runs::{project, write_task};
use crate::{engine, image};

/// The only fault of an experiment: outcome, boundary, kind and what is said.
fn fault(run: &aec_test::Run, env: &aec_test::TestEnv, experiment: &str) -> (String, String, String) {
    let listed = env.run(["--json", "ledger", "list", "-e", experiment]).data();
    let id = listed["records"][0]["trial_id"].as_str().unwrap_or_else(|| panic!("{run:?}")).to_owned();
    let record = env.run(["--json", "ledger", "show", &id]).data();
    let record = if record["record"].is_object() { record["record"].clone() } else { record };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let fault = &record["fault"];
    (text(&record["outcome"]), text(&fault["kind"]), text(&fault["message"]))
}

#[test]
fn an_image_that_cannot_be_built_says_why_and_is_not_tried_again() {
    let Some((env, _)) = project(0) else { return };
    write_task(&env, "civil/broken", "FROM python:3.12-slim\nRUN echo trying && exit 3\n");
    let run = env.run(["run", "civil", "--harness", "oracle", "-e", "x", "--backend", "docker"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let (outcome, kind, message) = fault(&run, &env, "x");
    assert_eq!((outcome.as_str(), kind.as_str()), ("infra_fault", "image_build"));
    assert!(message.contains("exit status 3") && message.contains("trying"), "{message}");
    let listed = env.run(["--json", "ledger", "list", "-e", "x"]).data();
    assert_eq!(listed["records"].as_array().unwrap().len(), 1, "another attempt would be the same: {listed}");
}

#[test]
fn an_engine_without_space_is_a_fault_of_its_own_kind() {
    let Some((mut env, podman)) = project(1) else { return };
    let small = podman.small_service(300);
    env.set("DOCKER_HOST", &small.host);
    // Once as it is sent, once as a layer, and once while that is kept: not three times beside the image.
    let big: Vec<u8> = (0..16_000_000_u32).flat_map(u32::to_le_bytes).collect();
    std::fs::write(env.path("tasks/civil/channel-0/environment/big.bin"), big).unwrap();
    write_task(&env, "civil/channel-0", "FROM python:3.12-slim\nCOPY big.bin /big.bin\n");
    let run = env.run(["run", "civil", "--harness", "oracle", "-e", "full", "--backend", "docker"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let (outcome, kind, message) = fault(&run, &env, "full");
    assert_eq!((outcome.as_str(), kind.as_str()), ("infra_fault", "disk_full"), "{message}");
}

#[test]
fn builds_have_a_time_limit_and_are_shared() {
    let Some(engine) = engine() else { return };
    let directory = tempfile::tempdir().unwrap();
    let slow = TaskImage {
        build_timeout: std::time::Duration::from_secs(1),
        ..image(directory.path(), "FROM python:3.12-slim\nRUN sleep 30\n")
    };
    let error = engine.image(&slow).unwrap_err();
    assert_eq!(error.kind(), "image_build", "{error}");
    assert!(error.to_string().contains("more than 1 second"), "{error}");
    let other = tempfile::tempdir().unwrap();
    let stamp = format!("FROM python:3.12-slim\nRUN date > /stamp # {}\n", std::process::id());
    let wanted = image(other.path(), &stamp);
    let names: Vec<String> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..4).map(|_| scope.spawn(|| engine.image(&wanted).unwrap())).collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    assert!(names.iter().all(|name| *name == names[0]), "{names:?}");
    let unknown = TaskImage { extensions: vec!["cli".to_owned()], ..wanted };
    assert!(engine.image(&unknown).unwrap_err().to_string().contains("the extension `cli` is unknown"));
}

#[test]
fn tasks_that_have_no_image_are_refused_before_anything_runs() {
    let Some((env, _)) = project(1) else { return };
    std::fs::remove_file(env.path("tasks/civil/channel-0/environment/Dockerfile")).unwrap();
    let run = env.run(["--json", "run", "civil", "--harness", "nop", "--backend", "docker"]);
    assert_eq!((run.code, run.errors()[0].0.as_str()), (Some(3), "E046"), "{run:?}");
    write_task(&env, "civil/channel-0", "FROM python:3.12-slim\n");
    assert!(!env.path("artefacts/ledger").join("x").exists());
}

#[test]
fn memory_that_runs_out_is_the_agents_own_doing() {
    let Some((env, _)) = project(1) else { return };
    let hungry = r#"{"replies": [
      {"tool_calls": [{"name": "bash", "arguments": {"command": "python3 -c 'x = bytearray(600 << 20)'"}}]},
      {"tool_calls": [{"name": "bash", "arguments": {"command": "head -c 100M /dev/zero > full; rm full; echo '{\"flow\": 3.2}' > output.json"}}]},
      {"text": "done"}]}"#;
    env.write("script.json", hungry);
    let run = env.run([
        "--json",
        "run",
        "civil",
        "-m",
        "offline/scripted:script.json",
        "-e",
        "x",
        "--backend",
        "docker",
    ]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.data()["all"]["reward_sum"], 0.5, "the room goes on, and what it left is judged");
}

#[test]
fn an_engine_that_goes_away_is_a_fault_that_may_pass() {
    let Some((mut env, podman)) = project(1) else { return };
    let service = podman.own_service();
    env.set("DOCKER_HOST", &service.host);
    env.write(
        "script.json",
        r#"{"replies": [{"tool_calls": [{"name": "bash", "arguments": {"command": "echo begun; sleep 100"}}]}, {"text": "done"}]}"#,
    );
    let arguments = [
        "run",
        "civil",
        "-m",
        "offline/scripted:script.json",
        "-e",
        "x",
        "--backend",
        "docker",
        "--max-attempts",
        "1",
    ];
    let child = env.start_piped(arguments);
    let label = "org.aec-bench.experiment=x";
    while podman.containers(label).is_empty() {
        std::thread::yield_now();
    }
    drop(service);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    env.set("DOCKER_HOST", &podman.host());
    let run = env.run(["runs", "status", "x"]);
    let (outcome, kind, message) = fault(&run, &env, "x");
    assert_eq!(outcome, "infra_fault", "{message}");
    assert!(kind == "engine_lost" || message.contains("the room"), "{kind}: {message}");
    // It goes on when the engine is back.
    env.write("script.json", r#"{"replies": [{"text": "{\"flow\": 3.2}"}]}"#);
    let again = env.run(["--json", "run", "--resume", "x", "--rerun", "infra"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    podman.run(&["rm", "-f", "-a"]).unwrap();
}

#[test]
fn no_engine_is_said_at_once() {
    let Some((mut env, _)) = project(1) else { return };
    let nowhere = format!("unix://{}", env.path("none.sock").display());
    env.set("DOCKER_HOST", &nowhere);
    let run = env.run(["--json", "run", "civil", "--harness", "nop", "--backend", "docker"]);
    assert_eq!((run.code, run.errors()[0].0.as_str()), (Some(4), "B020"), "{run:?}");
    assert!(Engine::connect(&[nowhere], EngineLimits::default()).is_err());
}
