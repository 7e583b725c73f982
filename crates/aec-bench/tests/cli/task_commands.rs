//! `task list`, `task show`, `task new` and `search`.

use aec_xtest::TestEnv;
use aec_xtest::tree::{TASK_TOML, write_task};

use crate::cli::{empty_project, world};

fn catalogue() -> TestEnv {
    let env = empty_project();
    let task = |id: &str, text: &str| write_task(&env.path("tasks").join(id), text);
    task(
        "electrical/voltage-drop/basic",
        "[metadata]\ndifficulty = \"easy\"\nvisibility = \"public\"\ntags = [\"cable\", \"AS-NZS-3008\"]\ncategory = \"reasoning\"\n",
    );
    task(
        "electrical/voltage-drop/long",
        "[metadata]\ndifficulty = \"hard\"\nvisibility = \"holdout\"\ntags = [\"cable\"]\n",
    );
    task(
        "civil/manning",
        "[metadata]\ndifficulty = \"medium\"\nvisibility = \"public\"\ntags = [\"drainage\"]\nstandard = \"AS 3500\"\n",
    );
    task("generated/suite/x-0", "[metadata]\ndomain = \"ground\"\ndifficulty = \"easy\"\n");
    task("civil/old", "[metadata]\nlifecycle = \"retired\"\n");
    task("civil/draft", "[metadata]\nlifecycle = \"proposed\"\n");
    env
}

