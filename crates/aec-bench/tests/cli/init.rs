//! `init` and `quickstart`: which files they write, keep and refuse to overwrite.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;

use crate::cli::world;

/// Every path below a directory, directories with a slash.
fn tree(root: &std::path::Path) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let shown = path.strip_prefix(root).unwrap().display().to_string();
            if path.is_dir() {
                paths.insert(format!("{shown}/"));
                open.push(path);
            } else {
                paths.insert(shown);
            }
        }
    }
    paths
}

#[test]
fn the_layout_is_that_of_the_documents() {
    let env = world();
    let run = env.run(["init"]);
    insta::assert_snapshot!("init", run.snapshot());
    let tree = tree(&env.dir());
    for path in [
        "aec-bench.toml",
        "suite.toml",
        ".env",
        ".gitignore",
        "tasks/",
        "templates/",
        "artefacts/ledger/",
        "artefacts/feedback/",
        "artefacts/datasets/",
        "jobs/",
        "prime-rl/",
        "seeds/",
        "workspaces/",
    ] {
        assert!(tree.contains(path), "{path}");
    }
    insta::assert_snapshot!("init_tree", tree.into_iter().collect::<Vec<_>>().join("\n"));
    insta::assert_snapshot!("init_project_file", env.read("aec-bench.toml"));
    let mode = std::fs::metadata(env.path(".env")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "secrets are private");
    for line in [".env", "jobs/", "prime-rl/", ".aec-bench/state/"] {
        assert!(env.read(".gitignore").lines().any(|known| known == line), "{line}");
    }
}

