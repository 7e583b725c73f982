//! Limits apply to whole trees of processes.

use std::time::Duration;

use aec_sandbox::{ExecSpec, Exit, Hold, Sandbox as _};

use crate::room::{open, out, sh};

#[test]
fn storage_is_bounded_over_all_writable_places() {
    let mut room = open();
    let filled = sh(
        &mut room,
        "dd if=/dev/zero of=/workspace/a bs=1M count=40 2>/dev/null && dd if=/dev/zero of=/tmp/b bs=1M count=40",
    );
    assert_ne!(filled.exit, Exit::Code(0));
    assert!(filled.stderr.text().contains("No space left"), "{filled:?}");
    assert_eq!(sh(&mut room, "rm /workspace/a && echo x > /tmp/c").exit, Exit::Code(0));
    let sparse = sh(&mut room, "truncate -s 10G /workspace/sparse");
    assert_ne!(sparse.exit, Exit::Code(0), "not even a hole");
    let many = sh(&mut room, "cd /tmp && seq 1 300000 | xargs -n 1000 touch");
    assert_ne!(many.exit, Exit::Code(0), "files are counted");
}

#[test]
fn memory_is_bounded() {
    let mut room = open();
    // Two processes of 150 MB each in a room of 256 MB.
    let eat = "x = bytearray(150 * 1024 * 1024)\nimport time\nfor i in range(0, len(x), 4096): x[i] = 1\nprint('ate', flush=True)\ntime.sleep(30)";
    let script = format!("for i in 1 2; do /usr/bin/python3 -I -c \"{eat}\" & done; wait -n; echo first: $?");
    match room.held().memory {
        Hold::Tree => {
            let result = room.exec(&ExecSpec::new(["bash", "-c", &script]), &mut |_, _| {}).unwrap();
            assert!(result.stdout.text().contains("first: 137"), "one of them was killed: {result:?}");
            assert!(room.out_of_memory());
        }
        // For an ordinary user the limit is per process.
        Hold::Process => {
            let big = sh(&mut room, "/usr/bin/python3 -I -c 'bytearray(400 * 1024 * 1024)'");
            assert_ne!(big.exit, Exit::Code(0), "{big:?}");
        }
        Hold::No => panic!("memory is not bounded at all"),
    }
}

#[test]
fn processes_are_bounded_and_a_fork_bomb_dies_with_the_room() {
    let mut room = open();
    let mut command = ExecSpec::new(["bash", "-c", "bomb() { bomb | bomb & }; bomb; sleep 100"]);
    command.deadline = Duration::from_secs(2);
    let result = room.exec(&command, &mut |_, _| {}).unwrap();
    assert_eq!(result.exit, Exit::Deadline);
    room.freeze().unwrap();
    drop(room);
    assert_eq!(out(&mut open(), "echo fine"), "fine");
}

#[test]
fn a_command_that_finds_no_place_is_no_fault_of_the_room() {
    let mut room = open();
    let greedy = "while (1) { my $p = fork; if (defined $p && $p == 0) { sleep 60; exit } }";
    sh(&mut room, &format!("setsid perl -e '{greedy}' > /dev/null 2>&1 & exit 0"));
    // Whether the process can start depends on the kind of limit; in any case the room keeps working.
    for _ in 0..100 {
        let result = sh(&mut room, "true");
        assert!(matches!(result.exit, Exit::Code(0 | 127 | 254)), "{result:?}");
    }
    room.freeze().unwrap();
}

#[test]
fn broken_pipes_end_commands_as_everywhere() {
    let mut room = open();
    assert_eq!(out(&mut room, "bash -c 'set -o pipefail; yes | head -1 > /dev/null; echo $?'"), "141");
}

#[test]
fn cores_are_bounded() {
    let mut room = open();
    assert_eq!(room.held().cpus, Hold::Tree);
    // Two busy processes on one core: together they get one core's time.
    let script = "for i in 1 2; do (while :; do :; done) & done; sleep 2; kill $(jobs -p); wait; cat /proc/uptime > /dev/null; times";
    let result = sh(&mut room, &format!("bash -c '{script}'"));
    let used: f64 = result
        .stdout
        .text()
        .lines()
        .nth(1)
        .map(|line| {
            line.split_whitespace()
                .map(|time| {
                    let (minutes, seconds) = time.trim_end_matches('s').split_once('m').unwrap();
                    minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
                })
                .sum()
        })
        .unwrap();
    let allowed = result.duration.as_secs_f64() * 1.25;
    assert!(used <= allowed, "{used} s of processor time in {allowed} s");
}

#[test]
fn descriptors_are_bounded() {
    let mut room = open();
    let result = out(
        &mut room,
        "/usr/bin/python3 -I -c \"\nfiles = []\ntry:\n  while True: files.append(open('/dev/null'))\nexcept OSError as error: print(error.strerror, len(files) < 1100)\"",
    );
    assert_eq!(result, "Too many open files True");
}
