//! What the tests of the web interface share: a project full of hostile text, the server, a client, and a model that
//! answers when the test lets it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout};
use std::sync::mpsc;
use std::time::Duration;

use aec_judge::scorer::STANDARD_VERIFY_PY;
use aec_xtest::TestEnv;
use aec_xtest::wait::until_some;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// Text that would run if it became markup, in a form that a task, a tag, a tool or an answer can contain.
pub(crate) const HOSTILE: &str = "<script>hacked=1</script><img src=x onerror=hacked=2>";

const ANSWERS: &str = r#"{"version": 1, "output": "output.json", "fields": {
  "flow_m3_s": {"type": "number", "value": 3.217, "rel_tol": 0.001},
  "depth_m": {"type": "number", "value": 1.254, "rel_tol": 0.001}
}}"#;

pub(crate) struct Project {
    pub(crate) env: TestEnv,
}

impl Project {
    pub(crate) fn new() -> Self {
        let env = TestEnv::new(env!("CARGO_BIN_EXE_aec-bench"));
        let made = env.run(["init", "--no-example", "--quiet"]);
        assert_eq!(made.code, Some(0), "{made:?}");
        Self { env }
    }

    /// A project with tasks, two experiments, a dataset and an audit, in which everything that others can write is
    /// hostile.
    pub(crate) fn hostile() -> Self {
        let project = Self::new();
        for id in ["civil/channel-000", "civil/channel-001"] {
            project.task(id);
        }
        project.env.write(
            "replies.yaml",
            format!(
                "replies:\n- text: 'looking {HOSTILE}'\n  reasoning: '{HOSTILE}'\n  tool_calls:\n  \
                 - {{name: bash, arguments: {{command: \"cat survey.csv; echo '{HOSTILE}' >&2; exit 3\"}}}}\n  \
                 - {{name: write_file, arguments: {{path: note.html, content: '{HOSTILE}'}}}}\n\
                 - text: '{{\"flow_m3_s\": 3.217, \"depth_m\": \"{HOSTILE}\"}}'\n"
            ),
        );
        project.env.write(
            "experiment.yaml",
            format!(
                "experiment_id: hostile\nname: '{HOSTILE}'\ndescription: '{HOSTILE}'\ntasks: {{}}\nrepetitions: 1\nagents:\n\
                 - name: reader\n  harness: tool_loop\n  model: offline/scripted:replies.yaml\n\
                 - name: idle\n  harness: nop\n"
            ),
        );
        project.ok("run --config experiment.yaml");
        project.ok("run civil/channel-000 --harness oracle -e other");
        let made = project.env.run([
            "dataset",
            "create",
            "--name",
            "both",
            "--version",
            "1.0.0",
            "--summary",
            HOSTILE,
        ]);
        assert_eq!(made.code, Some(0), "{made:?}");
        project.env.write("tasks/civil/broken/task.toml", "version = \"1.0\"\n[metadata]\nnonsense = 1\n");
        project.env.write("tasks/civil/broken/instruction.md", "x");
        let finding =
            json!({ "severity": "error", "id": "A002", "about": HOSTILE, "what": HOSTILE, "fix": HOSTILE });
        let audit = json!({ "task_id": HOSTILE, "mutants": { "good": 1, "all": 2 }, "floor": 0.5, "floor_agent": HOSTILE });
        project.env.write(
            "artefacts/audits/first.json",
            json!({ "data": { "audits": [audit], "notes": [] }, "errors": [finding] }).to_string(),
        );
        project
    }

