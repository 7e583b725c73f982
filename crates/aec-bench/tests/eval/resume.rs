//! Continuing an evaluation.

use serde_json::json;

use crate::eval::world::{World, metadata, rows};

fn cut(run: &std::path::Path, keep: usize, torn: bool) {
    let path = run.join("results.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let mut kept = lines[..keep].join("\n");
    kept.push('\n');
    if torn {
        kept.push_str(&lines[keep][..lines[keep].len() / 2]);
    }
    std::fs::write(&path, kept).unwrap();
    let mut saved = metadata(run);
    saved["complete"] = json!(false);
    saved["rollouts"] = json!(keep);
    std::fs::write(run.join("metadata.json"), saved.to_string()).unwrap();
}

#[test]
fn what_is_missing_is_run_and_nothing_else() {
    let world = World::new();
    world.environment("my-env");
    let line = "eval run my-env -m gpt-4.1-mini -n 5 -r 3 -s";
    world.eval(line);
    let run = world.saved("my_env", "my-env");
    let (whole, before) = (metadata(&run), rows(&run));
    cut(&run, 7, true);
    let asked = world.requests().len();
    let data = world.eval(&format!("{line} --resume"));
    assert_eq!(world.requests().len() - asked, 8);
    assert_eq!(data["rows"], 15);
    assert_eq!(world.saved("my_env", "my-env"), run, "no other run was begun");
    let after = rows(&run);
    let keys = |rows: &[serde_json::Value]| -> Vec<(i64, i64)> {
        rows.iter()
            .map(|row| (row["example_id"].as_i64().unwrap(), row["rollout_number"].as_i64().unwrap()))
            .collect()
    };
    assert_eq!(keys(&after), keys(&before));
    for key in [
        "reward",
        "reward_std",
        "reward_se",
        "avg_metrics",
        "pass_at_k",
        "pass_all_k",
        "usage",
        "stop_conditions",
    ] {
        assert_eq!(metadata(&run)[key], whole[key], "{key}");
    }
    assert!(run.join("results.torn").is_file(), "what was cut is kept");
    let asked = world.requests().len();
    let again = world.run(&format!("{line} --resume {}", run.display()));
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(world.requests().len(), asked, "a complete run calls no model");
    assert!(again.stderr.contains("all rollouts of this run are there"), "{again:?}");
}

#[test]
fn the_newest_run_that_fits_is_gone_on_with_or_is_done() {
    let world = World::new();
    world.environment("my-env");
    let line = "eval run my-env -n 5 -r 3 -s";
    // A complete run is not continued.
    world.eval("eval run my-env -n 3 -r 1 -s");
    world.eval("eval run my-env -n 3 -r 3 -s -T 0.5");
    world.eval(&format!("{line} --resume"));
    let asked = world.requests().len();
    let again = world.run(&format!("{line} --resume"));
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.stderr.contains("all rollouts of this run are there"), "{again:?}");
    assert_eq!(world.requests().len(), asked, "everything is there already");
    assert_eq!(world.env.run(["--json", "eval", "list"]).data()["total"], 3);
}

#[test]
fn another_model_behind_the_same_name_is_another_configuration() {
    let world = World::new();
    world.environment("my-env");
    let model = |model: &str| {
        let row = format!(
            "[[endpoint]]\nendpoint_id = \"mine\"\nmodel = \"{model}\"\nurl = \"{}/v1\"\nkey = \"OPENAI_API_KEY\"\n",
            world.server.url()
        );
        world.env.write("configs/endpoints.toml", row);
    };
    model("model-a");
    world.eval("eval run my-env -m mine -n 3 -r 1 -s -o out");
    let run = aec_xtest::files::names_in(&world.env.path("out/evals/my-env--model-a"));
    assert_eq!(run.len(), 1, "the model that answered names the directory");
    let run = world.env.path("out/evals/my-env--model-a").join(&run[0]);
    assert_eq!(metadata(&run)["model"], "model-a");
    cut(&run, 1, false);
    model("model-b");
    let asked = world.requests().len();
    let again = world.run(&format!("eval run my-env -m mine -n 3 -r 1 -s --resume {}", run.display()));
    assert_eq!(again.code, Some(3), "{again:?}");
    assert!(again.stderr.contains("`model` was \"model-a\" and is now \"model-b\""), "{again:?}");
    assert_eq!(world.requests().len(), asked);
}

#[test]
fn another_configuration_is_named_not_mixed() {
    let world = World::new();
    world.environment("my-env");
    world.eval("eval run my-env -n 3 -r 2 -s -T 0.5");
    let run = world.saved("my_env", "my-env");
    cut(&run, 2, false);
    let asked = world.requests().len();
    for (line, difference) in [
        ("eval run my-env -n 3 -r 2 -s -T 0.6 --resume", "temperature"),
        ("eval run my-env -n 3 -r 4 -s -T 0.5 --resume", "rollouts_per_example"),
        ("eval run my-env -n 2 -r 2 -s -T 0.5 --resume", "num_examples"),
        ("eval run my-env -n 3 -r 2 -s -T 0.5 --seed 4 --resume", "seed"),
    ] {
        let again = world.run(line);
        assert_eq!(again.code, Some(3), "{line}: {again:?}");
        assert!(again.stderr.contains("R032") && again.stderr.contains(difference), "{line}: {again:?}");
    }
    assert_eq!(world.requests().len(), asked);
    let more = world.eval("eval run my-env -n 5 -r 2 -s -T 0.5 --resume");
    assert_eq!(more["rows"], 10, "more examples may be asked for");
}

