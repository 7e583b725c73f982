//! Containers from outside: rooms of a real engine, verdicts in them, whole runs, and failures. Podman represents every
//! engine with Docker's interface.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod faults;
mod modal;
mod rooms;
mod runs;
mod services;
mod verdicts;

use std::path::Path;
use std::time::Duration;

use aec_container::{ContainerRoom, Engine, EngineLimits, Purpose, TaskImage};
use aec_sandbox::{ExecResult, ExecSpec, Limits, RoomSpec, Sandbox as _};
use aec_xtest::podman::Podman;

/// The usual instructions of a task's image.
const DOCKERFILE: &str = "FROM python:3.12-slim\nCOPY notes.txt /workspace/notes.txt\nENV COLOUR=green\n";

fn engine() -> Engine {
    engine_at(Podman::get().host())
}

fn engine_at(host: String) -> Engine {
    aec_sandbox::use_shim(env!("CARGO_BIN_EXE_aec-bench").into());
    Engine::connect(&[host], EngineLimits::default()).unwrap()
}

/// An image with these instructions and a file for its workspace.
fn image(directory: &Path, dockerfile: &str) -> TaskImage {
    std::fs::write(directory.join("Dockerfile"), dockerfile).unwrap();
    std::fs::write(directory.join("notes.txt"), "from the image\n").unwrap();
    TaskImage {
        environment: directory.to_owned(),
        extensions: Vec::new(),
        build_timeout: Duration::from_mins(2),
    }
}

fn spec() -> RoomSpec {
    RoomSpec {
        writable: vec!["/workspace".into(), "/logs".into()],
        sealed: vec!["/tests".into()],
        show: Vec::new(),
        programs: Vec::new(),
        limits: Limits { cpus: 1, memory_mb: 256, storage_mb: 64, pids: 64 },
        network: false,
    }
}

fn purpose(role: &'static str) -> Purpose {
    Purpose { role, seeded: true, ..Purpose::default() }
}

/// A room with the usual image.
fn open() -> ContainerRoom {
    let engine = engine();
    let directory = tempfile::tempdir().unwrap();
    let image = image(directory.path(), DOCKERFILE);
    ContainerRoom::open(&engine, &image, &spec(), &purpose("agent")).unwrap()
}

/// Runs a shell script in a room.
fn sh(room: &mut ContainerRoom, script: &str) -> ExecResult {
    let mut command = ExecSpec::new(["sh", "-c", script]);
    command.cwd = "/workspace".into();
    command.deadline = Duration::from_secs(20);
    room.exec(&command, &mut |_, _| {}).unwrap()
}

fn out(room: &mut ContainerRoom, script: &str) -> String {
    let result = sh(room, script);
    format!("{}{}", result.stdout.text(), result.stderr.text()).trim().to_owned()
}
