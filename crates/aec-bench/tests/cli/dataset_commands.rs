//! `dataset create`, `list`, `show`, `verify`, `diff` and `split`, and datasets as selections of tasks.

use std::os::unix::fs::PermissionsExt;

use aec_xtest::TestEnv;
use aec_xtest::lock::{self, HOST_PLACES};
use aec_xtest::tree::{TASK_TOML, write_task, write_tree};
use serde_json::{Value, json};

use crate::cli::{empty_project, world};

/// The creation time of every dataset in these tests.
const MOMENT: &str = "1775952000";

/// A project with a few tasks, at a fixed time.
pub(crate) fn project() -> TestEnv {
    let mut env = empty_project();
    env.set("SOURCE_DATE_EPOCH", MOMENT);
    let task = |id: &str, toml: &str| {
        let directory = env.path("tasks").join(id);
        write_task(&directory, toml);
        std::fs::write(directory.join("instruction.md"), format!("# {id}\n\nWrite /workspace/{id}.\n"))
            .unwrap();
    };
    task(
        "electrical/voltage-drop/basic",
        "[metadata]\ndifficulty = \"easy\"\nvisibility = \"public\"\ntags = [\"cable\", \"AS-NZS-3008\"]\nstandard = \"AS/NZS 3008\"\ncategory = \"reasoning\"\n",
    );
    task(
        "electrical/voltage-drop/long",
        "[metadata]\ndifficulty = \"hard\"\nvisibility = \"holdout\"\ntags = [\"cable\"]\n",
    );
    task(
        "civil/manning",
        "[metadata]\ndifficulty = \"medium\"\nvisibility = \"public\"\nstandard = \"AS 3500\"\n",
    );
    task("ground/pile", "[metadata]\ntags = [\"x\"]\n");
    task("civil/draft", "[metadata]\nlifecycle = \"proposed\"\n");
    env
}

pub(crate) fn run(env: &TestEnv, line: &str) -> aec_xtest::Run {
    env.run(line.split_whitespace())
}

pub(crate) fn json(env: &TestEnv, line: &str) -> aec_xtest::Run {
    env.run(["--json"].into_iter().chain(line.split_whitespace()))
}

pub(crate) fn manifest(env: &TestEnv, name: &str, version: &str) -> Value {
    serde_json::from_str(&env.read(format!("artefacts/datasets/{name}/{version}/manifest.json"))).unwrap()
}

fn ids(manifest: &Value) -> Vec<&str> {
    manifest["tasks"].as_array().unwrap().iter().map(|task| task["task_id"].as_str().unwrap()).collect()
}

#[test]
fn a_manifest_has_the_documented_fields() {
    let env = project();
    let line = "dataset create --name electrical-v1 --version 1.0.0 --domain electrical --domain civil";
    let created = env.run(line.split(' ').chain(["--summary", "Two disciplines", "--purpose", "To test"]));
    insta::assert_snapshot!("dataset_create", created.snapshot());
    insta::assert_snapshot!(
        "dataset_manifest",
        env.read("artefacts/datasets/electrical-v1/1.0.0/manifest.json")
    );
    let schema: Value = serde_json::from_str(&world().run(["schema", "dataset"]).stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&manifest(&env, "electrical-v1", "1.0.0")));
    assert!(!validator.is_valid(&json!({"name": "x"})));
    insta::assert_snapshot!("dataset_list", run(&env, "dataset list").snapshot());
    insta::assert_snapshot!("dataset_list_json", json(&env, "dataset list").snapshot());
    insta::assert_snapshot!(
        "dataset_show",
        run(&env, "dataset show electrical-v1 --near-duplicates").snapshot()
    );
    insta::assert_snapshot!("dataset_verify", run(&env, "dataset verify electrical-v1").snapshot());
}

#[test]
fn the_documented_manifest_is_read_and_its_ids_may_have_slashes() {
    let env = project();
    assert_eq!(run(&env, "dataset create --name set --version 1.0.0 --domain electrical").code, Some(0));
    let path = "artefacts/datasets/set/1.0.0/manifest.json";
    let mut value = manifest(&env, "set", "1.0.0");
    // As other programs write it: without a format version, ids with slashes, additional keys.
    value.as_object_mut().unwrap().shift_remove("schema_version");
    value["tasks"][0]["task_id"] = json!("electrical/voltage-drop/basic");
    value["description"]["template_count"] = json!(0);
    value["source"]["suite_config"] = json!(null);
    env.write(path, value.to_string());
    assert_eq!(run(&env, "dataset verify set").code, Some(0));
    assert_eq!(json(&env, "task list --dataset set").data()["total"], 2);
}

