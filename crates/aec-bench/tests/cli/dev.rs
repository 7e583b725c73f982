//! `dev serve-model`: ready when it says so, and gone when it is told to go.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Child;

use aec_test::TestEnv;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::world;

/// A server that runs, and the first line that it printed.
struct Server {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    first_line: String,
}

impl Server {
    fn start(env: &TestEnv, line: &str) -> Self {
        let mut child = env.start_piped(line.split(' '));
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut first_line = String::new();
        output.read_line(&mut first_line).unwrap();
        Self { child, output, first_line }
    }

    /// Asks for a completion on a connection of its own: status line and body.
    fn ask(&self, url: &str, key: &str) -> (String, String) {
        let address = url.strip_prefix("http://").unwrap();
        let body = r#"{"model":"m","messages":[{"role":"user","content":"hello there"}]}"#;
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().to_owned(), body.to_owned())
    }

    /// Sends a signal and waits for the end: exit code, the rest of stdout, and stderr.
    fn end(mut self, signal: Signal) -> (Option<i32>, String, String) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        let (mut rest, mut errors) = (String::new(), String::new());
        self.output.read_to_string(&mut rest).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (self.child.wait().unwrap().code(), rest, errors)
    }
}

#[test]
fn the_address_comes_first_and_signals_end_it_well() {
    let env = world();
    for signal in [Signal::INT, Signal::TERM] {
        let server = Server::start(&env, "dev serve-model --echo");
        let url = server.first_line.trim().to_owned();
        let (status, body) = server.ask(&url, "any");
        assert_eq!(status, "HTTP/1.1 200 OK");
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
    let server = Server::start(&env, "dev serve-model --json --key MY_MODEL_KEY");
    let envelope: Value = serde_json::from_str(&server.first_line).unwrap();
    assert_eq!((&envelope["command"], &envelope["status"]), (&"dev serve-model".into(), &"success".into()));
    let url = envelope["data"]["url"].as_str().unwrap().to_owned();
    assert!(server.ask(&url, "wrong").0.contains("401"));
    assert!(server.ask(&url, "secret-value-of-the-key").0.contains("200"));
    assert_eq!(server.end(Signal::TERM), (Some(0), String::new(), String::new()));
}

#[test]
fn a_script_is_read_before_the_server_starts() {
    let env = world();
    env.write("replies.yaml", "replies:\n- text: first\n");
    let server = Server::start(&env, "dev serve-model --quiet --script replies.yaml");
    assert!(server.ask(server.first_line.trim(), "any").1.contains("first"));
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