#[test]
fn errors_are_run_again_only_on_request() {
    let world = World::with(|options| options.faults = vec!["empty=0.6".parse().unwrap()]);
    world.environment("my-env");
    let line = "eval run my-env -n 5 -r 4 -s";
    let first = world.run(&format!("--json {line}"));
    let data = first.envelope()["data"]["evaluations"][0].clone();
    let errored = data["errored"].as_u64().unwrap();
    assert!(errored > 0 && first.code == Some(1), "{first:?}");
    let run = world.saved("my_env", "my-env");
    let again = world.run(&format!("--json {line} --resume {}", run.display()));
    assert_eq!(again.envelope()["data"]["evaluations"][0]["errored"], errored);
    for _ in 0..20 {
        let rerun = world.run(&format!("--json {line} --resume {} --rerun-errors", run.display()));
        let left = rerun.envelope()["data"]["evaluations"][0]["errored"].as_u64().unwrap();
        assert_eq!(rerun.envelope()["data"]["evaluations"][0]["rows"], 20, "{rerun:?}");
        if left == 0 {
            return;
        }
    }
    panic!("errors stay");
}

#[test]
fn a_path_that_is_no_run_and_broken_lines_are_refused() {
    let world = World::new();
    world.environment("my-env");
    let nowhere = world.run("eval run my-env -s --resume ./environments");
    assert_eq!(nowhere.code, Some(3), "{nowhere:?}");
    world.eval("eval run my-env -n 3 -r 2 -s");
    let run = world.saved("my_env", "my-env");
    let path = run.join("results.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("{\"example_id\"", "{\"example", 1)).unwrap();
    let broken = world.run(&format!("eval run my-env -n 3 -r 2 -s --resume {}", run.display()));
    assert_eq!(broken.code, Some(3), "{broken:?}");
    assert!(broken.stderr.contains("results.jsonl:1"), "{broken:?}");
    std::fs::write(&path, format!("{text}{}\n", text.lines().next().unwrap())).unwrap();
    let twice = world.run(&format!("eval run my-env -n 3 -r 2 -s --resume {}", run.display()));
    assert_eq!(twice.code, Some(3), "{twice:?}");
    assert!(twice.stderr.contains("R022"), "{twice:?}");
}

/// The dollars in the metadata of a run.
fn cost(run: &std::path::Path) -> f64 {
    metadata(run)["cost"]["total_usd"].as_f64().unwrap()
}

#[test]
fn costs_add_up_and_the_budget_is_for_all_sessions() {
    let world = World::new();
    world.environment("my-env");
    let prices = "[[price]]\nendpoint = \"gpt-4.1-mini\"\ninput = 10\noutput = 10\n";
    world.env.write("configs/prices.toml", prices);
    let line = "eval run my-env -n 10 -r 3 -t 100 -s";
    let stopped = world.run(&format!("{line} -c 1 --max-cost 0.05"));
    assert_eq!(stopped.code, Some(4), "{stopped:?}");
    let run = world.saved("my_env", "my-env");
    let first = cost(&run);
    assert!(first > 0.0 && first <= 0.05, "{first}");
    assert_eq!(metadata(&run)["budget"]["max_cost"], "0.05");
    // Without a flag for the budget, the same budget applies.
    for _ in 0..3 {
        let again = world.run(&format!("{line} -c 1 --resume {}", run.display()));
        assert_eq!(again.code, Some(4), "{again:?}");
        assert!(again.stderr.contains("going on with --max-cost 0.05 of the earlier session"), "{again:?}");
        let sum = cost(&run);
        assert!(sum >= first && sum <= 0.05, "{sum} after {first}");
    }
    let before = cost(&run);
    let asked = world.requests().len();
    let ended = world.eval(&format!("{line} --resume {} --max-cost 5", run.display()));
    assert!(world.requests().len() > asked);
    let whole = cost(&run);
    assert!((ended["cost_usd"].as_f64().unwrap() - whole).abs() < 1e-9, "{ended}");
    assert!((ended["session_cost_usd"].as_f64().unwrap() - (whole - before)).abs() < 1e-9, "{ended}");
    // A session that does nothing costs nothing, and does not change what was spent.
    world.eval(&format!("{line} --resume {}", run.display()));
    assert_eq!(metadata(&run)["cost"]["total_usd"], json!(whole));
    assert_eq!(metadata(&run)["budget"]["max_cost"], "5");
    assert_eq!(metadata(&run)["budget"]["spent_usd"], json!(whole));
}

