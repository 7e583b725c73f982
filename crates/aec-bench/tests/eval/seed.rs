//! The commands and files of seed 004, as written except for the program's name.

use serde_json::json;

use crate::eval::world::{World, metadata, rows};

#[test]
fn the_quick_start_prints_what_the_document_shows() {
    let world = World::new();
    world.environment("my-env");
    let run = world.run("eval run my-env -m gpt-4.1-mini -n 10");
    assert_eq!(run.code, Some(0), "{run:?}");
    for line in [
        "Loading environment: my-env",
        "rollouts per example = ",
        "Model: gpt-4.1-mini",
        "Progress: ████████████████████",
    ] {
        assert!(run.stderr.contains(line), "{line}: {}", run.stderr);
    }
    for line in
        ["Results:\n", "  Reward: 0.", "  num_turns: 1.0 ± 0.0\n", "  Standard error of the mean reward: "]
    {
        assert!(run.stdout.contains(line), "{line}: {}", run.stdout);
    }
    let lines = run.stdout.lines().filter(|line| line.contains(" ± ")).count();
    assert!(lines >= 3, "{}", run.stdout);
}

#[test]
fn every_command_of_the_document_runs() {
    let world = World::new();
    for name in ["my-env", "gsm8k", "math-python", "wiki-search", "reverse-text"] {
        world.environment(name);
    }
    let url = world.server.url();
    let direct = format!("eval run my-env -m custom-model -b {url}/v1 -k MY_API_KEY");
    for line in [
        "eval run gsm8k -m gpt-4.1-mini -n 20",
        "eval run my-env -m qwen3-235b-i",
        &direct,
        "eval run my-env -m gpt-4.1-mini -T 0.7 -t 1024",
        "eval run my-env -n 50 -r 5",
        "eval run my-env -m gpt-4.1-mini -n 100 -c 64",
        "eval run my-env -n 100 --max-concurrent-generation 32 --max-concurrent-scoring 64",
        "eval run my-env -m gpt-4.1-mini -n 100 -s",
        "eval run math-python -m gpt-4.1-mini -n 500 -r 3 -s",
        "eval run math-python -m gpt-4.1-mini -n 500 -r 3 -s --resume",
        "eval run my-env -s -C judge_response,parsed_answer,reasoning_trace",
        "eval run my-env -m gpt-4.1-mini -n 2 -v",
        "eval run my-env -m gpt-4.1-mini -n 10 -d",
        "eval run my-env -m gpt-4.1-mini -n 10 -i",
        "eval run my-env -m gpt-4.1-mini -n 10 -N",
        "eval run my-env -m gpt-4.1-mini -n 100 --max-retries 3",
        "eval run my-env -m gpt-4.1-mini -n 2 -r 1 -v",
        "eval run my-env -m gpt-4.1-mini -n 100 -r 5 -s",
        "eval run my-env -m my-model -n 200 -r 5 -s",
    ] {
        let run = world.run(line);
        assert_eq!(run.code, Some(0), "{line}: {run:?}");
    }
    let with_json = [
        vec!["-m", "gpt-4.1-mini", "-S", r#"{"temperature": 0.7, "top_p": 0.9, "presence_penalty": 0.1}"#],
        vec!["-a", r#"{"difficulty": "hard", "num_examples": 100, "seed": 123}"#],
        vec!["-x", r#"{"max_turns": 20}"#],
        vec!["-x", r#"{"max_turns": 15, "system_prompt": "Custom prompt"}"#],
    ];
    for flags in with_json {
        let run = world.env.run(["eval", "run", "my-env"].iter().chain(&flags));
        // Whether some of these tasks are hard is up to chance.
        let no_hard_task = run.stderr.contains("no task of my_env is selected");
        assert!(run.code == Some(0) || no_hard_task, "{flags:?}: {run:?}");
    }
}

#[test]
fn results_lie_where_the_document_says_and_its_script_reads_them() {
    let world = World::new();
    world.environment("my-env");
    world.eval("eval run my-env -m gpt-4.1-mini -n 4 -s");
    let run = world.saved("my_env", "my-env");
    let (metadata, rows) = (metadata(&run), rows(&run));
    assert_eq!(rows.len(), 12);
    let rewards: Vec<f64> = rows.iter().map(|row| row["reward"].as_f64().unwrap()).collect();
    let mean = rewards.iter().sum::<f64>() / 12.0;
    let variance = rewards.iter().map(|reward| (reward - mean).powi(2)).sum::<f64>() / 12.0;
    assert!((metadata["reward"].as_f64().unwrap() - mean).abs() < 1e-12);
    assert!((metadata["reward_std"].as_f64().unwrap() - variance.sqrt()).abs() < 1e-12);
    assert_eq!(metadata["avg_reward"], metadata["reward"]);
    for row in &rows {
        assert!(row["example_id"].is_u64());
        assert!(
            !row["completion"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().is_empty()
        );
        for key in ["prompt", "completion", "reward", "error", "timing", "metrics", "stop_condition"] {
            assert!(row.get(key).is_some(), "{key}");
        }
    }
    assert_eq!((&metadata["complete"], &metadata["rollouts"]), (&json!(true), &json!(12)));
}

#[test]
fn the_files_of_the_document_run() {
    let world = World::new();
    for name in ["gsm8k", "math-python", "wiki-search", "reverse-text"] {
        world.environment(name);
    }
    world.env.write(
        "configs/eval/my-benchmark.toml",
        "# Global defaults\nmodel = \"gpt-4.1-mini\"\nnum_examples = 50\nrollouts_per_example = 3\n\n[[eval]]\nenv_id = \"gsm8k\"\n\
         num_examples = 100  # Override global\n\n[[eval]]\nenv_id = \"math-python\"\n\n[[eval]]\nenv_id = \"reverse-text\"\n\
         rollouts_per_example = 5  # Override global\n",
    );
    world.env.write(
        "configs/eval/multi-model.toml",
        "endpoints_path = \"./configs/endpoints.toml\"\n\n[[eval]]\nenv_id = \"gsm8k\"\nendpoint_id = \"gpt-4.1-mini\"\nnum_examples = 100\n\n\
         [[eval]]\nenv_id = \"gsm8k\"\nendpoint_id = \"qwen3-235b-i\"\nnum_examples = 100\n\n[[eval]]\nenv_id = \"gsm8k\"\n\
         endpoint_id = \"claude-sonnet\"\nnum_examples = 100\n",
    );
    world.env.write(
        "configs/eval/compare.toml",
        "num_examples = 50\nrollouts_per_example = 3\n\n[[eval]]\nenv_id = \"gsm8k\"\nendpoint_id = \"gpt-4.1-mini\"\n\n[[eval]]\n\
         env_id = \"gsm8k\"\nendpoint_id = \"qwen3-235b-i\"\n\n[[eval]]\nenv_id = \"gsm8k\"\nendpoint_id = \"claude-sonnet\"\n",
    );
    for (file, evaluations) in [("my-benchmark", 3), ("multi-model", 3), ("compare", 3)] {
        let run = world.run(&format!("--json eval run configs/eval/{file}.toml"));
        assert_eq!(run.code, Some(0), "{file}: {run:?}");
        assert_eq!(run.data()["evaluations"].as_array().unwrap().len(), evaluations, "{file}");
    }
    let benchmark = world.run("--json eval run configs/eval/my-benchmark.toml").data();
    let rollouts: Vec<_> = benchmark["evaluations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["rollouts_per_example"].clone())
        .collect();
    assert_eq!(rollouts, [json!(3), json!(3), json!(5)]);
}
