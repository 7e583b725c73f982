//! What of the host a room shows. `run/sight.rs` has the projects below `/usr`.

use std::path::Path;

use aec_sandbox::{ExecSpec, Exit, Room, RoomSpec, Sandbox as _, keep_private, python};

use crate::room::{out, sh, spec};

fn with_python() -> RoomSpec {
    let mut spec = spec();
    spec.offer_python(&python::find(std::env::var_os("PATH").as_deref()).unwrap());
    spec
}

#[test]
fn programs_are_there_with_their_data_and_nothing_else() {
    let mut room = Room::open(&with_python()).unwrap();
    assert_eq!(
        out(&mut room, "ls /usr | grep -vE '^(bin|include|lib|lib32|lib64|libexec|libx32|sbin|share)$'"),
        "",
        "no /usr/local, no /usr/src"
    );
    assert_eq!(out(&mut room, "ls -d /opt /srv /mnt /var /work 2>/dev/null; ls /home"), "agent");
    for needed in [
        "perl -MGetopt::Long -MJSON::PP -e 'print 1'",
        "test -e /usr/share/zoneinfo/Europe/Berlin",
        "TZ=Australia/Sydney date | grep -E 'AE[SD]T'",
        "awk 'BEGIN { print sqrt(2) }'",
        "python3 -I -c 'import ssl, sqlite3, zlib, bz2, lzma, ctypes, decimal, json, zoneinfo'",
        "python3 -c 'import venv, unittest, email, xml.etree.ElementTree'",
        "echo 'int main(void) { return 0; }' > /tmp/a.c; ! command -v gcc || gcc -o /tmp/a /tmp/a.c",
    ] {
        let done = sh(&mut room, needed);
        assert_eq!(done.exit, Exit::Code(0), "{needed}: {}", done.stderr.text());
    }
}

/// An exported package, installed for the interpreter that rooms show, has the answers of its tasks.
#[test]
fn packages_that_are_installed_for_an_interpreter_are_not_seen() {
    let mut room = Room::open(&with_python()).unwrap();
    let places =
        "import sysconfig, sys; print(*{sysconfig.get_path(n) for n in ('purelib', 'platlib')}, *sys.path)";
    let seen = format!(
        "for place in $(python3 -c \"{places}\"); do ls -d $place/*-packages/* $place/pip 2>/dev/null; done"
    );
    assert_eq!(out(&mut room, &seen), "");
    assert_eq!(
        out(&mut room, "ls -A /usr/lib/python3/dist-packages 2>/dev/null; ls -d /usr/local 2>/dev/null"),
        ""
    );
    assert_eq!(
        out(&mut room, "python3 -c 'import pip' 2>&1 | tail -1"),
        "ModuleNotFoundError: No module named 'pip'"
    );
    // Without the cover they are: this interpreter has at least one package.
    let python = python::find(std::env::var_os("PATH").as_deref()).unwrap();
    let on_host = std::process::Command::new(&python.path).args(["-c", "import pip"]).status().unwrap();
    let debian =
        Path::new("/usr/lib/python3/dist-packages").read_dir().is_ok_and(|mut found| found.next().is_some());
    assert!(on_host.success() || debian, "there is something to hide");
}

/// The same directory under its own name, through a link, and as what an interpreter brings.
#[test]
fn private_places_are_covered_under_every_name() {
    // Rooms have their own /tmp, and an ordinary user cannot write into the target directory.
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let real = directory.path().canonicalize().unwrap();
    for (name, text) in [("shown/project/tasks/golden.json", "answer"), ("shown/tool.sh", "tool")] {
        std::fs::create_dir_all(real.join(name).parent().unwrap()).unwrap();
        std::fs::write(real.join(name), text).unwrap();
    }
    std::os::unix::fs::symlink(real.join("shown/project"), real.join("alias")).unwrap();
    std::os::unix::fs::symlink("project", real.join("shown/alias")).unwrap();
    let mut spec = spec();
    spec.show.push(real.join("shown"));
    let look = |room: &mut Room| {
        out(
            room,
            &format!(
                "cd {0}; cat tool.sh; cat project/tasks/* alias/tasks/*; ls -A project",
                real.join("shown").display()
            ),
        )
    };
    let before = look(&mut Room::open(&spec).unwrap());
    assert_eq!(before, "toolansweranswertasks", "nothing has been declared private");
    // Named through a link.
    keep_private([real.join("alias")]);
    let mut room = Room::open(&spec).unwrap();
    let after = look(&mut room);
    assert!(after.starts_with("tool") && !after.contains("answer") && !after.contains("\ntasks"), "{after}");
    // An interpreter below the project is shown, and nothing around it.
    spec.show.push(real.join("shown/project/env/lib"));
    std::fs::create_dir_all(real.join("shown/project/env/lib")).unwrap();
    std::fs::write(real.join("shown/project/env/lib/os.py"), "library").unwrap();
    let mut room = Room::open(&spec).unwrap();
    assert_eq!(
        out(&mut room, &format!("cat {0}/env/lib/os.py; ls -A {0}", real.join("shown/project").display())),
        "libraryenv"
    );
    assert_ne!(
        sh(&mut room, &format!("echo x > {}/env/lib/os.py", real.join("shown/project").display())).exit,
        Exit::Code(0)
    );
    assert_ne!(
        sh(&mut room, &format!("echo x > {}/x", real.join("shown/project").display())).exit,
        Exit::Code(0)
    );
}

/// This program has the library and the generator. What rooms get has neither.
#[test]
fn the_program_in_rooms_has_no_templates_and_no_generator() {
    let mut spec = spec();
    spec.offer_ourselves().unwrap();
    let mut room = Room::open(&spec).unwrap();
    assert!(out(&mut room, "aec-bench --version").starts_with("aec-bench "));
    let made = sh(
        &mut room,
        "cd /tmp && aec-bench init --no-example x; aec-bench generate task voltage-drop; ls -A /tmp",
    );
    assert_eq!(made.stdout.text(), "", "{}", made.stderr.text());
    assert!(made.stderr.text().contains("is not known here"), "{}", made.stderr.text());
    // Process 1 is the whole program, and nobody in the room can read it.
    let read = sh(&mut room, "head -c 4 /proc/1/exe; cp /proc/1/exe /tmp/whole; cat /proc/1/map_files/*");
    assert_eq!(
        (read.exit == Exit::Code(0), read.stdout.text().as_str()),
        (false, ""),
        "{}",
        read.stderr.text()
    );
    let (whole, small) = (aec_sandbox::program().unwrap(), aec_sandbox::agent_program().unwrap());
    let has = |program: &Path, mark: &str| {
        let found = std::process::Command::new("grep").args(["-aqF", mark]).arg(program).status().unwrap();
        found.success()
    };
    for mark in ["Generate instances of one template", "params.toml"] {
        assert!(has(&whole, mark) && !has(&small, mark), "{mark}");
    }
    let mut command = ExecSpec::new(["aec-bench", "agent-entry"]);
    command.cwd = "/workspace".into();
    let result = room.exec(&command, &mut |_, _| {}).unwrap();
    assert_eq!(result.exit, Exit::Code(2), "the loop is there");
    assert!(result.stderr.text().contains("AGENT_MODEL is not set"), "{}", result.stderr.text());
}