#[test]
fn every_filter_of_task_list_chooses_tasks() {
    let env = project();
    let mut patch = 0;
    let mut create = |flags: &str| -> Vec<String> {
        patch += 1;
        let version = format!("1.0.{patch}");
        let made = json(&env, &format!("dataset create --name set --version {version} {flags}"));
        assert_eq!(made.code, Some(0), "{flags}: {made:?}");
        ids(&manifest(&env, "set", &version)).into_iter().map(str::to_owned).collect()
    };
    let (basic, long) = ("electrical.voltage-drop.basic", "electrical.voltage-drop.long");
    assert_eq!(create(""), ["civil.manning", basic, long, "ground.pile"]);
    assert_eq!(create("--lifecycle any").len(), 5);
    assert_eq!(create("--task civil/manning ground.pile"), ["civil.manning", "ground.pile"]);
    assert_eq!(create("--task electrical --task civil/manning"), ["civil.manning", basic, long]);
    assert_eq!(create("--pattern *manning -p *pile"), ["civil.manning", "ground.pile"]);
    assert_eq!(create("--task electrical --exclude *long"), [basic]);
    assert_eq!(create("--domain electrical"), [basic, long]);
    assert_eq!(create("--difficulty easy --difficulty medium"), ["civil.manning", basic]);
    assert_eq!(create("--visibility holdout"), [long]);
    assert_eq!(create("--tag cable --tag AS-NZS-3008"), [basic]);
    assert_eq!(create("--filter category=reasoning"), [basic]);
    assert_eq!(create("--dataset set@1.0.7 --difficulty hard"), [long]);
    assert_eq!(create("--lifecycle proposed"), ["civil.draft"]);
    assert_eq!(create("--tasks-root tasks --domain ground"), ["ground.pile"]);
    for (flags, id) in [
        ("--domain maritime", "D032"),
        ("--task civil/draft", "D032"),
        ("--task civil/none", ""),
        ("--dataset none", "D010"),
    ] {
        let refused = json(&env, &format!("dataset create --name set --version 9.0.0 {flags}"));
        assert_eq!((refused.code, refused.errors()[0].0.as_str()), (Some(3), id), "{refused:?}");
    }
    for flags in [
        "--config s.toml --domain civil",
        "--config s.toml --from-suite-output m.json",
        "--from-suite-output m.json --task civil",
    ] {
        assert_eq!(
            run(&env, &format!("dataset create --name set --version 9.0.0 {flags}")).code,
            Some(2),
            "{flags}"
        );
    }
    assert_eq!(run(&env, "dataset list").stdout.lines().count(), 15);
}

#[test]
fn names_and_versions_follow_their_grammar() {
    let env = project();
    for (name, version) in [
        ("../x", "1.0.0"),
        ("", "1.0.0"),
        ("a b", "1.0.0"),
        ("x", "1"),
        ("x", "v1.0.0"),
        ("x", "1.0.0+b"),
        ("x", "01.0.0"),
        ("x", "latest"),
    ] {
        let refused = env.run(["dataset", "create", "--name", name, "--version", version]);
        assert_eq!(refused.code, Some(2), "{name}@{version}: {refused:?}");
    }
    assert_eq!(run(&env, "dataset create --name x").code, Some(2));
    assert_eq!(run(&env, "dataset list").stdout, "");
    for version in ["1.9.0", "1.10.0", "2.0.0-rc.1"] {
        assert_eq!(run(&env, &format!("dataset create --name x --version {version}")).code, Some(0));
    }
    assert_eq!(json(&env, "dataset show x").data()["manifest"]["version"], "2.0.0-rc.1");
    assert_eq!(json(&env, "dataset show x@1.9.0").data()["manifest"]["version"], "1.9.0");
    assert_eq!(run(&env, "dataset create --name x --version 2.0.0").code, Some(0));
    assert_eq!(json(&env, "dataset show x").data()["manifest"]["version"], "2.0.0");
}

