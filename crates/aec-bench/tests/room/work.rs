//! Running commands, reading and writing, freezing, wiping.

use std::path::Path;
use std::time::Duration;

use aec_sandbox::{ExecSpec, Exit, Kind, OutputLimits, Sandbox as _, Spill, Stream, WalkLimits};

use crate::room::{open, out, sh};

#[test]
fn commands_run_with_streams_codes_and_signals() {
    let mut room = open();
    let result = sh(&mut room, "echo out; echo err >&2; exit 3");
    assert_eq!(result.exit, Exit::Code(3));
    assert_eq!((result.stdout.text().as_str(), result.stderr.text().as_str()), ("out\n", "err\n"));
    assert_eq!(sh(&mut room, "kill -9 $$").exit, Exit::Signal(9));
    assert_eq!(sh(&mut room, "exit 0").exit, Exit::Code(0), "the room is still there");
    let mut command = ExecSpec::new(["cat"]);
    for size in [5, 1_000_000] {
        command.stdin = vec![b'x'; size];
        command.stdout = OutputLimits { head: 2_000_000, tail: 0, spill: None };
        assert_eq!(room.exec(&command, &mut |_, _| {}).unwrap().stdout.head.len(), size);
    }
    let missing = room.exec(&ExecSpec::new(["no-such-program"]), &mut |_, _| {}).unwrap();
    assert_eq!(missing.exit, Exit::Code(127));
    assert!(missing.stderr.text().contains("cannot run the command"), "{missing:?}");
    let mut nowhere = ExecSpec::new(["true"]);
    nowhere.cwd = "/nowhere".into();
    assert_eq!(room.exec(&nowhere, &mut |_, _| {}).unwrap().exit, Exit::Code(127));
}

#[test]
fn output_is_watched_bounded_and_spilled() {
    let dir = tempfile::tempdir().unwrap();
    let mut room = open();
    let mut command = ExecSpec::new(["sh", "-c", "seq 1 200000; echo end >&2"]);
    let file = dir.path().join("out");
    command.stdout =
        OutputLimits { head: 10, tail: 10, spill: Some(Spill { file: file.clone(), limit: 1 << 30 }) };
    let (mut seen, mut seen_err) = (0, Vec::new());
    let result = room
        .exec(&command, &mut |stream, bytes| match stream {
            Stream::Stdout => seen += bytes.len(),
            Stream::Stderr => seen_err.extend_from_slice(bytes),
        })
        .unwrap();
    let whole = std::fs::read(file).unwrap();
    assert_eq!(seen, whole.len());
    assert_eq!(seen_err, b"end\n");
    assert!(whole.starts_with(b"1\n2\n3\n") && whole.ends_with(b"200000\n"));
    assert_eq!(result.stdout.head, b"1\n2\n3\n4\n5\n");
    assert_eq!(result.stdout.omitted, whole.len() as u64 - 20);
}

#[test]
fn a_background_process_does_not_hold_the_command_up() {
    let mut room = open();
    let result = sh(&mut room, "sleep 1000 & echo started");
    assert_eq!((result.exit, result.stdout.text().as_str()), (Exit::Code(0), "started\n"));
    assert!(result.duration < Duration::from_secs(10));
    assert_ne!(out(&mut room, "pgrep sleep || ls /proc | grep -c '^[0-9]'"), "", "it lives on in the room");
}

#[test]
fn the_deadline_kills_and_the_room_goes_on() {
    let mut room = open();
    let mut command = ExecSpec::new(["sh", "-c", "trap '' TERM INT; echo on; while :; do sleep 100; done"]);
    command.deadline = Duration::from_secs(3);
    let result = room.exec(&command, &mut |_, _| {}).unwrap();
    assert_eq!((result.exit, result.stdout.text().as_str()), (Exit::Deadline, "on\n"));
    assert_eq!(out(&mut room, "echo still here"), "still here");
}

