//! Provokes every finding of datasets, and checks the list in the documentation and its example program.

use std::collections::BTreeSet;

use aec_xtest::{Run, TestEnv};
use serde_json::{Value, json};

use crate::cli::dataset_commands::{json, manifest, project, run};

const MANIFEST: &str = "artefacts/datasets/set/1.0.0/manifest.json";

type Arrange = fn(&TestEnv) -> Run;

/// A change of a project with `set@1.0.0` for each id; it returns the output of a command.
const FINDINGS: &[(&str, Arrange)] = &[
    ("D001", |env| {
        std::fs::remove_file(env.path(MANIFEST)).unwrap();
        json(env, "dataset show set")
    }),
    ("D002", |env| with_text(env, "{")),
    ("D004", |env| edited(env, |value| value["tasks"] = json!(5))),
    ("D005", |env| edited(env, |value| value["content_hash"] = json!("abc"))),
    ("D006", |env| edited(env, |value| drop(value.as_object_mut().unwrap().shift_remove("source")))),
    ("D010", |env| json(env, "dataset show set@3.0.0")),
    ("D011", |env| edited(env, |value| value["name"] = json!("other"))),
    ("D012", |env| {
        edited(env, |value| value["tasks"][0]["content_hash"] = value["tasks"][1]["content_hash"].clone())
    }),
    ("D012", |env| edited(env, |value| value["description"]["task_count"] = json!(7))),
    ("D012", |env| edited(env, |value| value["description"]["domains"] = json!(["marine"]))),
    ("D012", |env| edited(env, |value| value["description"]["difficulty_distribution"]["easy"] = json!(3))),
    ("D013", |env| edited(env, |value| value["tasks"][1] = value["tasks"][0].clone())),
    ("D014", |env| edited(env, |value| value["tasks"] = json!([]))),
    ("D015", |env| edited(env, |value| value["tasks"][0]["task_path"] = json!("../../etc/civil/manning"))),
    ("D015", |env| edited(env, |value| value["tasks"][0]["task_path"] = json!("tasks/civil/other"))),
    ("D016", |env| edited(env, |value| value["schema_version"] = json!(2))),
    ("D017", |env| json(env, "dataset show set@latest")),
    ("D017", |env| json(env, "dataset create --name a/b --version 1.0.0")),
    ("D020", |env| {
        env.write("tasks/civil/manning/new", "");
        json(env, "dataset verify set")
    }),
    ("D020", |env| {
        env.write("tasks/civil/manning/new", "");
        json(env, "dataset export set --output x")
    }),
    ("D021", |env| {
        std::fs::remove_dir_all(env.path("tasks/civil/manning")).unwrap();
        json(env, "dataset verify set")
    }),
    ("D022", |env| {
        rewrite(env, |value| value["tasks"][0]["tags"] = json!(["other"]));
        json(env, "dataset verify set")
    }),
    ("D030", |env| {
        std::os::unix::fs::symlink("task.toml", env.path("tasks/civil/manning/link")).unwrap();
        json(env, "dataset create --name set --version 2.0.0")
    }),
    ("D030", |env| {
        env.write(format!("tasks/civil/manning/{}", "x".repeat(180)), "");
        json(env, "dataset create --name set --version 2.0.0")
    }),
    ("D031", |env| json(env, "dataset create --name set --version 1.0.0")),
    ("D032", |env| json(env, "dataset create --name set --version 2.0.0 --domain maritime")),
    ("D035", |env| {
        std::fs::create_dir_all(env.path("../outside")).unwrap();
        std::fs::rename(env.path("tasks"), env.path("../outside/tasks")).unwrap();
        json(env, "dataset create --name set --version 2.0.0 --tasks-root ../outside/tasks")
    }),
    ("D036", |env| {
        env.write("tasks/suite.json", r#"{"instances": [{"task": "civil/none"}]}"#);
        json(env, "dataset create --name set --version 2.0.0 --from-suite-output tasks/suite.json")
    }),
    ("D013", |env| {
        for path in ["tasks/civil/a.b/c", "tasks/civil/a/b.c"] {
            aec_xtest::tree::write_task(&env.path(path), aec_xtest::tree::TASK_TOML);
        }
        json(env, "dataset create --name set --version 2.0.0")
    }),
    ("D050", |env| {
        assert_eq!(run(env, "dataset create --name one --version 1.0.0 --task civil/manning").code, Some(0));
        json(env, "dataset split one --seed 1")
    }),
];

/// These need an archive or a split; other tests provoke them.
const ELSEWHERE: [&str; 11] =
    ["D040", "D041", "D042", "D043", "D044", "D045", "D046", "D047", "D048", "D049", "D051"];

fn with_text(env: &TestEnv, text: &str) -> Run {
    env.write(MANIFEST, text);
    json(env, "dataset show set")
}

fn rewrite(env: &TestEnv, change: fn(&mut Value)) {
    let mut value = manifest(env, "set", "1.0.0");
    change(&mut value);
    env.write(MANIFEST, value.to_string());
}

fn edited(env: &TestEnv, change: fn(&mut Value)) -> Run {
    rewrite(env, change);
    json(env, "dataset show set")
}

#[test]
fn every_finding_can_be_provoked_and_has_a_place_and_a_fix() {
    for (id, arrange) in FINDINGS {
        let env = project();
        assert_eq!(run(&env, "dataset create --name set --version 1.0.0").code, Some(0));
        let found = arrange(&env);
        assert!(matches!(found.code, Some(1..=3)), "{id}: {found:?}");
        let errors = found.envelope()["errors"].clone();
        let first = &errors[0];
        assert_eq!(first["id"], **id, "{found:?}");
        assert!(first["fix"].is_string(), "{id}: {found:?}");
        assert!(first["file"].is_string() || ["D017", "D032", "D050"].contains(id), "{id}: {found:?}");
        let listed = run(&env, "dataset list");
        assert!(matches!(listed.code, Some(0 | 1)), "{id}: {listed:?}");
    }
}

#[test]
fn the_documentation_lists_exactly_these_findings() {
    let page = page();
    let documented: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.get(..4).filter(|id| id.starts_with('D')))
        .collect();
    let known: BTreeSet<&str> = FINDINGS.iter().map(|(id, _)| *id).chain(ELSEWHERE).collect();
    assert_eq!(documented, known);
}