#[test]
fn a_version_is_never_changed() {
    let env = project();
    assert_eq!(run(&env, "dataset create --name set --version 1.0.0").code, Some(0));
    let before = env.read("artefacts/datasets/set/1.0.0/manifest.json");
    let again = run(&env, "dataset create --name set --version 1.0.0 --domain civil");
    assert_eq!(again.code, Some(3));
    insta::assert_snapshot!("dataset_create_again", again.snapshot());
    assert_eq!(env.read("artefacts/datasets/set/1.0.0/manifest.json"), before);
    assert_eq!(std::fs::read_dir(env.path("artefacts/datasets")).unwrap().count(), 1, "nothing else is left");
    // Also if something other than a dataset is there.
    env.write("artefacts/datasets/other/1.0.0", "a file");
    assert_eq!(run(&env, "dataset create --name other --version 1.0.0").code, Some(3));
    assert_eq!(env.read("artefacts/datasets/other/1.0.0"), "a file");
}

#[test]
fn the_moment_can_be_given() {
    let mut env = project();
    assert_eq!(run(&env, "dataset create --name set --version 1.0.0").code, Some(0));
    assert_eq!(manifest(&env, "set", "1.0.0")["created_at"], "2026-04-12T00:00:00Z");
    env.set("SOURCE_DATE_EPOCH", "yesterday");
    let refused = run(&env, "dataset create --name set --version 1.0.1");
    assert_eq!(refused.code, Some(3));
    assert!(refused.stderr.contains("SOURCE_DATE_EPOCH"), "{refused:?}");
}

#[test]
fn suites_are_recorded() {
    let env = project();
    for index in 0..3 {
        write_task(&env.path(format!("tasks/generated/my-suite/civil/x-{index}")), TASK_TOML);
    }
    let suite = "name = \"my-suite\"\nseed = 20260524\n[coverage]\ndifficulties = { easy = 0.5, hard = 0.5 }\n[visibility]\nmix = { all_given = 1.0 }\n[tool_mode]\nmix = { with_tool = 1.0 }\n[output]\ndir = \"tasks/generated/my-suite\"\n";
    env.write("suite.toml", suite);
    assert_eq!(run(&env, "dataset create --name set --version 1.0.0 --config suite.toml").code, Some(0));
    let made = manifest(&env, "set", "1.0.0");
    assert_eq!(ids(&made).len(), 3);
    assert_eq!(
        made["source"],
        json!({"method": "suite_config", "seed": 20_260_524, "suite_config": {
            "name": "my-suite", "seed": 20_260_524, "coverage": {"difficulties": {"easy": 0.5, "hard": 0.5}},
            "visibility": {"mix": {"all_given": 1.0}}, "tool_mode": {"mix": {"with_tool": 1.0}},
            "output": {"dir": "tasks/generated/my-suite"}}})
    );
    env.write(
        "suite.toml",
        suite.replace("[output]", "[nothing]").replace("[nothing]\ndir = \"tasks/generated/my-suite\"\n", ""),
    );
    let nowhere = json(&env, "dataset create --name set --version 1.0.1 -c suite.toml");
    assert_eq!((nowhere.code, nowhere.errors()[0].0.as_str()), (Some(3), "D036"));

    let output = json!({
        "schema_version": 1,
        "suite": {"name": "my-suite", "seed": 7, "config": {"name": "my-suite", "output": null}},
        "instances": [{"task": "civil/x-0", "index": 0}, {"task": "civil/x-2"}],
    });
    env.write("tasks/generated/my-suite/manifest.json", output.to_string());
    let line = "dataset create --name set --version 1.1.0 --from-suite-output tasks/generated/my-suite/manifest.json";
    assert_eq!(run(&env, line).code, Some(0));
    let made = manifest(&env, "set", "1.1.0");
    assert_eq!(ids(&made), ["generated.my-suite.civil.x-0", "generated.my-suite.civil.x-2"]);
    assert_eq!(
        made["source"],
        json!({"method": "suite_config", "suite_config": {"name": "my-suite"}, "seed": 7})
    );
    for (instances, id) in [
        (json!([{"task": "civil/none"}]), "D036"),
        (json!([{"task": "civil/x-0"}, {"task": "civil/x-0"}]), "D036"),
        (json!([{"task": "../../civil/manning"}]), "D015"),
        (json!([{"task": "/etc"}]), "D015"),
        (json!([{"index": 1}]), "D006"),
        (json!([{"task": 5}]), "D004"),
        (json!([]), "D014"),
    ] {
        env.write("tasks/generated/my-suite/manifest.json", json!({"instances": instances}).to_string());
        let refused = json(&env, &line.replace("1.1.0", "1.2.0"));
        assert_eq!((refused.code, refused.errors()[0].0.as_str()), (Some(3), id), "{instances}: {refused:?}");
    }
}

