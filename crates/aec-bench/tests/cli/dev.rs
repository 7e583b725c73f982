//! `dev serve-model`: it is ready when it says so, and it ends on a signal.

use rustix::process::Signal;
use serde_json::Value;

use crate::cli::server::{Server, post};
use crate::cli::world;

/// Requests a completion. Returns status and body.
fn ask(url: &str, key: &str) -> (u16, String) {
    post(
        url,
        "/v1/chat/completions",
        key,
        r#"{"model":"m","messages":[{"role":"user","content":"hello there"}]}"#,
    )
}

#[test]
fn the_address_comes_first_and_signals_end_it_well() {
    let env = world();
    for signal in [Signal::INT, Signal::TERM] {
        let server = Server::start(&env, "dev serve-model --echo");
        let url = server.first_line.trim().to_owned();
        let (status, body) = ask(&url, "any");
        assert_eq!(status, 200);
        let value: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(value["choices"][0]["message"]["content"], "hello there");
        let (code, rest, errors) = server.end(signal);
        assert_eq!((code, rest.as_str()), (Some(0), ""));
        assert!(errors.contains("Serving until Ctrl-C"), "{errors}");
    }
}

#[test]
fn in_json_mode_one_envelope_says_that_it_is_ready() {
    let mut env = world();
    env.set("MY_MODEL_KEY", "secret-value-of-the-key");
    let mut server = Server::start(&env, "dev serve-model --json --key MY_MODEL_KEY");
    let url = server.data()["url"].as_str().unwrap().to_owned();
    assert_eq!(ask(&url, "wrong").0, 401);
    assert_eq!(ask(&url, "secret-value-of-the-key").0, 200);
    assert_eq!(server.end(Signal::TERM), (Some(0), String::new(), String::new()));
}

#[test]
fn a_script_is_read_before_the_server_starts() {
    let env = world();
    env.write("replies.yaml", "replies:\n- text: first\n");
    let server = Server::start(&env, "dev serve-model --quiet --script replies.yaml");
    assert!(ask(server.first_line.trim(), "any").1.contains("first"));
    assert_eq!(server.end(Signal::INT), (Some(0), String::new(), String::new()));
    env.write("replies.yaml", "replies:\n- says: first\n");
    let broken = env.run(["--json", "dev", "serve-model", "--script", "replies.yaml"]);
    assert_eq!((broken.code, broken.errors()[0].0.as_str()), (Some(3), "Q003"));
}

#[test]
fn what_cannot_be_served_is_said_at_once() {
    let env = world();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let busy = env.run(["dev", "serve-model", "--port", &port.to_string()]);
    assert_eq!(busy.code, Some(4));
    assert!(busy.stderr.contains("--port"), "{busy:?}");
    for (line, word) in [
        ("--fault rate=0.7 --fault cut=0.7", "more than 1"),
        ("--fault nonsense", "rate_date"),
        ("--fault rate=2", "from 0 to 1"),
        ("--latency fast", "50ms"),
        ("--output-tokens 9..1", "backwards"),
        ("--requests-per-minute 0", "at least 1"),
        ("--echo --script x.json", "cannot be used with"),
    ] {
        let run = env.run(["dev", "serve-model"].into_iter().chain(line.split(' ')));
        assert_eq!(run.code, Some(2), "{line}");
        assert!(run.stderr.contains(word), "{line}: {}", run.stderr);
    }
    let unset = env.run(["dev", "serve-model", "--key", "NO_SUCH_VARIABLE"]);
    assert_eq!(unset.code, Some(3));
    assert!(unset.stderr.contains("NO_SUCH_VARIABLE"), "{unset:?}");
}