fn list(env: &TestEnv, line: &str) -> Vec<String> {
    let data = env.run(["--json", "task", "list"].into_iter().chain(line.split_whitespace())).data();
    let tasks = data["tasks"].as_array().unwrap();
    tasks.iter().map(|task| task["task_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn lists_are_tables_with_remarks() {
    let env = catalogue();
    insta::assert_snapshot!("task_list", env.run(["task", "list"]).snapshot());
    insta::assert_snapshot!("task_list_json", env.run(["--json", "task", "list", "civil"]).snapshot());
    insta::assert_snapshot!("task_list_empty", empty_project().run(["task", "list"]).snapshot());
    insta::assert_snapshot!("task_list_outside", world().run(["task", "list"]).snapshot());
}

#[test]
fn filters_intersect() {
    let env = catalogue();
    let all = [
        "civil/manning",
        "electrical/voltage-drop/basic",
        "electrical/voltage-drop/long",
        "generated/suite/x-0",
    ];
    assert_eq!(list(&env, ""), all);
    assert_eq!(list(&env, "--lifecycle any").len(), 6);
    assert_eq!(list(&env, "--lifecycle retired --lifecycle proposed"), ["civil/draft", "civil/old"]);
    assert_eq!(list(&env, "--domain electrical"), all[1..3]);
    assert_eq!(list(&env, "--domain ground"), ["generated/suite/x-0"]);
    assert_eq!(
        list(&env, "--difficulty easy --difficulty medium"),
        ["civil/manning", all[1], "generated/suite/x-0"]
    );
    assert_eq!(list(&env, "--difficulty easy --domain electrical"), [all[1]]);
    assert_eq!(list(&env, "--visibility public"), ["civil/manning", all[1]], "unknown is not public");
    assert_eq!(list(&env, "--visibility holdout"), [all[2]]);
    assert_eq!(list(&env, "--filter visibility=unknown"), ["generated/suite/x-0"]);
    assert_eq!(list(&env, "--tag cable --tag AS-NZS-3008"), [all[1]]);
    assert_eq!(list(&env, "--filter category=reasoning"), [all[1]]);
    assert_eq!(list(&env, "electrical/*"), all[1..3]);
    assert_eq!(list(&env, "electrical --exclude *long"), [all[1]]);
    assert_eq!(list(&env, "electrical.voltage-drop"), all[1..3], "a directory, dotted");
    assert_eq!(list(&env, "electrical.voltage-drop.basic"), [all[1]]);
    assert_eq!(list(&env, "civil/manning electrical/voltage-drop/long"), ["civil/manning", all[2]]);
    assert_eq!(list(&env, "--limit 2"), all[..2]);
    assert_eq!(env.run(["--json", "task", "list", "--limit", "2"]).data()["total"], 4);
    assert!(list(&env, "--domain maritime").is_empty());
    assert_eq!(env.run(["task", "list", "[x"]).code, Some(3));
    assert_eq!(env.run(["task", "list", "--dataset", "none@1.0.0"]).code, Some(3));
}

#[test]
fn a_dataset_selects_in_either_form_of_id() {
    let env = catalogue();
    env.write(
        "artefacts/datasets/set/1.0.0/manifest.json",
        r#"{"tasks":[{"task_id":"civil/manning"},{"task_id":"electrical.voltage-drop.basic"}],"unknown":1}"#,
    );
    assert_eq!(list(&env, "--dataset set@1.0.0"), ["civil/manning", "electrical/voltage-drop/basic"]);
    assert_eq!(list(&env, "--dataset set --domain civil"), ["civil/manning"]);
}

#[test]
fn show_prints_the_whole_task() {
    let env = world();
    env.init();
    insta::assert_snapshot!("task_show", env.run(["task", "show", "electrical/voltage-drop"]).snapshot());
    insta::assert_snapshot!(
        "task_show_json",
        env.run(["--json", "task", "show", "electrical.voltage-drop"]).snapshot()
    );
}

#[test]
fn show_takes_ids_in_either_form_and_unique_beginnings() {
    let env = catalogue();
    for id in ["civil/manning", "civil.manning", "civil/man"] {
        assert_eq!(
            env.run(["--json", "task", "show", id]).data()["task"]["task_id"],
            "civil/manning",
            "{id}"
        );
    }
    for (name, id) in [
        ("typo", "civil/maning"),
        ("directory", "electrical"),
        ("ambiguous", "electrical/volt"),
        ("traversal", "../tasks/civil/manning"),
        ("absolute", "/etc"),
        ("control", "civil/\x1b[31mred"),
    ] {
        let run = env.run(["task", "show", id]);
        assert_eq!(run.code, Some(3), "{name}");
        assert!(!run.stderr.contains('\x1b'));
        insta::assert_snapshot!(format!("task_show_{name}"), run.snapshot());
    }
}

#[test]
fn a_new_task_is_valid_and_not_yet_active() {
    let env = empty_project();
    let run = env.run(["task", "new", "civil/culvert-capacity"]);
    insta::assert_snapshot!("task_new", run.snapshot());
    let validate = env.run(["--json", "task", "validate", "civil/culvert-capacity"]).data();
    assert_eq!((validate["passed"].as_u64(), validate["notes"].as_array().unwrap().len()), (Some(1), 0));
    assert!(list(&env, "").is_empty());
    assert_eq!(list(&env, "--lifecycle proposed"), ["civil/culvert-capacity"]);
    assert_eq!(
        env.run(["--json", "task", "show", "civil/culvert-capacity"]).data()["output"],
        "/workspace/output.json"
    );

    for (id, code) in [
        ("civil/culvert-capacity", 3),
        ("civil/culvert-capacity/inside", 3),
        ("single", 2),
        ("../escape/x", 2),
        ("/absolute/x", 2),
        ("civil/a b", 2),
        ("", 2),
    ] {
        assert_eq!(env.run(["task", "new", id]).code, Some(code), "{id}");
    }
    assert!(!env.path("escape").exists() && !env.dir().parent().unwrap().join("escape").exists());
    let elsewhere = env.run(["task", "new", "demo/thing", "--tasks-root", "other"]);
    assert!(elsewhere.stderr.contains("not one of the disciplines"), "{elsewhere:?}");
    assert!(env.path("other/demo/thing/task.toml").exists());
}

#[test]
fn search_ranks_tasks_and_templates() {
    let env = world();
    env.init();
    write_task(&env.path("tasks/civil/flood"), TASK_TOML);
    env.write(
        "tasks/civil/flood/instruction.md",
        "Coastal flood. A drop of the voltage is mentioned. /workspace/x",
    );
    assert_eq!(env.run(["template", "new", "civil/drop-shaft"]).code, Some(0));
    let names = |line: &str| {
        let data = env.run(["--json", "search"].into_iter().chain(line.split(' '))).data();
        let results = data["results"].as_array().unwrap().clone();
        results.iter().map(|hit| hit["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let found = names("voltage drop");
    assert_eq!(
        found[..2],
        ["electrical/voltage-drop", "electrical/voltage-drop"],
        "the task and the template"
    );
    assert!(found.contains(&"civil/flood".to_owned()));
    assert_eq!(names("voltage drop --kind template")[0], "electrical/voltage-drop");
    assert_eq!(names("drop shaft --kind template"), ["civil/drop-shaft"]);
    assert_eq!(names("voltage --domain civil"), ["civil/flood"]);
    assert_eq!(names("voltage --limit 1"), ["electrical/voltage-drop"]);
    assert!(names("nonexistent").is_empty());
    insta::assert_snapshot!("search", env.run(["search", "voltage", "drop"]).snapshot());
    assert_eq!(env.run(["search"]).code, Some(2));
}
