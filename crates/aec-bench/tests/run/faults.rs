//! Faults around a run: the model's server, the disk, vanishing files, clocks, and planted files.

use std::process::Command;
use std::time::Duration;

use aec_judge::settle::outcome::Boundary;
use aec_judge::verdict::Outcome;
use aec_model_server::{Options, Range};
use aec_xtest::files::{files_below, names_in};
use aec_xtest::port::ClosedPort;
use aec_xtest::wait::until;
use serde_json::{Value, json};

use crate::run::world::right;
use crate::run::{Project, Server};

const LINE: &str = "run civil --model mine --harness direct -e x";

/// A server on a port where nothing listened before.
fn back(nobody: ClosedPort) -> Server {
    let port = nobody.address.port();
    drop(nobody);
    Server::start(Options { port, ..right() })
}

#[test]
fn a_server_that_is_down_is_nobodys_score_and_the_run_goes_on_later() {
    // Many more than the faults that end the run: on a busy machine some begin before those are counted.
    let project = Project::with_tasks(40);
    let nobody = ClosedPort::take();
    project.endpoints(&format!("http://{}", nobody.address), &["mine"]);
    // The time is up long before the client gives up: that is the server's fault, not the agent's.
    let down = project.json(&format!("{LINE} --timeout 3 --concurrency 4 --max-faults 6 --max-attempts 1"));
    assert_eq!(down.code, Some(1), "{down:?}");
    let data = down.envelope()["data"].clone();
    assert_eq!(data["stopped"]["reason"], "faults", "{data}");
    let executed = data["all"]["executed"].as_u64().unwrap();
    assert!((6..40).contains(&executed), "it does not burn the whole plan: {data}");
    assert_eq!(data["all"]["outcomes"], json!({ "infra_fault": executed }));
    for record in project.records("x").values() {
        let fault = record.fault.as_ref().unwrap();
        assert!(fault.boundary == Boundary::Provider && fault.retryable, "{fault:?}");
        assert!(record.reward().is_none());
    }
    let server = back(nobody);
    let up = project.json("run --resume x --rerun infra");
    assert_eq!(up.code, Some(0), "{up:?}");
    assert_eq!(up.envelope()["data"]["all"]["outcomes"], json!({ "scored": 40 }));
    assert_eq!(server.count(), 40);
    assert_eq!(project.record_names("x").len() as u64, 40 + executed, "what failed is kept");
    project.assert_sound("x");
}

#[test]
fn a_server_that_comes_back_in_time_costs_nothing() {
    let project = Project::with_tasks(4);
    let nobody = ClosedPort::take();
    project.endpoints(&format!("http://{}", nobody.address), &["mine"]);
    let run = project.start(&format!("--json {LINE}"));
    // The run has called in vain before the server is back.
    let live = project.jobs("x").join("_live");
    let failed = || {
        names_in(&live).iter().any(|name| {
            let text = std::fs::read_to_string(live.join(name).join("trajectory.jsonl")).unwrap_or_default();
            text.contains("\"event\":\"failed\"")
        })
    };
    until("a call in vain", failed);
    let _server = back(nobody);
    let (code, output, said) = run.end();
    assert_eq!(code, Some(0), "{output} {said}");
    assert!(
        project.records("x").values().all(|record| record.outcome == Outcome::Scored && record.attempt == 1)
    );
}

#[test]
fn a_storm_of_rate_limits_only_takes_time() {
    let project = Project::with_tasks(60);
    let server = Server::start(Options {
        faults: vec!["rate=0.4".parse().unwrap(), "unavailable=0.05".parse().unwrap()],
        retry_after: Duration::from_millis(30),
        limit_in_flight: Some(4),
        latency: Range::only(Duration::from_millis(5)),
        ..right()
    });
    project.endpoints(&server.url(), &["mine"]);
    let data = project.data(LINE);
    assert_eq!(data["all"]["outcomes"], json!({ "scored": 60 }));
    let stats = server.stats();
    assert!(stats.statuses[&429] > 20, "{stats:?}");
    let (mut billed, mut unbilled) = (0, 0);
    for record in project.records("x").values() {
        billed += record.cost.model_calls;
        unbilled += record.cost.unbilled_calls;
    }
    assert_eq!((billed, billed + unbilled), (60, server.count()), "every request is accounted for");
    project.assert_sound("x");
}