#[test]
fn files_go_in_and_come_out() {
    let mut room = open();
    let workspace = room.directory("/workspace").unwrap();
    workspace.write(Path::new("in/data.csv"), b"1,2\n", false).unwrap();
    workspace
        .write(Path::new("run.sh"), b"#!/bin/sh\ncat in/data.csv > out.txt; echo x >> in/data.csv\n", true)
        .unwrap();
    assert_eq!(sh(&mut room, "./run.sh && mkdir -p deep/er && ln -s /etc/passwd link").exit, Exit::Code(0));
    let workspace = room.directory("/workspace").unwrap();
    assert_eq!(workspace.read(Path::new("out.txt"), 100).unwrap(), b"1,2\n");
    let listed = workspace.list(WalkLimits { entries: 100, depth: 10 }).unwrap();
    let names: Vec<_> = listed.iter().map(|entry| (entry.path.to_str().unwrap(), entry.kind)).collect();
    assert_eq!(
        names,
        [
            ("deep", Kind::Directory),
            ("deep/er", Kind::Directory),
            ("in", Kind::Directory),
            ("in/data.csv", Kind::File),
            ("link", Kind::Link),
            ("out.txt", Kind::File),
            ("run.sh", Kind::File),
        ]
    );
    assert!(workspace.read(Path::new("link"), 1 << 20).is_err(), "links are not followed");
    assert!(workspace.read(Path::new("../etc/passwd"), 1 << 20).is_err());
    assert!(workspace.write(Path::new("../x"), b"", false).is_err());
    assert!(workspace.write(Path::new("link"), b"", false).is_err());
    assert!(workspace.read(Path::new("out.txt"), 3).is_err(), "larger than allowed");
    assert!(workspace.list(WalkLimits { entries: 3, depth: 10 }).is_err());
    assert!(workspace.list(WalkLimits { entries: 100, depth: 0 }).is_err());
}

#[test]
fn freezing_ends_everything_and_keeps_the_files() {
    let mut room = open();
    sh(
        &mut room,
        "(setsid sh -c 'while :; do date +%N > /workspace/clock; done' &) ; echo kept > answer; until [ -s clock ]; do :; done",
    );
    room.freeze().unwrap();
    let workspace = room.directory("/workspace").unwrap();
    let before = workspace.read(Path::new("clock"), 100).unwrap();
    assert_eq!(workspace.read(Path::new("answer"), 100).unwrap(), b"kept\n");
    for _ in 0..1000 {
        std::thread::yield_now();
    }
    assert_eq!(workspace.read(Path::new("clock"), 100).unwrap(), before, "nothing writes any more");
    assert!(room.exec(&ExecSpec::new(["true"]), &mut |_, _| {}).is_err());
}

#[test]
fn many_rooms_open_at_once() {
    let rounds = if aec_xtest::full() { 100 } else { 10 };
    std::thread::scope(|scope| {
        for worker in 0..8 {
            scope.spawn(move || {
                for round in 0..rounds {
                    let word = format!("{worker}-{round}");
                    assert_eq!(out(&mut open(), &format!("echo {word}")), word);
                }
            });
        }
    });
}

#[test]
fn wiping_makes_the_room_new() {
    let mut room = open();
    room.directory("/tests").unwrap().write(Path::new("verify.py"), b"x", false).unwrap();
    room.seal().unwrap();
    sh(
        &mut room,
        "setsid sleep 1000 & echo a > /workspace/a; echo b > /tmp/b; echo c > /dev/shm/c; echo d > /home/agent/d",
    );
    room.wipe().unwrap();
    assert_eq!(
        out(&mut room, "ls -A /workspace /tmp /dev/shm /home/agent /tests /logs | grep -v : | grep ."),
        ""
    );
    assert_eq!(
        out(&mut room, "cat /proc/[0-9]*/comm | grep -c sleep"),
        "0",
        "no process of the past is left"
    );
    room.directory("/tests").unwrap().write(Path::new("new"), b"y", false).unwrap();
    room.seal().unwrap();
    assert_eq!(out(&mut room, "cat /tests/new"), "y");
}

#[test]
fn sealed_directories_cannot_be_changed() {
    let mut room = open();
    room.directory("/tests").unwrap().write(Path::new("verify.py"), b"judge", false).unwrap();
    room.seal().unwrap();
    for script in [
        "echo x > /tests/verify.py",
        "rm /tests/verify.py",
        "touch /tests/new",
        "mv /tests /t",
        "chmod 777 /tests",
    ] {
        assert_ne!(sh(&mut room, script).exit, Exit::Code(0), "{script}");
    }
    assert_eq!(out(&mut room, "cat /tests/verify.py"), "judge");
}
