//! The cost of a trial in containers, against two bare containers that do the same, and of eight trials at once.
//!
//! `cargo bench --bench container` prints the figures that `docs/performance.md` quotes. It needs Podman.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints and stops at the first fault"
)]

use std::time::{Duration, Instant};

use aec_xtest::bench::{Place, is_asked_for, median, milliseconds};
use aec_xtest::podman::{IMAGE, Podman};

const PROGRAM: &str = env!("CARGO_BIN_EXE_aec-bench");
/// Trials of a measurement.
const TRIALS: u32 = 20;

/// The task's own verifier, so that it gets a separate container.
const VERIFY: &str = "#!/bin/sh\ntest -s /workspace/output.txt && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n";
const SOLVE: &str = "#!/bin/sh\necho 42 > /workspace/output.txt\n";

fn main() {
    if !is_asked_for() {
        return;
    }
    let podman = Podman::get();
    let place = project(podman);
    let run = |id: &str, trials: u32, at_once: u32| {
        let line = format!(
            "run civil/task --harness oracle --backend docker -n {trials} -e {id} --concurrency {at_once} --quiet"
        );
        place.command(&line).env("DOCKER_HOST", podman.host()).status().unwrap();
        // From now on the image exists.
        let line = line.replace(&format!("-e {id}"), &format!("-e {id}-again"));
        let begun = Instant::now();
        let status = place.command(&line).env("DOCKER_HOST", podman.host()).status().unwrap();
        assert!(status.success());
        begun.elapsed()
    };
    // Both runs include the fixed cost, so their difference is the cost of the trials.
    let (few, many) = (run("few", 2, 1), run("many", TRIALS + 2, 1));
    let trial = many.saturating_sub(few) / TRIALS;
    let mut bare: Vec<Duration> = (0..TRIALS)
        .map(|_| {
            let begun = Instant::now();
            for script in [SOLVE, VERIFY] {
                let script = script.lines().nth(1).unwrap();
                let arguments = [
                    "run",
                    "--rm",
                    "--network",
                    "none",
                    "--memory",
                    "512m",
                    "--tmpfs",
                    "/workspace",
                    "--tmpfs",
                    "/logs/verifier",
                    IMAGE,
                    "sh",
                    "-c",
                    script,
                ];
                assert!(podman.run(&arguments).unwrap().status.success());
            }
            begun.elapsed()
        })
        .collect();
    let two = median(&mut bare);
    println!(
        "a trial with its verification, two containers: {:.0} ms; two bare `podman run`s: {:.0} ms; ratio {:.2} (limit 1.5)",
        milliseconds(trial),
        milliseconds(two),
        trial.as_secs_f64() / two.as_secs_f64(),
    );
    let at_once = run("at-once", 40, 8);
    println!(
        "40 trials, 8 at once: {:.1} s; containers left: {}",
        at_once.as_secs_f64(),
        podman.containers("org.aec-bench=room").len(),
    );
}

fn project(podman: &Podman) -> Place {
    let place = Place::new(PROGRAM, "containers");
    place.run("init --no-example");
    for (name, text) in [
        (
            "task.toml",
            "version = \"1.0\"\n[environment]\nmemory_mb = 512\nstorage_mb = 64\nallow_internet = false\n",
        ),
        ("instruction.md", "# Answer\n\nWrite the answer to `/workspace/output.txt`.\n"),
        ("environment/Dockerfile", &format!("FROM {IMAGE}\n")),
        ("tests/test.sh", VERIFY),
        ("solution/solve.sh", SOLVE),
    ] {
        let path = place.path().join("tasks/civil/task").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    assert!(podman.run(&["image", "exists", IMAGE]).unwrap().status.success());
    place
}
