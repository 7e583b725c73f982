//! Every reader against every kind of broken file: the error names the file, and the rest still works.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use aec_xtest::TestEnv;
use aec_xtest::tree::{TASK_TOML, write_task};

use crate::cli::empty_project;

/// A file that some command reads.
struct Reader {
    file: &'static str,
    command: &'static [&'static str],
    /// The notation of the file.
    syntax: Syntax,
    /// Whether an empty file is valid.
    may_be_empty: bool,
}

#[derive(PartialEq)]
enum Syntax {
    Toml,
    Yaml,
    Json,
    Lines,
    Markdown,
}

const READERS: [Reader; 13] = [
    Reader {
        file: "aec-bench.toml",
        command: &["config", "check"],
        syntax: Syntax::Toml,
        may_be_empty: true,
    },
    Reader { file: "suite.toml", command: &["config", "check"], syntax: Syntax::Toml, may_be_empty: false },
    Reader {
        file: "experiment.yaml",
        command: &["config", "check"],
        syntax: Syntax::Yaml,
        may_be_empty: false,
    },
    Reader { file: ".env", command: &["config", "check"], syntax: Syntax::Lines, may_be_empty: true },
    Reader {
        file: "../home/.config/aec-bench/config.json",
        command: &["config", "check"],
        syntax: Syntax::Json,
        may_be_empty: false,
    },
    Reader {
        file: "tasks/civil/x/task.toml",
        command: &["task", "list"],
        syntax: Syntax::Toml,
        may_be_empty: true,
    },
    Reader {
        file: "tasks/civil/x/instruction.md",
        command: &["task", "validate", "--all"],
        syntax: Syntax::Markdown,
        may_be_empty: false,
    },
    Reader {
        file: "templates/x/params.toml",
        command: &["generate", "validate-template", "templates/x"],
        syntax: Syntax::Toml,
        may_be_empty: false,
    },
    Reader {
        file: "generation-manifest.json",
        command: &["generate", "replay", "generation-manifest.json"],
        syntax: Syntax::Json,
        may_be_empty: false,
    },
    Reader {
        file: "seeds/x.json",
        command: &["task", "new", "--from-seed", "seeds/x.json"],
        syntax: Syntax::Json,
        may_be_empty: false,
    },
    Reader {
        file: "artefacts/datasets/set/1.0.0/manifest.json",
        command: &["task", "list", "--dataset", "set"],
        syntax: Syntax::Json,
        may_be_empty: false,
    },
    Reader {
        file: "artefacts/datasets/set/1.0.0/manifest.json",
        command: &["dataset", "verify", "--all"],
        syntax: Syntax::Json,
        may_be_empty: false,
    },
    Reader {
        file: "tasks/suite-output.json",
        command: &[
            "dataset",
            "create",
            "--name",
            "set",
            "--version",
            "1.0.0",
            "--from-suite-output",
            "tasks/suite-output.json",
        ],
        syntax: Syntax::Json,
        may_be_empty: false,
    },
];

fn yaml_bomb() -> String {
    let mut text = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
    for level in 1..9 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(",");
        text += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    text
}

