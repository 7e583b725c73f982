//! A stand-in for Modal's servers that really runs commands, and the real client.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::venv::install;

/// The version of the client that the tests use.
const CLIENT: &str = "modal-1.6.4";
const SERVER: &str = include_str!("../python/modal_server.py");

/// Modal's client, and servers for it. The servers end when this is dropped.
pub struct ModalServers {
    /// The address of the servers, for `MODAL_SERVER_URL`.
    pub address: String,
    /// The directory of the `python3` that has the client.
    pub programs: PathBuf,
    trace: PathBuf,
    child: Child,
    _directory: tempfile::TempDir,
}

impl ModalServers {
    /// Installs the client and starts the servers. Its tests need the part `packages`.
    pub fn start() -> Self {
        let environment = install(CLIENT);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (script, trace) = (directory.path().join("server.py"), directory.path().join("trace.jsonl"));
        fs_err::write(&script, SERVER).expect("a file");
        let programs = environment.join("bin");
        let mut child = Command::new(programs.join("python3"))
            .arg(&script)
            .arg(&trace)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the servers start");
        let mut address = String::new();
        let mut said = BufReader::new(child.stdout.take().expect("what they say"));
        said.read_line(&mut address).expect("their address");
        Self { address: address.trim().to_owned(), programs, trace, child, _directory: directory }
    }

    /// How often a call was made.
    pub fn calls(&self, rpc: &str) -> usize {
        let text = fs_err::read_to_string(&self.trace).unwrap_or_default();
        text.lines().filter(|line| *line == format!("{{\"rpc\": \"{rpc}\"}}")).count()
    }

    /// Makes a sandbox in an app, as another program would. Tags that are null are left out.
    pub fn make_sandbox(&self, app: &str, tags: &Value) {
        const PROGRAM: &str = "import json, modal, sys\n\
            tags = {name: value for name, value in json.loads(sys.argv[2]).items() if value is not None}\n\
            app = modal.App.lookup(sys.argv[1], create_if_missing=True)\n\
            modal.Sandbox.create('sleep', 'infinity', app=app, tags=tags)\n";
        crate::venv::run(
            Command::new(self.programs.join("python3"))
                .args(["-c", PROGRAM, app, &tags.to_string()])
                .env("MODAL_SERVER_URL", &self.address)
                .env("MODAL_TOKEN_ID", "ak-test")
                .env("MODAL_TOKEN_SECRET", "as-test"),
        )
        .expect("a sandbox");
    }

    /// The sandboxes that were made: id, tags, and the request.
    pub fn sandboxes(&self) -> Vec<Value> {
        self.told("sandbox")
    }

    /// Ids of the ended sandboxes, once for each request to end them.
    pub fn ended(&self) -> Vec<String> {
        self.told("ended").iter().filter_map(|id| id.as_str().map(str::to_owned)).collect()
    }

    fn told(&self, what: &str) -> Vec<Value> {
        let text = fs_err::read_to_string(&self.trace).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter_map(|mut line| line.get_mut(what).map(Value::take)).collect()
    }
}

impl Drop for ModalServers {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
