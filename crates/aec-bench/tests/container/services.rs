//! Services of tasks: containers beside the room, reached by name, new for every room, and removed with it.

use std::time::{Duration, Instant};

use aec_xtest::TestEnv;
use aec_xtest::podman::Podman;
use rustix::process::{Pid, Signal, kill_process};

use crate::container::runs::{project, records};

/// A simulator with a state: `GET /level` returns it, `POST /level` changes it, `GET /big` sends much data, `POST /sum`
/// adds up what it receives, `GET /seed` asks the other service.
const PLANT: &str = r#"import hashlib, http.server, os, pathlib, socket, urllib.request
level = os.environ["LEVEL"]
class Plant(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"
    def answer(self, body):
        self.send_response(200); self.send_header("content-length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def do_GET(self):
        if self.path == "/big": return self.answer(bytes(range(256)) * 40960)
        if self.path == "/seed":
            with socket.create_connection(("store", 80)) as store: return self.answer(store.makefile("rb").read())
        if self.path == "/who": return self.answer(f"{os.getuid()} {os.getcwd()} {pathlib.Path('/etc/plant/plant.toml').read_text()}".encode())
        self.answer(level.encode())
    def do_POST(self):
        global level
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/sum": return self.answer(hashlib.sha256(body).hexdigest().encode())
        level = body.decode(); self.answer(b"ok")
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("0.0.0.0", 8080), Plant).serve_forever()
"#;

/// Sends its input to every client; it is healthy once its seeds have arrived.
const STORE: &str = r#"import pathlib, socket, time
listener = socket.create_server(("127.0.0.1", 80))
pathlib.Path("/tmp/ready").touch()
while True:
    peer, _ = listener.accept()
    peer.sendall(b"seed 7\n"); peer.close()
"#;

const COMPOSE: &str = r#"services:
  main:
    environment: { PLANT: "http://plant:8080" }
    depends_on: [plant]
  plant:
    build: { context: ./plant, args: { DIRECTORY: /srv } }
    environment: { LEVEL: "1.5" }
    expose: [8080]
    depends_on:
      store: { condition: service_healthy }
      migration: { condition: service_completed_successfully }
    volumes: ["./plant-settings:/etc/plant:ro"]
  migration:
    image: python:3.12-slim
    command: ["python3", "-c", "print('migrated')"]
  store:
    image: python:3.12-slim
    entrypoint: [python3, /store.py]
    volumes: ["./store.py:/store.py"]
    expose: ["80"]
    healthcheck: { test: "test -f /tmp/ready", interval: 100ms, retries: 600 }
"#;

/// The verifier asks its own plant.
const VERIFY: &str = r#"import json, pathlib, urllib.request
answer = json.loads(pathlib.Path("/workspace/output.json").read_text()) if pathlib.Path("/workspace/output.json").exists() else {}
level = urllib.request.urlopen("http://plant:8080/level").read().decode()
assert level == "1.5", level
pathlib.Path("/logs/verifier/reward.json").write_text(json.dumps({"reward": float(answer.get("level") == level)}))
"#;

/// Reads the level, changes the plant's state, and submits the level.
const SCRIPT: &str = r#"{"replies": [
  {"tool_calls": [{"name": "bash", "arguments": {"command": "python3 -c 'import json, os, urllib.request as u; p = os.environ[\"PLANT\"]; l = u.urlopen(p + \"/level\").read().decode(); u.urlopen(p + \"/level\", data=b\"9\"); json.dump({\"level\": l, \"then\": u.urlopen(p + \"/level\").read().decode(), \"seed\": u.urlopen(p + \"/seed\").read().decode(), \"who\": u.urlopen(p + \"/who\").read().decode()}, open(\"output.json\", \"w\"))'; cat output.json; ls -R; cat /proc/net/dev | wc -l"}}]},
  {"text": "done"}
]}"#;

fn give_services(env: &TestEnv, task: &str, compose: &str) {
    for (name, text) in [
        ("environment/docker-compose.yaml", compose),
        (
            "environment/plant/Dockerfile",
            "FROM python:3.12-slim\nARG DIRECTORY=/\nCOPY plant.py /plant.py\nEXPOSE 8080 9999\nUSER 1234\n\
             WORKDIR $DIRECTORY\nCMD [\"python3\", \"/plant.py\"]\n",
        ),
        ("environment/plant/plant.py", PLANT),
        ("environment/plant-settings/plant.toml", "pumps = 3"),
        ("environment/store.py", STORE),
        ("tests/verify.py", VERIFY),
        ("solution/solve.sh", "#!/bin/sh\necho '{\"level\": \"1.5\"}' > /workspace/output.json\n"),
    ] {
        env.write(format!("tasks/{task}/{name}"), text);
    }
}

fn with_services() -> (TestEnv, &'static Podman) {
    let (env, podman) = project(1);
    // Whatever files the task's image copies, it does not get those of the services.
    env.write(
        "tasks/civil/channel-0/environment/Dockerfile",
        "FROM python:3.12-slim\nCOPY . /workspace/\nENV COLOUR=green\n",
    );
    give_services(&env, "civil/channel-0", COMPOSE);
    env.write("script.json", SCRIPT);
    (env, podman)
}