/// Broken contents of a file, for each notation.
fn bad_contents(reader: &Reader) -> Vec<(&'static str, Vec<u8>)> {
    let mut contents: Vec<(&'static str, Vec<u8>)> = vec![
        ("invalid UTF-8", b"a = \xff\xfe".to_vec()),
        ("binary", (0..=255_u8).cycle().take(4096).collect()),
    ];
    if !reader.may_be_empty {
        contents.push(("empty", Vec::new()));
    }
    let deep = "[".repeat(100_000);
    match reader.syntax {
        Syntax::Toml => contents.extend([
            ("truncated", b"[paths\ntas".to_vec()),
            ("duplicate keys", b"a = 1\na = 2\n".to_vec()),
            ("unknown key", b"nonsense = 1\n".to_vec()),
            ("deep nesting", format!("a = {deep}").into_bytes()),
            ("NUL", b"a = \"\0\"".to_vec()),
            ("wrong kind of file", b"{\"a\": 1}".to_vec()),
        ]),
        Syntax::Yaml => contents.extend([
            ("truncated", b"agents: [{name: a".to_vec()),
            ("duplicate keys", b"name: a\nname: b\n".to_vec()),
            ("unknown key", b"nonsense: 1\n".to_vec()),
            ("deep nesting", deep.into_bytes()),
            ("alias bomb", yaml_bomb().into_bytes()),
            ("tag", b"agents: !!python/object:os.system [x]\n".to_vec()),
            ("a list", b"- a\n".to_vec()),
            ("NUL", b"name: \"\0\"\n".to_vec()),
            ("control characters", b"name: a\x1b[2J\n".to_vec()),
            ("two documents", b"name: a\n---\nname: b\n".to_vec()),
        ]),
        Syntax::Json => contents.extend([
            ("truncated", b"{\"tasks_root\": \"x".to_vec()),
            ("duplicate keys", b"{\"tasks\": [], \"tasks\": []}".to_vec()),
            ("wrong type", b"{\"tasks_root\": [1], \"tasks\": 5}".to_vec()),
            ("deep nesting", deep.into_bytes()),
            ("a list", b"[]".to_vec()),
            ("NUL", b"{\"a\0\": 1}".to_vec()),
        ]),
        Syntax::Lines => contents.push(("not a line", b"nonsense\n".to_vec())),
        Syntax::Markdown => contents.push(("control characters", b"/workspace/a \x1b[2J".to_vec())),
    }
    contents
}

/// A valid project with one task, beside the file under test.
fn project() -> TestEnv {
    let env = empty_project();
    write_task(&env.path("tasks/civil/x"), TASK_TOML);
    write_task(&env.path("tasks/civil/healthy"), TASK_TOML);
    env
}

/// The command must end with an error that names the file, in both modes, without a panic and without control
/// characters for the terminal.
fn assert_clear_error(env: &TestEnv, reader: &Reader, case: &str) {
    let name = Path::new(reader.file).file_name().unwrap().to_str().unwrap();
    let run = env.run(reader.command);
    let said = format!("{}{}", run.stdout, run.stderr);
    assert!(matches!(run.code, Some(1 | 3)), "{} {case}: {run:?}", reader.file);
    assert!(said.contains(name), "{} {case} names the file: {run:?}", reader.file);
    assert!(said.contains("fix: "), "{} {case} says what to do: {run:?}", reader.file);
    assert!(!said.contains('\x1b') && !said.contains('\0'), "{} {case}: {run:?}", reader.file);
    let json = env.run(["--json"].iter().chain(reader.command));
    assert_eq!(json.code, run.code);
    assert!(!json.envelope()["errors"].as_array().unwrap().is_empty());
    if reader.file.starts_with("tasks/") && reader.command[1] == "list" {
        let tasks = json.envelope()["data"]["tasks"].clone();
        assert_eq!(tasks.as_array().unwrap().len(), 1, "{case}: the healthy task is still listed");
    }
}

#[test]
fn every_reader_names_broken_content() {
    for reader in &READERS {
        for (case, content) in bad_contents(reader) {
            let env = project();
            env.write(reader.file, content);
            assert_clear_error(&env, reader, case);
        }
    }
}

#[test]
fn every_reader_names_what_is_not_a_file() {
    for reader in &READERS {
        let env = project();
        let path = env.path(reader.file);
        let clear = || {
            let removed =
                if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            removed.unwrap();
        };
        env.write(reader.file, "");
        clear();
        std::fs::create_dir(&path).unwrap();
        assert_clear_error(&env, reader, "a directory");
        clear();
        symlink(&path, &path).unwrap();
        assert_clear_error(&env, reader, "a link to itself");
        clear();
        std::fs::File::create(&path).unwrap().set_len(100 * 1024 * 1024).unwrap();
        assert_clear_error(&env, reader, "100 MB");
        clear();
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &path, fifo, 0o600.into(), 0).unwrap();
        assert_clear_error(&env, reader, "a named pipe");
    }
}

