//! Hosted samples are imported into the ledger.

use aec_xtest::files::files_below;
use aec_xtest::prime::{Failure, HostedRun, SampleSource};
use serde_json::{Value, json};

use crate::prime_loop::world::World;

const TASK: &str = "electrical/voltage-drop";
const EVALUATION: &str = "eval1";

/// The counts of an import.
pub(crate) fn counts(data: &Value) -> [u64; 7] {
    ["found", "imported", "attempts", "skipped", "doubled", "refused", "unfinished"]
        .map(|key| data[key].as_u64().unwrap())
}

/// A sample that submits an answer.
fn sample(number: usize, info: &Value, answer: Option<(&str, Value)>, reward: f64) -> Value {
    let mut completion = vec![json!({"role": "assistant", "content": "I look at it."})];
    if let Some((content, path)) = answer {
        let mut arguments = json!({ "content": content });
        if !path.is_null() {
            arguments["path"] = path;
        }
        let call =
            json!({"id": "c1", "name": "submit_answer", "arguments": arguments.to_string()}).to_string();
        completion = vec![
            json!({"role": "assistant", "content": "", "tool_calls": [call]}),
            json!({"role": "tool", "tool_call_id": "c1", "content": "Submitted the final answer."}),
        ];
    }
    json!({
        "sample_id": format!("s{number}"), "example_id": 0, "rollout_number": number,
        "prompt": [{"role": "user", "content": "What is the voltage drop?"}], "completion": completion,
        "answer": TASK, "reward": reward, "info": info, "is_completed": true, "stop_condition": "has_final_env_response",
        "timing": {"total": 12.5, "generation": {"duration": 11.0}, "scoring": {"duration": 0.5}},
        "token_usage": {"input_tokens": 900, "output_tokens": 100}, "created_at": "2026-05-09 10:11:12",
        "metrics": {"aec_bench_reward": reward, "submit_answer_calls": 1.0},
    })
}

/// A project with an evaluation that has these samples.
fn world(samples: impl FnOnce(&Value, &str) -> Vec<Value>) -> World {
    let world = World::new();
    let exported = world.data(&format!("prime export --name aec-voltage-drop --task {TASK}"));
    let task = &exported["tasks"][0];
    let info = json!({
        "task_id": TASK, "task_revision": task["task_revision"], "difficulty": "easy", "discipline": "electrical",
        "family": "directory:electrical", "visibility": "public", "split": "eval", "seed": 7, "max_turns": 10,
        "harness": "stateful", "overlap": true,
    });
    let golden = world.env.path(format!("tasks/{TASK}/tests/fixtures"));
    let mut golden = std::fs::read_dir(golden).unwrap().map(|entry| entry.unwrap().path());
    let right = golden.find(|path| path.to_string_lossy().contains("golden_pass")).unwrap();
    let right = std::fs::read_to_string(right).unwrap();
    let samples = samples(&info, &right);
    world.service.with(|state| {
        state.add_environment("me", "aec-voltage-drop");
        let mut run = HostedRun::new(json!({
            "environment_ids": ["e"], "inference_model": "Qwen/Qwen3.5-4B",
            "eval_config": {"num_examples": 1, "rollouts_per_example": 1, "sampling_args": {"max_tokens": 4096}},
        }));
        run.statuses = vec!["COMPLETED".to_owned()];
        run.samples = SampleSource::Given(samples);
        state.evaluations.insert(EVALUATION.to_owned(), run);
    });
    world
}

