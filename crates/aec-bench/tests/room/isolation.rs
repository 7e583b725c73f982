//! What a command cannot see or do.

use aec_sandbox::{Exit, Level, Room, Sandbox as _};

use crate::room::{open, out, sh, spec};

#[test]
fn the_host_is_not_there() {
    let mut room = open();
    assert_eq!(room.level(), Level::Namespaces);
    assert_eq!(
        out(&mut room, "ls /"),
        "bin\ndev\netc\nhome\nlib\nlib64\nlogs\nproc\nrun\nsbin\ntests\ntmp\nusr\nworkspace"
    );
    assert_eq!(out(&mut room, "ls /home; ls -A /tmp /workspace"), "agent\n/tmp:\n\n/workspace:");
    let pids = out(&mut room, "ls /proc | grep '^[0-9]' | sort -n | head -3 | tr '\\n' ' '");
    assert!(pids.starts_with("1 "), "its own processes only: {pids}");
    assert!(out(&mut room, "ls /proc | grep -c '^[0-9]'").parse::<u32>().unwrap() < 8);
    assert_eq!(out(&mut room, "cat /proc/sys/kernel/hostname"), "room");
    assert_eq!(out(&mut room, "id -u; id -g; id -G"), "64999\n64999\n64999");
    assert_eq!(
        out(&mut room, "env | grep -v PWD | sort"),
        "PATH=/run/aec-bench/bin:/usr/local/bin:/usr/bin:/bin"
    );
    assert_eq!(
        out(
            &mut room,
            "grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp:' /proc/self/status | awk '{print $2}' | tr '\\n' ' '"
        ),
        "0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 1 2"
    );
    assert_eq!(out(&mut room, "cat /etc/shadow 2>&1; ls /root /work /sys 2>&1 | wc -l").lines().count(), 2);
}

#[test]
fn nothing_outside_the_writable_places_can_be_changed() {
    let mut room = open();
    for path in [
        "/x",
        "/usr/x",
        "/usr/bin/python3",
        "/etc/passwd",
        "/run/aec-bench/bin/python3",
        "/dev/x",
        "/proc/sys/kernel/hostname",
        "/home/x",
    ] {
        assert_ne!(sh(&mut room, &format!("echo x > {path}")).exit, Exit::Code(0), "{path}");
    }
    for path in ["/workspace/x", "/logs/x", "/tmp/x", "/home/agent/x", "/dev/shm/x", "/dev/null"] {
        assert_eq!(sh(&mut room, &format!("echo x > {path}")).exit, Exit::Code(0), "{path}");
    }
}

#[test]
fn privileges_cannot_be_had_back() {
    let mut room = open();
    for script in [
        "mount -t tmpfs none /tmp",
        "umount /tests",
        "mount -o remount,rw /usr",
        "unshare -r true",
        "unshare -m true",
        "chroot / true",
        "su -c true",
        "mknod /workspace/null c 1 3",
        "date -s 2001-01-01",
        "hostname other",
        "kill -9 1; kill -0 1 && test -d /proc/1/root/etc",
    ] {
        assert_ne!(sh(&mut room, script).exit, Exit::Code(0), "{script}");
    }
    assert_eq!(out(&mut room, "echo still here"), "still here");
}

#[test]
fn there_is_no_network() {
    let mut room = open();
    assert_eq!(out(&mut room, "cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '"), "lo");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = |room: &mut Room| sh(room, &format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'")).exit;
    assert_ne!(connect(&mut room), Exit::Code(0));
    let mut with_network = spec();
    with_network.network = true;
    let mut connected = Room::open(&with_network).unwrap();
    assert_eq!(connect(&mut connected), Exit::Code(0), "a room that may");
}

#[test]
fn a_doorway_leads_to_its_opener_and_nowhere_else() {
    let mut room = open();
    let mut other = open();
    let listener = room.listen().unwrap();
    let port = listener.local_addr().unwrap().port();
    let host = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let host_port = host.local_addr().unwrap().port();
    let greeting = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut stream, b"hello from outside\n").unwrap();
    });
    let read = |port: u16| format!("exec 3<>/dev/tcp/127.0.0.1/{port} && cat <&3");
    assert_eq!(out(&mut room, &format!("bash -c '{}'", read(port))), "hello from outside");
    greeting.join().unwrap();
    for (room, port, why) in [
        (&mut room, host_port, "the host's own loopback is another network"),
        (&mut other, port, "so is the one of another room"),
    ] {
        assert_ne!(sh(room, &format!("bash -c '{}'", read(port))).exit, Exit::Code(0), "{why}");
    }
    assert_eq!(out(&mut room, "cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '"), "lo");
}

#[test]
fn odd_system_calls_are_refused() {
    let mut room = open();
    let program = r"
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    ctypes.set_errno(0)
    return 'ok' if libc.syscall(*arguments) >= 0 else os.strerror(ctypes.get_errno())
print('ptrace', call(101, 0, 0, 0, 0))
print('keyctl', call(250, 0, -3, 1))
print('bpf', call(321, 0, 0, 0))
print('io_uring', call(425, 1, 0))
print('userfaultfd', call(323, 0))
print('shmget', call(29, 0, 4096, 0o1600))
print('clone_newuser', call(56, 0x10000000 | 17, 0, 0, 0, 0))
print('clone3', call(435, 0, 0))
for family in ('AF_NETLINK', 'AF_VSOCK', 'AF_PACKET', 'AF_ALG'):
    try:
        socket.socket(getattr(socket, family), socket.SOCK_RAW if family in ('AF_NETLINK', 'AF_PACKET') else socket.SOCK_STREAM)
        print(family, 'ok')
    except OSError as error:
        print(family, error.strerror)
print('AF_UNIX', bool(socket.socket(socket.AF_UNIX)))
";
    let command = format!("cat > /tmp/p.py <<'END'\n{program}\nEND\n/usr/bin/python3 -I /tmp/p.py");
    let expected = "ptrace Operation not permitted
keyctl Operation not permitted
bpf Operation not permitted
io_uring Operation not permitted
userfaultfd Operation not permitted
shmget Operation not permitted
clone_newuser Operation not permitted
clone3 Function not implemented
AF_NETLINK Operation not permitted
AF_VSOCK Operation not permitted
AF_PACKET Operation not permitted
AF_ALG Operation not permitted
AF_UNIX True";
    if cfg!(target_arch = "x86_64") {
        assert_eq!(out(&mut room, &command), expected);
    }
}

#[test]
fn a_killed_opener_takes_the_room_with_it() {
    // A process that opens a room is killed: the room's processes must not outlive it.
    let mut room = open();
    let marker = format!("{}", 100_000 + std::process::id());
    sh(&mut room, &format!("setsid sleep {marker} &"));
    let alive = || {
        let output =
            std::process::Command::new("pgrep").args(["-f", &format!("sleep {marker}")]).output().unwrap();
        !output.stdout.is_empty()
    };
    assert!(alive());
    drop(room);
    assert!(!alive());
}
