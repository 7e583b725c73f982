//! `prime smoke`: a package in the real library, with built-in models and with a model on a server.

use std::path::Path;
use std::process::Command;

use aec_model_server::{Answers, Options, TestServer};

use crate::prime::venv::{interpreter, with_verifiers};
use crate::prime::world::Project;

const TASK: &str = "electrical/voltage-drop";

/// A Python environment as the command would make it, with the library of the tests: installing takes minutes.
fn lend(project: &Project, version: &str, library: &Path) {
    let venv = project.env.path(format!("prime-rl/venvs/verifiers-{version}"));
    let made = Command::new(interpreter()).args(["-m", "venv"]).arg(&venv).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let below = |venv: &Path| {
        let mut versions = std::fs::read_dir(venv.join("lib")).unwrap();
        versions.next().unwrap().unwrap().path().join("site-packages")
    };
    let shared = below(library.parent().unwrap().parent().unwrap());
    std::fs::write(below(&venv).join("lent.pth"), shared.to_str().unwrap()).unwrap();
    std::fs::write(venv.join("installed"), version).unwrap();
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn the_library_rewards_what_the_judge_rewards() {
    let library = with_verifiers("0.3.1");
    let project = Project::with_example();
    lend(&project, "0.3.1", &library);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let options = Options { answers: Answers::Echo, key: Some("near-key".into()), ..Options::default() };
    let server = runtime.block_on(TestServer::start(options)).unwrap();
    let row = format!(
        "[[endpoint]]\nendpoint_id = \"near\"\nmodel = \"big\"\nurl = \"{}/v1\"\nkey = \"NEAR_KEY\"\n",
        server.url()
    );
    project.env.write("configs/endpoints.toml", row);
    project.env.write(".env", "NEAR_KEY=near-key\n");
    let run = project.run(&format!("--json prime smoke --name aec-smoke --task {TASK} --model near"));
    assert_eq!(run.code, Some(0), "{run:?}");
    let data = run.data();
    assert_eq!(data["verifiers"], "0.3.1");
    let rollouts = data["rollouts"].as_array().unwrap();
    let played: Vec<_> = rollouts
        .iter()
        .map(|rollout| {
            assert_eq!(rollout["task_id"], TASK);
            assert_eq!(rollout["is_right"], true, "{rollout}");
            (rollout["player"].as_str().unwrap(), rollout["reward"].as_f64())
        })
        .collect();
    // A model that echoes the question has no answer.
    assert_eq!(played, [("reference", Some(1.0)), ("nothing", Some(0.0)), ("model", Some(0.0))]);
    assert!(!server.stats().requests.is_empty(), "the model at the address was asked");
    // The name alone means the existing package, with the tasks that were chosen for it.
    let others = project.env.path("tasks").join(TASK);
    aec_xtest::files::copy(&others, &others.with_file_name("another"));
    let again = project.run("--json prime smoke --name aec-smoke");
    assert_eq!(again.code, Some(0), "{again:?}");
    let tasks = again.data()["package"]["tasks"].clone();
    assert_eq!((tasks.as_array().unwrap().len(), &tasks[0]["task_id"]), (1, &TASK.into()), "{tasks}");
}

#[test]
fn a_version_that_is_none_and_a_model_without_an_address_are_refused() {
    let project = Project::with_example();
    let run = project.run(&format!("prime smoke --name aec-smoke --task {TASK} --verifiers ../../etc"));
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.stderr.contains("`../../etc` is not a version of verifiers"), "{run:?}");
}
