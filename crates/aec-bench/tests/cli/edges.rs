//! Odd places: file systems of containers, and names that are not text.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

use crate::cli::world;

/// Before, replacing a task that is in a lower layer failed with EXDEV.
#[test]
#[cfg_attr(not(root), ignore = "needs root, to mount an overlay file system")]
fn tasks_are_generated_onto_an_overlay_file_system() {
    let env = world();
    env.init();
    let line = |seed: &str| format!("generate task voltage-drop --instances 1 --seed {seed} --replace");
    let first = env.run(line("1").split(' '));
    assert_eq!(first.code, Some(0), "{first:?}");
    // The project becomes the lower layer.
    let script = format!(
        "mount -t tmpfs none /mnt && mkdir /mnt/upper /mnt/work && \
         mount -t overlay overlay -o lowerdir={0},upperdir=/mnt/upper,workdir=/mnt/work {0} && cd {0} && {1} {2} > /dev/null && \
         find tasks -name instruction.md | sort | xargs cat",
        env.dir().display(),
        program(),
        line("2"),
    );
    let output =
        Command::new("unshare").args(["-m", "sh", "-c", &script]).env("HOME", env.home()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let second = env.run(line("2").split(' '));
    assert_eq!(second.code, Some(0), "{second:?}");
    let made: String = aec_xtest::files::files_below(&env.path("tasks"))
        .into_iter()
        .filter(|(path, _)| path.ends_with("instruction.md"))
        .map(|(_, content)| String::from_utf8(content).unwrap())
        .collect();
    assert_eq!(String::from_utf8_lossy(&output.stdout), made, "the same as on an ordinary file system");
}

fn program() -> &'static str {
    env!("CARGO_BIN_EXE_aec-bench")
}

/// Before, every command that shows a path exited with 70, as if that were a bug, or printed nothing at all.
#[test]
fn a_directory_whose_name_is_no_text_is_refused_with_json_and_works_without() {
    let env = world();
    let odd = env.dir().join(OsStr::from_bytes(b"odd-\xff"));
    std::fs::create_dir(&odd).unwrap();
    for line in ["init --no-example", "config view", "task list", "doctor", "ledger list", "dataset list"] {
        let run = env.run_in(&odd, line.split(' ').chain(["--json"]));
        assert_eq!(run.code, Some(4), "{line}: {run:?}");
        let errors = run.errors();
        assert!(errors[0].1.contains("not UTF-8"), "{line}: {run:?}");
    }
    assert!(std::fs::read_dir(&odd).unwrap().next().is_none(), "nothing was done");
    let init = env.run_in(&odd, ["init", "--no-example"]);
    assert_eq!(init.code, Some(0), "{init:?}");
    assert_eq!(env.run_in(&odd, ["task", "list"]).code, Some(0));
    // A file of such a name in a project of a good one.
    env.init();
    std::fs::create_dir_all(env.dir().join("tasks").join(OsStr::from_bytes(b"bad-\xfe/x"))).unwrap();
    std::fs::write(env.dir().join("tasks").join(OsStr::from_bytes(b"bad-\xfe/x/task.toml")), "").unwrap();
    for line in ["task list --json", "task validate --json", "config check --json"] {
        let run = env.run(line.split(' '));
        assert!(matches!(run.code, Some(0..=4)), "{line}: {run:?}");
        assert!(!run.stdout.trim().is_empty(), "{line}");
        run.envelope();
    }
}
