//! The effect of each flag on requests, rows and metadata.

use std::time::Duration;

use aec_model_server::{Options, Range, TestServer};
use aec_xtest::port::ClosedPort;
use serde_json::json;

use crate::eval::world::{World, metadata, rows};

#[test]
fn counts_and_defaults_are_those_of_the_document() {
    let world = World::new();
    world.environment("my-env");
    let data = world.eval("eval run my-env");
    assert_eq!((&data["num_examples"], &data["rollouts_per_example"]), (&json!(5), &json!(3)));
    assert_eq!(data["model"], "gpt-4.1-mini");
    let data = world.eval("eval run my-env -n -1 -r 2");
    assert!(data["num_examples"].as_u64().unwrap() > 5, "{data}");
    assert_eq!(data["rows"].as_u64().unwrap(), data["num_examples"].as_u64().unwrap() * 2);
    let data = world.eval("eval run my-env -n 1 -r 1");
    assert_eq!(data["rows"], 1);
}

#[test]
fn sampling_goes_into_requests_and_its_object_wins() {
    let world = World::new();
    world.environment("my-env");
    world.eval("eval run my-env -n 1 -r 1 -T 0.25 -t 77");
    let request = world.requests().pop().unwrap();
    assert_eq!(request["temperature"], 0.25);
    assert!(request["max_tokens"] == 77 || request["max_completion_tokens"] == 77, "{request}");
    let sampling =
        r#"{"temperature": 0.7, "top_p": 0.9, "presence_penalty": 0.1, "extra_body": {"min_p": 0.1}}"#;
    let run = world.env.run(["eval", "run", "my-env", "-n", "1", "-r", "1", "-T", "0.25", "-S", sampling]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let request = world.requests().pop().unwrap();
    for (key, value) in [("temperature", 0.7), ("top_p", 0.9), ("presence_penalty", 0.1), ("min_p", 0.1)] {
        assert_eq!(request[key], value, "{request}");
    }
    for (flag, text) in [
        ("-S", "[1]"),
        ("-S", "{\"n\": 2}"),
        ("-a", "{"),
        ("-x", "{\"max_turns\": 0}"),
        ("-a", "{\"odd\": 1}"),
    ] {
        let run = world.env.run(["eval", "run", "my-env", flag, text]);
        assert!(matches!(run.code, Some(2 | 3)), "{flag} {text}: {run:?}");
        assert!(run.stderr.contains("fix:"), "{run:?}");
    }
}

#[test]
fn a_seed_gives_each_rollout_its_own_and_the_same_again() {
    let world = World::new();
    world.environment("my-env");
    let seeds = |line: &str| {
        let before = world.requests().len();
        world.eval(line);
        let mut seeds: Vec<i64> =
            world.requests()[before..].iter().map(|request| request["seed"].as_i64().unwrap()).collect();
        seeds.sort_unstable();
        seeds
    };
    let first = seeds("eval run my-env -n 3 -r 3 --seed 7");
    let mut distinct = first.clone();
    distinct.dedup();
    assert_eq!(distinct.len(), 9);
    assert_eq!(seeds("eval run my-env -n 3 -r 3 --seed 7"), first);
    assert_ne!(seeds("eval run my-env -n 3 -r 3 --seed 8"), first);
}

#[test]
fn shuffling_takes_other_examples_and_the_same_again() {
    let world = World::new();
    world.environment("my-env");
    let asked = |line: &str| {
        let before = world.requests().len();
        world.eval(line);
        let mut asked: Vec<String> = world.requests()[before..]
            .iter()
            .map(|request| request["messages"][1]["content"].to_string())
            .collect();
        asked.sort();
        asked
    };
    let plain = asked("eval run my-env -n 2 -r 1");
    let drawn: Vec<Vec<String>> = (0..6)
        .map(|seed| asked(&format!("eval run my-env -n 2 -r 1 --shuffle --shuffle-seed {seed}")))
        .collect();
    assert!(drawn.iter().any(|one| *one != plain));
    assert_eq!(asked("eval run my-env -n 2 -r 1 --shuffle --shuffle-seed 3"), drawn[3]);
}

#[test]
fn arguments_of_the_environment_change_what_is_asked() {
    let world = World::new();
    world.environment("my-env");
    let run = world.env.run([
        "--json",
        "eval",
        "run",
        "my-env",
        "-n",
        "-1",
        "-r",
        "1",
        "-a",
        r#"{"split": "all", "num_examples": 2}"#,
    ]);
    assert_eq!(run.data()["evaluations"][0]["num_examples"], 2);
    let run = world.env.run([
        "eval",
        "run",
        "my-env",
        "-n",
        "1",
        "-r",
        "1",
        "-x",
        r#"{"system_prompt": "Only numbers."}"#,
    ]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(world.requests().pop().unwrap()["messages"][0]["content"], "Only numbers.");
}

#[test]
fn addresses_keys_and_headers_reach_the_service() {
    let world = World::with(|options| options.key = Some("sk-other-test-key".into()));
    world.environment("my-env");
    let run = world.run("eval run my-env -n 1 -r 1");
    assert_eq!(run.code, Some(4), "a wrong key stops everything: {run:?}");
    assert!(run.stderr.contains("R100"), "{run:?}");
    world.env.write("configs/endpoints.toml", "");
    let url = world.server.url();
    let line = format!("eval run my-env -n 1 -r 1 -m elsewhere -b {url}/v1 -k MY_API_KEY");
    let mut words: Vec<&str> = line.split(' ').collect();
    words.extend(["--header", "X-Team: bridges"]);
    let run = world.env.run(words);
    assert_eq!(run.code, Some(0), "{run:?}");
    let kept = world.server.requests().pop().unwrap();
    assert_eq!(kept.headers["x-team"], "bridges");
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&kept.body).unwrap()["model"], "elsewhere");
    let run = world.run("eval run my-env -m nobody -p nowhere");
    assert_eq!(run.code, Some(3), "{run:?}");
}

