//! What commands in a container can and cannot do, and what the process that opened it can do.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use aec_container::{ContainerRoom, Purpose};
use aec_sandbox::{ExecSpec, Exit, Hold, Kind, Level, RoomSpec, Sandbox as _, Stream, WalkLimits};
use aec_xtest::podman::Podman;
use aec_xtest::wait::until;

use crate::container::{DOCKERFILE, engine, image, open, out, purpose, sh, spec};

const LIMITS: WalkLimits = WalkLimits { entries: 1000, depth: 16 };

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn commands_are_nobody_and_see_the_image_and_nothing_of_the_host() {
    let mut room = open();
    assert_eq!((room.level(), room.held().memory), (Level::Container, Hold::Tree));
    assert_eq!(out(&mut room, "id -u; id -g; id -G"), "64999\n64999\n64999");
    assert_eq!(
        out(&mut room, "cat /workspace/notes.txt; echo $COLOUR; hostname"),
        "from the image\ngreen\nroom"
    );
    assert!(out(&mut room, "grep -c . /proc/net/route").starts_with('1'), "no network but its own");
    assert_eq!(out(&mut room, "set -- /proc/[0-9]*; echo $#"), "2", "the first and sh");
    for forbidden in [
        "touch /usr/bin/new",
        "touch /tests/new",
        "touch /.aec-bench/new",
        "echo x > /proc/1/oom_score_adj",
        "cat /proc/1/environ",
        "kill -9 1",
        "mount -t tmpfs none /mnt",
        "unshare -U true",
        "mknod /workspace/dev b 8 0",
        "chown 0 /workspace/notes.txt",
    ] {
        let result = sh(&mut room, forbidden);
        assert_ne!(result.exit, Exit::Code(0), "{forbidden}: {result:?}");
    }
    assert_eq!(
        out(&mut room, "grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\\t\\n' ' '"),
        "CapEff: 0000000000000000 NoNewPrivs: 1 Seccomp: 2"
    );
    assert_eq!(
        out(&mut room, "touch /workspace/mine /tmp/mine /home/agent/mine /logs/mine && echo done"),
        "done"
    );
    // An ordinary program works, and the room still works after all that.
    assert_eq!(out(&mut room, "python3 -c 'import json; print(json.dumps({\"a\": 40 + 2}))'"), "{\"a\": 42}");
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn an_image_has_no_word_in_the_places_of_a_room() {
    let engine = engine();
    let directory = tempfile::tempdir().unwrap();
    let filled = "FROM python:3.12-slim\nRUN mkdir -p /logs/verifier /tests /tmp /home/agent /data && \
        echo '{\"reward\": 1}' > /logs/verifier/reward.json && echo old > /tests/test.sh && \
        touch /tmp/left /home/agent/left && echo given > /data/given && chmod -R 777 /data\nVOLUME /data\n";
    let image = image(directory.path(), filled);
    let mut room = ContainerRoom::open(&engine, &image, &spec(), &purpose("judge")).unwrap();
    assert_eq!(out(&mut room, "ls -A /logs /tests /tmp /home/agent | grep -v :; echo none"), "none");
    assert_eq!(
        out(&mut room, "mkdir /logs/verifier && echo 0 > /logs/verifier/reward.txt && echo mine"),
        "mine"
    );
    // Nor does it give commands unlimited space.
    assert_eq!(out(&mut room, "cat /data/given"), "given");
    for unbounded in ["/data", "/var/tmp"] {
        let script = format!("head -c 100M /dev/zero > {unbounded}/big");
        assert_ne!(sh(&mut room, &script).exit, Exit::Code(0), "{unbounded}");
    }
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn what_a_task_is_when_it_is_first_asked_for_is_what_it_stays() {
    let engine = engine();
    let directory = tempfile::tempdir().unwrap();
    let stamp =
        |word: &str| format!("FROM python:3.12-slim\nENV WHICH={word} STAMP={}\n", std::process::id());
    let before = image(directory.path(), &stamp("one"));
    let open = || ContainerRoom::open(&engine, &before, &spec(), &purpose("agent"));
    assert_eq!(out(&mut open().unwrap(), "echo $WHICH"), "one");
    image(directory.path(), &stamp("two"));
    assert_eq!(out(&mut open().unwrap(), "echo $WHICH"), "one");
    // An image that must be built again cannot be built from something else.
    let name = engine.image(&before).unwrap();
    // The engine is still ending the containers.
    until("the end of the image", || Podman::get().run(&["rmi", "-f", &name]).unwrap().status.success());
    let error = open().unwrap_err().to_string();
    assert!(error.contains("changed while the run went on"), "{error}");
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn commands_have_streams_deadlines_and_ends_of_their_own() {
    let mut room = open();
    let mut command = ExecSpec::new(["sh", "-c", "cat; echo no >&2; exit 7"]);
    command.stdin = vec![b'x'; 3_000_000];
    command.stdout.head = 4_000_000;
    let mut seen = 0;
    let result = room
        .exec(&command, &mut |stream, bytes| {
            if stream == Stream::Stdout {
                seen += bytes.len();
            }
        })
        .unwrap();
    assert_eq!((result.exit, seen), (Exit::Code(7), 3_000_000));
    assert_eq!(result.stderr.text(), "no\n");
    assert_eq!(sh(&mut room, "kill -TERM $$").exit, Exit::Signal(15));
    assert_eq!(sh(&mut room, "exec no-such-program").exit, Exit::Code(127));
    let unknown = room.exec(&ExecSpec::new(["no-such-program"]), &mut |_, _| {}).unwrap();
    assert_eq!(unknown.exit, Exit::Code(127));
    let mut slow = ExecSpec::new(["sh", "-c", "echo begun; sleep 60 & sleep 60"]);
    slow.deadline = Duration::from_secs(3);
    let begun = Instant::now();
    let result = room.exec(&slow, &mut |_, _| {}).unwrap();
    assert_eq!((result.exit, result.stdout.text()), (Exit::Deadline, "begun\n".to_owned()));
    assert!(begun.elapsed() < Duration::from_secs(30));
    // Endless output is cut, and does not fill any memory.
    let mut endless = ExecSpec::new(["sh", "-c", "yes"]);
    endless.deadline = Duration::from_millis(700);
    assert_eq!(room.exec(&endless, &mut |_, _| {}).unwrap().exit, Exit::Deadline);
    // Background processes of a command do not delay its end.
    let begun = Instant::now();
    assert_eq!(out(&mut room, "sleep 60 & echo left"), "left");
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn files_go_in_and_out_and_links_lead_nowhere() {
    let mut room = open();
    let big: Vec<u8> = (0..5_000_000_u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
    {
        let workspace = room.directory("/workspace").unwrap();
        workspace.write(Path::new("deep/er/big.bin"), &big, false).unwrap();
        workspace.write(Path::new("run.sh"), b"#!/bin/sh\necho ran\n", true).unwrap();
        for outside in ["../etc/new", "/etc/new", "deep/../../new"] {
            assert!(workspace.write(Path::new(outside), b"x", false).is_err(), "{outside}");
        }
    }
    assert_eq!(out(&mut room, "./run.sh; stat -c %s:%u deep/er/big.bin"), "ran\n5000000:64999");
    out(
        &mut room,
        "ln -s /etc/passwd link; ln -s / up; mkfifo pipe; printf '\\377' > \"$(printf 'odd\\376')\"; chmod 000 run.sh",
    );
    let workspace = room.directory("/workspace").unwrap();
    assert_eq!(workspace.read(Path::new("deep/er/big.bin"), 6_000_000).unwrap(), big);
    assert!(workspace.read(Path::new("deep/er/big.bin"), 100).is_err());
    for refused in ["link", "up/etc/passwd", "pipe", "deep", "../etc/passwd"] {
        assert!(workspace.open_file(Path::new(refused)).is_err(), "{refused}");
    }
    let missing = workspace.open_file(Path::new("none")).unwrap_err();
    assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
    let listed = workspace.list(LIMITS).unwrap();
    let kinds: Vec<(String, Kind)> =
        listed.iter().map(|entry| (entry.path.to_string_lossy().into_owned(), entry.kind)).collect();
    for wanted in [("link", Kind::Link), ("pipe", Kind::Special), ("deep/er", Kind::Directory)] {
        assert!(kinds.contains(&(wanted.0.to_owned(), wanted.1)), "{kinds:?}");
    }
    let odd = listed.iter().find(|entry| entry.size == 1).unwrap();
    assert_eq!(workspace.read(&odd.path, 10).unwrap(), b"\xff", "names need not be text");
    assert!(workspace.list(WalkLimits { entries: 2, depth: 16 }).is_err());
    // Only the process that opened the room can access sealed directories.
    room.directory("/tests").unwrap().write(Path::new("verify.py"), b"judge", false).unwrap();
    room.seal().unwrap();
    assert_eq!(
        out(&mut room, "cat /tests/verify.py; rm -f /tests/verify.py 2>/dev/null || echo kept"),
        "judgekept"
    );
    // Frozen: nothing runs, but everything can be read.
    out(&mut room, "(while :; do date >> alive; done) & until [ -s alive ]; do :; done");
    room.freeze().unwrap();
    let alive = room.directory("/workspace").unwrap().read(Path::new("alive"), 10_000_000).unwrap();
    assert!(!alive.is_empty());
    assert_eq!(room.directory("/workspace").unwrap().read(Path::new("alive"), 10_000_000).unwrap(), alive);
    assert!(room.exec(&ExecSpec::new(["true"]), &mut |_, _| {}).is_err());
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn limits_hold_for_all_processes_together() {
    let mut room = open();
    let result = sh(&mut room, "python3 -c 'x = bytearray(400 << 20)'");
    assert_eq!(result.exit, Exit::Code(137), "{result:?}");
    assert!(room.out_of_memory());
    assert!(
        out(&mut room, "head -c 80M /dev/zero > full").contains("No space left"),
        "64 MiB are all there is"
    );
    out(&mut room, "rm full");
    let forks = out(&mut room, "for i in $(seq 100); do sleep 5 & done 2>&1; wait");
    assert!(forks.contains("fork") || forks.contains("Resource"), "{forks}");
    assert_eq!(out(&mut room, "echo still here"), "still here");
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn a_command_that_finds_no_place_is_no_fault_of_the_room() {
    let mut room = open();
    let greedy = "while (1) { my $p = fork; if (defined $p && $p == 0) { sleep 60; exit } }";
    sh(&mut room, &format!("setsid perl -e '{greedy}' > /dev/null 2>&1 & exit 0"));
    let begun = Instant::now();
    while sh(&mut room, "true").exit != Exit::Code(254) {
        assert!(begun.elapsed() < Duration::from_secs(20), "there is always a place");
    }
    room.freeze().unwrap();
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn broken_pipes_end_commands_as_everywhere() {
    let mut room = open();
    assert_eq!(out(&mut room, "bash -c 'set -o pipefail; yes | head -1 > /dev/null; echo $?'"), "141");
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn engines_are_told_the_limits_and_whose_container_it_is() {
    let (engine, podman) = (engine(), Podman::get());
    let directory = tempfile::tempdir().unwrap();
    let image = image(directory.path(), DOCKERFILE);
    let trial = format!("trial-{}", std::process::id());
    let purpose =
        Purpose { experiment: Some("told".to_owned()), trial: Some(trial.clone()), ..purpose("agent") };
    for network in [false, true] {
        let mut room =
            ContainerRoom::open(&engine, &image, &RoomSpec { network, ..spec() }, &purpose).unwrap();
        let containers = podman.containers(&format!("org.aec-bench.trial={trial}"));
        assert_eq!(containers.len(), 1);
        let told = podman.run(&["inspect", &containers[0]]).unwrap();
        let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
        let host = &told[0]["HostConfig"];
        assert_eq!(
            (&host["NanoCpus"], &host["Memory"], &host["PidsLimit"], &host["ReadonlyRootfs"]),
            (&1_000_000_000.into(), &((256_i64 + 32) << 20).into(), &64.into(), &true.into()),
            "{host:#}"
        );
        let labels = &told[0]["Config"]["Labels"];
        assert_eq!(
            (&labels["org.aec-bench.experiment"], &labels["org.aec-bench.role"]),
            (&"told".into(), &"agent".into())
        );
        // Without a network there is only the loopback interface.
        let devices = out(&mut room, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ' | sort");
        assert_eq!(devices == "lo", !network, "{devices}");
        drop(room);
        podman.until_none(&format!("org.aec-bench.trial={trial}"));
    }
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn a_service_of_the_opener_answers_inside_without_a_network() {
    let mut room = open();
    let listener = room.listen().unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 4];
            stream.read_exact(&mut asked).unwrap();
            stream.write_all(&[b"you said ".as_slice(), &asked].concat()).unwrap();
            stream.write_all(&vec![b'.'; 2_000_000]).unwrap();
        }
    });
    let script = format!(
        "import socket\ns = socket.create_connection(('127.0.0.1', {port}))\ns.sendall(b'ping')\ndata = b''\n\
         while piece := s.recv(65536): data += piece\nprint(data[:13].decode(), len(data))\n"
    );
    for _ in 0..2 {
        let mut command = ExecSpec::new(["python3", "-c", script.as_str()]);
        command.deadline = Duration::from_secs(30);
        let result = room.exec(&command, &mut |_, _| {}).unwrap();
        assert_eq!(result.stdout.text(), "you said ping 2000013\n", "{result:?}");
    }
    serving.join().unwrap();
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn a_resident_talks_through_its_socket_until_it_is_evicted() {
    let mut room = open();
    let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let script = "import os, socket\ns = socket.socket(fileno=0)\nprint('settled', flush=True)\n\
                  while (data := s.recv(100)):\n    s.sendall(data.upper())\n";
    room.settle(&ExecSpec::new(["python3", "-c", script]), &theirs.into(), &writer.into()).unwrap();
    for word in ["one", "two"] {
        ours.write_all(word.as_bytes()).unwrap();
        let mut answer = [0; 3];
        ours.read_exact(&mut answer).unwrap();
        assert_eq!(answer, word.to_uppercase().as_bytes());
        assert_eq!(out(&mut room, "echo beside"), "beside");
    }
    let mut said = [0; 8];
    reader.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"settled\n");
    room.evict().unwrap();
    assert_eq!(ours.read(&mut [0; 8]).unwrap_or(0), 0, "the line is closed");
    assert_eq!(out(&mut room, "cat /proc/[0-9]*/comm | grep -c python3"), "0");
}

#[test]
#[cfg_attr(not(podman), ignore = "needs Podman as root: apt-get install podman runc debootstrap")]
fn a_stop_from_another_thread_ends_a_command() {
    let mut room = open();
    let stopper = room.stopper().unwrap();
    let mut command = ExecSpec::new(["sh", "-c", "echo kept > /workspace/kept; echo begun; sleep 100"]);
    command.deadline = Duration::from_secs(100);
    let (to, from) = std::sync::mpsc::channel();
    let stopping = std::thread::spawn(move || {
        from.recv().unwrap();
        stopper.stop();
    });
    let result = room.exec(&command, &mut |_, _| to.send(()).unwrap()).unwrap();
    assert_eq!(result.exit, Exit::Signal(9));
    stopping.join().unwrap();
    assert_eq!(room.directory("/workspace").unwrap().read(Path::new("kept"), 10).unwrap(), b"kept\n");
}
