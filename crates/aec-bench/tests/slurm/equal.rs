//! The same experiment on one machine and on a cluster: equal verdicts, and the output of `runs status` and others.

use aec_cluster::contract::Folder;
use aec_ledger::layout::Ledger;
use aec_xtest::files::names_in;
use serde_json::Value;

use crate::run::world::Project;
use crate::slurm::cluster::{Cluster, wait_until};
use crate::slurm::{assert_like_local, project_on, slow_solutions};

/// Agents of every kind that need no model: right, wrong, empty and failing.
const EXPERIMENT: &str = "name: mixed\ntasks: {include_patterns: ['civil/*']}\nrepetitions: 2\nagents:\n\
    - {name: right, harness: oracle}\n\
    - {name: empty, harness: nop}\n\
    - {name: guess, harness: tool_loop, model: 'offline/scripted:guess.yaml'}\n";

fn mixed(project: &Project) {
    project.script("guess", "replies:\n- text: '{\"flow_m3_s\": 3.217, \"depth_m\": 9}'\n");
    project.env.write("mixed.yaml", EXPERIMENT);
}

/// Removes what differs from run to run.
fn steady(mut status: Value) -> Value {
    for session in status["sessions"].as_array_mut().unwrap() {
        *session = session["shard"].clone();
    }
    let sessions = status["sessions"].as_array_mut().unwrap();
    sessions.sort_by_key(ToString::to_string);
    for key in ["array_job", "merge_job", "folder", "merge_state"] {
        status["cluster"][key] = Value::from(format!("[{key}]"));
    }
    for shard in status["cluster"]["shards"].as_array_mut().unwrap() {
        shard["node"] = Value::from("[node]");
    }
    status
}

#[test]
#[cfg_attr(not(slurm), ignore = "needs Slurm as root: apt-get install slurm-wlm munge")]
fn verdicts_are_the_same_as_on_one_machine() {
    let cluster = Cluster::start();
    let project = project_on(&cluster, 6);
    mixed(&project);
    assert_eq!(project.data("run -c mixed.yaml -e here")["all"]["executed"], 36);
    let dry = project.run("run -c mixed.yaml -e there --engine slurm --shards 4 --dry-run");
    assert!(dry.stderr.contains("Would be submitted as 4 shards with at most 9 trials each."), "{dry:?}");
    assert!(names_in(&project.ledger("there")).is_empty(), "a dry run writes nothing");

    let ended = project.data("run -c mixed.yaml -e there --engine slurm --shards 4 --concurrency 4");
    assert_eq!((ended["state"].as_str(), &ended["all"]["executed"]), (Some("complete"), &Value::from(36)));
    assert_like_local(&project, "there", "here");

    let mut status = project.data("runs status there");
    insta::assert_snapshot!("status", serde_json::to_string_pretty(&steady(status.take())).unwrap());
    let text = project.run("runs status there");
    assert!(text.stdout.contains("4 shards on slurm") && text.stdout.contains("9 of 9"), "{text:?}");

    // Nothing is left to do, and nothing is repeated.
    let again = project.data("run --resume there --engine slurm --shards 4");
    assert_eq!((&again["to_run"], again["state"].as_str()), (&Value::from(0), Some("complete")));
    assert_like_local(&project, "there", "here");
    let merged = project.data("runs merge there");
    assert_eq!((&merged["complete"], &merged["repeated"]), (&Value::from(true), &Value::from(0)));

    // A rerun happens only once, and more shards than trials do no harm.
    let rerun = project.data("run --resume there --engine slurm --shards 40 --rerun failed");
    assert_eq!(rerun["state"], "complete", "{rerun}");
    project.assert_sound("there");
}

#[test]
#[cfg_attr(not(slurm), ignore = "needs Slurm as root: apt-get install slurm-wlm munge")]
fn a_run_is_stopped_wherever_it_runs() {
    let cluster = Cluster::start();
    let project = project_on(&cluster, 40);
    slow_solutions(&project, 40, 1.0);
    let line = "run civil --harness oracle -e x --engine slurm --concurrency 1";
    let submitted = project.data(&format!("{line} --shards 4 --detach"));
    assert_eq!(submitted["state"], "submitted");
    wait_until("trials are recorded", || project.record_names("x").len() >= 4);
    let (_, what) = project.refusal("run --resume x --engine slurm --shards 4", 3);
    assert!(what.contains("still works on `x`"), "{what}");
    let stopped = project.data("runs stop x");
    assert_eq!(stopped["asked"], "finish");
    cluster.wait_until_idle();
    let after = project.record_names("x").len();
    assert!((4..40).contains(&after), "{after}");
    let status = project.json("runs status x");
    assert_eq!(status.envelope()["data"]["state"], "incomplete");
    assert_eq!(status.envelope()["data"]["cluster"]["merged"], false);
    let records = project.records("x");
    assert!(records.values().all(|record| record.outcome.is_settled()), "trials under way are finished");

    // Trials cancelled by force are recorded as cancelled, and run again.
    let submitted = project.data("run --resume x --engine slurm --shards 2 --concurrency 2 --detach");
    wait_until("more trials are recorded", || project.record_names("x").len() >= after + 2);
    let stopped = project.data("runs stop x --force");
    assert_eq!(stopped["jobs"][0], submitted["array_job"]);
    cluster.wait_until_idle();
    let ledger = Ledger::new(project.env.path("artefacts/ledger"));
    let folder =
        Folder::latest(&ledger.experiment(&aec_base::name::Name::parse("x").unwrap())).unwrap().unwrap();
    assert!(folder.path().ends_with("0002"));
    let ended = project.data("run --resume x --engine slurm --shards 4 --concurrency 8");
    assert_eq!(ended["state"], "complete", "{ended}");
    assert_eq!(project.data("run civil --harness oracle -e here")["all"]["executed"], 40);
    assert_like_local(&project, "x", "here");
}
