//! What can go wrong with containers. Each fault gives its own kind of outcome, and never a reward.

use aec_container::{Engine, EngineLimits, TaskImage};
use aec_xtest::wait::until;
use serde_json::Value;

use crate::container::runs::{project, write_task};
use crate::container::{engine, engine_at, image};

/// The only fault of an experiment: outcome, boundary, kind and message.
fn fault(run: &aec_xtest::Run, env: &aec_xtest::TestEnv, experiment: &str) -> (String, String, String) {
    let listed = env.run(["--json", "ledger", "list", "-e", experiment]).data();
    let id = listed["records"][0]["trial_id"].as_str().unwrap_or_else(|| panic!("{run:?}")).to_owned();
    let record = env.run(["--json", "ledger", "show", &id]).data();
    let record = if record["record"].is_object() { record["record"].clone() } else { record };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let fault = &record["fault"];
    (text(&record["outcome"]), text(&fault["kind"]), text(&fault["message"]))
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn an_image_that_cannot_be_built_says_why_and_is_not_tried_again() {
    let (env, _) = project(0);
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
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn an_engine_without_space_is_a_fault_of_its_own_kind() {
    let (mut env, podman) = project(1);
    let small = podman.small_service(300);
    env.set("DOCKER_HOST", &small.host);
    // The storage would have to hold it three times (as sent, as a layer, while saving that), which does not fit.
    let big: Vec<u8> = (0..16_000_000_u32).flat_map(u32::to_le_bytes).collect();
    std::fs::write(env.path("tasks/civil/channel-0/environment/big.bin"), big).unwrap();
    write_task(&env, "civil/channel-0", "FROM python:3.12-slim\nCOPY big.bin /big.bin\n");
    let run = env.run(["run", "civil", "--harness", "oracle", "-e", "full", "--backend", "docker"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let (outcome, kind, message) = fault(&run, &env, "full");
    assert_eq!((outcome.as_str(), kind.as_str()), ("infra_fault", "disk_full"), "{message}");
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn builds_have_a_time_limit_and_are_shared() {
    let engine = engine();
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
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn tasks_that_have_no_image_are_refused_before_anything_runs() {
    let (env, _) = project(1);
    std::fs::remove_file(env.path("tasks/civil/channel-0/environment/Dockerfile")).unwrap();
    let run = env.run(["--json", "run", "civil", "--harness", "nop", "--backend", "docker"]);
    assert_eq!((run.code, run.errors()[0].0.as_str()), (Some(3), "E046"), "{run:?}");
    write_task(&env, "civil/channel-0", "FROM python:3.12-slim\n");
    assert!(!env.path("artefacts/ledger").join("x").exists());
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn memory_that_runs_out_is_the_agents_own_doing() {
    let (env, _) = project(1);
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
        "hungry",
        "--backend",
        "docker",
    ]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.data()["all"]["reward_sum"], 0.5, "the room goes on, and what it left is judged");
    let (outcome, kind, _) = fault(&run, &env, "hungry");
    assert_eq!((outcome.as_str(), kind.as_str()), ("scored", "out_of_memory"), "it is said all the same");
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn who_fills_the_memory_of_a_room_does_not_escape_the_verdict() {
    let (env, _) = project(1);
    // Killing processes does not free the memory of files in /tmp, so in the end the room itself runs out of memory.
    let filling = "echo '{}' > output.json; i=0; while [ $i -lt 200 ]; do head -c 4M /dev/zero > /tmp/$i 2>/dev/null || head -c 4M /dev/zero > /home/agent/$i; i=$((i+1)); done";
    let call = serde_json::json!({ "tool_calls": [{ "name": "bash", "arguments": { "command": filling } }] });
    let replies = serde_json::json!({ "replies": [call, call, call, { "text": "done" }] });
    env.write("script.json", replies.to_string());
    env.write(
        "tasks/civil/channel-0/task.toml",
        "version = \"1.0\"\n[agent]\ntimeout_sec = 120\n[environment]\nmemory_mb = 64\nstorage_mb = 1024\n",
    );
    let model = "offline/scripted:script.json";
    let run = env.run(["--json", "run", "civil", "-m", model, "-e", "filled", "--backend", "docker"]);
    let (outcome, _, message) = fault(&run, &env, "filled");
    assert!(["scored", "agent_fault"].contains(&outcome.as_str()), "{outcome}: {message}");
    assert_eq!(run.data()["all"]["reward_sum"], 0.0, "{run:?}");
    // A submission does not use up the verifier's memory.
    let heavy = serde_json::json!({ "tool_calls": [{ "name": "bash", "arguments": {
        "command": "head -c 20M /dev/zero > big; echo '{\"flow\": 3.2}' > output.json" } }] });
    env.write("script.json", serde_json::json!({ "replies": [heavy, { "text": "done" }] }).to_string());
    let run = env.run(["--json", "run", "civil", "-m", model, "-e", "heavy", "--backend", "docker"]);
    assert_eq!((run.code, &run.data()["all"]["reward_sum"]), (Some(0), &0.5.into()), "{run:?}");
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn a_verifier_that_takes_too_much_memory_is_told_from_one_that_fails() {
    let (env, _) = project(1);
    env.write("tasks/civil/channel-0/tests/verify.py", "x = bytearray(600 << 20)\n");
    // It fails on this too, so no agent is to blame.
    let golden = "tasks/civil/channel-0/tests/fixtures/golden_pass.json";
    env.write(golden, "{\"flow\": 3.2, \"depth\": 1.25}");
    let run = env.run(["run", "civil", "--harness", "nop", "-e", "greedy", "--backend", "docker"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let (outcome, kind, message) = fault(&run, &env, "greedy");
    assert_eq!((outcome.as_str(), kind.as_str()), ("verifier_fault", "out_of_memory"), "{message}");
}

/// Gives the agent this many seconds in `task.toml`.
fn hurry(env: &aec_xtest::TestEnv, task: &str, seconds: u32) {
    env.write(
        format!("tasks/{task}/task.toml"),
        format!(
            "version = \"1.0\"\n[agent]\ntimeout_sec = {seconds}\n[verifier]\ntimeout_sec = 60\n[environment]\n\
             memory_mb = 256\nstorage_mb = 64\n"
        ),
    );
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn the_time_in_which_a_room_is_opened_is_not_the_agents() {
    let (env, _) = project(0);
    let slow = format!("FROM python:3.12-slim\nRUN sleep 12 # {}\n", std::process::id());
    write_task(&env, "civil/slow", &slow);
    hurry(&env, "civil/slow", 10);
    let run = env.run(["--json", "run", "civil", "--harness", "oracle", "-e", "slow", "--backend", "docker"]);
    assert_eq!((run.code, &run.data()["all"]["reward_sum"]), (Some(0), &1.0.into()), "{run:?}");
    // Four agents that share one container slot wait for each other longer than they may work.
    env.write("aec-bench.toml", "[compute.docker]\ncontainers = 1\n");
    write_task(&env, "civil/slow", "FROM python:3.12-slim\n");
    hurry(&env, "civil/slow", 8);
    env.write(
        "tasks/civil/slow/solution/solve.sh",
        "#!/bin/sh\nsleep 3\necho '{\"flow\": 3.2, \"depth\": 1.25}' > /workspace/output.json\n",
    );
    let run = env.run([
        "--json",
        "run",
        "civil",
        "--harness",
        "oracle",
        "-e",
        "queue",
        "-n",
        "4",
        "--concurrency",
        "4",
        "--backend",
        "docker",
    ]);
    assert_eq!((run.code, &run.data()["all"]["reward_sum"]), (Some(0), &4.0.into()), "{run:?}");
    let listed = env.run(["--json", "ledger", "list", "-e", "queue"]).data();
    for record in listed["records"].as_array().unwrap() {
        assert!(record["agent_seconds"].as_f64().unwrap() < 8.0, "{record}");
    }
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn an_image_that_cannot_be_built_for_the_verifier_is_not_tried_again() {
    let (env, _) = project(0);
    write_task(&env, "civil/broken", "FROM python:3.12-slim\nRUN exit 4\n");
    let run = env.run(["run", "civil", "--harness", "nop", "-e", "unjudged", "--backend", "docker"]);
    let (outcome, kind, message) = fault(&run, &env, "unjudged");
    assert_eq!((outcome.as_str(), kind.as_str()), ("infra_fault", "image_build"), "{message}");
    assert!(!run.stderr.contains("tried again"), "{run:?}");
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn extensions_are_known_names_and_the_local_backend_says_which_it_lacks() {
    let (env, _) = project(1);
    let task = |extension: &str| {
        env.write(
            "tasks/civil/channel-0/task.toml",
            format!("version = \"1.0\"\n[environment]\nextensions = [\"{extension}\"]\n"),
        );
        let plan = |backend: &str| {
            env.run(["--json", "run", "civil", "--harness", "nop", "--dry-run", "--backend", backend])
        };
        (plan("docker"), plan("local"))
    };
    let (there, here) = task("ocr");
    assert_eq!((there.code, there.errors().len()), (Some(0), 0), "{there:?}");
    assert_eq!((here.code, here.errors()[0].0.as_str()), (Some(0), "E048"), "{here:?}");
    let (there, _) = task("ocrr");
    assert_eq!((there.code, there.errors()[0].0.as_str()), (Some(3), "E047"), "{there:?}");
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn images_are_removed_but_not_those_that_somebody_uses() {
    let (mut env, podman) = project(1);
    // A separate engine, because other tests need their images.
    let own = podman.small_service(4000);
    env.set("DOCKER_HOST", &own.host);
    // Long, with a length that distinguishes it from others.
    let length = 1_000_000 + std::process::id();
    let command =
        serde_json::json!({ "name": "bash", "arguments": { "command": format!("sleep {length}; true") } });
    env.write("script.json", serde_json::json!({ "replies": [{ "tool_calls": [command] }] }).to_string());
    let engine = engine_at(own.host.clone());
    let mut child = env.start_piped([
        "run",
        "civil",
        "-m",
        "offline/scripted:script.json",
        "-e",
        "used",
        "--backend",
        "docker",
    ]);
    let sleeps = format!("sleep\0{length}\0").into_bytes();
    let begun = || {
        let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        processes
            .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
            .any(|words| words == sleeps)
    };
    until("the agent's first command", || {
        assert!(child.try_wait().unwrap().is_none(), "the run is over");
        begun()
    });
    let found = engine.leftovers().unwrap();
    assert_eq!((found.containers.len(), found.images.len()), (0, 2), "{found:?}");
    // The room's base image loses its name while the room's own image exists.
    assert!(engine.clean(&found).unwrap().images <= 1);
    assert!(engine.leftovers().unwrap().images.iter().any(|name| name.contains("aec-bench/room")));
    assert!(child.try_wait().unwrap().is_none(), "the run goes on");
    child.kill().unwrap();
    child.wait().unwrap();
    let begun = std::time::Instant::now();
    while !engine.leftovers().unwrap().images.is_empty() {
        assert!(begun.elapsed() < std::time::Duration::from_mins(1), "images stay");
        assert_eq!(env.run(["runs", "clean", "--images", "-q"]).code, Some(0));
    }
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn an_engine_that_goes_away_is_a_fault_that_may_pass() {
    let (mut env, podman) = project(1);
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
        "lost",
        "--backend",
        "docker",
        "--max-attempts",
        "1",
    ];
    let child = env.start_piped(arguments);
    let label = "org.aec-bench.experiment=lost";
    until("a container of the run", || !podman.containers(label).is_empty());
    drop(service);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    env.set("DOCKER_HOST", &podman.host());
    let run = env.run(["runs", "status", "lost"]);
    let (outcome, kind, message) = fault(&run, &env, "lost");
    assert_eq!((outcome.as_str(), kind.as_str()), ("infra_fault", "engine_lost"), "{message}");
    // The run continues when the engine is back.
    env.write("script.json", r#"{"replies": [{"text": "{\"flow\": 3.2}"}]}"#);
    let again = env.run(["--json", "run", "--resume", "lost", "--rerun", "infra"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    for container in podman.containers(label) {
        podman.run(&["rm", "-f", &container]).unwrap();
    }
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn no_engine_is_said_at_once() {
    let (mut env, _) = project(1);
    let nowhere = format!("unix://{}", env.path("none.sock").display());
    env.set("DOCKER_HOST", &nowhere);
    let run = env.run(["--json", "run", "civil", "--harness", "nop", "--backend", "docker"]);
    assert_eq!((run.code, run.errors()[0].0.as_str()), (Some(4), "B020"), "{run:?}");
    assert!(Engine::connect(&[nowhere], EngineLimits::default()).is_err());
    let far = Engine::connect(&["ssh://elsewhere".to_owned()], EngineLimits::default()).unwrap_err();
    assert!(far.to_string().contains("not reached through ssh"), "{far}");
}