fn page() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/datasets.md")).unwrap()
}

#[test]
fn the_program_in_the_documentation_gives_the_same_hashes() {
    let page = page();
    let program = page.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    let env = project();
    // Names of every kind, an executable file, an empty file, and files that are left out.
    let task = "tasks/civil/manning";
    env.write(format!("{task}/data/Zürich.csv"), "a,b\n");
    env.write(format!("{task}/data-2/empty"), "");
    env.write(format!("{task}/data/𝄞"), [0, 255, 10]);
    env.write(format!("{task}/large"), vec![b'x'; 2_000_000]);
    env.write(format!("{task}/tests/__pycache__/verify.pyc"), "x");
    env.write(format!("{task}/tests/.verify.py.swp"), "x");
    env.write(format!("{task}/notes~"), "x");
    let script = env.path(format!("{task}/tests/test.sh"));
    std::fs::set_permissions(script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(run(&env, "dataset create --name set --version 1.0.0").code, Some(0));
    let driver = r#"
import json, sys
m = json.load(open("artefacts/datasets/set/1.0.0/manifest.json"))
for task in m["tasks"]:
    assert task_hash(task["task_path"]) == task["content_hash"], task["task_id"]
assert dataset_hash([(t["task_id"], t["content_hash"]) for t in m["tasks"]]) == m["content_hash"]
print(len(m["tasks"]), f'{position(7, "template:voltage-drop"):.6f}')
"#;
    env.write("hash.py", format!("{program}{driver}"));
    let output =
        std::process::Command::new("python3").arg("hash.py").current_dir(env.dir()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "4 0.524488\n", "{output:?}");
    assert!(page.contains("`position(7, \"template:voltage-drop\")` is 0.524488"));
}