#[test]
fn samples_become_records_that_reports_read() {
    let world = world(|info, right| {
        let mut empty = sample(3, info, None, 0.0);
        empty["completion"] = json!([]);
        empty["error"] =
            json!({"error": "EmptyModelResponseError", "error_chain_str": "EmptyModelResponseError"});
        empty["stop_condition"] = json!("has_error");
        vec![
            sample(0, info, Some((right, Value::Null)), 1.0),
            sample(1, &Value::String(info.to_string()), Some(("{}", json!("output.md"))), 0.0),
            sample(2, info, Some((right, json!("conversation.jsonl"))), 1.0),
            empty,
        ]
    });
    let line = format!("import-prime-eval {EVALUATION} --experiment prime-eval-medium-stateful");
    let imported = world.data(&line);
    assert_eq!(counts(&imported), [4, 4, 0, 0, 0, 0, 0]);
    assert_eq!(imported["verification"]["disagree"], 0, "{imported}");
    assert!(imported["verification"]["agree"].as_u64().unwrap() >= 3, "{imported}");
    let again = world.data(&line);
    assert_eq!(counts(&again), [4, 0, 0, 4, 0, 0, 0]);
    let jobs = world.env.path("jobs/prime-eval-medium-stateful/prime-eval1-s0/workspace");
    for file in ["conversation.jsonl", "prime_sample.json", "trajectory.jsonl"] {
        assert!(jobs.join(file).is_file(), "{file}");
    }
    let traces = world.data("report traces --experiment-id prime-eval-medium-stateful");
    let trials = traces["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 4);
    assert_eq!(trials.iter().filter(|trial| trial["submit_reached"] == true).count(), 3);
    assert_eq!(trials.iter().filter(|trial| trial["empty_error"] == true).count(), 1);
    let behaviour = world.run("report behavioral --experiment-id prime-eval-medium-stateful --output b.json");
    assert_eq!(behaviour.code, Some(0), "{behaviour:?}");
    let verified = world.run("ledger verify -e prime-eval-medium-stateful");
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

#[test]
fn forged_rewards_are_found_and_what_cannot_be_judged_is_marked() {
    let world = world(|info, right| {
        let mut elsewhere = info.clone();
        elsewhere["task_id"] = json!("civil/unknown");
        let mut older = info.clone();
        older["task_revision"] = json!(format!("sha256:{}", "0".repeat(64)));
        let mut odd = sample(4, info, Some((right, Value::Null)), 1.0);
        odd["reward"] = json!(7.0);
        odd["info"]["task_id"] = json!("civil/unknown");
        let mut broken = sample(5, info, None, 0.0);
        broken["completion"] = json!([]);
        broken["error"] = json!({"error": "ModelError", "error_chain_str": "ModelError -> APIStatusError"});
        vec![
            sample(0, info, Some(("{\"voltage_drop_v\": 1e9}", Value::Null)), 1.0),
            sample(1, &elsewhere, Some((right, Value::Null)), 1.0),
            sample(2, &older, Some((right, Value::Null)), 1.0),
            sample(3, info, Some((right, Value::Null)), 1.0),
            odd,
            broken,
        ]
    });
    let run = world.run(&format!("import-prime-eval {EVALUATION} --json"));
    assert_eq!(run.code, Some(1), "{run:?}");
    let data = &run.envelope()["data"];
    assert_eq!(counts(data), [6, 6, 0, 0, 0, 0, 0]);
    assert_eq!(data["verification"], json!({"agree": 1, "disagree": 1, "unverified": 4}));
    assert_eq!(run.errors()[0].0, "H021");
    let rows = world.data("ledger list -e prime-eval-eval1");
    let row = |number: usize| {
        let id = format!("prime-eval1-s{number}");
        let rows = rows["records"].as_array().or_else(|| rows["rows"].as_array()).unwrap();
        rows.iter().find(|row| row["trial_id"] == id.as_str()).unwrap().clone()
    };
    assert!(row(0)["reward"].as_f64().unwrap() < 1.0, "the judge here has the last word");
    assert_eq!(row(1)["outcome"], "unverified", "the task is not here");
    assert_eq!(row(2)["outcome"], "unverified", "it was judged for another revision");
    assert_eq!(row(2)["reward"], Value::Null);
    assert_eq!(row(4)["outcome"], "verifier_fault", "7 is not a valid reward");
    assert_eq!(row(5)["outcome"], "infra_fault", "a provider that fails is no zero of the agent");
}

/// Before: each of these rows was `scored` with its own reward of 1, and ranked first.
#[test]
fn a_row_that_does_not_name_the_revision_of_its_task_is_in_no_ranking() {
    let world = world(|info, _| {
        let forged = |number: usize, revision: Option<Value>| {
            let mut info = info.clone();
            match revision {
                Some(revision) => info["task_revision"] = revision,
                None => drop(info.as_object_mut().unwrap().remove("task_revision")),
            }
            sample(number, &info, Some(("{}", Value::Null)), 1.0)
        };
        let mut refused = forged(5, None);
        refused["metrics"] = json!({"agent_fault": 1.0});
        vec![
            forged(0, None),
            forged(1, Some(json!(format!("sha256:{}", "1".repeat(64))))),
            forged(2, Some(json!("latest"))),
            forged(3, Some(Value::Null)),
            forged(4, Some(json!(7))),
            refused,
        ]
    });
    for flag in ["", "--no-verify"] {
        let experiment = format!("forged{}", flag.len());
        world.data(&format!("import-prime-eval {EVALUATION} -e {experiment} {flag}"));
        let data = world.data(&format!("evaluate -e {experiment}"));
        let overall = &data["overall"];
        assert_eq!((&overall["counted"], &overall["mean_reward"]), (&json!(0), &Value::Null), "{overall}");
        assert_eq!(overall["unknown"], json!({"withheld": 0, "unverified": 6, "low": 0.0, "high": 1.0}));
        assert_eq!(
            world.data(&format!("report leaderboard -e {experiment} --mix-revisions"))["rows"][0]["rank"],
            Value::Null
        );
    }
    world.data(&format!("import-prime-eval {EVALUATION} -e trusted --trust-rewards"));
    let data = world.data("evaluate -e trusted");
    assert_eq!(data["overall"]["counted"], 6, "five rewards and a fault of the agent");
    assert!(data["notes"].to_string().contains("5 are trusted because of --trust-rewards"), "{data}");
    let board = world.run("report leaderboard -e trusted --mix-revisions").stdout;
    assert!(board.contains("5 are trusted"), "{board}");
    let record = world.data("ledger show trusted/prime-eval1-s0")["record"].clone();
    assert_eq!(
        (&record["evaluation"]["judged"], &record["evaluation"]["trusted"]),
        (&json!("elsewhere"), &json!(true))
    );
    assert!(world.run("report compare trusted trusted --json").stdout.contains("--trust-rewards"));
}

#[test]
fn a_secret_in_an_answer_is_neither_judged_nor_kept() {
    const KEY: &str = "pit_test_key";
    let world = world(|info, _| vec![sample(0, info, Some((KEY, Value::Null)), 1.0)]);
    let imported = world.data(&format!("import-prime-eval {EVALUATION} -e secret"));
    assert_eq!(imported["verification"], json!({"agree": 0, "disagree": 0, "unverified": 1}));
    let record = &world.data("ledger show secret/prime-eval1-s0")["record"];
    let reason = record["outputs"]["agent_result"]["unverified_because"].as_str().unwrap();
    assert!(reason.contains("holds the value of a secret"), "{reason}");
    assert_eq!(record["evaluation"]["judged"], "elsewhere");
    let kept = files_below(&world.env.dir());
    assert!(kept.keys().any(|path| path.ends_with("prime_sample.json")), "{:?}", kept.keys());
    for (path, content) in kept {
        assert!(!content.windows(KEY.len()).any(|part| part == KEY.as_bytes()), "{path}");
    }
}

#[test]
fn an_import_that_breaks_off_goes_on() {
    let world = world(|info, right| {
        (0..1500).map(|number| sample(number, info, Some((right, Value::Null)), 1.0)).collect()
    });
    world.service.with(|state| {
        let mut failure = Failure::new("/samples", 404, 1);
        failure.after = 1;
        state.failures.push(failure);
    });
    let line = format!("import-prime-eval {EVALUATION} -e hosted --no-verify");
    let run = world.run(&line);
    assert_eq!(run.code, Some(4), "{run:?}");
    let data = world.data(&line);
    assert_eq!(counts(&data), [1500, 500, 0, 1000, 0, 0, 0]);
}

#[test]
fn saved_samples_and_bad_ones_are_read_without_the_service() {
    let world = world(|_, _| Vec::new());
    let good = sample(0, &json!({"task_id": TASK}), Some(("{}", Value::Null)), 0.0);
    world.env.write("samples.json", json!({"samples": [good, 7, {"prompt": []}], "total": 3}).to_string());
    let run = world.run("import-prime-eval --file samples.json -e saved --json");
    assert_eq!(run.code, Some(1), "{run:?}");
    let data = &run.envelope()["data"];
    assert_eq!(counts(data), [3, 2, 0, 0, 0, 1, 0], "{data}");
    for (file, content) in
        [("empty.json", ""), ("text.json", "not json at all"), ("binary.json", "\u{0}\u{1}")]
    {
        world.env.write(file, content);
        let run = world.run(&format!("import-prime-eval --file {file} -e bad"));
        assert_eq!(run.code, Some(1), "{file}: {run:?}");
        assert!(run.stderr.contains("H023") || run.stderr.contains("H028"), "{file}: {run:?}");
    }
    let run = world.run("import nowhere -e bad");
    assert_eq!(run.code, Some(3), "{run:?}");
}

#[test]
fn conversations_of_the_ledger_become_training_data() {
    let world = world(|info, right| {
        let mut held_out = info.clone();
        held_out["visibility"] = json!("holdout");
        vec![
            sample(0, info, Some((right, Value::Null)), 1.0),
            sample(1, info, Some(("{}", Value::Null)), 0.0),
            sample(2, &held_out, Some((right, Value::Null)), 1.0),
        ]
    });
    world.data(&format!("import-prime-eval {EVALUATION} -e hosted"));
    let sft = world.data("export sft -e hosted --output sft.jsonl");
    assert_eq!((&sft["rows"], &sft["not_public"], &sft["left_out"]), (&json!(1), &json!(1), &json!(1)));
    let row: Value = serde_json::from_str(world.env.read("sft.jsonl").trim()).unwrap();
    assert_eq!(row["messages"][1]["tool_calls"][0]["function"]["name"], "submit_answer");
    assert_eq!(row["metadata"]["reward"], 1.0);
    let pairs = world.data("export preferences -e hosted --output pairs.jsonl");
    assert_eq!(pairs["rows"], 1);
    let pair: Value = serde_json::from_str(world.env.read("pairs.jsonl").trim()).unwrap();
    assert_eq!(
        (&pair["metadata"]["chosen_reward"], &pair["metadata"]["rejected_reward"]),
        (&json!(1.0), &json!(0.0))
    );
}

/// The saved evaluations of `verifiers` that the readers are tested with.
fn saved(name: &str) -> String {
    format!("{}/../prime/tests/rollouts/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn evaluations_on_somebodys_machine_become_records() {
    let world = World::new();
    for name in ["v014/single", "v014/tools", "v014/err500", "v040", "v040-tools", "v040-provider-error"] {
        let experiment = name.replace('/', "-");
        let line = format!("import {} -e {experiment}", saved(name));
        let data = world.data(&line);
        let found = data["found"].as_u64().unwrap();
        assert!(found > 0 && counts(&data) == [found, found, 0, 0, 0, 0, 0], "{name}: {data}");
        assert_eq!(
            data["verification"]["unverified"].as_u64(),
            Some(found),
            "these tasks are unknown here: {data}"
        );
        assert_eq!(counts(&world.data(&line)), [found, 0, 0, found, 0, 0, 0], "{name}");
        let verified = world.run(&format!("ledger verify -e {experiment}"));
        assert_eq!(verified.code, Some(0), "{name}: {verified:?}");
    }
    let rows = world.data("ledger list -e v040-tools");
    let row = &rows["rows"].as_array().or_else(|| rows["records"].as_array()).unwrap()[0];
    assert_eq!(row["outcome"], "unverified", "{row}");
    world.data(&format!("import {} -e trusted --trust-rewards", saved("v040-tools")));
    let rows = world.data("ledger list -e trusted");
    let row = &rows["records"].as_array().unwrap()[0];
    assert_eq!((&row["outcome"], &row["judged"]), (&json!("scored"), &json!("trusted")), "{row}");
    let rows = world.data("ledger list -e v040-provider-error");
    let row = &rows["rows"].as_array().or_else(|| rows["records"].as_array()).unwrap()[0];
    assert_eq!(row["outcome"], "infra_fault", "{row}");
}

/// Before, a linked file of results was followed out of the directory, and any text was taken as the id of a task.
#[test]
fn nothing_in_a_foreign_directory_leads_out_of_it() {
    let world = World::new();
    let row = |task: &str| {
        let info = json!({"task_id": task, "task_revision": "sha256:00", "split": "eval"});
        sample(0, &info, Some(("{}", Value::Null)), 1.0).to_string() + "\n"
    };
    world.env.write("outside.jsonl", row("a/b"));
    std::fs::create_dir(world.env.path("linked")).unwrap();
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(world.env.path(to), world.env.path(name)).unwrap();
    };
    link("outside.jsonl", "linked/results.jsonl");
    let run = world.run("--json import linked -e linked");
    assert_eq!((run.code, run.errors()[0].0.as_str()), (Some(3), "H022"), "{run:?}");
    assert!(run.errors()[0].1.contains("it is a symbolic link"), "{run:?}");
    // A link that the user names is what the user wants.
    link("outside.jsonl", "named.jsonl");
    assert_eq!(world.data("import named.jsonl -e named")["imported"], 1);
    // Its metadata are a link, or in a directory that is one.
    world.env.write("about/results.jsonl", row("a/b"));
    world.env.write("elsewhere/metadata.json", r#"{"env_id": "stolen", "model": "stolen"}"#);
    link("elsewhere/metadata.json", "about/metadata.json");
    let told = world.run("--json import about -e about");
    assert!(told.errors().iter().any(|(id, _)| id == "H023"), "{told:?}");
    let written = files_below(&world.env.path("artefacts/ledger/about"));
    assert!(!written.is_empty());
    for (path, content) in written {
        assert!(!String::from_utf8_lossy(&content).contains("stolen"), "{path:?}");
    }
    // Ids of tasks are names, and nothing else.
    let strange = ["../../etc", "a/../b", "/etc/passwd", "a//b", "a/", ".", "a\u{202e}b", "a b", "\u{1b}[2J"];
    world.env.write("strange/results.jsonl", strange.map(row).concat() + &row("a/b"));
    let run = world.run("--json import strange -e strange");
    let errors = run.errors();
    assert_eq!(errors.iter().filter(|(id, _)| id == "H045").count(), strange.len(), "{run:?}");
    let listed = world.data("ledger list -e strange");
    assert_eq!(listed["rows"].as_array().or_else(|| listed["records"].as_array()).unwrap().len(), 1);
}