/// Fills a small file system, hits the limit, frees space and continues; everything in a separate mount namespace.
const FULL: &str = r#"
set -u
mount -t tmpfs -o size=24m tmpfs "$PLACE" || exit 99
mkdir -p "$PLACE/ledger" "$PLACE/jobs"
free() { df --output=avail -k "$PLACE" | tail -n 1; }
dd if=/dev/zero of="$PLACE/filler" bs=1k count=$(( $(free) - $LEFT )) status=none
"$PROGRAM" --json $LINE --concurrency $AT_ONCE --ledger-root "$PLACE/ledger" --jobs-root "$PLACE/jobs" > "$OUT/first.json" 2> "$OUT/first.txt"
echo $? > "$OUT/first"
cp -a "$PLACE/ledger" "$OUT/ledger-full"
rm "$PLACE/filler"
"$PROGRAM" --json run --resume x --ledger-root "$PLACE/ledger" --jobs-root "$PLACE/jobs" > "$OUT/second.json" 2> "$OUT/second.txt"
echo $? > "$OUT/second"
"$PROGRAM" --json ledger verify -e x --ledger-root "$PLACE/ledger" --jobs-root "$PLACE/jobs" > "$OUT/verify.json" 2>&1
echo $? > "$OUT/verify"
cp -a "$PLACE/ledger" "$OUT/ledger"
exit 0
"#;

