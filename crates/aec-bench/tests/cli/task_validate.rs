//! `task validate`: every finding can be provoked, has a place and a fix, and is documented.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;

use aec_xtest::tree::{TASK_TOML, write_task};
use aec_xtest::{Run, TestEnv};

use crate::cli::empty_project;

type Provoke = fn(&TestEnv);

const TASK: &str = "tasks/civil/x";

fn toml(env: &TestEnv, text: &str) {
    env.write(format!("{TASK}/task.toml"), text);
}

fn remove(env: &TestEnv, path: &str) {
    let path = env.path(TASK).join(path);
    let removed = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    removed.unwrap();
}

/// Every finding, and a change that provokes it.
const FINDINGS: &[(&str, Provoke)] = &[
    ("T001", |env| {
        remove(env, "instruction.md");
        env.write(format!("{TASK}/instruction.md"), b"\xff");
    }),
    ("T002", |env| toml(env, "[metadata\n")),
    ("T003", |env| toml(env, "[metadata]\ndificulty = \"easy\"\n")),
    ("T004", |env| toml(env, "[metadata]\ntags = 5\n")),
    ("T005", |env| toml(env, "[metadata]\ndifficulty = \"extreme\"\n")),
    ("T006", |env| toml(env, "[[environment.tools]]\nname = \"a\"\n")),
    ("T007", |env| toml(env, "[environment]\nallow_internet = true\nnetwork_mode = \"none\"\n")),
    ("T010", |env| remove(env, "instruction.md")),
    ("T011", |env| env.write(format!("{TASK}/instruction.md"), " \n")),
    ("T012", |env| env.write(format!("{TASK}/instruction.md"), "Write /workspace/a.\n\nSpan {{ span }} m\n")),
    ("T013", |env| env.write(format!("{TASK}/instruction.md"), "Do it.\n")),
    ("T014", |env| env.write(format!("{TASK}/instruction.md"), "Write /workspace/a \x1b[31m\n")),
    ("T020", |env| remove(env, "tests")),
    ("T021", |env| remove(env, "tests/test.sh")),
    ("T022", |env| env.write(format!("{TASK}/tests/test.sh"), "python3 verify.py\n")),
    ("T023", |env| env.write(format!("{TASK}/tests/test.sh"), "#!/bin/sh\r\ntrue\r\n")),
    ("T030", |env| toml(env, "[metadata]\nvisibility = \"public\"\ntags = [\"a\"]\n")),
    ("T031", |env| toml(env, "[metadata]\ndifficulty = \"easy\"\ntags = [\"a\"]\n")),
    ("T032", |env| toml(env, "[metadata]\ndifficulty = \"easy\"\nvisibility = \"public\"\n")),
    ("T035", |env| toml(env, &format!("{TASK_TOML}domain = \"ground\"\n"))),
    ("T040", |env| toml(env, &format!("{TASK_TOML}[tools]\nscripts = [\"none.py\"]\n"))),
    ("T041", |env| {
        toml(env, &format!("{TASK_TOML}[[environment.tools]]\nname = \"a\"\nsource = \"../y/a.py\"\n"));
    }),
    ("T042", |env| {
        let tool = "[[environment.tools]]\nname = \"a\"\nsource = \"tests/verify.py\"\n";
        toml(env, &format!("{TASK_TOML}{tool}{tool}"));
    }),
    ("T043", |env| {
        let tool = "[[environment.tools]]\nname = \"a\"\nsource = \"tests/verify.py\"\n";
        toml(env, &format!("{TASK_TOML}{tool}[tools]\nscripts = [\"b.py\"]\n"));
    }),
    ("T044", |env| toml(env, &format!("{TASK_TOML}[environment]\nextensions = [\"orc\"]\n"))),
    ("T050", |env| remove(env, "environment")),
    ("T060", |env| symlink("/etc/passwd", env.path(TASK).join("link")).unwrap()),
    ("T061", |env| env.write(format!("{TASK}/inner/task.toml"), "")),
    ("T062", |env| drop(std::os::unix::net::UnixListener::bind(env.path(TASK).join("s")).unwrap())),
    ("T063", |env| write_task(&env.path("tasks/civil/b\x07d"), TASK_TOML)),
    ("T064", |env| write_task(&env.path("tasks/alone"), TASK_TOML)),
    ("T065", |env| {
        for index in 0..10_001 {
            std::fs::write(env.path(TASK).join(format!("solution/{index}")), "").unwrap();
        }
    }),
    ("T066", |env| write_task(&env.path("tasks/civil.x"), TASK_TOML)),
    ("T070", |env| remove(env, "solution")),
    ("T071", |env| remove(env, "tests/fixtures")),
    ("T072", |env| toml(env, &format!("{TASK_TOML}[remediation]\nenabled = true\n"))),
];

