//! Without a room: the same interface on the host itself, which isolates nothing and says so.

use std::time::Duration;

use aec_sandbox::{BareRoom, ExecSpec, Exit, Held, Level, RoomSpec, Sandbox as _, SandboxError};

use crate::room::spec;

/// Paths in a temporary directory, so that the test needs no path of the host.
fn bare_spec(directory: &std::path::Path) -> RoomSpec {
    let place = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    RoomSpec { writable: vec![place("workspace")], sealed: vec![place("tests")], ..spec() }
}

#[test]
fn commands_run_on_the_host_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let spec = bare_spec(dir.path());
    let workspace = spec.writable[0].clone();
    let mut bare = BareRoom::open(&spec).unwrap();
    assert_eq!((bare.level(), bare.held()), (Level::None, Held::NOTHING));
    bare.directory(&workspace).unwrap().write(std::path::Path::new("in"), b"given", false).unwrap();
    let mut command = ExecSpec::new(["sh", "-c", "cat in; cat; echo err >&2; exit 4"]);
    command.cwd.clone_from(&workspace);
    command.stdin = b" and piped".to_vec();
    let result = bare.exec(&command, &mut |_, _| {}).unwrap();
    assert_eq!(result.exit, Exit::Code(4));
    assert_eq!((result.stdout.text().as_str(), result.stderr.text().as_str()), ("given and piped", "err\n"));
    command.argv = ["sh", "-c", "sleep 1000 & sleep 1000"].map(str::to_owned).to_vec();
    command.deadline = Duration::from_millis(200);
    assert_eq!(bare.exec(&command, &mut |_, _| {}).unwrap().exit, Exit::Deadline);
    command.argv = vec!["no-such-program".to_owned()];
    let missing = bare.exec(&command, &mut |_, _| {}).unwrap();
    assert_eq!(missing.exit, Exit::Code(127));
    assert!(missing.stderr.text().contains("cannot run the command"));
    drop(bare);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn places_that_are_taken_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let spec = bare_spec(dir.path());
    std::fs::create_dir(&spec.writable[0]).unwrap();
    let refused = BareRoom::open(&spec).unwrap_err();
    assert!(matches!(refused, SandboxError::Refused { .. }), "{refused}");
    std::fs::remove_dir(&spec.writable[0]).unwrap();
    std::os::unix::fs::symlink("/nowhere-at-all", &spec.writable[0]).unwrap();
    drop(BareRoom::open(&spec).unwrap());
}