#[test]
fn rows_that_were_written_after_the_metadata_are_paid_for() {
    let world = World::new();
    world.environment("my-env");
    let prices = "[[price]]\nendpoint = \"gpt-4.1-mini\"\ninput = 10\noutput = 10\n";
    world.env.write("configs/prices.toml", prices);
    let line = "eval run my-env -n 3 -r 2 -t 100 -s --max-cost 5";
    world.eval(line);
    let run = world.saved("my_env", "my-env");
    let whole = cost(&run);
    let mut killed = metadata(&run);
    assert_eq!(killed["rows"], 6);
    let told = metadata(&run);
    // The state after a session that was killed in its first second.
    killed["rows"] = json!(0);
    killed["cost"] = json!({"input_usd": 0.0, "output_usd": 0.0, "total_usd": 0.0});
    killed["budget"]["spent_usd"] = json!(0.0);
    killed["budget"]["spent_tokens"] = json!(0);
    std::fs::write(run.join("metadata.json"), killed.to_string()).unwrap();
    world.eval(&format!("{line} --resume {}", run.display()));
    assert!((cost(&run) - whole).abs() < 1e-9, "{} instead of {whole}", cost(&run));
    let spent = |metadata: &serde_json::Value| {
        let budget = &metadata["budget"];
        (budget["spent_usd"].as_f64().unwrap(), budget["spent_tokens"].as_u64().unwrap())
    };
    let (now, before) = (spent(&metadata(&run)), spent(&told));
    assert!((now.0 - before.0).abs() < 1e-9 && now.1 == before.1, "{now:?} instead of {before:?}");
}

#[test]
fn what_a_rollout_spent_before_the_metadata_counts_once_when_its_row_comes_later() {
    let world = World::new();
    world.environment("my-env");
    let prices = "[[price]]\nendpoint = \"gpt-4.1-mini\"\ninput = 10\noutput = 10\n";
    world.env.write("configs/prices.toml", prices);
    let line = "eval run my-env -n 3 -r 2 -t 100 -s --max-cost 5";
    world.eval(line);
    let run = world.saved("my_env", "my-env");
    let (whole, told) = (cost(&run), metadata(&run));
    assert_eq!(told["budget"].get("under_way"), None, "every rollout has a row");
    // The state after a session that was killed while all rollouts were in their second turn: each has paid for a part
    // of its row, and the sum includes the maximum cost of the call under way.
    let (usd, tokens) = (0.001_f64, 100);
    let rollouts =
        rows(&run).into_iter().map(|row| (row["example_id"].clone(), row["rollout_number"].clone()));
    let under_way: Vec<_> = rollouts
        .map(|(example, number)| {
            json!({"example_id": example, "rollout_number": number, "spent_usd": usd / 2.0, "spent_tokens": tokens / 2,
                   "reserved_usd": 1.0, "reserved_tokens": 100_000})
        })
        .collect();
    let mut killed = told.clone();
    killed["rows"] = json!(0);
    killed["cost"] = json!({"input_usd": 0.0, "output_usd": usd * 3.0, "total_usd": usd * 3.0});
    killed["budget"]["spent_usd"] = json!(usd.mul_add(3.0, 6.0));
    killed["budget"]["spent_tokens"] = json!(3 * tokens + 600_000);
    killed["budget"]["under_way"] = json!(under_way);
    std::fs::write(run.join("metadata.json"), killed.to_string()).unwrap();
    world.eval(&format!("{line} --resume {}", run.display()));
    let now = metadata(&run);
    assert!((cost(&run) - whole).abs() < 1e-6, "{} instead of {whole}", cost(&run));
    let spent = |metadata: &serde_json::Value| metadata["budget"]["spent_usd"].as_f64().unwrap();
    assert!((spent(&now) - spent(&told)).abs() < 1e-6, "{} instead of {}", spent(&now), spent(&told));
    assert_eq!(now["budget"]["spent_tokens"], told["budget"]["spent_tokens"]);
    assert_eq!(now["budget"].get("under_way"), None);
}

#[test]
fn a_run_of_an_earlier_version_goes_on_and_its_cost_counts() {
    let world = World::new();
    world.environment("my-env");
    let prices = "[[price]]\nendpoint = \"gpt-4.1-mini\"\ninput = 10\noutput = 10\n";
    world.env.write("configs/prices.toml", prices);
    let line = "eval run my-env -n 5 -r 2 -t 100 -s";
    world.eval(line);
    let run = world.saved("my_env", "my-env");
    cut(&run, 6, false);
    let mut saved = metadata(&run);
    saved.as_object_mut().unwrap().remove("budget");
    std::fs::write(run.join("metadata.json"), saved.to_string()).unwrap();
    let before = cost(&run);
    let cap = before + 1e-6;
    let refused = world.run(&format!("{line} --resume {} --max-cost {cap}", run.display()));
    assert_eq!(refused.code, Some(4), "what it cost is known, though not what it was allowed: {refused:?}");
    world.eval(&format!("{line} --resume {} --max-cost none", run.display()));
    assert!(cost(&run) > before);
    assert_eq!(rows(&run).len(), 10);
}