    /// Writes a task whose answer the native scorer judges.
    pub(crate) fn task(&self, id: &str) {
        let task = format!(
            "version = \"1.0\"\n\n[metadata]\ndifficulty = \"easy\"\ntags = [\"plain\", \"{HOSTILE}\"]\n\n[agent]\ntimeout_sec = 600\n"
        );
        let instruction = format!(
            "# Channel {id}\n\n{HOSTILE}\n\n[a](javascript:hacked=3) =HYPERLINK(\"x\")\n\nWrite `flow_m3_s` and `depth_m` \
             as JSON to `/workspace/output.json`.\n"
        );
        for (name, text) in [
            ("task.toml", task.as_str()),
            ("instruction.md", &instruction),
            ("environment/Dockerfile", "FROM scratch\n"),
            ("environment/survey.csv", &format!("x,z\n=1+1,{HOSTILE}\n")),
            ("tests/test.sh", "#!/usr/bin/env bash\nexec python3 -I \"$(dirname \"$0\")/verify.py\"\n"),
            ("tests/verify.py", STANDARD_VERIFY_PY),
            ("tests/answers.json", ANSWERS),
            (
                "solution/solve.sh",
                "#!/usr/bin/env bash\ncat /solution/answer.json > /workspace/output.json\n",
            ),
            ("solution/answer.json", r#"{"flow_m3_s": 3.217, "depth_m": 1.254}"#),
        ] {
            self.env.write(format!("tasks/{id}/{name}"), text);
        }
    }

    /// Runs the program, which must succeed; words are split at spaces.
    pub(crate) fn ok(&self, line: &str) {
        let run = self.env.run(line.split_whitespace());
        assert_eq!(run.code, Some(0), "{line}: {run:?}");
    }

    /// Ids of the trials of an experiment, with the agent of each.
    pub(crate) fn trials(&self, experiment: &str) -> Vec<(String, String)> {
        let run = self.env.run(["--json", "ledger", "list", "-e", experiment]);
        let rows = run.data()["records"].as_array().unwrap_or_else(|| panic!("{run:?}")).clone();
        let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
        rows.iter().map(|row| (text(row, "trial_id"), text(row, "agent"))).collect()
    }

    /// Every file of the project that no cache rewrites, with its length and modification time.
    pub(crate) fn files(&self) -> Vec<(String, u64, std::time::SystemTime)> {
        let mut found = Vec::new();
        let mut waiting = vec![self.env.dir()];
        while let Some(directory) = waiting.pop() {
            for entry in std::fs::read_dir(&directory).unwrap().map(Result::unwrap) {
                // Files of the index come and go while it is read.
                if entry.file_name().to_string_lossy().starts_with("_index.sqlite") {
                    continue;
                }
                let known = entry.metadata().unwrap();
                if known.is_dir() {
                    waiting.push(entry.path());
                } else {
                    let name = entry.path().to_string_lossy().into_owned();
                    found.push((name, known.len(), known.modified().unwrap()));
                }
            }
        }
        found.sort();
        found
    }
}

pub(crate) struct Web {
    child: Child,
    output: BufReader<ChildStdout>,
    pub(crate) address: String,
}

impl Web {
    pub(crate) fn start(project: &Project) -> Self {
        Self::start_with(project, "")
    }

    pub(crate) fn start_with(project: &Project, more: &str) -> Self {
        let line = format!("web --json --port 0 {more}");
        let mut child = project.env.start_piped(line.split_whitespace());
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        output.read_line(&mut first).unwrap();
        let envelope: Value = serde_json::from_str(&first).unwrap_or_else(|_| panic!("{first}"));
        assert_eq!(envelope["status"], "success", "{envelope}");
        let url = envelope["data"]["url"].as_str().unwrap();
        let address = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        Self { child, output, address: address.replace("localhost", "127.0.0.1") }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Requests a page as a program would.
    pub(crate) fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, &[])
    }

