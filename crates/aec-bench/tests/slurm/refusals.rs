//! Refusals with a reason: flags that cannot work, missing clusters, jobs that Slurm rejects. Names may contain
//! anything.

use std::os::unix::fs::PermissionsExt as _;

use aec_xtest::files::names_in;

use crate::run::world::Project;
use crate::slurm::cluster::Cluster;
use crate::slurm::{assert_like_local, project_on};

const LINE: &str = "run civil --harness oracle -e x";

#[test]
fn flags_that_make_no_sense_are_refused() {
    let project = Project::with_tasks(1);
    for (flags, code, id) in [
        ("--shards 4", 2, "J021"),
        ("--render", 2, "J021"),
        ("--partition a", 2, "J021"),
        ("--engine slurm", 2, "J021"),
        ("--engine slurm --shards 4 --shard 0/4", 2, "J021"),
        ("--engine slurm --shards 4 --tui", 2, "J021"),
        ("--engine slurm --shards 4 --image a", 2, "J021"),
        ("--engine slurm --shards 4 --sbatch=--array=1", 2, "J021"),
        ("--engine k8s --shards 4 --image a --volume-claim b", 2, "J021"),
        ("--engine k8s --shards 4 --render --volume-claim b", 2, "J021"),
        ("--engine k8s --shards 4 --render --image a --volume-claim b --time 5", 2, "J021"),
        ("--engine k8s --shards 4 --render --image a --volume-claim B_b", 2, "J021"),
        ("--engine k8s --shards 4 --render --image a --volume-claim b --namespace Bad_one", 2, "J021"),
        ("--engine k8s --shards 4 --render --image a --volume-claim b --mount-path /other", 2, "J021"),
        ("--engine k8s --shards 4 --render --image a --volume-claim b --mount-path here", 2, "J021"),
        ("--engine k8s --shards 4 --render --image a --volume-claim b --memory-per-shard lots", 2, "J021"),
        ("--engine slurm --shards 4 --render --memory-per-shard 16Gi", 2, "J021"),
        ("--engine slurm --shards 4 --render --time forever", 2, "J021"),
    ] {
        let (found, what) = project.refusal(&format!("{LINE} {flags}"), code);
        assert_eq!(found, id, "{flags}: {what}");
    }
    assert!(names_in(&project.ledger("x")).is_empty());
}

#[test]
fn a_machine_without_slurm_says_so_and_renders() {
    let mut project = Project::with_tasks(2);
    // A PATH without Slurm: only what workers need.
    let bin = project.env.home().join("bin");
    std::fs::create_dir(&bin).unwrap();
    for name in ["bash", "python3", "env"] {
        let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|directory| directory.join(name))
            .find(|path| path.exists())
            .unwrap();
        std::os::unix::fs::symlink(found.canonicalize().unwrap(), bin.join(name)).unwrap();
    }
    project.env.set("PATH", bin.to_str().unwrap());
    let (id, what) = project.refusal(&format!("{LINE} --engine slurm --shards 4"), 4);
    assert_eq!((id.as_str(), what.as_str()), ("J010", "there is no `sbatch` on PATH"));
    let rendered = project.run(&format!(
        "{LINE} --engine slurm --shards 4 --render --partition cpu --time 2:00:00 --account lab --max-cost 2"
    ));
    assert_eq!(rendered.code, Some(0), "{rendered:?}");
    let text = rendered.stdout.replace(env!("CARGO_BIN_EXE_aec-bench"), "[PROGRAM]");
    insta::assert_snapshot!("render", text);
    assert!(rendered.stderr.contains("sbatch --dependency=afterany:JOB"), "{rendered:?}");
    // Rendered files stay readable without a cluster.
    let status = project.data("runs status x");
    assert_eq!(status["cluster"]["shards"].as_array().unwrap().len(), 4);
    assert_eq!(status["cluster"]["shards"][0]["state"], serde_json::Value::Null);
    let doctor = project.json("doctor").envelope()["data"].clone();
    let slurm =
        doctor["checks"].as_array().unwrap().iter().find(|check| check["name"] == "slurm").unwrap().clone();
    assert_eq!(slurm["status"], "limited");
}

