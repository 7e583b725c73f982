//! The runtime in the packages: the scripts in `python` check it with the plain interpreter and with released versions
//! of `verifiers`, against the native judge. With `AEC_TEST=full` they check everything they can.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use aec_xtest::files::files_below;

use crate::prime::venv::{interpreter, scripts, venvs, with_verifiers};
use crate::prime::world::Project;

/// A task with files, a tool, a limit of turns and its own verifier.
const SURVEY: &str = "civil/culvert-survey";
/// Copies of it, at least as many as `check_v1.py` plays scenarios.
const SURVEYS: usize = 24;
/// The user without any permissions.
const NOBODY: u32 = 65534;

/// A project, its packages, and the native judge's verdicts on answers to its tasks.
struct World {
    project: Project,
}

impl World {
    /// Five single-turn tasks (`aec_single`) and three tasks of both kinds (`aec_mixed`).
    fn new() -> Self {
        let project = Project::with_example();
        for line in [
            "generate task voltage-drop --instances 3 --tool-mode no-tool",
            "generate task pump-power-npsh --instances 2 --tool-mode no-tool",
            &export_single("packages"),
        ] {
            project.ok(line);
        }
        let single: Vec<String> =
            project.manifest("aec_single").tasks.into_iter().map(|task| task.task_id).collect();
        let mixed = [single[0].as_str(), SURVEY, "electrical/voltage-drop"];
        copy_survey(&project, SURVEY, "");
        project
            .ok(&format!("prime export --name aec-mixed --output-dir packages --task {}", mixed.join(" ")));
        let world = Self { project };
        let judged = single.iter().map(String::as_str).chain(mixed.into_iter().skip(1));
        let program = Path::new(env!("CARGO_BIN_EXE_aec-bench"));
        let mut cases = world.script(&interpreter(), "make_cases.py");
        check(cases.arg(program).arg(".").arg("cases.json").args(judged));
        world
    }

    /// Copies of one task as a separate package (`aec_surveys`), which name themselves in their instructions.
    fn with_surveys(self) -> Self {
        for number in 0..SURVEYS {
            let id = format!("civil/survey-{number:03}");
            copy_survey(&self.project, &id, &format!("\nThis is {id}.\n"));
        }
        self.project.ok("prime export --name aec-surveys --output-dir packages --pattern civil/survey-*");
        self
    }

    /// A script with an interpreter, in the project.
    fn script(&self, python: &Path, name: &str) -> Command {
        let mut command = Command::new(python);
        command
            .arg("-B")
            .arg(scripts().join(name))
            .current_dir(self.project.env.dir())
            .env("HOME", self.project.env.home())
            // `verifiers` lets `uv` install what its chat program needs, once for all rollouts.
            .env("UV_CACHE_DIR", venvs().join("uv-cache"))
            .env("UV_COMPILE_BYTECODE", "1")
            .env_remove("PYTHONDONTWRITEBYTECODE");
        command
    }

    /// A script that checks packages.
    fn checks<const N: usize>(&self, python: &Path, name: &str, packages: [PathBuf; N]) -> Command {
        let mut command = self.script(python, name);
        if name != "check_core.py" {
            command.args(["--cases", "cases.json"]);
        }
        command.args(packages);
        command
    }

    fn packages<const N: usize>(&self, modules: [&str; N]) -> [PathBuf; N] {
        modules.map(|module| self.project.package(module))
    }
}

/// The command line that exports the generated tasks.
fn export_single(directory: &str) -> String {
    format!("prime export --name aec-single --output-dir {directory} --task electrical/cables mechanical")
}

/// Runs a script, which must succeed.
fn check(command: &mut Command) {
    let done = command.output().unwrap();
    let (said, told) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    let failed: Vec<&str> = said.lines().filter(|line| !line.starts_with("ok ")).collect();
    // Libraries print progress there; only the last lines are useful.
    let end: Vec<&str> = told.lines().rev().take(20).collect();
    let end: Vec<&str> = end.into_iter().rev().collect();
    assert!(done.status.success(), "{:?}\n{}\n{}", done.status, failed.join("\n"), end.join("\n"));
}

/// Copies the survey into a project, with an addition to its instruction.
fn copy_survey(project: &Project, id: &str, added: &str) {
    for (path, content) in files_below(&scripts().join("fixtures/tasks").join(SURVEY)) {
        let mut content = content;
        if path == "instruction.md" {
            content.extend_from_slice(added.as_bytes());
        }
        project.env.write(format!("tasks/{id}/{path}"), content);
    }
}

/// Slow scripts check less unless `AEC_TEST=full` is set.
fn short() -> Option<&'static str> {
    (!aec_xtest::full()).then_some("--short")
}

#[test]
fn selection_manifest_and_rewards_are_read_strictly() {
    let world = World::new();
    check(&mut world.checks(&interpreter(), "check_core.py", world.packages(["aec_single", "aec_mixed"])));
}

/// The packages for the checks of rooms. Rooms have a private /tmp, so hiding one must be tested outside /tmp.
fn packages_elsewhere(world: &World) -> (tempfile::TempDir, [PathBuf; 2]) {
    let elsewhere = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::set_permissions(elsewhere.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    world.project.ok(&export_single(elsewhere.path().to_str().unwrap()));
    let packages = [elsewhere.path().join("aec_single"), world.project.package("aec_mixed")];
    (elsewhere, packages)
}

#[test]
fn rooms_hold_and_verdicts_are_those_of_the_native_judge() {
    let world = World::new();
    let (_elsewhere, packages) = packages_elsewhere(&world);
    check(world.checks(&interpreter(), "check_rooms.py", packages).args(short()));
}

#[test]
#[cfg_attr(
    not(all(ordinary_user, full)),
    ignore = "needs root and a working copy that others can read, and AEC_TEST=full: it is long"
)]
fn rooms_hold_and_verdicts_are_the_same_for_an_ordinary_user() {
    let mut world = World::new();
    let (_elsewhere, packages) = packages_elsewhere(&world);
    world.project.env.become_ordinary_user();
    let mut command = world.checks(Path::new("/usr/bin/python3"), "check_rooms.py", packages);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", "/nonexistent");
    check(command.uid(NOBODY).gid(NOBODY));
}

/// Both kinds of environment of `verifiers` up to 0.3.
fn check_environments(version: &str) {
    let python = with_verifiers(version);
    let world = World::new();
    check(world.checks(&python, "check_v0.py", world.packages(["aec_single", "aec_mixed"])).args(short()));
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn environments_work_with_verifiers_0_1_14() {
    check_environments("0.1.14");
}

#[test]
#[cfg_attr(
    not(all(packages, full)),
    ignore = "needs the Python package index, and AEC_TEST=full: the fast tier tries the versions before and after it"
)]
fn environments_work_with_verifiers_0_3_1() {
    check_environments("0.3.1");
}

/// The taskset of `verifiers` from 0.3.1 on.
fn check_taskset(version: &str) {
    let python = with_verifiers(version);
    let world = World::new().with_surveys();
    check(
        world
            .checks(&python, "check_v1.py", world.packages(["aec_single", "aec_surveys", "aec_mixed"]))
            .args(short()),
    );
}

#[test]
#[cfg_attr(
    not(all(packages, full)),
    ignore = "needs the Python package index, and AEC_TEST=full: the fast tier tries the versions before and after it"
)]
fn the_taskset_works_with_verifiers_0_3_1() {
    check_taskset("0.3.1");
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn the_taskset_works_with_verifiers_0_4_0() {
    check_taskset("0.4.0");
}
