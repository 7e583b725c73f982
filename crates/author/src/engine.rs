//! Runs engines: warm Python processes in rooms, with one import and many calls for each template.
//!
//! `python/engine.py` waits in a room and runs every request in a fork of itself that can start no process and write
//! no file, so one template leaves nothing behind for the next. Time and memory are limited; an engine that exceeds a
//! limit loses only its own request.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use aec_judge::judge::Isolation;
use aec_sandbox::python::Python;
use aec_sandbox::{Limits, Room, RoomSpec, SandboxError};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::template::Template;
use crate::value::Value;

const ENGINE_PY: &str = include_str!("../../../python/engine.py");
/// Time limit of one call in seconds.
const CALL_SECONDS: u64 = 5;
/// Most calls in one request, because all its results are in memory together.
const MOST_CALLS: usize = 200;
/// Longest answer.
const ANSWER_LIMIT: u64 = 64 * 1024 * 1024;
const LIMITS: Limits = Limits { cpus: 1, memory_mb: 512, storage_mb: 16, pids: 32 };

/// Processes that wait for work.
#[derive(Debug)]
pub struct Engines {
    isolation: Isolation,
    python: Option<Python>,
    waiting: Mutex<Vec<Worker>>,
}

/// Why no engine could run. This is not the fault of a draw.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("there is no Python 3.9 or newer on the path")]
    NoPython,
    #[error("{0}")]
    Sandbox(#[from] SandboxError),
    #[error("engine.py: {0}")]
    Broken(String),
}

impl From<io::Error> for EngineError {
    fn from(error: io::Error) -> Self {
        Self::Sandbox(error.into())
    }
}

/// One call of an engine.
#[derive(Debug, Serialize)]
pub(crate) struct Call<'a> {
    #[serde(rename = "call")]
    function: &'static str,
    params: Option<&'a IndexMap<String, Value>>,
    answers: Option<&'a Map<String, Json>>,
}

impl<'a> Call<'a> {
    pub(crate) fn describe() -> Self {
        Self { function: "describe", params: None, answers: None }
    }

    pub(crate) fn compute(params: &'a IndexMap<String, Value>) -> Self {
        Self { function: "compute", params: Some(params), answers: None }
    }

    pub(crate) fn sources(params: &'a IndexMap<String, Value>) -> Self {
        Self { function: "build_sources", params: Some(params), answers: None }
    }

    pub(crate) fn golden(
        hook: &'static str,
        params: &'a IndexMap<String, Value>,
        answers: &'a Map<String, Json>,
    ) -> Self {
        Self { function: hook, params: Some(params), answers: Some(answers) }
    }
}

/// The result of a call.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Reply {
    Result(Json),
    /// The engine refused the values.
    Refused(String),
    /// The engine took too long.
    Late(String),
    /// The engine failed.
    Fault(String),
}

/// What an engine offers.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Description {
    pub(crate) parameters: Vec<String>,
    pub(crate) defaults: Vec<String>,
    pub(crate) any_keyword: bool,
    pub(crate) hooks: Vec<String>,
}

#[derive(Serialize)]
struct Request<'a> {
    modules: BTreeMap<&'a str, &'a str>,
    seconds: u64,
    calls: &'a [Call<'a>],
}

#[derive(Deserialize)]
struct Answer {
    results: Option<Vec<Reply>>,
    fault: Option<String>,
}

impl Engines {
    /// Engines on this machine.
    pub fn new(isolation: Isolation, python: Option<Python>) -> Self {
        Self { isolation, python: python.filter(|python| python.recent_enough), waiting: Mutex::default() }
    }