const NOTES: [&str; 5] = ["T031", "T032", "T050", "T070", "T071"];

fn validate(provoke: Provoke) -> Run {
    let env = empty_project();
    write_task(&env.path(TASK), TASK_TOML);
    provoke(&env);
    env.run(["--json", "task", "validate", "--all"])
}

#[test]
fn every_finding_is_found_with_place_and_fix() {
    assert_eq!(validate(|_| ()).code, Some(0), "the base task has nothing wrong with it");
    for (id, provoke) in FINDINGS {
        let run = validate(*provoke);
        let envelope = run.envelope();
        let note = NOTES.contains(id);
        let list = if note { &envelope["data"]["notes"] } else { &envelope["errors"] };
        let found = list.as_array().unwrap().iter().find(|problem| problem["id"] == *id);
        let found = found.unwrap_or_else(|| panic!("{id} was not found: {run:?}"));
        assert!(found["fix"].is_string() && found["file"].is_string(), "{id}: {found}");
        if !["T063", "T066"].contains(id) {
            assert!(found["about"].is_string(), "{id}: {found}");
        }
        assert_eq!(run.code, Some(i32::from(!note)), "{id}");
        assert_eq!(envelope["status"], if note { "success" } else { "partial" }, "{id}");
    }
}

#[test]
fn the_documentation_lists_exactly_these_findings() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tasks.md")).unwrap();
    let documented: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("| `T")?.get(..3)).collect();
    let provoked: BTreeSet<&str> = FINDINGS.iter().map(|(id, _)| &id[1..]).collect();
    assert_eq!(documented, provoked);
}

#[test]
fn findings_as_people_see_them() {
    let env = empty_project();
    write_task(&env.path("tasks/civil/good"), TASK_TOML);
    write_task(
        &env.path("tasks/civil/x"),
        "[metadata]\ndifficulty = \"esy\"\ncolour = 1\n\n[[environment.tools]]\nname = \"t\"\nsource = \"t.py\"\n",
    );
    env.write("tasks/civil/x/instruction.md", "Span {{ span }} m.\n");
    insta::assert_snapshot!("task_validate", env.run(["task", "validate", "--all"]).snapshot());
    insta::assert_snapshot!(
        "task_validate_json",
        env.run(["--json", "task", "validate", "civil/x"]).snapshot()
    );
}

#[test]
fn tasks_are_named_by_id_directory_or_path() {
    let env = empty_project();
    for id in ["civil/a", "civil/b", "ground/c"] {
        write_task(&env.path("tasks").join(id), TASK_TOML);
    }
    write_task(&env.path("elsewhere/d"), TASK_TOML);
    let checked = |arguments: &[&str]| {
        let data = env.run(["--json", "task", "validate"].iter().chain(arguments)).data();
        let tasks = data["tasks"].as_array().unwrap().clone();
        tasks.iter().map(|task| task["task_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(checked(&["civil/a"]), ["civil/a"]);
    assert_eq!(checked(&["civil.a", "civil"]), ["civil/a", "civil/b"]);
    assert_eq!(checked(&["tasks/ground"]), ["ground/c"], "a path that is not an id");
    assert_eq!(checked(&["./tasks/ground/c"]), ["ground/c"]);
    assert_eq!(checked(&["elsewhere/d"]), ["elsewhere/d"]);
    assert_eq!(checked(&["--all"]).len(), 3);
    assert_eq!(env.run(["task", "validate", "civil/none"]).code, Some(3));
    assert_eq!(env.run(["task", "validate", "artefacts"]).code, Some(3));
    assert_eq!(env.run(["task", "validate", "--all", "civil/a"]).code, Some(2));
}
