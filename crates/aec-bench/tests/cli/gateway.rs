//! `gateway serve`: models for programs that must not see keys.

use std::path::Path;

use aec_xtest::TestEnv;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::cli::empty_project;
use crate::cli::server::{Server, post};

/// The value that must not appear anywhere.
const CANARY: &str = "c4n4ry-k3y-0f-the-mine";

fn chat(model: &str, text: &str) -> String {
    json!({ "model": model, "max_tokens": 50, "messages": [{ "role": "user", "content": text }] }).to_string()
}

struct Gateway {
    server: Server,
    address: String,
    tokens: Vec<String>,
}

impl Gateway {
    fn start(env: &TestEnv, more: &str) -> Self {
        let mut server = Server::start(env, format!("gateway serve --json --model near {more}").trim());
        let data = server.data();
        let token = |token: &Value| token["token"].as_str().unwrap().to_owned();
        let tokens = data["tokens"].as_array().unwrap().iter().map(token).collect();
        Self { address: data["address"].as_str().unwrap().to_owned(), tokens, server }
    }

    fn ask(&self, text: &str) -> (u16, String) {
        post(&self.address, "/v1/chat/completions", &self.tokens[0], &chat("near", text))
    }
}

/// A project with a model `near` on a test server, and that server.
fn project(options: &str, more: &str) -> (TestEnv, Server) {
    let mut env = empty_project();
    env.set("NEAR_KEY", CANARY);
    let mut server =
        Server::start(&env, format!("dev serve-model --json --echo --key NEAR_KEY {options}").trim());
    let url = server.data()["url"].as_str().unwrap().to_owned();
    let row = format!(
        "[[endpoint]]\nendpoint_id = \"near\"\nmodel = \"m\"\nurl = \"{url}/v1\"\nkey = \"NEAR_KEY\"\n{more}\n"
    );
    env.write("configs/endpoints.toml", row);
    env.write("configs/prices.toml", "schema_version = 1\nversion = \"2026-11-16\"\n[[price]]\nendpoint = \"near\"\ninput = 1\noutput = 10\n");
    (env, server)
}

#[test]
fn it_serves_until_it_is_told_to_stop() {
    let (env, _provider) = project("", "");
    for signal in [Signal::INT, Signal::TERM] {
        let gateway = Gateway::start(&env, "--tokens 2 --socket gateway.sock");
        assert_eq!(gateway.tokens.len(), 2);
        assert!(env.path("gateway.sock").exists());
        let (status, body) = gateway.ask("hello");
        assert_eq!(status, 200, "{body}");
        assert!(body.contains("hello"));
        let (status, _) = post(&gateway.address, "/v1/chat/completions", "nobody", &chat("near", "x"));
        assert_eq!(status, 401);
        assert_eq!(gateway.server.end(signal).0, Some(0));
        assert!(!env.path("gateway.sock").exists());
    }
    let text = env.run(["gateway", "serve", "--model", "near", "--listen", "0.0.0.0:0"]);
    assert_eq!(text.code, Some(2), "{text:?}");
    assert!(text.stderr.contains("not on loopback"));
    let unknown = env.run(["gateway", "serve", "--model", "mystery"]);
    assert_eq!(unknown.code, Some(3), "{unknown:?}");
}

#[test]
fn budgets_of_tokens_runs_and_days_hold() {
    let (env, _provider) = project("", "");
    // Each call may cost about 800 micro-dollars and costs about 20.
    for (flags, project) in [
        ("--token-max-cost 0.0009", ""),
        ("--max-cost 0.0009", ""),
        ("--max-total-tokens 200", ""),
        ("", "[budget]\ntrial_usd = 0.0009\n"),
        ("", "[budget]\nexperiment_usd = 0.0009\n"),
        ("", "[budget]\nday_usd = 0.0009\n"),
        ("", "[budget]\ntrial_tokens = 200\n"),
        ("", "[budget]\nexperiment_tokens = 200\n"),
        ("", "[budget]\nday_tokens = 200\n[paths]\nspend = \"elsewhere\"\n"),
    ] {
        env.write("aec-bench.toml", project);
        let gateway = Gateway::start(&env, flags);
        let mut statuses = Vec::new();
        for number in 0..40 {
            statuses.push(gateway.ask(&format!("question {number}")).0);
        }
        assert_eq!((statuses[0], statuses[39]), (200, 402), "{flags} {project}: {statuses:?}");
        if project.contains("day_usd") {
            // The day's budget counts across processes.
            gateway.server.end(Signal::TERM);
            let again = Gateway::start(&env, "");
            assert_eq!(again.ask("one more").0, 402);
        }
    }
    assert!(env.path("artefacts/spend").is_dir() && env.path("elsewhere").is_dir());
    for (budget, id) in [
        ("day_usd = -1", "C005"),
        ("day_usd = \"much\"", "C004"),
        ("day_tokens = 1.5", "C004"),
        ("hour_usd = 1", "C003"),
    ] {
        env.write("aec-bench.toml", format!("[budget]\n{budget}\n"));
        let run = env.run(["--json", "config", "view"]);
        assert_eq!(run.errors()[0].0, id, "{budget}: {run:?}");
    }
    env.write("aec-bench.toml", "");
    let odd = env.run(["gateway", "serve", "--model", "near", "--max-cost", "a-lot"]);
    assert_eq!(odd.code, Some(2), "{odd:?}");
}