    /// Calls the engine of a template; returns a reply for each call, in order.
    pub(crate) fn run(&self, template: &Template, calls: &[Call<'_>]) -> Result<Vec<Reply>, EngineError> {
        let mut replies = Vec::with_capacity(calls.len());
        for calls in calls.chunks(MOST_CALLS) {
            let mut worker = match self.take() {
                Some(worker) => worker,
                None => self.open()?,
            };
            let request = Request { modules: template.modules(), seconds: CALL_SECONDS, calls };
            let deadline = Duration::from_secs((calls.len() as u64 + 2) * CALL_SECONDS);
            // A worker that did not answer to the end is not used again.
            let answer = worker.ask(&request, Instant::now() + deadline)?;
            self.put(worker);
            match answer {
                Answer { results: Some(results), .. } if results.len() == calls.len() => {
                    replies.extend(results);
                }
                Answer { fault: Some(fault), .. } => return Err(EngineError::Broken(fault)),
                Answer { .. } => return Err(EngineError::Broken("it did not answer every call".to_owned())),
            }
        }
        Ok(replies)
    }

    /// Asks what the engine of a template offers.
    pub(crate) fn describe(&self, template: &Template) -> Result<Description, EngineError> {
        match self.run(template, &[Call::describe()])?.pop() {
            Some(Reply::Result(description)) => {
                serde_json::from_value(description).map_err(|error| EngineError::Broken(error.to_string()))
            }
            Some(Reply::Refused(reason) | Reply::Late(reason) | Reply::Fault(reason)) => {
                Err(EngineError::Broken(reason))
            }
            None => Err(EngineError::Broken("it did not answer".to_owned())),
        }
    }

    fn open(&self) -> Result<Worker, EngineError> {
        let python = self.python.as_ref().ok_or(EngineError::NoPython)?;
        let (line, theirs) = UnixStream::pair()?;
        let env = [("LANG", "C.UTF-8"), ("LC_ALL", "C.UTF-8"), ("TZ", "UTC"), ("PYTHONHASHSEED", "0")];
        // Not `-I`, which would ignore the hash seed; there is nothing else in this environment.
        let arguments = ["-s", "-S", "-B", "-c", ENGINE_PY];
        let place = match self.isolation {
            Isolation::Room => {
                let mut spec = RoomSpec {
                    writable: Vec::new(),
                    sealed: Vec::new(),
                    show: Vec::new(),
                    programs: Vec::new(),
                    limits: LIMITS,
                    network: false,
                };
                spec.offer_python(python);
                let mut room = Room::open(&spec)?;
                let command = [&["python3"], arguments.as_slice()].concat();
                room.settle_silently(&command, &env, &theirs.into())?;
                Place::Room { _keeps: Box::new(room) }
            }
            Isolation::None => {
                let mut command = Command::new(&python.path);
                command.args(arguments).env_clear().envs(env).stdin(Stdio::from(OwnedFd::from(theirs)));
                Place::Host(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
            }
        };
        Ok(Worker { line, place })
    }

    fn take(&self) -> Option<Worker> {
        self.waiting.lock().ok()?.pop()
    }

    fn put(&self, worker: Worker) {
        if let Ok(mut waiting) = self.waiting.lock() {
            waiting.push(worker);
        }
    }
}

/// A process that waits for requests.
#[derive(Debug)]
struct Worker {
    line: UnixStream,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Room { _keeps: Box<Room> },
    Host(Child),
}

impl Worker {
    fn ask(&mut self, request: &Request<'_>, deadline: Instant) -> Result<Answer, EngineError> {
        let message = serde_json::to_vec(request).map_err(io::Error::from)?;
        self.line.set_write_timeout(Some(Duration::from_secs(30)))?;
        self.line.write_all(&(message.len() as u64).to_le_bytes())?;
        self.line.write_all(&message)?;
        let mut size = [0; 8];
        self.read(&mut size, deadline)?;
        let size = u64::from_le_bytes(size);
        if size > ANSWER_LIMIT {
            return Err(EngineError::Broken(format!("it returned more than {ANSWER_LIMIT} bytes")));
        }
        let mut answer = vec![0; usize::try_from(size).unwrap_or(0)];
        self.read(&mut answer, deadline)?;
        aec_base::json::from_slice(&answer).map_err(|error| EngineError::Broken(error.to_string()))
    }

    fn read(&mut self, buffer: &mut [u8], deadline: Instant) -> Result<(), EngineError> {
        let mut filled = 0;
        while filled < buffer.len() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(EngineError::Broken("it took too long".to_owned()));
            }
            self.line.set_read_timeout(Some(left))?;
            match self.line.read(&mut buffer[filled..]) {
                Ok(0) => return Err(SandboxError::Gone.into()),
                Ok(count) => filled += count,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => {}
                    _ => return Err(error.into()),
                },
            }
        }
        Ok(())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Place::Host(child) = &mut self.place {
            // It may already have ended.
            child.kill().ok();
            child.wait().ok();
        }
    }
}
