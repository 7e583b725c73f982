//! Servers of the program: they are ready when they say so, and they end on a signal.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdout};

use aec_xtest::TestEnv;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A running server, and the first line that it printed.
pub(crate) struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
    pub(crate) first_line: String,
}

impl Server {
    pub(crate) fn start(env: &TestEnv, line: &str) -> Self {
        let mut child = env.start_piped(line.split(' '));
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut first_line = String::new();
        output.read_line(&mut first_line).unwrap();
        Self { child, output, first_line }
    }

    /// The data of the envelope that reports that the server is ready.
    pub(crate) fn data(&mut self) -> Value {
        let envelope: Value = serde_json::from_str(&self.first_line).unwrap_or_else(|_| {
            let mut said = String::new();
            self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("{} {said}", self.first_line)
        });
        assert_eq!(envelope["status"], "success", "{envelope}");
        envelope["data"].clone()
    }

    /// Sends a signal and waits for the end. Returns the exit code, the rest of stdout, and stderr.
    pub(crate) fn end(mut self, signal: Signal) -> (Option<i32>, String, String) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        let (mut rest, mut errors) = (String::new(), String::new());
        self.output.read_to_string(&mut rest).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (self.child.wait().unwrap().code(), rest, errors)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A failed test must leave no process behind.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Posts JSON on a new connection. Returns status and body.
pub(crate) fn post(address: &str, path: &str, key: &str, body: &str) -> (u16, String) {
    let address = address.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
    (status, body.to_owned())
}
