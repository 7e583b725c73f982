//! What `prime export` refuses, and that a refusal changes nothing.

use aec_xtest::files::files_below;

use crate::prime::world::{Project, public};

/// The ids of a refusal, and its exit code.
fn refused(project: &Project, line: &str) -> (Option<i32>, Vec<String>) {
    let run = project.export(line);
    (run.code, run.errors().into_iter().map(|(id, _)| id).collect())
}

#[test]
fn only_public_tasks_leave() {
    let project = Project::new();
    project.tasks(&["civil/public"]);
    project.task("civil/held", &public("easy").replace("\"public\"", "\"holdout\""), &[]);
    project.task("civil/silent", "version = \"1.0\"\n\n[metadata]\ndifficulty = \"easy\"\n", &[]);
    let run = project.export("--name aec-x");
    let mut errors = run.errors();
    errors.sort();
    assert_eq!(run.code, Some(3), "{run:?}");
    assert_eq!(
        errors,
        [
            ("H014".to_owned(), "`civil/held` is held out and is not exported".to_owned()),
            ("H015".to_owned(), "`civil/silent` does not say who may see it".to_owned()),
        ],
        "all of them are reported at once"
    );
    assert!(!project.env.path("packages").exists());
    project.ok("prime export --name aec-x --output-dir packages --task civil/public");
    let before = files_below(&project.env.path("packages"));
    assert_eq!(refused(&project, "--name aec-x").1.len(), 2);
    assert!(files_below(&project.env.path("packages")) == before, "the older package stays");
}

#[test]
fn tasks_that_are_not_there_are_refused() {
    let project = Project::new();
    project.tasks(&["civil/a"]);
    for line in [
        "--task civil/none",
        "--task civil/a civil/none",
        "--pattern ground/*",
        "--difficulty hard",
        "--tag none",
    ] {
        let run = project.export(&format!("--name aec-x {line}"));
        assert!(run.code.is_some_and(|code| code != 0) && !run.errors().is_empty(), "{line}: {run:?}");
    }
    assert!(!project.env.path("packages").exists());
}

#[test]
fn names_and_versions_are_checked() {
    let project = Project::new();
    project.tasks(&["civil/a"]);
    let long = "x".repeat(65);
    for name in
        ["", "A", "aec-", "-aec", "1aec", "a--b", "a_-b", "a/b", "../a", "a.b", "a b", "ä", "a\u{7}", &long]
    {
        let run = project.env.run([
            "--json",
            "prime",
            "export",
            "--output-dir",
            "packages",
            &format!("--name={name}"),
        ]);
        assert_eq!((run.code, run.errors()[0].0.as_str()), (Some(2), "H016"), "{name:?}: {run:?}");
    }
    for version in ["", "1.", "v1", "1.0.0.0", "1.0a", "1.0-1", "-1", "1,0", "1234567890", "١"] {
        let version = format!("--version={version}");
        let run = project.env.run([
            "--json",
            "prime",
            "export",
            "--output-dir",
            "packages",
            "--name",
            "aec-x",
            &version,
        ]);
        assert_eq!((run.code, run.errors()[0].0.as_str()), (Some(2), "H017"), "{version}: {run:?}");
    }
    assert!(!project.env.path("packages").exists());
}

#[test]
fn a_workspace_does_not_fit_into_a_single_turn() {
    let project = Project::new();
    project.tasks(&["civil/plain"]);
    project.task("civil/data", &public("easy"), &[("environment/levels.csv", "1\n")]);
    let run = project.export("--name aec-x --harness-mode single-turn");
    let why = "`civil/data` needs a workspace: the agent gets levels.csv".to_owned();
    assert_eq!((run.code, run.errors()), (Some(3), vec![("H013".to_owned(), why)]));
    for mode in ["auto", "stateful"] {
        project.ok(&format!("prime export --name aec-x --output-dir packages --harness-mode {mode}"));
        assert_eq!(project.manifest("aec_x").harness.name(), mode);
    }
    project
        .ok("prime export --name aec-x --output-dir packages --harness-mode single-turn --task civil/plain");
}

