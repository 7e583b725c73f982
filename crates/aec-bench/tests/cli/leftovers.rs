//! What killed processes leave, and limits that do not hold.

use std::path::{Path, PathBuf};
use std::process::Command;

use aec_xtest::TestEnv;
use aec_xtest::wait::until;

use crate::cli::world;

/// Where control groups of memory are mounted, in the first and the second version.
const POINTS: [&str; 2] = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"];

/// The standard verifier alone would need no room.
const IN_A_ROOM: &str = "echo judging\npython3 /tests/verify.py\n";

fn point() -> &'static Path {
    POINTS.map(Path::new).into_iter().find(|point| point.join("cgroup.procs").exists()).unwrap()
}

/// A project whose verifier takes for ever.
fn slow() -> TestEnv {
    let mut env = world();
    env.init();
    env.write("tasks/electrical/voltage-drop/tests/test.sh", "sleep 1000\n");
    std::fs::create_dir(env.path("tmp")).unwrap();
    let place = env.path("tmp").to_str().unwrap().to_owned();
    env.set("TMPDIR", &place);
    env
}

/// The control groups that a process made for rooms.
fn groups_of(pid: u32) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(point().join("aec-bench")).into_iter().flatten();
    let ours =
        |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(&format!("room.{pid}."));
    entries.map(|entry| entry.unwrap().path()).filter(ours).collect()
}

fn hidden_in(directory: &Path) -> usize {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_str().unwrap().starts_with(".aec-bench-")).count()
}

/// Kills `verify` while its verifier runs in a room. Returns its number.
fn kill_while_judging(env: &TestEnv) -> u32 {
    let mut child = env.start(["verify", "--all"]);
    let pid = child.id();
    let in_a_room = || {
        groups_of(pid).iter().any(|group| {
            std::fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|pids| pids.lines().count() > 2)
        })
    };
    until("a verifier runs in a room", || in_a_room() && hidden_in(&env.path("tmp")) == 1);
    child.kill().unwrap();
    child.wait().unwrap();
    until("its processes end", || {
        let pids = |group: &PathBuf| std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        groups_of(pid).iter().all(|group| pids(group).is_empty())
    });
    pid
}

/// The control groups of a killed run stayed for ever, and so did its temporary directory.
#[test]
#[cfg_attr(not(root), ignore = "needs root: it makes control groups")]
fn what_a_killed_run_left_is_removed_by_the_next_one_and_by_runs_clean() {
    let env = slow();
    let killed = kill_while_judging(&env);
    assert_eq!((groups_of(killed).len(), hidden_in(&env.path("tmp"))), (1, 1), "a kill leaves both");
    env.write("tasks/electrical/voltage-drop/tests/test.sh", IN_A_ROOM);
    assert_eq!(env.run(["verify", "--all"]).code, Some(0));
    assert_eq!((groups_of(killed).len(), hidden_in(&env.path("tmp"))), (0, 0), "the next start removes both");
    let env = slow();
    let killed = kill_while_judging(&env);
    let planned = env.run(["--json", "runs", "clean", "--dry-run"]).data();
    assert!(planned["rooms"].as_u64() >= Some(1), "{planned}");
    assert_eq!((planned["directories"].as_u64(), groups_of(killed).len()), (Some(1), 1), "{planned}");
    let done = env.run(["runs", "clean"]);
    assert!(done.stdout.contains("1 leftover of killed runs, evaluations and exports"), "{done:?}");
    assert_eq!((groups_of(killed).len(), hidden_in(&env.path("tmp"))), (0, 0));
}

/// Runs the program where the memory controller seems to be there and takes no limits.
fn with_broken_controller(env: &TestEnv, arguments: &[&str]) -> std::process::Output {
    let point = point().display();
    let files = "cgroup.controllers aec-bench/cgroup.controllers";
    let script = format!(
        "mount -t tmpfs none {point} && mkdir {point}/aec-bench && cd {point} && \
         echo memory pids cpu | tee {files} > /dev/null && touch cgroup.subtree_control aec-bench/cgroup.subtree_control && \
         cd \"$HERE\" && exec \"$@\""
    );
    let program = env.command(&env.dir(), arguments);
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script, "sh"]).arg(program.get_program()).args(program.get_args());
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("HERE", env.dir()).output().unwrap()
}

/// A room whose limits did not hold was opened, and only its record said so.
#[test]
#[cfg_attr(not(root), ignore = "needs root: it hides a control group")]
fn a_room_whose_limits_do_not_hold_is_refused_unless_the_user_accepts_it() {
    let env = world();
    env.init();
    let text = |output: &std::process::Output| {
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    env.write("tasks/electrical/voltage-drop/tests/test.sh", IN_A_ROOM);
    let refused = with_broken_controller(&env, &["--json", "verify", "--all"]);
    let shown = text(&refused);
    assert_ne!(refused.status.code(), Some(0), "{shown}");
    for part in ["infra_fault", "weaker_limits", "would not hold", "--allow-weaker-limits"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let accepted = with_broken_controller(&env, &["--json", "verify", "--all", "--allow-weaker-limits"]);
    let shown = text(&accepted);
    assert_eq!(accepted.status.code(), Some(0), "{shown}");
    assert!(shown.contains("\"memory\":\"process\""), "{shown}");
    let doctor = with_broken_controller(&env, &["doctor"]);
    assert!(text(&doctor).contains("less than usual on this machine"), "{}", text(&doctor));
    let plan = "plan electrical --harness nop -e weak --json --allow-weaker-limits --lock plan.json";
    let planned = env.run(plan.split(' '));
    assert_eq!(planned.code, Some(0), "{planned:?}");
    assert!(env.read("plan.json").contains("\"sandbox\": \"weaker_limits\""), "the plan records it");
}