#[test]
fn unreadable_files_are_named() {
    if !rustix::process::geteuid().is_root() {
        // An ordinary user is refused without further preparation.
        return run_unreadable(|_| ());
    }
    run_unreadable(TestEnv::become_ordinary_user);
}

fn run_unreadable(arrange: fn(&mut TestEnv)) {
    for reader in &READERS {
        let mut env = project();
        env.write(reader.file, "");
        std::fs::set_permissions(env.path(reader.file), PermissionsExt::from_mode(0o000)).unwrap();
        // The project's `.env` is private to its owner, who is another user here.
        if reader.file != ".env" {
            std::fs::remove_file(env.path(".env")).unwrap();
        }
        arrange(&mut env);
        assert_clear_error(&env, reader, "unreadable");
    }
    let mut env = project();
    std::fs::remove_file(env.path(".env")).unwrap();
    std::fs::set_permissions(env.path("tasks/civil/x"), PermissionsExt::from_mode(0o000)).unwrap();
    arrange(&mut env);
    let run = env.run(["--json", "task", "list"]);
    assert_eq!(run.code, Some(1));
    assert_eq!(run.errors()[0].0, "T001");
    assert_eq!(run.envelope()["data"]["total"], 1, "the healthy task is still listed");
}

#[test]
fn links_never_lead_out_of_the_tasks_root() {
    let env = project();
    write_task(&env.path("outside/secret"), TASK_TOML);
    symlink(env.path("outside"), env.path("tasks/linked")).unwrap();
    symlink(env.path("tasks"), env.path("tasks/loop")).unwrap();
    symlink(env.path("outside/secret/task.toml"), env.path("outside/link.toml")).unwrap();
    std::fs::remove_file(env.path("tasks/civil/x/task.toml")).unwrap();
    symlink(env.path("outside/secret/task.toml"), env.path("tasks/civil/x/task.toml")).unwrap();
    let run = env.run(["--json", "task", "list"]);
    assert_eq!(run.code, Some(1));
    let ids: Vec<String> = run.errors().into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["T060", "T060", "T001"], "{run:?}");
    assert_eq!(run.envelope()["data"]["tasks"][0]["task_id"], "civil/healthy");
    assert_eq!(run.envelope()["data"]["total"], 1);
    let show = env.run(["task", "show", "linked/secret"]);
    assert_eq!(show.code, Some(3), "not by naming it either: {show:?}");
}

#[test]
fn directory_names_that_cannot_be_ids_are_reported_and_harmless() {
    let env = project();
    for name in ["b d", "b\x1b[31m", "ü", "-rf", "a..b"] {
        write_task(&env.path("tasks/civil").join(name), TASK_TOML);
    }
    let not_text = std::os::unix::ffi::OsStrExt::from_bytes(b"bad\xff");
    write_task(&env.path("tasks/civil").join::<&std::ffi::OsStr>(not_text), TASK_TOML);
    let run = env.run(["task", "list"]);
    assert_eq!(run.code, Some(1));
    assert_eq!(run.stderr.matches("[T063]").count(), 6, "{run:?}");
    assert!(!run.stderr.contains('\x1b'));
    assert!(run.stdout.contains("civil/healthy"));
}

#[test]
fn a_directory_can_vanish_or_not_exist() {
    let env = project();
    std::fs::remove_dir_all(env.path("tasks")).unwrap();
    assert_eq!(env.run(["--json", "task", "list"]).data()["total"], 0);
    env.write("tasks", "a file");
    let run = env.run(["task", "list"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("cannot look into this directory"), "{run:?}");
    let gone = env.path("gone");
    std::fs::create_dir(&gone).unwrap();
    let script = format!("rmdir '{}'; exec '{}' task list", gone.display(), env!("CARGO_BIN_EXE_aec-bench"));
    let output =
        std::process::Command::new("bash").args(["-c", &script]).current_dir(&gone).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&output.stderr).contains("the current directory cannot be used"));
}
