//! Nodes, shells and jobs are killed: every planned trial ends with exactly one result.

use rustix::process::Signal;

use crate::slurm::cluster::{CPUS, Cluster, wait_until};
use crate::slurm::{assert_like_local, project_on, slow_solutions};

#[test]
#[cfg_attr(not(slurm), ignore = "needs Slurm as root: apt-get install slurm-wlm munge")]
fn a_node_is_lost_in_the_middle_of_a_run() {
    const TASKS: usize = 50;
    let cluster = Cluster::start();
    let project = project_on(&cluster, TASKS);
    slow_solutions(&project, TASKS, 0.3);
    assert_eq!(
        project.data("run civil --harness oracle -n 4 -e here --concurrency 16")["all"]["executed"],
        200
    );
    let line = format!(
        "run civil --harness oracle -n 4 -e x --engine slurm --shards 4 --concurrency 2 \
         --cpus-per-shard {} --detach",
        CPUS / 2
    );
    project.data(&line);
    wait_until("trials are recorded", || project.record_names("x").len() >= 40);
    cluster.kill_node("n2");
    cluster.wait_until_idle();
    let status = project.data("runs status x");
    assert_eq!(
        (status["state"].as_str(), status["cluster"]["merged"].as_bool()),
        (Some("complete"), Some(true)),
        "{status}"
    );
    let restarts: u64 = status["cluster"]["shards"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|shard| shard["restarts"].as_u64())
        .sum();
    // A node that is too busy to answer counts as lost, too.
    assert!(restarts >= 1, "{status}");
    assert_like_local(&project, "x", "here");
}

#[test]
#[cfg_attr(not(slurm), ignore = "needs Slurm as root: apt-get install slurm-wlm munge")]
fn the_shell_that_waits_is_killed() {
    let cluster = Cluster::start();
    let project = project_on(&cluster, 24);
    slow_solutions(&project, 24, 1.5);
    let mut running =
        project.start("run civil --harness oracle -e x --engine slurm --shards 4 --concurrency 1");
    running.wait_for("as job");
    wait_until("trials are recorded", || project.record_names("x").len() >= 4);
    running.signal(Signal::KILL);
    running.end();
    let status = project.data("runs status x");
    assert_eq!(status["state"], "running");
    let states = status["cluster"]["shards"].as_array().unwrap().iter().map(|shard| shard["state"].clone());
    assert!(states.clone().any(|state| state == "RUNNING"), "{:?}", states.collect::<Vec<_>>());
    cluster.wait_until_idle();
    assert_eq!(project.data("runs status x")["state"], "complete");
    // Continuing finds nothing to do, with or without the cluster.
    assert_eq!(project.data("run --resume x")["recorded"], 0);
    assert_eq!(project.data("run --resume x --engine slurm --shards 2")["to_run"], 0);

    // A user who only waits may stop waiting.
    let mut running =
        project.start("run civil --harness oracle -e y --engine slurm --shards 4 --concurrency 1");
    running.wait_for("as job");
    running.signal(Signal::INT);
    let (code, _, said) = running.end();
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("The run goes on.") && said.contains("runs stop y"), "{said}");
    cluster.wait_until_idle();
    project.data("run civil --harness oracle -e here");
    assert_like_local(&project, "x", "here");
    assert_like_local(&project, "y", "here");
}

#[test]
#[cfg_attr(not(slurm), ignore = "needs Slurm as root: apt-get install slurm-wlm munge")]
fn jobs_are_cancelled() {
    let cluster = Cluster::start();
    let project = project_on(&cluster, 30);
    slow_solutions(&project, 30, 1.0);
    let line = "run civil --harness oracle -e x --engine slurm --shards 3 --concurrency 2";
    let submitted = project.data(&format!("{line} --detach"));
    wait_until("trials are recorded", || project.record_names("x").len() >= 4);
    cluster.tell("scancel", &[&submitted["array_job"].to_string()]);
    cluster.wait_until_idle();
    let incomplete = project.json("runs status x");
    let data = incomplete.envelope()["data"].clone();
    assert_eq!(
        (data["state"].as_str(), data["cluster"]["merged"].as_bool()),
        (Some("incomplete"), Some(false))
    );
    let cancelled = project.records("x").values().filter(|record| !record.outcome.is_settled()).count();
    assert!(cancelled >= 1, "trials under way are recorded as cancelled");
    assert!(
        project
            .records("x")
            .values()
            .all(|record| !record.outcome.is_settled() || record.reward() == Some(1.0)),
        "what died by the job's signal is no verdict"
    );

    // Slurm warns the batch script before a time limit; the script is the worker.
    let submitted = project.data("run --resume x --engine slurm --shards 3 --concurrency 1 --detach");
    let before = project.record_names("x").len();
    wait_until("more trials are recorded", || project.record_names("x").len() >= before + 2);
    // A part that is still waiting receives no signal.
    cluster.wait_until_running(&submitted["array_job"].to_string(), 3);
    cluster.tell("scancel", &["--batch", "--signal=TERM", &submitted["array_job"].to_string()]);
    cluster.wait_until_idle();
    let data = project.json("runs status x").envelope()["data"].clone();
    assert_eq!(data["cluster"]["merged"], false, "{data}");
    assert!(
        data["cluster"]["shards"].as_array().unwrap().iter().all(|shard| shard["state"] == "FAILED"),
        "{data}"
    );
    let shown = cluster.tell("scontrol", &["show", "job", &submitted["array_job"].to_string()]);
    assert!(shown.contains("ExitCode=143:0"), "{shown}");

    let ended = project.data("run --resume x --engine slurm --shards 3 --concurrency 8");
    assert_eq!(ended["state"], "complete", "{ended}");
    project.data("run civil --harness oracle -e here --concurrency 16");
    assert_like_local(&project, "x", "here");
}

/// A minute is the shortest possible limit, and the controller checks limits twice a minute.
#[test]
#[cfg_attr(
    not(all(slurm, full)),
    ignore = "needs Slurm as root: apt-get install slurm-wlm munge; and AEC_TEST=full: it is long"
)]
fn jobs_run_out_of_time() {
    let cluster = Cluster::start();
    let project = project_on(&cluster, 30);
    slow_solutions(&project, 30, 20.0);
    let late =
        project.json("run civil --harness oracle -e x --engine slurm --shards 3 --concurrency 1 --time 1");
    assert_eq!(late.code, Some(1), "{late:?}");
    assert!(late.errors().iter().any(|(id, _)| id == "J030"), "{late:?}");
    let records = project.records("x");
    assert!(records.values().any(|record| !record.outcome.is_settled()), "{:?}", records.len());
    let ended = project.data("run --resume x --engine slurm --shards 3 --concurrency 10");
    assert_eq!(ended["state"], "complete", "{ended}");
    project.data("run civil --harness oracle -e here --concurrency 30");
    assert_like_local(&project, "x", "here");
}