#[test]
fn what_was_recorded_is_replayed_without_the_provider() {
    let (env, provider) = project("--fault server=0.3", "");
    let gateway = Gateway::start(&env, "--record tape");
    let live: Vec<_> = (0..10).map(|number| gateway.ask(&format!("question {number}"))).collect();
    assert!(live.iter().all(|(status, _)| *status == 200), "{live:?}");
    gateway.server.end(Signal::TERM);
    provider.end(Signal::TERM);
    let replay = Gateway::start(&env, "--replay tape");
    let content = |(_, body): &(u16, String)| {
        let body: Value = serde_json::from_str(body).unwrap();
        (body["choices"].clone(), body["usage"].clone())
    };
    for (number, live) in live.iter().enumerate() {
        assert_eq!(content(&replay.ask(&format!("question {number}"))), content(live));
    }
    let (status, body) = replay.ask("question 11");
    assert_eq!(status, 424, "{body}");
    assert!(body.contains("question 1"), "the nearest one is named: {body}");
}

#[test]
fn a_cache_serves_what_it_knows_when_the_provider_is_gone() {
    let (env, provider) = project("", "");
    let gateway = Gateway::start(&env, "--cache");
    assert_eq!(gateway.ask("hello").0, 200);
    gateway.server.end(Signal::TERM);
    provider.end(Signal::TERM);
    let gateway = Gateway::start(&env, "--cache");
    assert_eq!(gateway.ask("hello").0, 200);
    assert!(env.path("artefacts/cache/models").is_dir());
    // What is not in the cache needs tokens, and nobody has any.
    let budget = "[budget]\ntrial_tokens = 1\n";
    env.write("aec-bench.toml", budget);
    assert_eq!(Gateway::start(&env, "--cache").ask("hello").0, 200);
    env.write("aec-bench.toml", format!("{budget}[paths]\nmodel_cache = \"kept\"\n"));
    assert_eq!(Gateway::start(&env, "--cache").ask("hello").0, 402, "another cache knows nothing");
}

/// Every file below a directory that contains the canary.
fn holding(directory: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            holding(&path, found);
        } else if let Ok(bytes) = std::fs::read(&path)
            && bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes())
        {
            found.push(path.strip_prefix(directory).unwrap().display().to_string());
        }
    }
}

#[test]
fn a_canary_key_turns_up_nowhere() {
    // The key is in the environment, in .env, in a header by reference, and in a message to the model.
    let (mut env, provider) = project(
        "--fault auth=0.1 --fault overlong=0.1 --fault server=0.2",
        "headers = { x-side-door = \"Bearer ${SIDE_DOOR}\" }",
    );
    env.set("SIDE_DOOR", CANARY);
    env.set("UNRELATED_TOKEN", CANARY);
    env.write(".env", format!("OTHER_API_KEY={CANARY}\nPLAIN={CANARY}\n"));
    let mut printed = String::new();
    for flags in ["--record tape --verbose", "--cache --verbose"] {
        let gateway = Gateway::start(&env, flags);
        printed.push_str(&gateway.server.first_line);
        for number in 0..30 {
            gateway.ask(&format!("my key is {CANARY}, what is yours? {number}"));
        }
        let (code, out, errors) = gateway.server.end(Signal::TERM);
        assert_eq!(code, Some(0));
        printed.extend([out, errors]);
    }
    for line in
        ["models check", "--verbose models check near", "--json config view", "doctor", "--json config check"]
    {
        let run = env.run(line.split(' '));
        printed.extend([run.stdout, run.stderr]);
    }
    provider.end(Signal::TERM);
    for line in
        ["models check near", "--json models check near --replay tape", "models check near --endpoints .env"]
    {
        let run = env.run(line.split(' '));
        printed.extend([run.stdout, run.stderr]);
    }
    assert!(!printed.contains(CANARY), "{printed}");
    assert!(printed.contains("redacted]") || !printed.contains("c4n4ry"), "not even a part: {printed}");
    let mut found = Vec::new();
    holding(&env.dir(), &mut found);
    holding(&env.home(), &mut found);
    assert_eq!(found, [".env"], "the file that the user wrote");
    let tape = std::fs::read_dir(env.path("tape")).unwrap().next().unwrap().unwrap();
    let tape = std::fs::read_to_string(tape.path()).unwrap();
    assert!(tape.contains("redacted]"), "what was said is kept, without the key");
}
