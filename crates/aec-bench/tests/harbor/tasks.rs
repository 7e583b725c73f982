//! Tasks in Harbor's format: exported, run by its own program, and imported again.

use std::process::Command;

use aec_xtest::files::{files_below, names_in};
use serde_json::Value;

use crate::harbor::{ROOM, project, python};
use crate::run::world::Project;

#[test]
fn a_task_comes_back_as_it_was() {
    let project = Project::with_tasks(1);
    project.env.write("tasks/civil/channel-000/tools/depth.py", "print(1)\n");
    project.env.write("tasks/civil/channel-000/environment/.dockerignore", "*\n");
    let data = project.data("task export civil/channel-000 --format harbor -o out");
    assert_eq!(data["tasks"][0]["task_id"], "civil/channel-000");
    let written = files_below(&project.env.path("out/civil.channel-000"));
    let text = |path: &str| String::from_utf8(written[path].clone()).unwrap();
    let toml: toml::Table = text("task.toml").parse().unwrap();
    assert_eq!(toml["environment"]["network_mode"].as_str(), Some("no-network"));
    assert_eq!(
        toml["environment"]["cpus"].as_integer(),
        Some(2),
        "what is absent here means something else there"
    );
    assert_eq!(toml["agent"]["timeout_sec"].as_float(), Some(60.0));
    assert_eq!(
        text("environment/Dockerfile"),
        "FROM scratch\nCOPY aec-workspace/ /workspace/\nWORKDIR /workspace\n"
    );
    assert_eq!(text("environment/aec-workspace/survey.csv"), "x,z\n0,1\n");
    assert_eq!(text("environment/aec-workspace/tools/depth.py"), "print(1)\n");
    assert!(text("environment/.dockerignore").ends_with("!aec-workspace\n!aec-workspace/**\n"));

    let other = Project::empty();
    let out = project.env.path("out");
    let data = other.data(&format!("task import {} --format harbor", out.display()));
    assert_eq!((&data["tasks"][0]["restored"], &data["refused"]), (&Value::from(true), &Value::from(0)));
    assert_eq!(
        files_below(&other.env.path("tasks/civil/channel-000")),
        files_below(&project.env.path("tasks/civil/channel-000"))
    );
    let (id, _) = other.refusal(&format!("task import {} --format harbor", out.display()), 3);
    assert_eq!(id, "Y044", "nothing is replaced");
    let (id, _) = project.refusal("task export civil/channel-000 --format harbor -o out", 3);
    assert_eq!(id, "Y044");

    // An exported task that was edited is translated like any other.
    let changed = text("task.toml").replace("timeout_sec = 60.0", "timeout_sec = 90.0");
    std::fs::write(out.join("civil.channel-000/task.toml"), changed).unwrap();
    let data = other.data(&format!("task import {} --format harbor --id civil/changed", out.display()));
    assert_eq!(data["tasks"][0]["restored"], false);
    assert_eq!(other.data("task show civil/changed")["task"]["agent"]["timeout_sec"], 90.0);
}

#[test]
fn keys_that_cannot_be_taken_over_are_told() {
    let project = Project::empty();
    let task = |toml: &str| {
        for (name, text) in [
            ("task.toml", toml),
            ("instruction.md", "Write /workspace/a.txt\n"),
            ("tests/test.sh", "#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n"),
            ("environment/Dockerfile", "FROM debian\nWORKDIR /app\n"),
            ("README.md", "x\n"),
        ] {
            project.env.write(format!("theirs/one/{name}"), text);
        }
    };
    task("schema_version = '1.4'\n[environment]\ngpus = 2\n[[steps]]\nname = 'a'\n");
    let run = project.json("task import theirs/one --format harbor");
    assert_eq!(run.code, Some(3), "{run:?}");
    let ids: Vec<String> = run.errors().into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids.iter().filter(|id| *id == "Y040").count(), 2, "{run:?}");
    assert!(!project.env.path("tasks/harbor").exists());
    task(
        "[agent]\ntimeout_sec = 30\nuser = 'me'\n[environment]\ncpus = 1\nmemory_mb = 100\nstorage_mb = 100\n",
    );
    let run = project.json("task import theirs --format harbor");
    assert_eq!(run.code, Some(1), "{run:?}");
    let ids: Vec<String> = run.errors().into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["Y041", "Y043", "Y041"], "a user, a file, a working directory: {run:?}");
    assert_eq!(project.data("task show harbor/one")["task"]["environment"]["allow_internet"], true);
}

/// Export, a job run with Harbor's own command line, import, verify.
#[test]
#[cfg_attr(
    not(all(python312, packages, root)),
    ignore = "needs Harbor: root, the Python package index and a Python 3.12"
)]
fn a_job_of_exported_tasks_comes_back_and_is_judged_again() {
    let project = project(2);
    project.data("task export civil --format harbor -o out");
    let path = project
        .env
        .command(&project.env.dir(), ["x"])
        .get_envs()
        .find(|(name, _)| *name == "PATH")
        .unwrap()
        .1
        .unwrap()
        .to_owned();
    let harbor =
        std::env::split_paths(&path).map(|place| place.join("harbor")).find(|place| place.is_file()).unwrap();
    let mut command = Command::new(harbor);
    command.args(["run", "-p"]).arg(project.env.path("out")).args(["-a", "oracle", "-e", ROOM, "-o"]);
    command.arg(project.env.path("theirs")).args(["--job-name", "elsewhere", "-k", "2", "--yes", "--quiet"]);
    command.env("HARBOR_TELEMETRY", "0").env("PYTHONPATH", python()).env("HOME", project.env.home());
    let ran = command.current_dir(project.env.dir()).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let data = project.data("import theirs/elsewhere");
    assert_eq!(data["experiment_id"], "harbor-elsewhere");
    assert_eq!(
        (&data["imported"], &data["verification"]["agree"]),
        (&Value::from(4), &Value::from(4)),
        "{data}"
    );
    for record in project.records("harbor-elsewhere").values() {
        assert!(record.task.task_id.starts_with("civil/channel-"));
        assert_eq!((record.reward(), record.agent.adapter.as_str()), (Some(1.0), "harbor"));
    }
    project.assert_sound("harbor-elsewhere");
    let shown = project.json("evaluate -e harbor-elsewhere");
    assert_eq!(shown.code, Some(0), "{shown:?}");
    // A reward that our judge does not confirm is reported, and does not count.
    let trial =
        names_in(&project.env.path("theirs/elsewhere")).into_iter().find(|name| name.contains("__")).unwrap();
    let result = format!("theirs/elsewhere/{trial}/result.json");
    let mut told: Value = serde_json::from_str(&project.env.read(&result)).unwrap();
    told["verifier_result"]["rewards"] = serde_json::json!({"reward": 0.5});
    project.env.write(&result, told.to_string());
    let run = project.json("import theirs/elsewhere -e altered");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert_eq!(run.errors().iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["H021"]);
    assert!(project.records("altered").values().all(|record| record.reward() == Some(1.0)));
    // A task that was changed since is not the one that was judged there.
    project.env.write("tasks/civil/channel-000/instruction.md", "Something else in /workspace/output.json\n");
    let data = project.data("import theirs/elsewhere -e later");
    assert_eq!(
        (&data["verification"]["agree"], &data["verification"]["unverified"]),
        (&Value::from(2), &Value::from(2)),
        "{data}"
    );
}