#[test]
fn both_limits_of_concurrency_hold_at_the_server() {
    let world = World::with(|options| options.latency = Range::only(Duration::from_millis(300)));
    world.environment("my-env");
    world.eval("eval run my-env -n -1 -r 4 -c 3");
    assert_eq!(world.server.stats().highest_in_flight, 3);
    world.eval("eval run my-env -n -1 -r 4 -c 2 --max-concurrent-generation 7");
    assert_eq!(world.server.stats().highest_in_flight, 7);
}

#[test]
fn replicas_share_the_work() {
    let world = World::new();
    world.environment("my-env");
    let other = world.runtime.block_on(TestServer::start(Options::default())).unwrap();
    world.endpoints(&[world.server.url(), other.url()]);
    world.eval("eval run my-env -n -1 -r 6 -s");
    let (first, second) = (&world.server.stats().requests, &other.stats().requests);
    assert!(first.values().sum::<u64>() >= 10 && second.values().sum::<u64>() >= 10, "{first:?} {second:?}");
    let saved = metadata(&world.saved("my_env", "my-env"));
    assert_eq!(saved["base_url"], format!("{}/v1,{}/v1", world.server.url(), other.url()));
}

#[test]
fn columns_of_the_state_are_saved() {
    let world = World::new();
    world.environment("my-env");
    world.eval(
        "eval run my-env -n 2 -r 1 -s -C query,expected_answer,aec_bench_verdict,details,nothing_of_the_kind",
    );
    let run = world.saved("my_env", "my-env");
    for row in rows(&run) {
        assert_eq!(row["query"], row["prompt"][1]["content"]);
        assert_eq!(row["expected_answer"], row["answer"]);
        assert_eq!(row["aec_bench_verdict"]["source"], "message");
        assert!(row["details"]["fields"].is_object(), "{row}");
        assert!(row.get("nothing_of_the_kind").is_some_and(serde_json::Value::is_null));
    }
    assert_eq!(metadata(&run)["state_columns"].as_array().unwrap().len(), 5);
}

#[test]
fn retries_try_again_and_keep_the_last_result() {
    let world = World::with(|options| options.faults = vec!["empty=0.5".parse().unwrap()]);
    world.environment("my-env");
    let data = world.eval("eval run my-env -n 5 -r 4 --max-retries 8");
    assert_eq!((&data["errored"], &data["rows"]), (&json!(0), &json!(20)), "{data}");
}

