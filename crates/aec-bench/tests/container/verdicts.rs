//! Verdicts by verifiers in containers: the same as in rooms of this machine, and cheaters earn nothing.

use std::path::Path;

use aec_base::content::ContentStore;
use aec_container::Containers;
use aec_judge::cheat::{CHEATERS, cheat};
use aec_judge::golden::submission_with_output;
use aec_judge::judge::{Isolation, Judge, Surface};
use aec_sandbox::{Level, python};
use aec_task::id::TaskId;
use aec_task::task::Task;

use crate::container::engine;

const VERIFY: &str = r#"import json, math, pathlib, sys

EXPECTED = {"flow_m3_s": 3.217, "depth_m": 1.25}
output = pathlib.Path("/workspace/output.json")
if not output.exists():
    sys.exit("there is no answer")
answer = json.loads(output.read_text())
met = [math.isclose(float(answer.get(key, "nan")), value, rel_tol=0.01) for key, value in EXPECTED.items()]
pathlib.Path("/logs/verifier/reward.json").write_text(json.dumps({"reward": sum(met) / len(met)}))
"#;

const GOLDEN: &str = "{\"flow_m3_s\": 3.22, \"depth_m\": 1.25}\n";

fn write_task(directory: &Path) -> Task {
    for (name, text) in [
        (
            "task.toml",
            "version = \"1.0\"\n[verifier]\ntimeout_sec = 20\n[environment]\nmemory_mb = 512\nstorage_mb = 256\n",
        ),
        ("instruction.md", "# Channel\n\nWrite `flow_m3_s` and `depth_m` to `/workspace/output.json`.\n"),
        ("environment/Dockerfile", "FROM python:3.12-slim\n"),
        ("environment/survey.csv", "x,z\n0,1\n"),
        ("tests/test.sh", "#!/usr/bin/env bash\nset -euo pipefail\npython3 /tests/verify.py\n"),
        ("tests/verify.py", VERIFY),
        ("tests/fixtures/golden_pass.json", GOLDEN),
    ] {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    Task::load(TaskId::parse("civil/channel").unwrap(), directory).unwrap().task
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn the_same_submission_gets_the_same_verdict_in_both_kinds_of_rooms() {
    let engine = engine();
    let dir = tempfile::tempdir().unwrap();
    let task = write_task(&dir.path().join("task"));
    let store = ContentStore::new(dir.path().join("store"));
    let here = Judge {
        isolation: Isolation::Room,
        python: python::find(std::env::var_os("PATH").as_deref()),
        surface: Surface::default(),
        pool: None,
        native: true,
        containers: None,
    };
    let there = Judge { containers: Some(Containers::Engine(engine)), ..here.clone() };
    for answer in [
        GOLDEN,
        "{\"flow_m3_s\": 3.22, \"depth_m\": 9}",
        "{}",
        "not json",
        "",
        "{\"flow_m3_s\": NaN, \"depth_m\": 1.25}",
    ] {
        let submission = submission_with_output(&task, answer.as_bytes(), &store).unwrap();
        let (ours, theirs) = (here.verdict(&task, &submission), there.verdict(&task, &submission));
        assert_eq!(
            (theirs.outcome, theirs.reward, &theirs.fault),
            (ours.outcome, ours.reward, &ours.fault),
            "{answer}: {theirs:?}"
        );
        assert_eq!(theirs.level, Some(Level::Container));
        assert_eq!((theirs.submission, theirs.verifier), (ours.submission, ours.verifier));
    }
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn no_cheater_earns_anything_in_containers() {
    let engine = engine();
    let dir = tempfile::tempdir().unwrap();
    let task = write_task(&dir.path().join("task"));
    let store = ContentStore::new(dir.path().join("store"));
    let judge = Judge {
        isolation: Isolation::Room,
        python: None,
        surface: Surface::default(),
        pool: None,
        native: true,
        containers: Some(Containers::Engine(engine)),
    };
    // A container takes a second; the long version tries all of them.
    let chosen = CHEATERS.iter().enumerate().filter(|(at, _)| aec_xtest::full() || at % 3 == 0);
    for (_, cheater) in chosen {
        let result =
            cheat(&judge, &task, cheater, &store).unwrap_or_else(|error| panic!("{}: {error}", cheater.name));
        assert!(result.reward() <= 0.0, "{} earned {}: {result:?}", cheater.name, result.reward());
        assert!(result.counts(), "{}: {result:?}", cheater.name);
    }
    let honest = submission_with_output(&task, GOLDEN.as_bytes(), &store).unwrap();
    assert_eq!(judge.verdict(&task, &honest).reward, Some(1.0));
}