    /// Sends a request with these headers; a `host` among them replaces the right one.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Reply {
        let mut stream = self.send(method, path, headers, "connection: close\r\n");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        Reply::read(&answer)
    }

    /// A page that must exist, as text.
    pub(crate) fn page(&self, path: &str) -> String {
        // A page does not wait for slow parts; it says that they are missing.
        until_some(&format!("a page with everything at {path}"), || {
            let reply = self.get(path);
            assert_eq!(reply.status, 200, "{path}: {}", reply.body);
            assert_eq!(reply.header("content-type"), "text/html; charset=utf-8", "{path}");
            assert!(reply.header("server-timing").starts_with("page;dur="), "{path}");
            let whole = !reply.body.contains(" yet; load the page again");
            whole.then_some(reply.body)
        })
    }

    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], more: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        // A server that sends nothing for this long is stuck.
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        let mut head = format!("{method} {path} HTTP/1.1\r\n{more}");
        if !headers.iter().any(|(name, _)| *name == "host") {
            head.push_str(&format!("host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }

    /// Follows a stream of events.
    pub(crate) fn follow(&self, path: &str) -> Stream {
        let mut lines = BufReader::new(self.send("GET", path, &[], ""));
        let mut head = String::new();
        lines.read_line(&mut head).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Stream { status, lines }
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

impl Drop for Web {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Reply {
    fn read(answer: &[u8]) -> Self {
        let text = String::from_utf8_lossy(answer);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_owned(), body: body.to_owned() }
    }

    /// A header; empty if it is absent.
    pub(crate) fn header(&self, name: &str) -> String {
        let pairs = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        let mut found = pairs.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.to_owned()).unwrap_or_default()
    }
}

/// A stream of events.
pub(crate) struct Stream {
    pub(crate) status: u16,
    lines: BufReader<TcpStream>,
}

impl Stream {
    /// The next event: its name, its id and its data. `None` after the last one.
    pub(crate) fn next(&mut self) -> Option<(String, Option<u64>, Value)> {
        let (mut name, mut id) = (String::new(), None);
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // Other lines are headers, chunk lengths or comments.
            if let Some(found) = line.strip_prefix("event: ") {
                found.trim().clone_into(&mut name);
            } else if let Some(found) = line.strip_prefix("id: ") {
                id = Some(found.trim().parse().unwrap());
            } else if let Some(data) = line.strip_prefix("data: ") {
                return Some((name, id, serde_json::from_str(data.trim()).unwrap()));
            }
        }
    }

    /// Reads events until one fits.
    pub(crate) fn until(&mut self, fits: impl Fn(&str, &Value) -> bool) -> Value {
        loop {
            let (name, _, data) = self.next().unwrap_or_else(|| panic!("the stream ended before"));
            if fits(&name, &data) {
                return data;
            }
        }
    }
}

/// A model that calls a tool at once, and gives its last answer when the test lets it.
pub(crate) struct GatedModel {
    pub(crate) port: u16,
    go: mpsc::Sender<()>,
}

impl GatedModel {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (go, gate) = mpsc::channel();
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let stream = stream.unwrap();
                let call = json!([{ "id": "c1", "type": "function", "function":
                    { "name": "bash", "arguments": json!({ "command": format!("echo '{HOSTILE}'") }).to_string() } }]);
                let message = if number == 0 {
                    json!({ "role": "assistant", "content": "first words", "tool_calls": call })
                } else {
                    // The sender is dropped at the end of the test.
                    if gate.recv().is_err() {
                        return;
                    }
                    json!({ "role": "assistant", "content": "{\"flow_m3_s\": 3.217, \"depth_m\": 1.254}" })
                };
                answer(stream, &message, number == 0);
            }
        });
        Self { port, go }
    }

    /// Lets the model give its last answer.
    pub(crate) fn release(&self) {
        self.go.send(()).unwrap();
    }
}

fn answer(mut stream: TcpStream, message: &Value, calls: bool) {
    let mut request = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    loop {
        let mut line = String::new();
        request.read_line(&mut line).unwrap();
        if let Some(found) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
            length = found.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    request.read_exact(&mut body).unwrap();
    let stop = if calls { "tool_calls" } else { "stop" };
    let body = json!({ "id": "r", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{ "index": 0, "message": message, "finish_reason": stop }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 } })
    .to_string();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
}

/// A run that waits until the test lets its model answer.
pub(crate) struct SlowRun {
    pub(crate) model: GatedModel,
    child: Child,
}

impl SlowRun {
    /// Starts it: one task, one agent, the experiment `slow`.
    pub(crate) fn start(project: &Project) -> Self {
        let model = GatedModel::start();
        project.env.write(
            "configs/endpoints.toml",
            format!(
                "[[endpoint]]\nendpoint_id = \"slow\"\nmodel = \"m\"\nurl = \"http://127.0.0.1:{}/v1\"\n",
                model.port
            ),
        );
        let line = "run civil/channel-000 --harness tool_loop --model slow -e slow";
        Self { model, child: project.env.start(line.split(' ')) }
    }

    /// Lets the run continue and waits for its end.
    pub(crate) fn finish(mut self) {
        self.model.release();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for SlowRun {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
