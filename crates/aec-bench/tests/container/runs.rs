//! Whole runs in containers: the same results as on this machine, many at once, and nothing left behind.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};

use aec_xtest::TestEnv;
use aec_xtest::podman::Podman;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The label of every container that runs create.
const LABEL: &str = "org.aec-bench=room";

const VERIFY: &str = r#"import json, math, pathlib
output = pathlib.Path("/workspace/output.json")
answer = json.loads(output.read_text()) if output.exists() else {}
close = [math.isclose(float(answer.get(key, "nan")), value, rel_tol=0.01) for key, value in {"flow": 3.2, "depth": 1.25}.items()]
pathlib.Path("/logs/verifier/reward.json").write_text(json.dumps({"reward": sum(close) / 2}))
"#;

const EXPERIMENT: &str = r#"
agents:
  - { name: oracle, harness: oracle }
  - { name: nop, harness: nop }
  - { name: loop, harness: tool_loop, model: "offline/scripted:script.json" }
"#;

/// The model looks around, computes with the image's own Python, and submits.
const SCRIPT: &str = r#"{"replies": [
  {"tool_calls": [{"name": "bash", "arguments": {"command": "cat survey.csv notes.txt; echo $COLOUR"}}]},
  {"tool_calls": [{"name": "bash", "arguments": {"command": "python3 -c 'import json; json.dump({\"flow\": 3.2, \"depth\": 9}, open(\"/workspace/output.json\", \"w\"))'"}}]},
  {"text": "done"}
]}"#;

/// A project whose tasks have their own verifiers, so that nothing is judged without a room.
pub(crate) fn project(tasks: usize) -> (TestEnv, &'static Podman) {
    let podman = Podman::get();
    let mut env = TestEnv::new(env!("CARGO_BIN_EXE_aec-bench"));
    env.set("DOCKER_HOST", &podman.host());
    fill(&env, tasks);
    (env, podman)
}

/// Turns a test environment into a project with tasks and an experiment.
pub(crate) fn fill(env: &TestEnv, tasks: usize) {
    assert_eq!(env.run(["init", "--no-example", "--quiet"]).code, Some(0));
    for number in 0..tasks {
        write_task(env, &format!("civil/channel-{number}"), "FROM python:3.12-slim\nENV COLOUR=green\n");
    }
    env.write("script.json", SCRIPT);
    env.write("experiment.yaml", EXPERIMENT);
}

pub(crate) fn write_task(env: &TestEnv, id: &str, dockerfile: &str) {
    for (name, text) in [
        (
            "task.toml",
            "version = \"1.0\"\n[agent]\ntimeout_sec = 120\n[verifier]\ntimeout_sec = 60\n[environment]\n\
             memory_mb = 256\nstorage_mb = 64\nallow_internet = false\n",
        ),
        ("instruction.md", "# Channel\n\nWrite `flow` and `depth` as JSON to `/workspace/output.json`.\n"),
        ("environment/Dockerfile", dockerfile),
        ("environment/survey.csv", "x,z\n0,1\n"),
        ("environment/notes.txt", "notes\n"),
        ("tests/test.sh", "#!/bin/sh\npython3 /tests/verify.py\n"),
        ("tests/verify.py", VERIFY),
        (
            "solution/solve.sh",
            "#!/bin/sh\necho '{\"flow\": 3.2, \"depth\": 1.25}' > /workspace/output.json\n",
        ),
    ] {
        env.write(format!("tasks/{id}/{name}"), text);
    }
}