/// The tool results of an experiment's first looping agent.
fn tool_result(env: &TestEnv, experiment: &str) -> String {
    let listed = env.run(["--json", "ledger", "list", "-e", experiment, "--agent", "loop"]).data();
    let id = listed["records"][0]["trial_id"].as_str().unwrap();
    let path = env.path(format!("jobs/{experiment}/{id}/workspace/trajectory.jsonl"));
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().filter(|line| line.contains("\"tool_result\"")).collect()
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn services_are_reached_by_name_and_are_new_for_every_room() {
    let (env, podman) = with_services();
    let arguments =
        ["--json", "run", "-c", "experiment.yaml", "-n", "2", "-e", "served", "--backend", "docker"];
    let run = env.run(arguments);
    assert_eq!(run.code, Some(0), "{run:?}");
    let found = records(&env, "served");
    for (key, value) in &found {
        let reward = if key.contains("nop") { 0.0 } else { 1.0 };
        assert_eq!(value[1].as_f64(), Some(reward), "{key}: {found:#?}");
    }
    podman.until_none("org.aec-bench.experiment=served");
    // The agent saw its own change of the state and a service behind the service, but no file of theirs and no network.
    let seen = tool_result(&env, "served");
    for wanted in ["seed 7", "1234 /srv pumps = 3", r#"\"then\": \"9\""#, "survey.csv", "\\n3\\n"] {
        assert!(seen.contains(wanted), "{wanted}: {seen}");
    }
    for unwanted in ["plant.py", "plant.toml", "store.py", "docker-compose"] {
        assert!(!seen.contains(unwanted), "{unwanted}: {seen}");
    }
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn much_goes_both_ways() {
    let (env, _) = with_services();
    let script = r#"{"replies": [
      {"tool_calls": [{"name": "bash", "arguments": {"command": "python3 -c 'import hashlib, json, urllib.request as u; from concurrent.futures import ThreadPoolExecutor as T; big = list(T(8).map(lambda _: u.urlopen(\"http://plant:8080/big\").read(), range(8))); assert all(b == bytes(range(256)) * 40960 for b in big); s = u.urlopen(\"http://plant:8080/sum\", data=big[0]).read().decode(); assert s == hashlib.sha256(big[0]).hexdigest(); json.dump({\"level\": \"1.5\"}, open(\"output.json\", \"w\"))'"}}]},
      {"text": "done"}]}"#;
    env.write("script.json", script);
    env.write(
        "experiment.yaml",
        "agents: [{ name: loop, harness: tool_loop, model: \"offline/scripted:script.json\" }]\n",
    );
    let run = env.run(["--json", "run", "-c", "experiment.yaml", "-e", "much", "--backend", "docker"]);
    assert_eq!((run.code, &run.data()["all"]["reward_sum"]), (Some(0), &1.0.into()), "{run:?}");
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn a_service_that_does_not_work_is_a_fault_of_its_own_kind() {
    let (env, podman) = project(1);
    for (number, (service, said)) in [
        ("expose: [1]\n    command: [sh, -c, \"echo no disk; exit 3\"]", vec!["the service db ended with code 3", "no disk"]),
        (
            "command: [sleep, \"100\"]\n    healthcheck: { test: [CMD, \"false\"], interval: 100ms, retries: 2 }",
            vec!["the service db was not healthy"],
        ),
        ("expose: [1]\n    command: [no-such-program]", vec!["the service db ended with code 127"]),
        ("expose: [1]\n    command: [\"true\"]", vec!["the service db ended with code 0"]),
        ("user: nobody-there", vec![]),
        // It declared no port; that it has ended when the agent begins is noticed all the same.
        ("command: [no-such-program]", vec!["the service db ended with code 127"]),
        ("command: [sh, -c, \"exit 3\"]", vec!["the service db ended with code 3"]),
    ]
    .into_iter()
    .enumerate()
    {
        let compose = format!("services:\n  db:\n    image: python:3.12-slim\n    {service}\n");
        env.write("tasks/civil/channel-0/environment/docker-compose.yaml", compose);
        let experiment = format!("broken-{number}");
        let run =
            env.run(["--json", "run", "civil", "--harness", "oracle", "-e", &experiment, "--backend", "docker"]);
        let listed = env.run(["--json", "ledger", "list", "-e", &experiment]).data();
        assert_eq!(listed["records"][0]["outcome"], "infra_fault", "{run:?}");
        let id = listed["records"][0]["trial_id"].as_str().unwrap().to_owned();
        let record = env.run(["--json", "ledger", "show", &id]).data().to_string();
        for said in said {
            assert!(record.contains("service_failed") && record.contains(said), "{said}: {record}");
        }
        let label = format!("org.aec-bench.experiment={experiment}");
        podman.until_none(&label);
    }
}

/// Looks for the connection to the opener and reports the result. The second service asks the first, which is slow and
/// listens on its own address.
const CURIOUS: &str = r#"import os, socket, sys, time
def tried(path):
    try:
        with open(path, "ab", buffering=0) as file: file.write(b"\x00" * 64)
        return "written"
    except OSError as error: return error.__class__.__name__
def listed(path):
    try: return [f"{path}/{name}" for name in os.listdir(path)]
    except OSError: return []
found = [tried(path) for path in listed("/proc/1/fd") + ["/proc/1/mem", "/proc/1/fd/1", "/proc/1/fd/3"]]
name = sys.argv[1]
if name == "first":
    time.sleep(2)
    listener = socket.create_server((socket.gethostbyname("first"), 700))
else:
    for _ in range(600):
        try:
            found.append(socket.create_connection(("first", 700)).makefile().read().strip()); break
        except OSError: time.sleep(0.1)
    listener = socket.create_server(("::1", 701), family=socket.AF_INET6)
while True:
    peer, _ = listener.accept()
    peer.sendall(" ".join([name, str(os.getuid()), *sorted(set(found))]).encode()); peer.close()
"#;

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn services_cannot_speak_for_their_first_process_and_find_each_other_late() {
    let (env, _) = project(1);
    let task = "tasks/civil/channel-0/environment";
    env.write(format!("{task}/curious.py"), CURIOUS);
    let service = |name: &str, port: u32, more: &str| {
        format!(
            "  {name}:\n    image: python:3.12-slim\n    command: [python3, /curious.py, {name}]\n    expose: [{port}]\n    \
             volumes: [\"./curious.py:/curious.py\"]\n{more}"
        )
    };
    let first = service("first", 700, "    user: \"0\"\n");
    let second = service("second", 701, "    user: \"1234\"\n    depends_on: [first]\n");
    env.write(format!("{task}/docker-compose.yaml"), format!("services:\n{first}{second}"));
    env.write(
        "script.json",
        r#"{"replies": [{"tool_calls": [{"name": "bash", "arguments": {"command": "python3 -c 'import socket; print(socket.create_connection((\"second\", 701)).makefile().read())' | tee output.json"}}]}, {"text": "done"}]}"#,
    );
    env.write(
        "experiment.yaml",
        "disable_verification: true\nagents: [{ name: loop, harness: tool_loop, model: \"offline/scripted:script.json\" }]\n",
    );
    let run = env.run(["--json", "run", "-c", "experiment.yaml", "-e", "curious", "--backend", "docker"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let seen = tool_result(&env, "curious");
    assert!(seen.contains("second 1234") && seen.contains("first 0"), "{seen}");
    assert!(seen.contains("PermissionError") && !seen.contains("written"), "{seen}");
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn a_killed_run_leaves_no_service() {
    let (env, podman) = with_services();
    let sleeping = r#"{"replies": [{"tool_calls": [{"name": "bash", "arguments": {"command": "sleep 100"}}]}, {"text": "done"}]}"#;
    env.write("script.json", sleeping);
    let mut child = env.start_piped(["run", "-c", "experiment.yaml", "-e", "ended", "--backend", "docker"]);
    let label = "org.aec-bench.experiment=ended";
    let begun = Instant::now();
    // The room is opened last.
    while podman.containers("org.aec-bench.role=agent").is_empty() || podman.containers(label).len() < 4 {
        assert!(begun.elapsed() < Duration::from_mins(2), "no container begins");
        assert!(child.try_wait().unwrap().is_none(), "the run is over");
    }
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), Signal::KILL).unwrap();
    child.wait().unwrap();
    podman.until_none_started(label);
}

#[test]
fn services_that_cannot_be_started_are_refused_before_anything_runs() {
    let mut env = TestEnv::new(env!("CARGO_BIN_EXE_aec-bench"));
    env.set("DOCKER_HOST", "unix:///nowhere");
    crate::container::runs::fill(&env, 1);
    give_services(&env, "civil/channel-0", COMPOSE);
    let run = env.run(["--json", "run", "civil", "--harness", "nop"]);
    assert_eq!((run.code, run.errors()[0].0.as_str()), (Some(3), "E049"), "{run:?}");
    assert!(run.stdout.contains("migration, store, plant"), "{run:?}");
    assert_eq!(
        env.run(["task", "validate", "civil/channel-0", "-q"]).stdout.matches("docker-compose").count(),
        0
    );
    env.write(
        "tasks/civil/channel-0/environment/docker-compose.yaml",
        "services:\n  db:\n    image: x\n    privileged: true\n",
    );
    for arguments in [
        vec!["--json", "run", "civil", "--harness", "nop", "--dry-run"],
        vec!["--json", "task", "validate", "civil/channel-0"],
    ] {
        let run = env.run(arguments);
        assert!(run.stdout.contains("unknown key `privileged` in `services.db`"), "{run:?}");
        assert!(run.stdout.contains("T003") && run.stdout.contains("\"line\":4"), "{run:?}");
    }
}