#[test]
#[cfg_attr(not(root), ignore = "needs root: it mounts a small file system")]
fn a_full_disk_stops_the_run_with_its_reason_and_tears_nothing() {
    for (left, at_once) in [(900, 2), (1500, 64), (400, 8)] {
        let project = Project::with_tasks(60);
        let server = Server::start(right());
        project.endpoints(&server.url(), &["mine"]);
        for place in ["small", "out"] {
            std::fs::create_dir(project.env.path(place)).unwrap();
        }
        let out = project.env.path("out");
        let status = Command::new("unshare")
            .args(["-m", "--propagation", "private", "bash", "-c", FULL])
            .current_dir(project.env.dir())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", project.env.home())
            .env("PROGRAM", env!("CARGO_BIN_EXE_aec-bench"))
            .env("PLACE", project.env.path("small"))
            .env("OUT", &out)
            .env("LINE", LINE)
            .env("LEFT", left.to_string())
            .env("AT_ONCE", at_once.to_string())
            .status()
            .unwrap();
        assert!(status.success(), "{status:?}");
        let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
        let first: Value = serde_json::from_str(&read("first.json")).unwrap();
        assert!(["1\n", "3\n", "4\n"].contains(&read("first").as_str()), "{first} {}", read("first.txt"));
        let told = first["errors"].to_string();
        assert!(
            told.contains("space") || told.contains("cannot keep") || told.contains("os error 28"),
            "{told}"
        );
        assert!(!first["errors"].as_array().unwrap().is_empty());
        for name in names_in(&out.join("ledger-full/x")) {
            if name.ends_with(".json") && !name.starts_with('.') {
                let text = read(&format!("ledger-full/x/{name}"));
                serde_json::from_str::<Value>(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            }
        }
        let second: Value = serde_json::from_str(&read("second.json")).unwrap();
        assert_eq!(read("second"), "0\n", "{second} {}", read("second.txt"));
        assert_eq!(second["data"]["all"]["outcomes"], json!({ "scored": 60 }), "{second}");
        assert_eq!(read("verify"), "0\n", "{}", read("verify.json"));
        let records = names_in(&out.join("ledger/x")).iter().filter(|name| name.ends_with(".json")).count();
        eprintln!("{left} KiB, {at_once} at once: {records} records, {} requests", server.count());
    }
}

#[test]
fn files_that_vanish_under_a_run_lose_no_record() {
    let project = Project::with_tasks(10);
    let server = Server::start(Options { latency: Range::only(Duration::from_millis(400)), ..right() });
    project.endpoints(&server.url(), &["mine"]);
    let run = project.start(&format!("--json {LINE} --concurrency 2"));
    server.wait_for_requests(4);
    std::fs::remove_dir_all(project.jobs("x").join("_live")).ok();
    let (code, output, said) = run.end();
    assert!(matches!(code, Some(0 | 1 | 4)), "{output} {said}");
    let before = project.records("x").len();
    assert!(before >= 2, "what was recorded stays");
    let resumed = project.json("run --resume x");
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(resumed.envelope()["data"]["all"]["outcomes"], json!({ "scored": 10 }));
    project.assert_sound("x");
}

#[test]
fn trials_are_judged_by_the_verifier_that_was_planned() {
    let project = Project::with_tasks(3);
    let server = Server::start(Options { latency: Range::only(Duration::from_millis(600)), ..right() });
    project.endpoints(&server.url(), &["mine"]);
    let run = project.start(&format!("--json {LINE} --concurrency 3 --max-attempts 1"));
    server.wait_for_requests(3);
    std::fs::rename(project.env.path("tasks/civil/channel-001"), project.env.path("aside")).unwrap();
    let strict =
        r#"{"version": 1, "output": "output.json", "fields": {"flow_m3_s": {"type": "number", "value": 1}}}"#;
    project.env.write("tasks/civil/channel-002/tests/answers.json", strict);
    let (code, output, said) = run.end();
    assert_eq!(code, Some(0), "{output} {said}");
    let records = project.records("x");
    assert!(records.values().all(|record| record.reward() == Some(1.0)), "{records:?}");
    // A session that continues needs the planned tasks.
    let line = "run --resume x --rerun failed";
    let refused = project.json(line);
    let drift = refused.errors().iter().filter(|(id, _)| id == "E033").count();
    assert_eq!((refused.code, drift), (Some(3), 2), "one is gone, one has changed: {refused:?}");
    std::fs::rename(project.env.path("aside"), project.env.path("tasks/civil/channel-001")).unwrap();
    project.refusal(line, 3);
    project.task("civil/channel-002", "easy");
    assert_eq!(project.data(line)["recorded"], 0);
    project.assert_sound("x");
}

#[test]
fn a_task_that_changes_before_its_turn_stops_the_run() {
    let project = Project::with_tasks(2);
    let server = Server::start(Options { latency: Range::only(Duration::from_secs(3)), ..right() });
    project.endpoints(&server.url(), &["mine"]);
    let run = project.start(&format!("--json {LINE} --concurrency 1"));
    server.wait_for_requests(1);
    project.env.write("tasks/civil/channel-001/tests/answers.json", "{}");
    let (code, output, said) = run.end();
    assert_eq!(code, Some(1), "{output} {said}");
    assert!(
        output.contains("civil/channel-001") && output.contains("changed while the run went on"),
        "{output}"
    );
    assert_eq!((server.count(), project.record_names("x").len()), (1, 1));
    project.task("civil/channel-001", "easy");
    assert_eq!(project.data("run --resume x")["all"]["outcomes"], json!({ "scored": 2 }));
    project.assert_sound("x");
}

#[test]
fn a_place_that_cannot_be_written_is_said_at_once() {
    for place in ["jobs", "jobs/x", "artefacts/ledger/x", "artefacts/ledger/_artefacts"] {
        let project = Project::with_tasks(1);
        let server = Server::start(right());
        project.endpoints(&server.url(), &["mine"]);
        std::fs::remove_dir_all(project.env.path(place)).ok();
        project.env.write(place, "in the way");
        let run = project.json(LINE);
        assert!(matches!(run.code, Some(1 | 3 | 4)), "{place}: {run:?}");
        assert!(!run.errors().is_empty(), "{place}: {run:?}");
        assert!(project.record_names("x").is_empty());
        assert_eq!(project.env.read(place), "in the way");
        std::fs::remove_file(project.env.path(place)).unwrap();
        let again = project.data(LINE);
        assert_eq!(again["all"]["outcomes"], json!({ "scored": 1 }), "{place}");
        project.assert_sound("x");
    }
}

#[test]
fn a_strange_file_among_the_records_blocks_neither_others_nor_for_ever() {
    let project = Project::with_tasks(2);
    let server = Server::start(right());
    project.endpoints(&server.url(), &["mine"]);
    project.data(LINE);
    for (name, text) in [
        ("garbage.json", "{\"schema_version\": 1,".as_bytes()),
        ("binary.json", &[0xff, 0x00, 0xfe][..]),
        ("deep.json", "[".repeat(100_000).as_bytes()),
    ] {
        project.env.write(format!("artefacts/ledger/x/{name}"), text);
        // Another experiment of the same ledger is not affected.
        let other = project.json(&format!("{} --rerun failed", LINE.replace("-e x", "-e y")));
        assert_eq!(other.code, Some(0), "{name}: {other:?}");
        let listed = project.json("ledger list");
        assert_eq!(listed.envelope()["data"]["records"].as_array().unwrap().len(), 4, "{name}: {listed:?}");
        // This one says what blocks it.
        let run = project.json("run --resume x");
        let told = run.envelope()["errors"].to_string();
        assert!(run.code == Some(0) || told.contains(name), "{run:?}");
        let status = project.json("runs status x");
        assert!(status.code == Some(0) || status.stdout.contains(name), "{status:?}");
        assert!(project.env.path(format!("artefacts/ledger/x/{name}")).exists(), "nothing is deleted");
        std::fs::remove_file(project.env.path(format!("artefacts/ledger/x/{name}"))).unwrap();
    }
    assert_eq!(project.data("run --resume x")["recorded"], 0);
}

/// Durations and deadlines of runs use a monotonic clock; the wall clock only gives timestamps.
#[test]
fn nothing_that_runs_trials_asks_the_wall_clock_how_long_things_take() {
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../run/src");
    let mut looked = 0;
    for (name, bytes) in files_below(&sources) {
        let text = String::from_utf8(bytes).unwrap();
        looked += 1;
        // `status` shows the age of a file, which only the wall clock knows.
        if name != "status.rs" {
            assert!(!text.contains("SystemTime"), "{name} uses the wall clock");
        }
        let durations = text.lines().filter(|line| line.contains("Timestamp::now"));
        assert!(durations.clone().all(|line| !line.contains("elapsed") && !line.contains(" - ")), "{name}");
    }
    assert!(looked > 20);
}