#[test]
fn answers_of_squeue_that_make_no_sense_are_survived() {
    let mut project = Project::with_tasks(1);
    let bin = project.env.home().join("bin");
    std::fs::create_dir(&bin).unwrap();
    for (name, script) in [
        ("sbatch", "echo 7"),
        ("scancel", "exit 0"),
        ("scontrol", "echo 'MaxArraySize            = 1001'"),
        ("squeue", "cat \"$SQUEUE_ANSWER\""),
    ] {
        std::fs::write(bin.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    project.env.set("PATH", &path);
    let answer = project.env.home().join("answer.json");
    project.env.set("SQUEUE_ANSWER", answer.to_str().unwrap());
    std::fs::write(&answer, "{\"jobs\": []}").unwrap();
    assert_eq!(project.data(&format!("{LINE} --engine slurm --shards 4 --detach"))["array_job"], 7);
    let huge = format!("{{\"jobs\": [{}{{}}]}}", "{\"job_id\": 9, \"x\": [1]},".repeat(90_000));
    for (said, noted) in [
        ("", true),
        ("{\"jobs\": [{\"job_id\"", true),
        ("nonsense", true),
        (huge.as_str(), false),
        (
            "{\"jobs\": [{\"job_id\": 7, \"array_job_id\": 7, \"array_task_string\": \"0-3\", \"job_state\": \"PENDING\"}]}",
            false,
        ),
    ] {
        std::fs::write(&answer, said).unwrap();
        let status = project.json("runs status x");
        assert_eq!(status.code, Some(0), "{status:?}");
        assert_eq!(status.errors().iter().any(|(id, _)| id == "J013"), noted, "{status:?}");
    }
    assert!(project.run("runs status x").stderr.contains("waiting for the cluster"));
}

#[test]
#[cfg_attr(not(slurm), ignore = "needs Slurm as root: apt-get install slurm-wlm munge")]
fn what_slurm_refuses_leaves_nothing_behind() {
    let cluster = Cluster::start();
    let project = project_on(&cluster, 2);
    let (id, what) = project.refusal(&format!("{LINE} --engine slurm --shards 2 --partition nowhere"), 4);
    assert_eq!((id.as_str(), what.as_str()), ("J011", "sbatch does not take the job"));
    assert!(names_in(&project.ledger("x").join("_run/cluster")).is_empty());
    let (id, what) = project.refusal(&format!("{LINE} --engine slurm --shards 102"), 4);
    assert_eq!((id.as_str(), what.contains("at most 101")), ("J012", true), "{what}");

    // A project in a directory with a hostile name.
    let hostile = project.env.path("it's \"%j\" $(touch pwned) ;# ü");
    std::fs::create_dir(&hostile).unwrap();
    for part in ["tasks", "aec-bench.toml"] {
        std::fs::rename(project.env.path(part), hostile.join(part)).unwrap();
    }
    for (experiment, engine) in [("here", ""), ("there", "--engine slurm --shards 2")] {
        let line = format!("--json run civil --harness oracle -e {experiment} {engine}");
        let run = project.env.run_in(&hostile, line.split_whitespace());
        assert_eq!(run.code, Some(0), "{run:?}");
    }
    let logs = hostile.join("artefacts/ledger/there/_run/cluster/0001/logs");
    assert!(std::fs::read_to_string(logs.join("shard-1.log")).unwrap().contains("shard 1 of 2"));
    assert!(!hostile.join("pwned").exists() && !logs.join("pwned").exists());
    for part in ["artefacts", "jobs"] {
        std::fs::remove_dir_all(project.env.path(part)).ok();
        std::fs::rename(hostile.join(part), project.env.path(part)).unwrap();
    }
    for part in ["tasks", "aec-bench.toml"] {
        std::fs::rename(hostile.join(part), project.env.path(part)).unwrap();
    }
    assert_like_local(&project, "there", "here");
}
