//! The judge from outside: verdicts on ordinary tasks, and cheaters that try to earn a reward without work.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod audits;
mod blame;
mod cheaters;
mod naive;
mod standard;
mod verdicts;
mod warm;

use std::path::Path;

use aec_judge::judge::{Isolation, Judge, Surface};
use aec_sandbox::python;
use aec_task::id::TaskId;
use aec_task::task::Task;

/// A typical verifier: absolute paths, not hardened, crashes if there is no answer.
pub(crate) const VERIFY: &str = r#"import argparse, json, math, re, pathlib, sys

EXPECTED = {"flow_m3_s": 3.217, "depth_m": 1.25}
output = pathlib.Path("/workspace/output.json")
if not output.exists():
    sys.exit("there is no answer")
answer = json.loads(output.read_text())
met = [math.isclose(float(answer.get(key, "nan")), value, rel_tol=0.01) for key, value in EXPECTED.items()]
pathlib.Path("/logs/verifier").mkdir(parents=True, exist_ok=True)
pathlib.Path("/logs/verifier/details.json").write_text(json.dumps(dict(zip(EXPECTED, met))))
pathlib.Path("/logs/verifier/reward.json").write_text(json.dumps({"reward": sum(met) / len(met)}))
"#;

const TEST_SH: &str =
    "#!/usr/bin/env bash\nset -euo pipefail\nmkdir -p /logs/verifier\npython3 /tests/verify.py\n";

const INSTRUCTION: &str = "# Channel\n\nRead `/workspace/survey.csv`. Write `flow_m3_s` and `depth_m` as JSON to `/workspace/output.json`.\n";

const GOLDEN: &str = "{\"flow_m3_s\": 3.22, \"depth_m\": 1.25}\n";

/// Writes a task with the documented layout.
fn write_task(directory: &Path) -> Task {
    for (name, text) in [
        (
            "task.toml",
            "version = \"1.0\"\n[verifier]\ntimeout_sec = 20\n[environment]\nmemory_mb = 512\nstorage_mb = 256\n",
        ),
        ("instruction.md", INSTRUCTION),
        ("environment/Dockerfile", "FROM scratch\n"),
        ("environment/survey.csv", "x,z\n0,1\n"),
        ("tests/test.sh", TEST_SH),
        ("tests/verify.py", VERIFY),
        ("tests/fixtures/golden_pass.json", GOLDEN),
        ("tests/fixtures/golden_fail.json", "{\"flow_m3_s\": 1, \"depth_m\": 1}\n"),
    ] {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    Task::load(TaskId::parse("civil/channel").unwrap(), directory).unwrap().task
}

/// The variable that names the program when these tests run again from a copy.
const SHIM: &str = "AEC_TEST_SHIM";

/// Runs the tests of warm rooms again without privileges.
#[test]
#[cfg_attr(not(ordinary_user), ignore = "needs root, and a system Python that others can run")]
fn warm_rooms_hold_for_an_ordinary_user() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    const NOBODY: u32 = 65534;
    let copies = tempfile::tempdir().unwrap();
    std::fs::set_permissions(copies.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let (tests, shim) = (copies.path().join("tests"), copies.path().join("aec-bench"));
    std::fs::copy(std::env::current_exe().unwrap(), &tests).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_aec-bench"), &shim).unwrap();
    let output = std::process::Command::new(tests)
        .args(["judge::warm::", "--test-threads=2"])
        .env(SHIM, shim)
        .env("PATH", "/usr/bin:/bin")
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && !shown.contains("running 0 tests"), "{shown}");
}

/// An instance of a template of the library, in a directory.
fn generated(place: &Path, template: &Path) -> std::path::PathBuf {
    let env = aec_xtest::TestEnv::new(env!("CARGO_BIN_EXE_aec-bench"));
    let name = template.file_name().unwrap().to_str().unwrap();
    let run = env.run(["init", "--no-example", "--quiet"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let run = env.run(["--json", "generate", "task", name, "--seed", "1"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let mut open = vec![env.path("tasks")];
    while let Some(directory) = open.pop() {
        if directory.join("tests/instance.json").exists() {
            let made = place.join("instance/tests");
            std::fs::create_dir_all(&made).unwrap();
            for file in ["verify.py", "instance.json"] {
                std::fs::copy(directory.join("tests").join(file), made.join(file)).unwrap();
            }
            return place.join("instance");
        }
        let inside = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
        open.extend(inside.filter(|path| path.is_dir()));
    }
    panic!("no instance of {name} was made");
}

fn judge() -> Judge {
    let shim = std::env::var_os(SHIM).unwrap_or_else(|| env!("CARGO_BIN_EXE_aec-bench").into());
    aec_sandbox::use_shim(shim.into());
    let python = python::find(std::env::var_os("PATH").as_deref());
    Judge {
        isolation: Isolation::Room,
        python,
        surface: Surface::default(),
        pool: None,
        native: true,
        containers: None,
    }
}
