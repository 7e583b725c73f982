//! Compatibility with the library's own commands: installed environments, runs that `vf-eval` began, models as judges.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use aec_model_server::Range;
use aec_xtest::venv::{run, with_verifiers};
use serde_json::{Value, json};

use crate::eval::python::{eval, world, world_with};
use crate::eval::world::{World, metadata, rows};

/// For each request to the server, in order: whether it was a question to the judge.
fn judged(world: &World) -> Vec<bool> {
    let is_judged = |request: &Value| request["messages"].to_string().contains("JUDGE");
    world.requests().iter().map(is_judged).collect()
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn both_limits_and_the_order_of_scoring_are_seen_at_the_server() {
    let python = with_verifiers("0.1.14");
    let judge = r#"{"judge_model": "gpt-4.1-mini", "count": 6}"#;
    let run = |words: &[&str]| {
        // The usual answer is 7: it is judged wrong, except where the question is whether 7 is 8.
        let world = world_with(&[("JUDGE: is 7 the same as 8?", "yes"), ("JUDGE", "no")], |options| {
            options.latency = Range::only(Duration::from_millis(300));
        });
        let line = ["gsm8k", "-n", "6", "-r", "2", "-a", judge];
        let data = eval(&world, &python, &line.iter().chain(words).copied().collect::<Vec<_>>());
        assert_eq!((&data["rows"], &data["errored"]), (&json!(12), &json!(0)), "{data}");
        assert!((data["reward"]["mean"].as_f64().unwrap() - 1.0 / 6.0).abs() < 1e-12, "{data}");
        (judged(&world), world.server.stats().highest_in_flight)
    };
    // Everything is generated before anything is scored.
    let limits = ["-N", "--max-concurrent-generation", "2", "--max-concurrent-scoring", "6"];
    let (asked, most) = run(&limits);
    assert_eq!(asked.iter().position(|judged| *judged), Some(12), "{asked:?}");
    assert_eq!((asked.len(), most), (24, 6));
    let limits = ["-N", "--max-concurrent-generation", "6", "--max-concurrent-scoring", "2"];
    assert_eq!(run(&limits).1, 6);
    // One of each at once: an answer is scored while the next is generated.
    let limits = ["--max-concurrent-generation", "2", "--max-concurrent-scoring", "2"];
    let (asked, most) = run(&limits);
    assert!(asked[..12].contains(&true), "{asked:?}");
    assert!(most <= 4, "{most}");
    let limits = ["-i", "--max-concurrent-generation", "1", "--max-concurrent-scoring", "1"];
    assert!(run(&limits).1 <= 2);
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn the_detailed_file_of_the_document_runs() {
    let python = with_verifiers("0.1.14");
    let world = world(&[]);
    world.env.write(
        "configs/eval/detailed.toml",
        "model = \"gpt-4.1-mini\"\n\n[[eval]]\nenv_id = \"math-python\"\nnum_examples = 50\n\n[eval.env_args]\n\
         difficulty = \"hard\"\nsplit = \"test\"\n\n[[eval]]\nenv_id = \"wiki-search\"\nnum_examples = 30\n\n\
         [eval.env_args]\nmax_turns = 15\njudge_model = \"gpt-4.1-mini\"\n",
    );
    let run = world.env.run([
        "--json",
        "eval",
        "run",
        "configs/eval/detailed.toml",
        "--python",
        python.to_str().unwrap(),
    ]);
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    let data = run.envelope()["data"]["evaluations"].clone();
    let told = |at: usize| (data[at]["env_id"].clone(), data[at]["num_examples"].clone());
    assert_eq!(told(0), (json!("math-python"), json!(3)), "{data}");
    assert_eq!(told(1), (json!("wiki-search"), json!(2)), "{data}");
    let asked = world.requests();
    assert!(asked.iter().any(|request| request["messages"].to_string().contains("(hard)")), "{asked:?}");
    // Fifteen turns of the model; then the environment ends.
    let turns = |request: &Value| request["messages"].as_array().unwrap().len();
    assert_eq!(asked.iter().map(turns).max(), Some(29));
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn a_run_of_vf_eval_is_gone_on_with() {
    let python = with_verifiers("0.1.14");
    let world = world(&[("1 + 1", "2"), ("2 + 2", "4"), ("3 + 3", "6")]);
    let url = format!("{}/v1", world.server.url());
    let mut vf_eval = Command::new(python.with_file_name("vf-eval"));
    vf_eval
        .args(["gsm8k", "-m", "gpt-4.1-mini", "-b", &url, "-k", "KEY", "-n", "3", "-r", "2", "-s", "-d"])
        .args(["-p", "local", "--env-dir-path", "environments"])
        .current_dir(world.env.dir())
        .env("HOME", world.env.home())
        .env("PYTHONPATH", world.env.path("environments/gsm8k"))
        .env("KEY", "sk-local-test-key");
    run(&mut vf_eval).unwrap();
    let saved = world.saved("gsm8k", "gsm8k");
    let whole = rows(&saved);
    assert_eq!(whole.len(), 6);
    // As if it had been stopped after four rollouts.
    let text = std::fs::read_to_string(saved.join("results.jsonl")).unwrap();
    let kept: String = text.split_inclusive('\n').take(4).collect();
    std::fs::write(saved.join("results.jsonl"), &kept).unwrap();
    let asked = world.requests().len();
    let path = saved.to_str().unwrap();
    let line = ["gsm8k", "-m", "gpt-4.1-mini", "-n", "3", "-r", "2", "-s", "--resume", path];
    let data = eval(&world, &python, &line);
    assert_eq!((&data["rows"], &data["reward"]["mean"]), (&json!(6), &json!(1.0)), "{data}");
    assert_eq!(world.requests().len() - asked, 2);
    let now = std::fs::read_to_string(saved.join("results.jsonl")).unwrap();
    assert!(now.starts_with(&kept), "what the library wrote stays as it is");
    assert_eq!(metadata(&saved)["avg_reward"], 1.0);
}

#[test]
fn environments_are_installed_as_the_document_says() {
    let world = World::new();
    world.environment("my-env");
    // Our own package needs no interpreter.
    let install = world.run("--json env install my-env");
    assert_eq!(install.code, Some(0), "{install:?}");
    assert_eq!(install.data()["environments"][0]["installed"], false);
    assert_eq!(world.run("eval run my-env -m gpt-4.1-mini -n 10").code, Some(0));
    // A plain name is never looked up at a package index, where anybody could have put something.
    let unknown = world.run("env install nothing-like-it");
    assert_eq!(unknown.code, Some(3), "{unknown:?}");
    assert!(unknown.stderr.contains("R112"), "{unknown:?}");
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn an_environment_in_python_is_installed_where_it_is_evaluated() {
    let verifiers = with_verifiers("0.1.14");
    let world = world(&[]);
    // A separate interpreter that sees the library of the other one.
    let venv = world.env.path("venv");
    run(Command::new(aec_xtest::venv::interpreter())
        .args(["-m", "venv", "--system-site-packages"])
        .arg(&venv))
    .unwrap();
    let python = venv.join("bin/python");
    let place =
        run(Command::new(&python).args(["-c", "import site; print(site.getsitepackages()[0])"])).unwrap();
    let library =
        run(Command::new(&verifiers).args(["-c", "import site; print(site.getsitepackages()[0])"])).unwrap();
    std::fs::write(Path::new(place.trim()).join("library.pth"), library).unwrap();
    let words = ["--json", "eval", "install", "gsm8k", "--python", python.to_str().unwrap()];
    let install = world.env.run(words);
    assert_eq!(install.code, Some(0), "{install:?}");
    assert_eq!(install.data()["environments"][0]["installed"], true);
    std::fs::create_dir(world.env.path("elsewhere")).unwrap();
    let elsewhere = world.env.run_in(
        &world.env.path("elsewhere"),
        ["--json", "eval", "run", "gsm8k", "-n", "2", "-r", "1", "--python", python.to_str().unwrap()],
    );
    assert!(matches!(elsewhere.code, Some(0 | 1)), "it is found without its directory: {elsewhere:?}");
    assert_eq!(elsewhere.envelope()["data"]["evaluations"][0]["rows"], 2);
}
