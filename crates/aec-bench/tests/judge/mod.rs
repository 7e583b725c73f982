//! The judge from outside: verdicts on ordinary tasks, and cheaters that try to earn a reward without work.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod audits;
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
const VERIFY: &str = r#"import argparse, json, math, re, pathlib, sys

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

fn judge() -> Judge {
    aec_sandbox::use_shim(env!("CARGO_BIN_EXE_aec-bench").into());
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