#[test]
fn what_init_writes_is_valid_in_every_way() {
    let env = world();
    env.init();
    let check = env.run(["--json", "config", "check"]).data();
    let kinds: Vec<&str> =
        check["files"].as_array().unwrap().iter().map(|file| file["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["environment", "project", "suite", "task"]);
    let validate = env.run(["--json", "task", "validate", "--all"]).data();
    assert_eq!((validate["checked"].as_u64(), validate["passed"].as_u64()), (Some(1), Some(1)));
    assert_eq!(validate["notes"].as_array().unwrap().len(), 0, "{validate}");
    // The schema that each file names for editors exists.
    for file in ["aec-bench.toml", "suite.toml", "tasks/electrical/voltage-drop/task.toml"] {
        let text = env.read(file);
        let schema = text.lines().next().unwrap().strip_prefix("#:schema ").unwrap().to_owned();
        let path = env.path(file).parent().unwrap().join(schema);
        assert!(path.canonicalize().is_ok(), "{}", path.display());
    }
    assert!(env.read("aec-bench.toml").contains("backend = \"local\""));
}

#[test]
fn the_example_task_runs_and_scores_right_and_wrong_answers() {
    let env = world();
    env.init();
    let task = env.path("tasks/electrical/voltage-drop");
    // Without the judge: the task's absolute paths are moved into a scratch directory.
    let scratch = env.path("scratch");
    std::fs::create_dir_all(scratch.join("workspace")).unwrap();
    std::fs::copy(task.join("environment/cables.csv"), scratch.join("workspace/cables.csv")).unwrap();
    let here = |text: &str| {
        let root = scratch.to_str().unwrap();
        text.replace("/workspace/", &format!("{root}/workspace/")).replace("/logs/", &format!("{root}/logs/"))
    };
    let reward = |answer: Option<&str>| {
        match answer {
            Some(file) => {
                std::fs::copy(task.join("tests/fixtures").join(file), scratch.join("workspace/output.json"))
                    .unwrap();
            }
            None => {
                let solve = here(&std::fs::read_to_string(task.join("solution/solve.sh")).unwrap());
                let done = std::process::Command::new("bash").args(["-c", &solve]).status().unwrap();
                assert!(done.success());
            }
        }
        let verify = here(&std::fs::read_to_string(task.join("tests/verify.py")).unwrap());
        let done = std::process::Command::new("python3").args(["-I", "-c", &verify]).status().unwrap();
        assert!(done.success());
        let text = std::fs::read_to_string(scratch.join("logs/verifier/reward.json")).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["reward"].as_f64().unwrap()
    };
    assert!((reward(None) - 1.0).abs() < 1e-12, "the reference solution");
    assert!((reward(Some("golden_pass.json")) - 1.0).abs() < 1e-12);
    assert!(reward(Some("golden_fail.json")) < 1e-12);
    let tool = std::process::Command::new("python3")
        .arg(task.join("tools/voltage_drop.py"))
        .args(["--current", "63", "--length", "85", "--value", "1.52"])
        .output()
        .unwrap();
    let printed: f64 = String::from_utf8_lossy(&tool.stdout).trim().parse().unwrap();
    assert!((printed - 8.1396).abs() < 1e-9);
}

#[test]
fn nothing_is_overwritten_without_force() {
    let env = world();
    env.write("suite.toml", "mine");
    env.write(".env", "A_KEY=mine");
    env.write(".gitignore", "mine\n.env");
    env.init();
    assert_eq!(env.read("suite.toml"), "mine");
    assert_eq!(env.read(".env"), "A_KEY=mine");
    let ignore = env.read(".gitignore");
    assert!(ignore.starts_with("mine\n.env\n# aec-bench\n"), "{ignore}");
    assert_eq!(ignore.lines().filter(|line| *line == ".env").count(), 1);

    let again = env.run(["init"]);
    assert_eq!(again.code, Some(3));
    insta::assert_snapshot!("init_again", again.snapshot());

    env.write("tasks/electrical/voltage-drop/instruction.md", "mine");
    let force = env.run(["--json", "init", "--force"]).data();
    let action = |path: &str| {
        let files = force["files"].as_array().unwrap();
        files.iter().find(|file| file["path"] == path).unwrap()["action"].as_str().unwrap().to_owned()
    };
    assert_eq!(action("suite.toml"), "replaced");
    assert_eq!(action("tasks/electrical/voltage-drop/instruction.md"), "replaced");
    assert_eq!(action(".env"), "kept");
    assert_eq!(action(".gitignore"), "kept");
    assert_eq!(env.read(".env"), "A_KEY=mine", "never a file that may hold secrets");
}

#[test]
fn something_in_the_way_stops_everything() {
    let env = world();
    env.write("jobs", "a file");
    let before = tree(&env.dir());
    let run = env.run(["init"]);
    assert_eq!(run.code, Some(3));
    assert!(run.stderr.contains("something that is not a directory is in the way"), "{run:?}");
    assert_eq!(tree(&env.dir()), before, "nothing was written");

    let env = world();
    std::fs::create_dir(env.path("outside")).unwrap();
    std::fs::create_dir(env.path("project")).unwrap();
    std::os::unix::fs::symlink(env.path("outside"), env.path("project/tasks")).unwrap();
    assert_eq!(env.run(["init", "project"]).code, Some(3), "not through a link");
    assert!(tree(&env.path("outside")).is_empty());
}

#[test]
fn the_project_is_named_after_its_directory() {
    let env = world();
    for (directory, name) in [("my bench", "my-bench"), ("ünder", "nder"), ("...", "my-bench")] {
        assert_eq!(env.run(["init", directory]).code, Some(0));
        assert!(env.read(format!("{directory}/aec-bench.toml")).contains(&format!("name = \"{name}\"")));
        let check = env.run_in(&env.path(directory), ["config", "check"]);
        assert_eq!(check.code, Some(0), "{check:?}");
    }
}

#[test]
fn quickstart_makes_a_project_checks_it_and_can_be_repeated() {
    let env = world();
    let run = env.run(["quickstart"]);
    insta::assert_snapshot!("quickstart", run.snapshot());
    let again = env.run(["--json", "quickstart"]).data();
    assert_eq!((again["created"].as_bool(), again["tasks"].as_u64()), (Some(false), Some(13)));
    assert_eq!((again["trials_executed"].as_u64(), again["trials_run_now"].as_u64()), (Some(104), Some(0)));
    env.write("aec-bench-quickstart/tasks/electrical/voltage-drop/instruction.md", "");
    let broken = env.run(["quickstart"]);
    assert_eq!(broken.code, Some(1));
    assert!(broken.stderr.contains("[T011]"), "{broken:?}");
}