#[test]
fn detail_display_flags_and_conflicts() {
    let world = World::new();
    world.environment("my-env");
    let run = world.run("eval run my-env -n 1 -r 1 -v");
    for part in ["user: ", "assistant: ", "reward: ", "metrics: aec_bench_reward=", "timing: "] {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
    let run = world.run("eval run my-env -n 1 -r 1 -q");
    assert!(run.stderr.is_empty(), "{run:?}");
    let run = world.run("eval run my-env -n 1 -u");
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("needs a terminal"), "{run:?}");
    assert_eq!(world.run("eval run my-env -u -d").code, Some(2));
    assert_eq!(world.run("eval run my-env -r 0").code, Some(2));
    assert_eq!(world.run("eval run nothing-like-it").code, Some(3));
}

#[test]
fn a_budget_stops_the_evaluation_and_it_goes_on_later() {
    let world = World::new();
    world.environment("my-env");
    world.env.write(
        "configs/prices.toml",
        "[[price]]\nendpoint = \"gpt-4.1-mini\"\ninput = 1000\noutput = 1000\n",
    );
    let refused = world.run("eval run my-env -n 4 -r 2 -t 100 -s --max-cost 0.000001");
    assert_eq!((refused.code, world.requests().len()), (Some(3), 0), "no call fits: {refused:?}");
    assert!(refused.stderr.contains("E055"), "{refused:?}");
    let run = world.run("eval run my-env -n 4 -r 2 -t 100 -s --max-cost 0.3");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stderr.contains("R100"), "{run:?}");
}

#[test]
fn recordings_replace_the_model() {
    let world = World::new();
    world.environment("my-env");
    let first = world.eval("eval run my-env -n 3 -r 2 --record tape");
    let before = world.requests().len();
    let again = world.eval("eval run my-env -n 3 -r 2 --replay tape");
    assert_eq!(world.requests().len(), before, "no model was called");
    assert_eq!((&first["reward"], &first["metrics"]), (&again["reward"], &again["metrics"]));
    let run = world.run("eval run my-env -n 5 -r 2 --replay tape");
    assert_eq!(run.code, Some(4), "what is not on the tape is not made up: {run:?}");
}

#[test]
fn secrets_do_not_get_into_rows() {
    let mut world = World::new();
    world.env.set("CANARY_API_KEY", "I do not know");
    world.environment("my-env");
    world.eval("eval run my-env -n -1 -r 1 -s");
    let run = world.saved("my_env", "my-env");
    let text = std::fs::read_to_string(run.join("results.jsonl")).unwrap();
    assert!(!text.contains("I do not know") && text.contains("CANARY_API_KEY redacted"), "{text}");
}

#[test]
fn a_monitor_hears_of_progress_and_slows_nothing() {
    let world = World::new();
    world.environment("my-env");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, heard) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            // The last beat interrupts a beat under way, so not every client sends a whole request.
            if std::io::BufRead::read_line(&mut std::io::BufReader::new(&stream), &mut line)
                .is_ok_and(|read| read > 0)
            {
                let answer = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
                std::io::Write::write_all(&mut stream, answer).ok();
                tell.send(line).unwrap();
            }
        }
    });
    world.eval(&format!("eval run my-env -n 2 -r 2 --heartbeat-url http://{address}/ping/abc123"));
    assert!(heard.recv_timeout(Duration::from_mins(1)).unwrap().starts_with("GET /ping/abc123 "));
    // Nothing listens there: that is reported once, and the evaluation is unaffected.
    let nobody = ClosedPort::take();
    let url = format!("http://{}/ping", nobody.address);
    let run = world.run(&format!("--json eval run my-env -n 2 -r 2 --heartbeat-url {url}"));
    assert_eq!(run.envelope()["data"]["evaluations"][0]["rows"], 4, "{run:?}");
    assert_eq!(run.errors().iter().filter(|(id, _)| id == "R088").count(), 1, "{run:?}");
    assert_eq!(world.run("eval run my-env --heartbeat-url nonsense").code, Some(3));
}

#[test]
fn publishing_needs_a_token_and_says_so_before_it_runs() {
    let world = World::new();
    world.environment("my-env");
    let run = world
        .run("eval run my-env -n 2 -r 1 -s --save-to-hf-hub --hf-hub-dataset-name my-org/my-env-results");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stderr.contains("HF_TOKEN"), "{run:?}");
    assert!(world.requests().is_empty(), "nothing was spent");
}