#[test]
fn verify_tells_what_has_become_of_the_tasks() {
    let env = project();
    assert_eq!(run(&env, "dataset create --name set --version 1.0.0").code, Some(0));
    assert_eq!(run(&env, "dataset create --name other --version 1.0.0 --domain ground").code, Some(0));
    let instruction = env.path("tasks/electrical/voltage-drop/long/instruction.md");
    std::fs::write(&instruction, "changed").unwrap();
    let script = env.path("tasks/electrical/voltage-drop/basic/tests/test.sh");
    std::fs::set_permissions(script, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::remove_dir_all(env.path("tasks/civil/manning")).unwrap();
    write_task(&env.path("tasks/ground/new"), TASK_TOML);
    std::os::unix::fs::symlink("/etc/passwd", env.path("tasks/ground/pile/link")).unwrap();
    insta::assert_snapshot!("dataset_verify_found", run(&env, "dataset verify set").snapshot());
    let found = json(&env, "dataset verify set other set");
    assert_eq!(found.code, Some(1));
    let envelope = found.envelope();
    assert_eq!(envelope["status"], "partial");
    let data = &envelope["data"];
    assert_eq!(data["is_clean"], false);
    assert_eq!(data["datasets"].as_array().unwrap().len(), 2, "each once");
    let set = &data["datasets"][0];
    assert_eq!((&set["total"], &set["verified"]), (&json!(4), &json!(0)));
    assert_eq!(set["drifted"].as_array().unwrap().len(), 2);
    assert_eq!(set["missing"], json!([{"task_id": "civil/manning", "task_path": "tasks/civil/manning"}]));
    assert_eq!(set["unreadable"][0]["task_id"], "ground/pile");
    assert_eq!(set["extra"], json!(["tasks/civil/draft", "tasks/ground/new"]));
    assert_eq!(run(&env, "dataset verify --all").code, Some(1));
    for line in ["dataset verify", "dataset verify --all set"] {
        assert_eq!(run(&env, line).code, Some(2), "{line}");
    }
    assert_eq!(run(&empty_project(), "dataset verify --all").code, Some(0));
}

#[test]
fn links_above_a_task_do_not_count_as_the_task() {
    let env = project();
    assert_eq!(run(&env, "dataset create --name set --version 1.0.0 --task civil/manning").code, Some(0));
    std::fs::rename(env.path("tasks/civil"), env.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(env.path("elsewhere"), env.path("tasks/civil")).unwrap();
    let found = json(&env, "dataset verify set");
    assert_eq!((found.code, found.errors()[0].0.as_str()), (Some(1), "D021"));
    // A tasks root may be a link, because the user put it there.
    std::fs::remove_file(env.path("tasks/civil")).unwrap();
    std::fs::rename(env.path("elsewhere"), env.path("tasks/civil")).unwrap();
    std::fs::rename(env.path("tasks"), env.path("real")).unwrap();
    std::os::unix::fs::symlink("real", env.path("tasks")).unwrap();
    assert_eq!(run(&env, "dataset verify set").code, Some(0));
}

#[test]
fn diff_shows_added_removed_and_changed_tasks() {
    let env = project();
    assert_eq!(
        run(&env, "dataset create --name set --version 1.0.0 --domain electrical --domain civil").code,
        Some(0)
    );
    env.write("tasks/electrical/voltage-drop/long/instruction.md", "Changed: write /workspace/a\n");
    assert_eq!(
        run(&env, "dataset create --name set --version 1.1.0 --domain electrical --domain ground").code,
        Some(0)
    );
    insta::assert_snapshot!("dataset_diff", run(&env, "dataset diff set@1.0.0 set").snapshot());
    insta::assert_snapshot!("dataset_diff_json", json(&env, "dataset diff set@1.0.0 set").snapshot());
    let same = run(&env, "dataset diff set set@1.1.0");
    assert_eq!((same.code, same.stdout.as_str()), (Some(0), ""));
    assert_eq!(run(&env, "dataset diff set").code, Some(2));
    assert_eq!(run(&env, "dataset diff set set@3.0.0").code, Some(3));
}

/// The tasks of a dataset's manifest with their families, as `write_tree` names them.
fn families(env: &TestEnv, name: &str) -> std::collections::BTreeSet<String> {
    let family = |id: &str| id.split('.').nth(1).unwrap().to_owned();
    ids(&manifest(env, name, "1.0.0")).into_iter().map(family).collect()
}

#[test]
fn split_keeps_families_together() {
    let mut env = empty_project();
    env.set("SOURCE_DATE_EPOCH", MOMENT);
    write_tree(&env.path("tasks"), 240);
    for (index, directory) in task_directories(&env).into_iter().enumerate() {
        std::fs::write(directory.join("instruction.md"), format!("{} {index}\n", "word ".repeat(index)))
            .unwrap();
    }
    assert_eq!(run(&env, "dataset create --name set --version 1.0.0").code, Some(0));
    let split = run(&env, "dataset split set --train-share 0.75 --seed 7");
    insta::assert_snapshot!("dataset_split", split.snapshot());
    let (train, eval) = (families(&env, "set-train"), families(&env, "set-eval"));
    assert!(train.is_disjoint(&eval), "{train:?} {eval:?}");
    assert_eq!(train.len() + eval.len(), 20);
    let source = &manifest(&env, "set-train", "1.0.0")["source"];
    assert_eq!(source, &json!({"method": "split", "suite_config": {}, "seed": 7}));
    let again = json(&env, "dataset split set@1.0.0 --train-share 0.75 --seed 7").data();
    assert_eq!((&again["train"]["was_there"], &again["split_by"]), (&json!(true), &json!("family")));
    let other = run(&env, "dataset split set --seed 8");
    assert_eq!(other.code, Some(3), "the sides of another split are not replaced: {other:?}");
    assert_eq!(run(&env, "dataset split set --seed -8 --names a,b").code, Some(0));
    for flags in [
        "",
        "--seed x",
        "--seed 1 --train-share 1",
        "--seed 1 --train-share nan",
        "--seed 1 --names a",
        "--seed 1 --names a,a",
        "--seed 1 --names a,set",
        "--seed 1 --names a,../b",
    ] {
        assert_eq!(run(&env, &format!("dataset split set {flags}")).code, Some(2), "{flags}");
    }
    // Other tasks do not matter.
    assert_eq!(
        run(&env, "dataset create --name half --version 1.0.0 --domain civil --domain ground").code,
        Some(0)
    );
    assert_eq!(run(&env, "dataset split half --train-share 0.75 --seed 7").code, Some(0));
    assert!(families(&env, "half-train").is_subset(&train) && families(&env, "half-eval").is_subset(&eval));
}

fn task_directories(env: &TestEnv) -> Vec<std::path::PathBuf> {
    let data = json(env, "task list").data();
    let paths = data["tasks"].as_array().unwrap().iter();
    paths.map(|task| env.path(task["path"].as_str().unwrap())).collect()
}

#[test]
fn split_of_few_families_goes_by_task_and_says_what_leaks() {
    let env = empty_project();
    for index in 0..12 {
        write_task(&env.path(format!("tasks/civil/a/i-{index}")), TASK_TOML);
    }
    assert_eq!(run(&env, "dataset create --name set --version 1.0.0").code, Some(0));
    let split = json(&env, "dataset split set --seed 3");
    assert_eq!((split.code, split.errors()[0].0.as_str()), (Some(1), "D051"));
    let data = split.envelope()["data"].clone();
    assert_eq!((&data["split_by"], &data["families"]), (&json!("task"), &json!(1)));
    assert_eq!(data["near_duplicates_across"][0]["tasks"].as_array().unwrap().len(), 12);
    let tasks = |side: &str| data[side]["tasks"].as_u64().unwrap();
    assert_eq!(tasks("train") + tasks("eval"), 12);
    assert!(tasks("train") > 0 && tasks("eval") > 0);
    assert_eq!(run(&env, "dataset create --name one --version 1.0.0 --task civil/a/i-0").code, Some(0));
    let one = json(&env, "dataset split one --seed 3");
    assert_eq!((one.code, one.errors()[0].0.as_str()), (Some(3), "D050"));
    env.write("tasks/civil/a/i-3/instruction.md", "changed");
    let drifted = json(&env, "dataset split set --seed 3 --names x,y");
    assert_eq!((drifted.code, drifted.errors()[0].0.as_str()), (Some(3), "D020"));
}

#[test]
fn near_duplicates_are_grouped() {
    let env = empty_project();
    for (id, load, file) in
        [("a", "100 kN", "x"), ("b", "100.5 kN", "x"), ("c", "150 kN", "x"), ("d", "100 kN", "other file")]
    {
        let directory = env.path(format!("tasks/civil/{id}"));
        write_task(&directory, TASK_TOML);
        std::fs::write(directory.join("instruction.md"), format!("A load of {load}. Write /workspace/a.\n"))
            .unwrap();
        std::fs::write(directory.join("environment/loads.csv"), file).unwrap();
    }
    assert_eq!(run(&env, "dataset create --name set --version 1.0.0").code, Some(0));
    let data = json(&env, "dataset show set --near-duplicates").data();
    assert_eq!(data["near_duplicates"], json!([{"alike": ["numbers"], "tasks": ["civil/a", "civil/b"]}]));
    assert_eq!(json(&env, "dataset show set").data()["near_duplicates"], json!(null));
    let shown = run(&env, "dataset show set --near-duplicates").stdout;
    assert!(shown.contains("same text, numbers within 1 %: civil/a, civil/b"), "{shown}");
    std::fs::remove_dir_all(env.path("tasks/civil/a")).unwrap();
    let missing = json(&env, "dataset show set --near-duplicates");
    assert_eq!((missing.code, missing.errors()[0].0.as_str()), (Some(3), "D021"));
}

#[test]
fn a_dataset_selects_wherever_tasks_are_selected() {
    let env = project();
    assert_eq!(
        run(&env, "dataset create --name set --version 1.0.0 --task civil/draft --lifecycle any").code,
        Some(0)
    );
    assert_eq!(run(&env, "dataset create --name set --version 1.1.0 --domain electrical").code, Some(0));
    assert_eq!(json(&env, "task list --dataset set").data()["total"], 2);
    let validated = json(&env, "task validate --dataset set@1.0.0").envelope()["data"].clone();
    assert_eq!(validated["tasks"][0]["task_id"], "civil/draft");
    assert_eq!(validated["checked"], 1);
    let _places = lock::hold(HOST_PLACES);
    for command in ["verify", "audit"] {
        let envelope = json(&env, &format!("{command} --dataset set@1.0.0 --sandbox none")).envelope();
        assert!(envelope.to_string().contains("civil/draft"), "{command}: {envelope}");
        assert!(!envelope.to_string().contains("electrical/"), "{command}: {envelope}");
        assert_eq!(run(&env, &format!("{command} --dataset none")).code, Some(3));
    }
    for line in [
        "verify --dataset set --all",
        "audit --dataset set civil/manning",
        "task validate --all --dataset set",
    ] {
        assert_eq!(run(&env, line).code, Some(2), "{line}");
    }
    std::fs::remove_dir_all(env.path("tasks/civil/draft")).unwrap();
    for line in
        ["task validate --dataset set@1.0.0", "verify --dataset set@1.0.0", "task list --dataset set@1.0.0"]
    {
        let gone = run(&env, line);
        assert_eq!(gone.code, Some(1), "{line}: {gone:?}");
        assert!(
            format!("{}{}", gone.stdout, gone.stderr).contains("the dataset names `civil.draft`"),
            "{gone:?}"
        );
    }
}

#[test]
fn a_broken_task_that_may_be_meant_stops_everything() {
    let env = project();
    env.write("tasks/civil/broken/task.toml", "[metadata\n");
    env.write("tasks/civil/broken/instruction.md", "x");
    let refused = json(&env, "dataset create --name set --version 1.0.0");
    assert_eq!((refused.code, refused.errors()[0].0.as_str()), (Some(3), "T002"));
    assert_eq!(run(&env, "dataset create --name set --version 1.0.0 --task electrical").code, Some(0));
    assert_eq!(run(&env, "dataset create --name set --version 1.1.0 --exclude civil/broken").code, Some(0));
}

#[test]
fn tasks_outside_the_project_cannot_be_frozen() {
    let env = project();
    write_task(&env.path("../outside/civil/x"), TASK_TOML);
    let refused = json(&env, "dataset create --name set --version 1.0.0 --tasks-root ../outside");
    assert_eq!((refused.code, refused.errors()[0].0.as_str()), (Some(3), "D035"));
}
