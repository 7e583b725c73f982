//! An old-fashioned judge with defences left out one by one, to show that the attacks are real.

use std::path::{Path, PathBuf};
use std::time::Duration;

use aec_judge::cheat::Cheater;
use aec_judge::judge::Judge;
use aec_sandbox::{ExecSpec, Limits, Room, RoomSpec, Sandbox as _};
use aec_task::task::{Task, primary_output};

use crate::judge::{GOLDEN, TEST_SH, VERIFY};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weakness {
    /// The verifier runs in the agent's room.
    SameRoom,
    /// A reward counts even if the verifier failed.
    IgnoreExit,
    /// The agent's processes keep running.
    KeepProcesses,
    /// `reward.txt` takes precedence over `reward.json`.
    PreferText,
    /// The workspace is on Python's module path.
    PythonPath,
    /// Python loads modules from the agent's home.
    UserSite,
    /// The verifier's directory exists and is writable while the agent works.
    TestsWritable,
    /// The verifier's files exist while the agent works.
    TestsPresent,
    /// The workspace comes first in the search path.
    WorkspaceFirstInPath,
    /// The output is read through links.
    FollowLinks,
}

/// The reward of a cheater from a judge with these weaknesses.
pub(crate) fn naive_reward(judge: &Judge, task: &Task, cheater: &Cheater, weaknesses: &[Weakness]) -> f64 {
    let has = |weakness| weaknesses.contains(&weakness);
    assert!(has(Weakness::SameRoom), "without this one there is nothing to attack");
    let mut spec = RoomSpec {
        writable: vec!["/workspace".into(), "/logs".into(), "/tests".into()],
        sealed: Vec::new(),
        show: Vec::new(),
        programs: Vec::new(),
        limits: Limits { cpus: 1, memory_mb: 512, storage_mb: 256, pids: 128 },
        network: false,
    };
    let python = judge.python.as_ref().unwrap();
    spec.offer_python(python);
    let mut room = Room::open(&spec).unwrap();
    let put_tests = |room: &Room| {
        let tests = room.directory("/tests").unwrap();
        tests.write(Path::new("test.sh"), TEST_SH.as_bytes(), true).unwrap();
        tests.write(Path::new("verify.py"), VERIFY.as_bytes(), false).unwrap();
        tests.write(Path::new("fixtures/golden_pass.json"), GOLDEN.as_bytes(), false).unwrap();
    };
    if has(Weakness::TestsPresent) {
        put_tests(&room);
    }
    // Nobody who waits for the other end of a pipe waits for ever.
    let within = |argv: &[&str]| {
        let mut command = ExecSpec::new(argv.iter().copied());
        command.deadline = Duration::from_secs(20);
        command
    };
    let environment = |extra: &[(&str, &str)]| -> Vec<(String, String)> {
        [("HOME", "/home/agent"), ("OUTPUT", "/workspace/output.json")]
            .iter()
            .chain(extra)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    };
    let instruction = task.instruction().unwrap();
    let mut agent = ExecSpec::new(["bash", "-c", cheater.script]);
    agent.cwd = "/workspace".into();
    agent.deadline = Duration::from_secs(20);
    agent.env = environment(&[("INSTRUCTION", &instruction)]);
    room.exec(&agent, &mut |_, _| {}).unwrap();
    if !has(Weakness::KeepProcesses) {
        room.exec(&ExecSpec::new(["bash", "-c", "kill -9 -1"]), &mut |_, _| {}).unwrap();
    }
    if !has(Weakness::TestsPresent) {
        put_tests(&room);
    }
    let mut verifier = within(&["bash", "/tests/test.sh"]);
    verifier.cwd = "/".into();
    let mut extra = Vec::new();
    if has(Weakness::PythonPath) {
        extra.push(("PYTHONPATH", "/workspace"));
    }
    if has(Weakness::WorkspaceFirstInPath) {
        extra.push(("PATH", "/workspace:/run/aec-bench/bin:/usr/bin:/bin"));
    }
    verifier.env = environment(&extra);
    let result = room.exec(&verifier, &mut |_, _| {}).unwrap();
    if !has(Weakness::IgnoreExit) && result.exit != aec_sandbox::Exit::Code(0) {
        return 0.0;
    }
    // Follows any links that the agent left, as `cat` does.
    let mut read = |name: &str| {
        let result = room.exec(&within(&["cat", &format!("/logs/verifier/{name}")]), &mut |_, _| {}).unwrap();
        (result.exit == aec_sandbox::Exit::Code(0)).then_some(result.stdout.head)
    };
    let text = read("reward.txt").filter(|_| has(Weakness::PreferText));
    if let Some(text) = text {
        return String::from_utf8_lossy(&text).trim().parse().unwrap();
    }
    let json = read("reward.json").unwrap_or_else(|| b"{\"reward\": 0}".to_vec());
    let value: serde_json::Value = serde_json::from_slice(&json).unwrap_or_default();
    value["reward"].as_f64().unwrap_or(0.0)
}

/// The answer that a cheater leaves in a room that also shows these places of the host, and offers the first of them as
/// this program. A judge is not asked.
pub(crate) fn answer_in_sight_of(
    judge: &Judge,
    task: &Task,
    cheater: &Cheater,
    places: &[PathBuf],
) -> Option<Vec<u8>> {
    let mut spec = RoomSpec {
        writable: vec!["/workspace".into(), "/logs".into()],
        sealed: Vec::new(),
        show: places.to_vec(),
        programs: Vec::new(),
        limits: Limits { cpus: 1, memory_mb: 512, storage_mb: 256, pids: 128 },
        network: false,
    };
    spec.offer_python(judge.python.as_ref().unwrap());
    spec.programs.extend(places.first().map(|place| ("aec-bench".to_owned(), place.clone())));
    let mut room = Room::open(&spec).unwrap();
    for file in task.workspace_files().unwrap() {
        let content = std::fs::read(&file.source).unwrap();
        room.directory("/workspace").unwrap().write(Path::new(&file.place), &content, false).unwrap();
    }
    let instruction = task.instruction().unwrap();
    let output = primary_output(&instruction);
    let mut agent = ExecSpec::new(["bash", "-c", cheater.script]);
    agent.cwd = "/workspace".into();
    agent.deadline = Duration::from_secs(20);
    agent.env = [("HOME", "/home/agent"), ("OUTPUT", &output), ("INSTRUCTION", &instruction)]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
    room.exec(&agent, &mut |_, _| {}).unwrap();
    let read = room.exec(&ExecSpec::new(["cat", &output]), &mut |_, _| {}).unwrap();
    (read.exit == aec_sandbox::Exit::Code(0)).then_some(read.stdout.head)
}