/// Records of an experiment by agent, task and repetition, without fields that depend on time and place.
pub(crate) fn records(env: &TestEnv, experiment: &str) -> BTreeMap<String, Value> {
    let listed = env.run(["--json", "ledger", "list", "-e", experiment, "--limit", "1000"]).data();
    let rows = listed["records"].as_array().unwrap().clone();
    rows.iter()
        .map(|row| {
            let key = format!("{} {} {}", row["agent"], row["task_id"], row["repetition"]);
            (key, serde_json::json!([row["outcome"], row["reward"]]))
        })
        .collect()
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn the_same_experiment_gives_the_same_verdicts_here_and_in_containers() {
    let (env, podman) = project(2);
    let here = env.run(["--json", "run", "-c", "experiment.yaml", "-n", "2", "-e", "here"]);
    assert_eq!(here.code, Some(0), "{here:?}");
    let there =
        env.run(["--json", "run", "-c", "experiment.yaml", "-n", "2", "-e", "there", "--backend", "docker"]);
    assert_eq!(there.code, Some(0), "{there:?}");
    let found = records(&env, "there");
    assert_eq!(found.len(), 12);
    assert_eq!(found, records(&env, "here"));
    let rewards: Vec<&Value> = found.values().map(|row| &row[1]).collect();
    for reward in [1.0, 0.5, 0.0] {
        assert_eq!(rewards.iter().filter(|found| found.as_f64() == Some(reward)).count(), 4, "{found:?}");
    }
    // Records name the backend and the image.
    let trial = env.run(["--json", "ledger", "list", "-e", "there", "--agent", "loop"]).data();
    let id = trial["records"][0]["trial_id"].as_str().unwrap().to_owned();
    let record = env.run(["--json", "ledger", "show", &id]).data();
    let text = record.to_string();
    assert!(text.contains("\"container\"") && text.contains("podman"), "{record:#}");
    podman.until_none("org.aec-bench.experiment=there");
    // Rooms of this machine judge a saved submission again, with the same result.
    let verified = env.run(["ledger", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn eight_at_once_leave_nothing() {
    let (env, podman) = project(8);
    let run = env.run([
        "--json",
        "run",
        "civil",
        "--harness",
        "oracle",
        "-n",
        "2",
        "-e",
        "many",
        "--backend",
        "docker",
        "--concurrency",
        "8",
    ]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let all = &run.data()["all"];
    assert_eq!((&all["executed"], &all["reward_sum"]), (&16.into(), &16.0.into()), "{all}");
    podman.until_none("org.aec-bench.experiment=many");
    let volumes = podman.run(&["volume", "ls", "-q"]).unwrap();
    assert_eq!(String::from_utf8_lossy(&volumes.stdout), "");
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn a_killed_run_leaves_no_container_and_goes_on() {
    let (env, podman) = project(3);
    env.write("script.json", SCRIPT.replace("cat survey.csv", "sleep 100; cat survey.csv"));
    let arguments = ["run", "-c", "experiment.yaml", "-e", "killed", "--backend", "docker", "--verbose"];
    let mut child = env.start_piped(arguments);
    let stderr = BufReader::new(child.stderr.take().unwrap());
    // Sleeping agents still work when the others have ended: two of three agents on three tasks.
    let mut ended = 0;
    for line in stderr.lines() {
        ended = line
            .unwrap()
            .split("trials")
            .next()
            .and_then(|done| done.split('/').next()?.trim().parse().ok())
            .unwrap_or(ended);
        if ended >= 6 {
            break;
        }
    }
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), Signal::KILL).unwrap();
    child.wait().unwrap();
    // The engine removes containers that ended because the process that opened them is gone.
    podman.until_none_started("org.aec-bench.experiment=killed");
    env.write("script.json", SCRIPT);
    let again = env.run([
        "--json",
        "run",
        "-c",
        "experiment.yaml",
        "-e",
        "killed",
        "--backend",
        "docker",
        "--extend",
    ]);
    assert_eq!(again.code, Some(0), "{again:?}");
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn leftovers_are_found_by_their_labels_and_removed() {
    let (env, podman) = project(1);
    assert_eq!(env.run(["run", "civil", "--harness", "oracle", "--backend", "docker", "-q"]).code, Some(0));
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let host = format!("org.aec-bench.host={}", host.trim());
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let processes = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata("/proc/self/ns/pid").unwrap());
    let boot = format!("org.aec-bench.boot={}.{processes}", boot.trim());
    // Rooms that other tests open carry the number of this process.
    let mut other = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let (gone, alive) = ("org.aec-bench.pid=4194304".to_owned(), format!("org.aec-bench.pid={}", other.id()));
    // A run of this test that failed has left its containers.
    assert_eq!(env.run(["runs", "clean"]).code, Some(0));
    for pid in [&gone, &alive] {
        let labels = ["--label", LABEL, "--label", pid, "--label", &host, "--label", &boot];
        let made =
            [&["create"], &labels[..], &["--network", "none", aec_xtest::podman::IMAGE, "true"]].concat();
        let made = podman.run(&made).unwrap();
        assert!(made.status.success(), "{made:?}");
    }
    // Other tests kill their runs, so there may be more.
    let looked = env.run(["--json", "runs", "clean", "--dry-run"]).data();
    assert!(looked["containers"].as_u64() >= Some(1) && looked["images"] == 0, "{looked}");
    assert_eq!(podman.containers(&gone).len(), 1, "nothing is removed yet");
    let cleaned = env.run(["--json", "runs", "clean"]).data();
    assert!(cleaned["containers"].as_u64() >= Some(1), "{cleaned}");
    assert_eq!(podman.containers(&gone), Vec::<String>::new());
    let kept = podman.containers(&alive);
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(kept.len(), 1, "those of live processes stay");
    assert!(podman.run(&["rm", "-f", &kept[0]]).unwrap().status.success());
    let doctor = env.run(["doctor"]);
    assert!(doctor.stdout.contains("Podman 4."), "{doctor:?}");
}
