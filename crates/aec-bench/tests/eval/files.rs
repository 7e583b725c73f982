//! Files of several evaluations.

use std::time::Duration;

use aec_model_server::Range;
use serde_json::json;

use crate::eval::world::World;

#[test]
fn evaluations_of_a_file_run_side_by_side() {
    let world = World::with(|options| options.latency = Range::only(Duration::from_millis(300)));
    world.environment("gsm8k");
    world.environment("math-python");
    world.env.write(
        "both.toml",
        "rollouts_per_example = 1\nmax_concurrent = 2\n[[eval]]\nenv_id = \"gsm8k\"\n[[eval]]\nenv_id = \"math-python\"\n",
    );
    let run = world.run("--json eval run both.toml");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(world.server.stats().highest_in_flight > 2, "{:?}", world.server.stats());
}

#[test]
fn flags_beside_a_file_are_named_and_left_aside() {
    let world = World::new();
    world.environment("gsm8k");
    world.env.write("one.toml", "num_examples = 2\nrollouts_per_example = 1\n[[eval]]\nenv_id = \"gsm8k\"\n");
    let run = world.run("--json eval run one.toml -n 5 -T 0.5 -v --record tape");
    assert_eq!(run.code, Some(0), "{run:?}");
    let envelope = run.envelope();
    assert_eq!(envelope["data"]["evaluations"][0]["num_examples"], 2);
    let told = envelope["errors"][0]["what"].as_str().unwrap();
    assert_eq!(told, "--num-examples, --temperature are ignored beside a file of evaluations");
    assert!(world.requests().iter().all(|request| request["temperature"].is_null()));
    assert!(world.env.path("tape").is_dir(), "recording is no setting of an evaluation");
}

#[test]
fn precedence_is_eval_then_file_then_package_then_default() {
    let world = World::new();
    world.environment("gsm8k");
    let inner = world.env.path("environments/gsm8k/gsm8k/pyproject.toml");
    let text = std::fs::read_to_string(&inner).unwrap();
    let text = format!("{text}\n[tool.verifiers.eval]\nnum_examples = 4\nrollouts_per_example = 2\n");
    std::fs::write(&inner, text).unwrap();
    let counts = |file: &str, text: &str| {
        world.env.write(file, text);
        let data = world.eval(&format!("eval run {file}"));
        (data["num_examples"].clone(), data["rollouts_per_example"].clone())
    };
    assert_eq!(counts("a.toml", "[[eval]]\nenv_id = \"gsm8k\"\n"), (json!(4), json!(2)));
    assert_eq!(counts("b.toml", "num_examples = 3\n[[eval]]\nenv_id = \"gsm8k\"\n"), (json!(3), json!(2)));
    assert_eq!(
        counts("c.toml", "num_examples = 3\n[[eval]]\nenv_id = \"gsm8k\"\nnum_examples = 1\n"),
        (json!(1), json!(2))
    );
    let data = world.eval("eval run gsm8k -r 1");
    assert_eq!((&data["num_examples"], &data["rollouts_per_example"]), (&json!(4), &json!(1)));
}

#[test]
fn sweeps_become_evaluations() {
    let world = World::new();
    world.environment("gsm8k");
    world.env.write(
        "sweep.toml",
        "num_examples = 1\nrollouts_per_example = 1\n[[ablation]]\nenv_id = \"gsm8k\"\n[ablation.sweep]\ntemperature = [0.0, 0.5]\n\
         [ablation.sweep.env_args]\nseed = [1, 2, 3]\n",
    );
    let run = world.run("--json eval run sweep.toml");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.data()["evaluations"].as_array().unwrap().len(), 6);
}

#[test]
fn mistakes_in_a_file_are_told_with_their_place() {
    let world = World::new();
    world.env.write("bad.toml", "modle = \"x\"\n[[eval]]\nenv_id = \"gsm8k\"\nnum_examples = \"many\"\n");
    let run = world.run("eval run bad.toml");
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.stderr.contains("bad.toml:1:") && run.stderr.contains("bad.toml:4:"), "{run:?}");
    assert!(run.stderr.contains("model"), "a suggestion: {run:?}");
    for (file, text) in [("empty.toml", ""), ("binary.toml", "\u{0}\u{1}"), ("torn.toml", "[[eval")] {
        world.env.write(file, text);
        assert_eq!(world.run(&format!("eval run {file}")).code, Some(3), "{file}");
    }
    assert_eq!(world.run("eval run missing.toml").code, Some(3));
}

#[test]
fn what_cannot_be_done_is_refused_not_ignored() {
    let world = World::new();
    world.environment("gsm8k");
    world.env.write(
        "state.toml",
        "[[eval]]\nenv_id = \"gsm8k\"\nheader_from_state = [\"X-Session-ID: example_id\"]\n",
    );
    let run = world.run("eval run state.toml");
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.stderr.contains("R110"), "{run:?}");
}

#[test]
fn a_file_can_ask_for_details_and_selections_are_remarked_on() {
    let world = World::new();
    world.environment("gsm8k");
    world.env.write(
        "details.toml",
        "verbose = true\n[[eval]]\nenv_id = \"gsm8k\"\nnum_examples = 1\nrollouts_per_example = 1\n[eval.env_args]\nnum_examples = 1\n",
    );
    let run = world.run("eval run details.toml");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("assistant: "), "{run:?}");
    let run = world.run("eval run --task mechanical -n 1 -r 1");
    assert!(run.stderr.contains("R063"), "four tasks are not split: {run:?}");
}