#[test]
fn what_is_no_package_is_left_alone() {
    let project = Project::new();
    project.tasks(&["civil/a"]);
    project.env.write("packages/aec_mine/notes.txt", "mine");
    project.env.write("packages/aec_file", "mine");
    project.env.write("packages/aec_half/pyproject.toml", "[project]\n");
    std::fs::create_dir(project.package("aec_empty")).unwrap();
    project.ok("prime export --name aec-real --output-dir elsewhere");
    std::os::unix::fs::symlink(project.env.path("elsewhere/aec_real"), project.package("aec_link")).unwrap();
    std::os::unix::fs::symlink("nowhere", project.package("aec_dangling")).unwrap();
    let before = files_below(&project.env.path("elsewhere"));
    for name in ["mine", "file", "half", "empty", "link", "dangling"] {
        let found = refused(&project, &format!("--name aec-{name}"));
        assert_eq!(found, (Some(3), vec!["H018".to_owned()]), "{name}");
    }
    assert_eq!(project.env.read("packages/aec_mine/notes.txt"), "mine");
    assert_eq!(project.env.read("packages/aec_file"), "mine");
    assert!(files_below(&project.env.path("elsewhere")) == before);
    assert_eq!(std::fs::read_dir(project.env.path("packages")).unwrap().count(), 6);
}

#[test]
fn a_dataset_that_has_drifted_is_refused() {
    let project = Project::new();
    project.tasks(&["civil/a", "civil/b"]);
    project.ok("dataset create --name set --version 1.0.0");
    project.ok("prime export --name aec-set --output-dir packages --dataset set@1.0.0");
    let before = files_below(&project.env.path("packages"));
    project.env.write("tasks/civil/b/instruction.md", "Something else to `/workspace/output.json`.\n");
    let (code, ids) = refused(&project, "--name aec-set --dataset set@1.0.0");
    assert!(
        code.is_some_and(|code| code != 0) && ids.iter().all(|id| id.starts_with('D')),
        "{code:?} {ids:?}"
    );
    let (code, _) = refused(&project, "--name aec-set --dataset set@1.0.0 --task civil/a");
    assert_ne!(code, Some(0), "also when the changed task is not selected");
    assert_ne!(refused(&project, "--name aec-set --dataset other@1.0.0").0, Some(0));
    assert!(files_below(&project.env.path("packages")) == before);
    project.ok("prime export --name aec-set --output-dir packages");
}

#[test]
fn tasks_whose_services_a_package_cannot_start_are_refused() {
    let project = Project::new();
    let services = "services:\n  plant:\n    image: plant:1\n";
    project.task("civil/served", &public("easy"), &[("environment/docker-compose.yaml", services)]);
    let run = project.export("--name aec-x");
    assert_eq!((run.code, run.errors()[0].0.as_str()), (Some(3), "H012"), "{run:?}");
    assert!(run.errors()[0].1.contains("(plant)"), "{run:?}");
    let odd = "services:\n  plant:\n    image: plant:1\n    privileged: true\n";
    project.task("civil/served", &public("easy"), &[("environment/docker-compose.yaml", odd)]);
    assert_eq!(project.export("--name aec-x").errors()[0].0, "T003");
}

#[test]
fn broken_tasks_and_policies_are_told() {
    let project = Project::new();
    project.task("civil/policy", &public("easy"), &[("rlm.toml", "[guardrails]\nmax_iterations = 0\n")]);
    project.task("civil/toml", &public("easy"), &[("lambda-rlm.toml", "[guardrails\n")]);
    let run = project.export("--name aec-x");
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.errors().iter().all(|(id, what)| id == "H012" && what.contains("rlm.toml")), "{run:?}");
    assert_eq!(run.errors().len(), 2);
}
