//! Models played by a test: a server with the chat completions format that answers as a function says and records its
//! requests. The answer may depend on the system prompt, which a script cannot do.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use serde_json::{Value, json};

/// An answer of a model.
#[derive(Clone, Debug)]
pub(crate) enum Said {
    Text(String),
    Call(&'static str, Value),
    Status(u16),
    /// No answer until the client disconnects.
    Silence,
}

impl From<&str> for Said {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Said {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// The requests, and a signal for waiting threads.
type Asked = (Mutex<Vec<Value>>, Condvar);
type Answer = dyn Fn(&Value) -> Said + Send + Sync;

pub(crate) struct Voices {
    port: u16,
    asked: Arc<Asked>,
    over: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl Voices {
    /// Starts models whose answers a function makes from the body of the request.
    pub(crate) fn start(answer: impl Fn(&Value) -> Said + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked: Arc<Asked> = Arc::default();
        let over = Arc::new(AtomicBool::new(false));
        let (kept, ended, answer) = (Arc::clone(&asked), Arc::clone(&over), Arc::new(answer));
        let listening = std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                // Errors of a client that was killed do not matter.
                std::thread::spawn(move || serve(&stream, answer.as_ref(), &kept).ok());
            }
        });
        Self { port, asked, over, listening: Some(listening) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// Bodies of the requests to a model so far, in order.
    pub(crate) fn asked(&self, model: &str) -> Vec<Value> {
        let asked = self.asked.0.lock().unwrap();
        asked.iter().filter(|body| body["model"] == model).cloned().collect()
    }

    /// Waits until a model has been asked this often.
    pub(crate) fn wait_for(&self, model: &str, count: usize) {
        self.wait_until(|asked| asked.iter().filter(|body| body["model"] == model).count() >= count);
    }

    /// Waits until the evolver is asked in this cycle.
    pub(crate) fn wait_for_cycle(&self, number: u32) {
        self.wait_until(|asked| asked.iter().any(|body| body["model"] == "evolver" && cycle(body) == number));
    }

    /// Waits until a condition on the requests holds.
    pub(crate) fn wait_until(&self, is_there: impl Fn(&[Value]) -> bool) {
        let (asked, changed) = &*self.asked;
        drop(changed.wait_while(asked.lock().unwrap(), |asked| !is_there(asked)).unwrap());
    }

    /// Adds requests to another server.
    pub(crate) fn remember(&self, asked: &[Value]) {
        self.asked.0.lock().unwrap().extend_from_slice(asked);
    }

    pub(crate) fn forget(&self) {
        self.asked.0.lock().unwrap().clear();
    }
}

impl Drop for Voices {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        TcpStream::connect(("127.0.0.1", self.port)).ok();
        if let Some(listening) = self.listening.take() {
            listening.join().ok();
        }
    }
}

fn serve(stream: &TcpStream, answer: &Answer, asked: &Asked) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut length = 0;
        let mut lines = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line.trim().is_empty() {
                break;
            }
            lines += 1;
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        assert!(lines > 0, "a request has a first line");
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let body: Value = serde_json::from_slice(&body).unwrap();
        {
            let (asked, changed) = asked;
            asked.lock().unwrap().push(body.clone());
            changed.notify_all();
        }
        let said = answer(&body);
        let (status, reply) = match said {
            Said::Status(status) => {
                (status, json!({ "error": { "message": "as the test wants", "type": "test" } }))
            }
            Said::Silence => {
                reader.read_line(&mut String::new())?;
                return Ok(());
            }
            Said::Text(text) => {
                (200, whole(&body, &text, &json!({ "role": "assistant", "content": text }), "stop"))
            }
            Said::Call(name, arguments) => {
                let arguments = arguments.to_string();
                let function = json!({ "name": name, "arguments": arguments });
                let calls = json!([{ "id": "call_1", "type": "function", "function": function }]);
                let message = json!({ "role": "assistant", "content": null, "tool_calls": calls });
                (200, whole(&body, &arguments, &message, "tool_calls"))
            }
        };
        let text = reply.to_string();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            text.len()
        );
        let mut stream = stream;
        stream.write_all(format!("{head}{text}").as_bytes())?;
    }
}

/// An answer that claims to have taken a quarter of the bytes in tokens.
fn whole(body: &Value, said: &str, message: &Value, finish: &str) -> Value {
    let asked = body["messages"].to_string().len().div_ceil(4);
    let said = said.len().div_ceil(4);
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "played",
        "choices": [{ "index": 0, "message": message, "finish_reason": finish }],
        "usage": { "prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said },
    })
}

/// All text in messages of a role.
pub(crate) fn said_by(body: &Value, role: &str) -> String {
    let text = |content: &Value| match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    };
    let messages = body["messages"].as_array().unwrap();
    let said: Vec<String> = messages
        .iter()
        .filter(|message| message["role"] == role)
        .map(|message| text(&message["content"]))
        .collect();
    said.join("\n")
}

/// The cycle in a brief.
pub(crate) fn cycle(body: &Value) -> u32 {
    let brief = said_by(body, "user");
    let number = brief.split("# Cycle ").nth(1).and_then(|rest| rest.split(' ').next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// A reply that adds a skill.
pub(crate) fn skill(name: &str, body: &str) -> String {
    actions(
        &json!([{ "type": "write_skill", "name": name, "description": format!("About {name}"), "body": body }]),
    )
}

/// A reply with these actions.
pub(crate) fn actions(actions: &Value) -> String {
    json!({ "actions": actions, "reasoning": "it should help", "note": "as the test says" }).to_string()
}
