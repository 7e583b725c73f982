//! What only root's rooms have: control groups, and a user of the host for each room.

use std::path::{Path, PathBuf};

use aec_sandbox::{Hold, Sandbox as _};
use aec_xtest::wait::until;

use crate::room::{open, out, sh};

fn roots() -> Vec<PathBuf> {
    let controllers = ["memory", "pids", "cpu"].map(|name| format!("/sys/fs/cgroup/{name}/aec-bench"));
    let all = controllers.into_iter().chain(["/sys/fs/cgroup/aec-bench".to_owned()]).map(PathBuf::from);
    all.filter(|root| root.is_dir()).collect()
}

/// A group of an ended process with the same number made a room lose its limits: `held.memory` said `process`.
#[test]
#[cfg_attr(not(root), ignore = "needs root: it makes control groups")]
fn groups_that_ended_processes_left_cost_no_room_its_limits() {
    // The first room makes the places of groups.
    assert_eq!(open().held().memory, Hold::Tree);
    let mut places = Vec::new();
    for root in roots() {
        places.extend((0..300).map(|count| root.join(format!("{}-{count}", std::process::id()))));
    }
    for place in &places {
        std::fs::create_dir_all(place).unwrap();
    }
    let held = open().held();
    for place in &places {
        std::fs::remove_dir(place).unwrap();
    }
    assert_eq!((held.memory, held.pids), (Hold::Tree, Hold::Tree));
}

/// All rooms of root were one user of the host, who has only so many pages for pipes.
#[test]
#[cfg_attr(not(root), ignore = "needs root: an ordinary user's rooms are that user")]
fn each_room_is_another_user_of_the_host() {
    let (mut greedy, mut other) = (open(), open());
    greedy
        .directory("/workspace")
        .unwrap()
        .write(
            Path::new("program.py"),
            b"import os, time\nfor _ in range(3):\n    if os.fork() == 0: break\n\
              kept = [os.pipe() for _ in range(480)]\nopen(f'/workspace/ready{os.getpid()}', 'w')\ntime.sleep(1000)\n",
            false,
        )
        .unwrap();
    sh(&mut greedy, "setsid /usr/bin/python3 -I program.py > /dev/null 2>&1 &");
    until("all pipes", || out(&mut greedy, "ls ready* 2> /dev/null | wc -l") == "4");
    // F_GETPIPE_SZ
    let size = "/usr/bin/python3 -I -c 'import fcntl, os; print(fcntl.fcntl(os.pipe()[0], 1032))'";
    assert!(
        out(&mut greedy, size).parse::<u32>().unwrap() < 65536,
        "the pages of this room's user are used up"
    );
    assert_eq!(out(&mut other, size), "65536");
    assert_eq!(out(&mut other, "id -u; stat -c %u /workspace"), "64999\n64999");
}
