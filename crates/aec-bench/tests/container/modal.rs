//! Runs in Modal's sandboxes: the real client, against our own servers that speak its interface and run commands.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use aec_judge::scorer::STANDARD_VERIFY_PY;
use aec_xtest::TestEnv;
use aec_xtest::modal::ModalServers;
use aec_xtest::wait::until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::container::runs::{fill, records, write_task};

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
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn the_same_experiment_gives_the_same_verdicts_here_and_in_modals_sandboxes() {
    let servers = ModalServers::start();
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
    // An agent that does nothing needs no room; each of the others has one, and so has every verifier.
    let made = servers.sandboxes();
    assert_eq!(made.len(), 5);
    until("the end of every sandbox", || servers.ended().len() == 5);
    for sandbox in &made {
        for tag in ["experiment", "trial", "host", "boot", "pid"] {
            assert!(sandbox["tags"][format!("aec-bench-{tag}")].is_string(), "{tag}: {sandbox}");
        }
        // A sandbox may use no more than it reserves.
        assert_eq!(
            (&sandbox["milli_cpu"], &sandbox["memory_mb"]),
            (&json!([2000, 2000]), &json!([256, 256]))
        );
    }
    let seconds = |wanted: u64| made.iter().filter(|sandbox| sandbox["seconds"] == wanted).count();
    assert_eq!((seconds(720), seconds(660)), (2, 3), "{made:?}");
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
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn a_run_that_goes_on_finds_the_credentials_that_its_experiment_names() {
    let servers = ModalServers::start();
    let mut env = project(&servers, 1);
    for name in ["MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET"] {
        env.set(name, "");
    }
    env.set("MY_ID", "ak-test");
    env.set("MY_SECRET", "as-canary-value");
    env.write(
        "named.yaml",
        "compute: { backend: modal, modal: { token_id: $MY_ID, token_secret: $MY_SECRET } }\n\
         agents: [{ name: oracle, harness: oracle }]\n",
    );
    let run = env.run(["--json", "run", "-c", "named.yaml", "-e", "named"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let listed = env.run(["--json", "ledger", "list", "-e", "named"]).data();
    let id = listed["records"][0]["trial_id"].as_str().unwrap();
    let again = env.run(["--json", "run", "--resume", "named", "--rerun", id]);
    assert_eq!((again.code, &again.data()["all"]["executed"]), (Some(0), &json!(1)), "{again:?}");
    let locked = env.run(["--json", "plan", "-c", "named.yaml", "-e", "locked", "--lock", "plan.json"]);
    assert_eq!(locked.code, Some(0), "{locked:?}");
    let plan = std::fs::read_to_string(env.path("plan.json")).unwrap();
    assert!(plan.contains("$MY_SECRET") && !plan.contains("as-canary-value"), "{plan}");
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn faults_of_modal_have_kinds() {
    let servers = ModalServers::start();
    let mut env = project(&servers, 0);
    write_task(&env, "civil/broken", "FROM python:3.12-slim\nRUN false\n");
    let arguments = ["run", "civil", "--harness", "oracle", "--backend", "modal", "-e", "x"];
    let run = env.run(arguments);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("image_build") && !run.stderr.contains("tried again"), "{run:?}");
    // Without credentials nothing starts, and `doctor` reports what is missing.
    env.set("MODAL_TOKEN_SECRET", "");
    let run = env.run(["--json", "run", "civil", "--harness", "oracle", "--backend", "modal"]);
    assert_eq!((run.code, run.errors()[0].0.as_str()), (Some(4), "B022"), "{run:?}");
    assert!(run.stdout.contains("MODAL_TOKEN_SECRET is not set"), "{run:?}");
    let doctor = env.run(["doctor"]);
    assert!(doctor.stdout.contains("MODAL_TOKEN_SECRET"), "{doctor:?}");
}

/// The part of `run --dry-run` about Modal, as JSON and as text.
fn preview(env: &TestEnv, arguments: &[&str]) -> (Value, String) {
    let arguments = || ["run"].iter().chain(arguments).copied().chain(["--backend", "modal", "--dry-run"]);
    let data = env.run(["--json"].into_iter().chain(arguments())).data();
    let text = env.run(arguments());
    assert_eq!(text.code, Some(0), "{text:?}");
    let about: Vec<&str> = text.stdout.lines().skip_while(|line| !line.starts_with("Modal")).collect();
    let end = about.iter().position(|line| line.is_empty()).unwrap();
    (data["modal"].clone(), about[..end].join("\n"))
}

/// Checks that nothing was created that costs money or would have to be removed.
fn assert_nothing_was_made(servers: &ModalServers) {
    for rpc in ["AppGetOrCreate", "ImageGetOrCreate", "MountGetOrCreate", "SandboxCreateV2", "SandboxCreate"]
    {
        assert_eq!(servers.calls(rpc), 0, "{rpc}");
    }
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn a_dry_run_tells_what_would_be_created_and_what_it_can_cost() {
    let servers = ModalServers::start();
    let env = project(&servers, 2);
    // One task has another image, a network and less time; the other task's image is the same again.
    write_task(&env, "civil/open", "FROM python:3.12-slim\nRUN true\n");
    let task = env.read("tasks/civil/open/task.toml");
    let task = task.replace("allow_internet = false", "allow_internet = true").replace("= 120", "= 30");
    env.write("tasks/civil/open/task.toml", task.replace("memory_mb = 256", "memory_mb = 512\ncpus = 2"));
    let (data, text) = preview(&env, &["-c", "experiment.yaml"]);
    insta::assert_snapshot!("modal_preview", text);
    insta::assert_json_snapshot!("modal_preview_json", data);
    assert_nothing_was_made(&servers);
    assert!(servers.calls("WorkspaceBillingRates") > 0);
    // Submissions that are not scored need no verifier.
    let (data, _) = preview(&env, &["civil/channel-0", "--harness", "oracle", "-n", "3", "--no-verify"]);
    assert_eq!((&data["sandboxes"], &data["kinds"][0]["role"]), (&3.into(), &"agent".into()), "{data}");
    let (data, text) = preview(&env, &["civil/channel-0", "--harness", "nop", "--no-verify"]);
    assert_eq!(
        (&data["sandboxes"], &data["images"], &data["cost_ceiling"]),
        (&0.into(), &0.into(), &0.into())
    );
    assert!(text.contains("0 sandboxes") && text.contains("at most: $0.000000"), "{text}");
    assert_nothing_was_made(&servers);
}

const EXAMPLE: [&str; 3] = ["civil", "--harness", "oracle"];
/// Rates in the settings.
const RATES: &str = "[compute.modal]\ncpu_core_hour_usd = 1.0\nmemory_gib_hour_usd = 0.0\n";

/// A task whose standard verifier is judged on this machine.
fn judged_here() -> TestEnv {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_aec-bench"));
    fill(&env, 1);
    env.write("tasks/civil/channel-0/tests/verify.py", STANDARD_VERIFY_PY);
    env.write("tasks/civil/channel-0/tests/answers.json", "{}");
    env
}

#[test]
fn a_dry_run_needs_neither_a_token_nor_rates() {
    let env = judged_here();
    let (data, text) = preview(&env, &EXAMPLE);
    assert_eq!(data["kinds"].as_array().unwrap().len(), 1, "{data}");
    assert_eq!((&data["kinds"][0]["role"], &data["cost_ceiling"]), (&"agent".into(), &Value::Null), "{data}");
    for part in [
        "cost unknown: MODAL_TOKEN_ID is not set",
        "compute.modal.cpu_core_hour_usd and compute.modal.memory",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let file = env.read("aec-bench.toml");
    env.write("aec-bench.toml", format!("{file}\n[compute.modal]\ncpu_core_hour_usd = 1.0\n"));
    let (data, text) = preview(&env, &EXAMPLE);
    assert_eq!(data["rates"], Value::Null);
    assert!(text.contains("; set compute.modal.memory_gib_hour_usd in aec-bench.toml"), "{text}");
    env.write("aec-bench.toml", format!("{file}\n{RATES}"));
    let (data, text) = preview(&env, &EXAMPLE);
    assert_eq!(data["rates"]["from"], "settings", "{data}");
    let kind = &data["kinds"][0];
    let cores = kind["count"].as_u64().unwrap() * kind["cpus"].as_u64().unwrap();
    let ceiling = (cores * kind["seconds"].as_u64().unwrap() * 1_000_000).div_ceil(3600);
    assert_eq!(data["cost_ceiling"], ceiling, "{data}");
    assert!(text.contains("as the settings say"), "{text}");
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn settings_apply_if_modal_does_not_report_its_rates() {
    let mut env = judged_here();
    let file = env.read("aec-bench.toml");
    env.write("aec-bench.toml", format!("{file}\n{RATES}"));
    let servers = ModalServers::start();
    let path = std::env::var("PATH").unwrap();
    for (name, value) in [
        ("PATH", &*format!("{}:{path}", servers.programs.display())),
        ("MODAL_SERVER_URL", &servers.address),
        ("MODAL_TOKEN_ID", "ak-poor"),
        ("MODAL_TOKEN_SECRET", "as-canary-value"),
    ] {
        env.set(name, value);
    }
    let (data, _) = preview(&env, &EXAMPLE);
    assert_eq!(data["rates"]["from"], "settings", "{data}");
    env.write("aec-bench.toml", file);
    let (data, text) = preview(&env, &EXAMPLE);
    assert_eq!(data["rates"], Value::Null);
    assert!(
        text.contains("Modal does not report its rates") && text.contains("does not see rates"),
        "{text}"
    );
    assert_nothing_was_made(&servers);
}

#[test]
fn without_a_token_no_python_is_started() {
    let mut env = TestEnv::new(env!("CARGO_BIN_EXE_aec-bench"));
    fill(&env, 1);
    let (program, mark) = (env.path("bin/python3"), env.path("started"));
    env.write("bin/python3", format!("#!/bin/sh\ntouch {}\nexit 1\n", mark.display()));
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    env.set("PATH", &format!("{}:{}", env.path("bin").display(), std::env::var("PATH").unwrap()));
    for arguments in [
        &["--json", "runs", "clean"][..],
        &["--json", "run", "civil", "--harness", "nop", "--backend", "modal", "--dry-run"],
    ] {
        assert_eq!(env.run(arguments).code, Some(0), "{arguments:?}");
        assert!(!mark.exists(), "{arguments:?}");
    }
    env.set("MODAL_TOKEN_ID", "ak-test");
    env.set("MODAL_TOKEN_SECRET", "as-canary-value");
    // There is no client here, so Modal is not contacted.
    let cleaned = env.run(["--json", "runs", "clean"]);
    assert_eq!(cleaned.data()["sandboxes"], 0, "{cleaned:?}");
    assert!(mark.exists());
}

/// The bridge processes of a run: its children that are interpreters.
fn bridges(run: u32) -> Vec<Pid> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Ok(status) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let rest = status.rsplit_once(") ").map(|(_, rest)| rest).unwrap_or_default();
        let parent = rest.split(' ').nth(1).and_then(|parent| parent.parse::<u32>().ok());
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let program = words.split(|byte| *byte == 0).next().unwrap_or_default();
        if parent == Some(run) && String::from_utf8_lossy(program).ends_with("python3") {
            found.extend(Pid::from_raw(pid));
        }
    }
    found
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn a_sandbox_whose_bridge_was_killed_is_found_and_ended_and_others_stay() {
    let servers = ModalServers::start();
    let env = project(&servers, 2);
    // A run in progress locks its own ledger.
    let other = project(&servers, 0);
    let clean = |more: &[&str]| {
        let arguments = ["--json", "runs", "clean"].iter().chain(more).copied();
        other.run(arguments).data()["sandboxes"].clone()
    };
    assert_eq!(clean(&[]), 0, "there is no app yet");
    assert_eq!(servers.calls("SandboxListV2"), 0);
    let sleeping = r#"{"replies": [{"tool_calls": [{"name": "bash", "arguments": {"command": "touch /workspace/at-work; sleep 1000"}}]}]}"#;
    env.write("script.json", sleeping);
    let mut child = env.start([
        "run",
        "civil",
        "--model",
        "offline/scripted:script.json",
        "--backend",
        "modal",
        "-e",
        "x",
    ]);
    let run = Pid::from_child(&child);
    // Each room has one process, which runs the commands.
    until("two rooms are open", || servers.calls("TaskExecStart") == 2);
    assert_eq!(clean(&[]), 0, "both belong to a live run");
    // The run is paused, so it does not notice that the bridge is gone and opens no other room.
    kill_process(run, Signal::STOP).unwrap();
    let keepers = bridges(child.id());
    assert_eq!(keepers.len(), 2);
    kill_process(keepers[0], Signal::KILL).unwrap();
    let dead = format!("/proc/{}/stat", keepers[0].as_raw_nonzero());
    until("the bridge is dead", || std::fs::read_to_string(&dead).unwrap_or_default().contains(") Z"));
    let left: Vec<Value> = servers
        .sandboxes()
        .into_iter()
        .filter(|made| made["tags"]["aec-bench-pid"] == keepers[0].as_raw_nonzero().to_string())
        .map(|made| made["id"].clone())
        .collect();
    assert_eq!(left.len(), 1, "every sandbox says who keeps it");
    let own = servers.sandboxes()[0]["tags"].clone();
    for (tag, value) in [("host", "elsewhere".into()), ("boot", "another".into()), ("pid", Value::Null)] {
        // No process here has this number, which says nothing about other machines.
        let mut tags = json!({ "aec-bench-pid": "4194305" });
        for name in ["host", "boot"] {
            tags[format!("aec-bench-{name}")] = own[format!("aec-bench-{name}")].clone();
        }
        tags[format!("aec-bench-{tag}")] = value;
        servers.make_sandbox("aec-bench", &tags);
    }
    assert_eq!(clean(&["--dry-run"]), 1);
    assert!(servers.ended().is_empty());
    let cleaned = other.run(["runs", "clean"]);
    assert!(cleaned.stdout.contains("Ended 1 sandbox at Modal whose run has ended"), "{cleaned:?}");
    assert_eq!(servers.ended(), left.iter().filter_map(Value::as_str).collect::<Vec<_>>());
    assert_eq!(clean(&[]), 0, "the other one belongs to a live run");
    // When a run is killed, its bridges end and so do their sandboxes.
    kill_process(run, Signal::KILL).unwrap();
    child.wait().unwrap();
    until("the last sandbox is ended", || servers.ended().len() == 2);
    until("the last bridge ends", || !Path::new(&format!("/proc/{}", keepers[1].as_raw_nonzero())).exists());
    assert_eq!(clean(&["--dry-run"]), 0);
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn what_cannot_be_looked_for_at_modal_is_said_and_keeps_nothing_else_from_being_cleaned() {
    let servers = ModalServers::start();
    let mut env = project(&servers, 0);
    // A token without permission to read.
    env.set("MODAL_TOKEN_ID", "ak-poor");
    let cleaned = env.run(["--json", "runs", "clean"]);
    assert_eq!((cleaned.code, cleaned.errors()[0].0.as_str()), (Some(1), "B023"), "{cleaned:?}");
    assert_eq!(cleaned.envelope()["data"]["removed"], 0, "{cleaned:?}");
}
