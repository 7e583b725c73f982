//! Jobs that are interrupted, killed or crash: finished trials are recorded, and the next run does the rest.

use std::path::PathBuf;

use aec_judge::verdict::Outcome;
use aec_xtest::files::names_in;
use aec_xtest::wait::{until, until_some};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::harbor::{ROOM, jobs, project, verdicts};
use crate::run::world::Project;

/// The variable with the seconds that the slow solution takes, for the test environment.
const SLOWLY: &str = "LOCAL_ROOM_SLOWLY";

/// Two tasks, of which the second is slow.
fn slow() -> Project {
    let mut project = project(2);
    let solution =
        "#!/bin/bash\nsleep \"${SLOWLY:-0}\"\ncat /solution/answer.json > /workspace/output.json\n";
    project.env.set(SLOWLY, "20");
    project.env.write("tasks/civil/channel-001/solution/solve.sh", solution);
    project
}

fn line(experiment: &str) -> String {
    format!(
        "run civil/* --harness oracle -e {experiment} -b harbor --harbor-environment {ROOM} --concurrency 1"
    )
}

/// The process of the only running job.
fn harbor(project: &Project, experiment: &str) -> Pid {
    let below = project.jobs(experiment).join("_harbor");
    until_some("a job", || {
        let pids = names_in(&below)
            .into_iter()
            .filter_map(|name| std::fs::read_to_string(below.join(name).join("pid")).ok());
        pids.filter_map(|text| text.trim().parse().ok()).find_map(Pid::from_raw)
    })
}

/// Waits until there are this many records.
fn wait_for_records(project: &Project, experiment: &str, count: usize) {
    until("records", || project.record_names(experiment).len() >= count);
}

/// Makes the slow task quick from now on, without changing its files.
fn hurry(project: &mut Project) {
    project.env.set(SLOWLY, "0");
}

#[test]
#[cfg_attr(
    not(all(python312, packages, root)),
    ignore = "needs Harbor: root, the Python package index and a Python 3.12"
)]
fn an_interrupted_job_keeps_what_finished_and_resume_does_the_rest() {
    let mut project = slow();
    let running = project.start(&line("cut"));
    wait_for_records(&project, "cut", 1);
    running.signal(Signal::INT);
    let (code, _, said) = running.end();
    assert_eq!(code, Some(130), "{said}");
    let outcomes: Vec<Outcome> = project.records("cut").values().map(|record| record.outcome).collect();
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Outcome::Scored).count(), 1, "{outcomes:?}");
    assert!(
        outcomes.iter().all(|outcome| matches!(outcome, Outcome::Scored | Outcome::Cancelled)),
        "{outcomes:?}"
    );
    hurry(&mut project);
    let rest = project.data("run --resume cut");
    assert_eq!(rest["all"]["outcomes"]["scored"], 2, "{rest}");
    assert_eq!(jobs(&project, "cut").len(), 2);
    project.assert_sound("cut");
}

#[test]
#[cfg_attr(
    not(all(python312, packages, root)),
    ignore = "needs Harbor: root, the Python package index and a Python 3.12"
)]
fn a_job_that_is_killed_is_told_of_and_nothing_is_made_up() {
    let mut project = slow();
    let running = project.start(&format!("--json {}", line("killed")));
    wait_for_records(&project, "killed", 1);
    kill_process_group(harbor(&project, "killed"), Signal::KILL).unwrap();
    let (code, output, _) = running.end();
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("Y030") && output.contains("left 1 trial without a result"), "{output}");
    assert_eq!(verdicts(&project, "killed").len(), 1);
    hurry(&mut project);
    project.data("run --resume killed");
    assert_eq!(verdicts(&project, "killed").len(), 2);
    project.assert_sound("killed");
}

#[test]
#[cfg_attr(
    not(all(python312, packages, root)),
    ignore = "needs Harbor: root, the Python package index and a Python 3.12"
)]
fn a_job_that_outlives_its_run_is_recorded_by_the_next_one() {
    let mut project = slow();
    project.env.set(SLOWLY, "20");
    let running = project.start(&line("orphan"));
    wait_for_records(&project, "orphan", 1);
    let pid = harbor(&project, "orphan");
    running.signal(Signal::KILL);
    running.end();
    // It is paused until the test has looked at it, however long that takes. Not earlier: paused processes get a
    // hang-up signal when the last parent of their session dies.
    kill_process(pid, Signal::STOP).unwrap();
    let (id, _) = project.refusal("run --resume orphan", 4);
    assert_eq!(id, "Y036", "its trials would be run twice");
    kill_process(pid, Signal::CONT).unwrap();
    until("the end of the job", || !alive(pid));
    let rest = project.data("run --resume orphan");
    assert_eq!(rest["all"]["outcomes"]["scored"], 2, "{rest}");
    assert_eq!(jobs(&project, "orphan").len(), 1, "it was not run again");
    project.assert_sound("orphan");
}

fn alive(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(PathBuf::from(format!("/proc/{}/stat", pid.as_raw_nonzero())))
        .unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}
