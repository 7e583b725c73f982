//! `generate task` and `generate replay`: every flag, the published files, and what a kill leaves.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use aec_xtest::TestEnv;
use serde_json::Value;

use crate::cli::empty_project;
use crate::cli::template::{change, walk, with_template};

/// Paths of the tasks that a run generated, relative to the project.
fn made(run: &aec_xtest::Run) -> Vec<String> {
    let data = run.data();
    let rows = data["instances"].as_array().unwrap().clone();
    rows.iter().map(|row| row["path"].as_str().unwrap().replace("[TEST]/work/", "")).collect()
}

fn task_file(env: &TestEnv, task: &str) -> toml::Table {
    env.read(format!("{task}/task.toml")).parse().unwrap()
}

/// Every file below a directory with its content, by relative path.
pub(crate) fn contents(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<(PathBuf, Vec<u8>)> = walk(directory)
        .into_iter()
        .map(|path| (path.strip_prefix(directory).unwrap().to_path_buf(), std::fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn the_flags_choose_what_is_made() {
    let env = empty_project();
    insta::assert_snapshot!("generate_task", env.run(["generate", "task", "voltage-drop"]).snapshot());
    insta::assert_snapshot!(
        "generate_task_dry_run",
        env.run(["generate", "task", "voltage-drop", "--dry-run"]).snapshot()
    );
    let usual = contents(&env.path("tasks"));

    // Further instances; the existing ones stay unchanged.
    let run = env.run([
        "--json",
        "generate",
        "task",
        "electrical/voltage-drop",
        "--instances",
        "2",
        "--start-index",
        "3",
    ]);
    assert_eq!(run.data()["published"], "written");
    let now = contents(&env.path("tasks"));
    assert!(usual.iter().all(|file| file.0.ends_with("generation-manifest.json") || now.contains(file)));
    assert_eq!(env.run(["--json", "task", "list"]).data()["total"], 5);

    let tiers = env.run([
        "--json",
        "generate",
        "task",
        "voltage-drop",
        "--difficulty",
        "hard,easy",
        "--seed",
        "-7",
        "--instances",
        "3",
        "-o",
        "elsewhere",
    ]);
    let tasks = made(&tiers);
    let names: Vec<&str> = tasks.iter().map(|task| task.rsplit('/').next().unwrap()).collect();
    assert!(
        names[0].ends_with("-hard-n7-000")
            && names[1].ends_with("-easy-n7-001")
            && names[2].ends_with("-hard-n7-002"),
        "{names:?}"
    );
    assert!(tasks.iter().all(|task| task.starts_with("elsewhere/electrical/cables/voltage-drop/")));

    let plain = env.run([
        "--json",
        "generate",
        "task",
        "voltage-drop",
        "--tool-mode",
        "no-tool",
        "--visibility",
        "holdout",
        "-o",
        "plain",
    ]);
    for task in made(&plain) {
        let file = task_file(&env, &task);
        assert_eq!(file["metadata"]["visibility"].as_str(), Some("holdout"));
        assert_eq!(file["generation"]["tool_mode"].as_str(), Some("no-tool"));
        assert!(!env.path(format!("{task}/tools")).exists());
        assert!(!env.read(format!("{task}/instruction.md")).contains("Calculator"));
    }
    for task in made(&env.run([
        "--json",
        "generate",
        "task",
        "voltage-drop",
        "--tool-mode",
        "with-tool",
        "-o",
        "tool",
    ])) {
        assert!(env.path(format!("{task}/tools/voltage_drop_calc.py")).exists());
        assert!(
            env.read(format!("{task}/instruction.md"))
                .contains("python3 /workspace/tools/voltage_drop_calc.py")
        );
    }
    for (arguments, code) in [
        (vec!["nonsense"], 3),
        (vec!["voltage-drop", "--difficulty", "extreme"], 3),
        (vec!["voltage-drop", "--instances", "0"], 2),
        (vec!["voltage-drop", "--template", "x"], 2),
        (vec![], 2),
        (vec!["drainage-schedule-review", "--tool-mode", "with-tool"], 3),
        (vec!["voltage-drop", "--start-index", "4294967295"], 3),
    ] {
        let run = env.run(["generate", "task"].iter().chain(&arguments));
        assert_eq!(run.code, Some(code), "{arguments:?}: {run:?}");
    }
}

#[test]
fn generation_is_repeatable_and_never_overwrites() {
    let env = empty_project();
    let first = env.run(["--json", "generate", "task", "heat-load"]);
    assert_eq!(first.data()["published"], "created");
    let before = contents(&env.path("tasks"));
    assert_eq!(env.run(["--json", "generate", "task", "heat-load"]).data()["published"], "unchanged");
    assert_eq!(contents(&env.path("tasks")), before);

    let task = &made(&first)[0];
    env.write(format!("{task}/instruction.md"), "edited");
    let edited = contents(&env.path("tasks"));
    let refused = env.run(["generate", "task", "heat-load"]);
    assert_eq!(refused.code, Some(3));
    assert!(refused.stderr.contains("instruction.md would change; nothing was changed"), "{refused:?}");
    assert_eq!(contents(&env.path("tasks")), edited);
    // The user's own files beside the tasks are no reason to refuse, and stay.
    env.write("tasks/mechanical/hvac/heat-load/notes.md", "mine");
    let replaced = env.run(["--json", "generate", "task", "heat-load", "--replace"]);
    assert_eq!(replaced.data()["published"], "written");
    assert_eq!(env.read("tasks/mechanical/hvac/heat-load/notes.md"), "mine");
    std::fs::remove_file(env.path("tasks/mechanical/hvac/heat-load/notes.md")).unwrap();
    assert_eq!(contents(&env.path("tasks")), before);
}

/// The givens of a task's prompt, without the prose around them.
fn givens(env: &TestEnv, task: &str) -> String {
    let prompt = env.read(format!("{task}/instruction.md"));
    prompt
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains(" | `"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn no_two_seeds_share_a_draw() {
    let env = empty_project();
    let mut seen = BTreeSet::new();
    let mut count = 0;
    for seed in ["1", "2", "3", "42", "43", "1000"] {
        let run = env.run([
            "--json",
            "generate",
            "task",
            "heat-load",
            "--instances",
            "30",
            "--difficulty",
            "easy",
            "--seed",
            seed,
            "-o",
            seed,
        ]);
        for task in made(&run) {
            count += 1;
            seen.insert(givens(&env, &task));
        }
    }
    assert_eq!((seen.len(), count), (180, 180));
    // Tiers and versions do not matter either.
    let env = with_template();
    let first = made(&env.run(["--json", "generate", "task", "beam", "--difficulty", "easy", "-o", "a"]));
    change(&env, "params.toml", "name = \"beam\"", "name = \"beam\"\nversion = \"1.1.0\"");
    let second = made(&env.run(["--json", "generate", "task", "beam", "--difficulty", "easy", "-o", "b"]));
    for (one, other) in first.iter().zip(&second) {
        assert_ne!(givens(&env, one), givens(&env, other));
    }
}

#[test]
fn instances_do_not_repeat_and_a_small_grid_says_so() {
    let env = with_template();
    for (name, value) in [("span_m", "6"), ("second_moment_cm4", "20000"), ("elastic_modulus_gpa", "205")] {
        change(&env, "params.toml", "[difficulty.easy]", &format!("[difficulty.easy]\n{name} = {value}"));
    }
    change(&env, "params.toml", "[difficulty.easy]", "[difficulty.easy]\nload_kn_per_m = [5, 7, 11, 13]");
    let four = env.run(["--json", "generate", "task", "beam", "--difficulty", "easy", "--instances", "4"]);
    let all: BTreeSet<String> = made(&four).iter().map(|task| givens(&env, task)).collect();
    assert_eq!(all.len(), 4);
    let five =
        env.run(["generate", "task", "beam", "--difficulty", "easy", "--instances", "5", "-o", "more"]);
    assert_eq!(five.code, Some(3));
    assert!(five.stderr.contains("another instance has the same givens"), "{five:?}");
    assert!(!env.path("more/structural/calculation/beam").exists());
}

#[test]
fn a_manifest_is_enough_to_make_everything_again() {
    let env = with_template();
    for arguments in [
        vec!["beam", "--instances", "4"],
        vec!["beam", "--instances", "2", "--start-index", "9", "--tool-mode", "no-tool"],
    ] {
        assert_eq!(env.run(["generate", "task"].iter().chain(&arguments)).code, Some(0));
    }
    let manifest = "tasks/structural/calculation/beam/generation-manifest.json";
    insta::assert_snapshot!("generation_manifest", env.read(manifest));
    let same = env.run(["--json", "generate", "replay", manifest]).data();
    assert_eq!((same["instances"].as_u64(), same["identical"].as_u64()), (Some(6), Some(6)));

    // The template may have been removed: the version that was used is kept.
    std::fs::remove_dir_all(env.path("templates/beam")).unwrap();
    let written = env.run(["--json", "generate", "replay", manifest, "-o", "again"]);
    assert_eq!(written.data()["published"], "created");
    assert_eq!(contents(&env.path("again")), contents(&env.path("tasks/structural/calculation/beam")));
    assert_eq!(
        env.run(["--json", "generate", "replay", manifest, "-o", "again"]).data()["published"],
        "unchanged"
    );
    env.write("again/more.txt", "x");
    assert_eq!(env.run(["generate", "replay", manifest, "-o", "again"]).code, Some(3));

    // Every change is noticed: of a task, of a file mode, an additional file, of the archive.
    let task = walk(&env.path("tasks")).into_iter().find(|path| path.ends_with("tests/test.sh")).unwrap();
    let original = std::fs::read(&task).unwrap();
    std::fs::write(&task, "exit 0\n").unwrap();
    let changed = env.run(["--json", "generate", "replay", manifest]);
    assert_eq!((changed.code, changed.errors()[0].0.as_str()), (Some(1), "G020"));
    std::fs::write(&task, &original).unwrap();
    let mode = |mode: u32| {
        std::fs::set_permissions(&task, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    mode(0o644);
    assert_eq!(env.run(["generate", "replay", manifest]).code, Some(1));
    mode(0o755);
    let extra = task.with_file_name("extra.py");
    std::fs::write(&extra, "").unwrap();
    assert_eq!(env.run(["generate", "replay", manifest]).code, Some(1));
    std::fs::remove_file(extra).unwrap();
    assert_eq!(env.run(["generate", "replay", manifest]).code, Some(0));
    let archived = walk(&env.path("tasks")).into_iter().find(|path| path.ends_with("engine.py")).unwrap();
    std::fs::write(archived, "def compute(): pass\n").unwrap();
    let gone = env.run(["--json", "generate", "replay", manifest]);
    assert_eq!((gone.code, gone.errors()[0].0.as_str()), (Some(3), "G011"));
}

#[test]
fn a_manifest_that_lies_is_refused() {
    let env = empty_project();
    assert_eq!(env.run(["generate", "task", "heat-load"]).code, Some(0));
    let path = "tasks/mechanical/hvac/heat-load/generation-manifest.json";
    let manifest: Value = serde_json::from_str(&env.read(path)).unwrap();
    let cases: [(&str, Value); 8] = [
        ("/instances/0/task", "../../outside".into()),
        ("/instances/0/task", "/tmp/outside".into()),
        ("/schema_version", 7.into()),
        ("/templates/0/content_hash", format!("sha256:{}", "0".repeat(64)).into()),
        ("/templates/0/version", Value::Null),
        ("/instances/0/difficulty", "extreme".into()),
        ("/instances/0/tool_mode", "telepathy".into()),
        ("/instances/0/template", "civil/none".into()),
    ];
    for (pointer, value) in cases {
        let mut changed = manifest.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        env.write("lies.json", changed.to_string());
        let run = env.run(["generate", "replay", "lies.json", "--output", "deep/out"]);
        assert_eq!(run.code, Some(3), "{pointer}: {run:?}");
        assert!(!env.path("outside").exists() && !env.path("deep/out").exists(), "{pointer}");
    }
    // Another draw gives another task.
    let mut changed = manifest;
    changed["instances"][0]["seed"] = 1.into();
    env.write(path, changed.to_string());
    assert_eq!(env.run(["generate", "replay", path]).code, Some(1));
}

#[test]
fn a_kill_leaves_nothing_or_everything() {
    let env = empty_project();
    let expected = {
        let other = empty_project();
        assert_eq!(other.run(["generate", "task", "heat-load", "--instances", "20"]).code, Some(0));
        contents(&other.path("tasks"))
    };
    let kills = if aec_xtest::full() { 200 } else { 25 };
    let mut whole = 0;
    for round in 0..kills {
        let mut child = env.start(["generate", "task", "heat-load", "--instances", "20"]);
        // Kills are spread over the duration of a run; the result must be right at any moment.
        std::thread::sleep(std::time::Duration::from_millis(20 * round % 500));
        child.kill().unwrap();
        child.wait().unwrap();
        let visible: Vec<_> =
            contents(&env.path("tasks")).into_iter().filter(|(path, _)| !is_hidden(path)).collect();
        if !visible.is_empty() {
            whole += 1;
            assert_eq!(visible, expected, "round {round}");
            std::fs::remove_dir_all(env.path("tasks/mechanical")).unwrap();
        }
    }
    // The next run removes what the killed ones left.
    assert_eq!(env.run(["generate", "task", "heat-load", "--instances", "20"]).code, Some(0));
    assert_eq!(contents(&env.path("tasks")), expected, "{whole} of {kills} were whole");
}

pub(crate) fn is_hidden(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b".aec-bench-staging"))
}

#[test]
fn lists_and_catalogues() {
    let env = empty_project();
    let all = env.run(["--json", "generate", "list-templates"]).data();
    assert!(all.as_array().unwrap().len() >= 66);
    let civil = env.run(["--json", "generate", "list-templates", "--discipline", "civil"]).data();
    assert!(civil.as_array().unwrap().iter().all(|row| row["discipline"] == "civil"));
    let roads = env.run(["--json", "generate", "list-templates", "--filter", "category=roads"]).data();
    assert!(roads.as_array().unwrap().iter().all(|row| row["category"] == "roads"));
    insta::assert_snapshot!(
        "list_templates",
        env.run(["generate", "list-templates", "--discipline", "ground", "--limit", "3"]).snapshot()
    );
    assert_eq!(env.run(["generate", "list-templates", "--filter", "colour=red"]).code, Some(2));

    env.write("seeds/weir-flow.md", "# Weir flow\n\nFlow over a sharp-crested weir (civil).\n\n## Inputs\n- head [m]\n\n## Outputs\n- flow [m3/s]\n");
    env.write("seeds/voltage-drop.md", "# Taken\n\nelectrical\n");
    let compact = env.run(["library", "export", "--quiet"]);
    let pretty = env.run(["library", "export", "--pretty", "--quiet"]);
    let catalogue: Value = serde_json::from_str(&compact.stdout).unwrap();
    assert_eq!(catalogue, serde_json::from_str::<Value>(&pretty.stdout).unwrap());
    assert!(pretty.stdout.lines().count() > 1000 && compact.stdout.lines().count() == 1);
    assert_eq!(catalogue["seeds"].as_array().unwrap().len(), 1, "a seed that has a template is not proposed");
    let drop = catalogue["templates"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["task_id"] == "voltage-drop")
        .unwrap();
    assert_eq!(drop["difficulty_tiers"], serde_json::json!(["easy", "medium", "hard"]));
    let run = env.run(["--json", "library", "export", "--output", "out/catalogue.json", "--pretty"]);
    assert_eq!(run.data()["total_seeds"], 1);
    assert_eq!(env.read("out/catalogue.json"), pretty.stdout);
}

#[test]
fn a_seed_becomes_a_task() {
    let env = empty_project();
    env.write("seeds/weir-flow.md", "# Weir flow\n\nFlow over a sharp-crested weir (civil).\n\n## Inputs\n- head [m]\n\n## Outputs\n- flow [m3/s]\n");
    let run = env.run(["task", "new", "--from-seed", "weir-flow"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    insta::assert_snapshot!("task_from_seed", env.read("tasks/civil/weir-flow/instruction.md"));
    assert_eq!(env.run(["task", "validate", "civil/weir-flow"]).code, Some(0));
    assert_eq!(env.run(["task", "new", "ground/weir", "--from-seed", "seeds/weir-flow.md"]).code, Some(0));
    assert!(env.path("tasks/ground/weir/task.toml").exists());
    assert_eq!(env.run(["task", "new", "--from-seed", "nothing"]).code, Some(3));
    assert_eq!(env.run(["task", "new"]).code, Some(2));
    env.write("seeds/odd.md", "# Odd\n\nNo discipline is named.\n");
    assert_eq!(env.run(["task", "new", "--from-seed", "odd"]).code, Some(2));
}
