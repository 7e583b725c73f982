//! Rooms in Modal's sandboxes. Modal is spoken to by its own client, which is a Python package: a small program of ours
//! makes the sandbox and carries bytes between it and this process. Everything else is as in a container of this machine.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use aec_sandbox::{Held, Hold, RoomSpec, SandboxError};
use serde::Deserialize;
use serde_json::json;

use crate::engine::EngineError;
use crate::entry::Entry;
use crate::image::{DOCKERFILE, TaskImage};
use crate::line::Line;
use crate::room::{ContainerRoom, Keeper, Purpose};

/// The program that speaks to Modal.
const BRIDGE: &str = include_str!("../../../python/modal_room.py");
/// How long a sandbox may take to begin, beside the time that its image may take.
const BEGINNING: Duration = Duration::from_mins(5);
/// How long the bridge may take to end the sandbox before it is ended itself.
const FAREWELL: Duration = Duration::from_secs(20);
/// What is kept of complaints.
const SAID_LIMIT: usize = 8000;

/// Where Modal's client is, and who we are to it.
#[derive(Clone, Debug)]
pub struct Modal(Arc<Inner>);

struct Inner {
    python: PathBuf,
    variables: Vec<(String, String)>,
    app: String,
    version: String,
    entry: Entry,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The variables hold keys.
        f.debug_struct("Modal").field("python", &self.python).field("app", &self.app).finish_non_exhaustive()
    }
}

impl Modal {
    /// Takes an interpreter that has Modal's client, and the variables that it may see.
    pub fn new(python: PathBuf, variables: Vec<(String, String)>, app: String) -> Result<Self, EngineError> {
        let version = Self::client_version(&python).map_err(EngineError::Refused)?;
        let entry = Entry::find().map_err(|error| EngineError::Refused(error.to_string()))?;
        Ok(Self(Arc::new(Inner { python, variables, app, version, entry })))
    }

    /// The version of Modal's client.
    pub fn version(&self) -> &str {
        &self.0.version
    }

    /// Asks an interpreter for Modal's client.
    pub fn client_version(python: &Path) -> Result<String, String> {
        const QUESTION: &str = "import modal; print(modal.__version__)";
        let output = Command::new(python)
            .args(["-I", "-c", QUESTION])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(said.lines().last().unwrap_or("it does not answer").to_owned())
    }

    /// Opens a room.
    pub fn open(
        &self,
        image: &TaskImage,
        spec: &RoomSpec,
        purpose: &Purpose,
    ) -> Result<ContainerRoom, SandboxError> {
        let (bridge, input, output) = self.start(image, spec, purpose)?;
        let line = Line::new(output, input);
        // Modal has no limit of disk or processes that a sandbox could be given.
        let held = Held { cpus: Hold::Tree, memory: Hold::Tree, storage: Hold::Process, pids: Hold::No };
        let patience = BEGINNING + image.build_timeout;
        ContainerRoom::begin(line, spec, purpose, (held, patience), Box::new(bridge))
    }

    fn start(
        &self,
        image: &TaskImage,
        spec: &RoomSpec,
        purpose: &Purpose,
    ) -> Result<(Bridge, ChildStdin, ChildStdout), SandboxError> {
        let layers = image.layers().map_err(|error| EngineError::Build(error.to_string()))?;
        let layers: Vec<&str> = layers.iter().map(|layer| layer.layer().trim_end()).collect();
        let files: Vec<(String, String)> = self
            .0
            .entry
            .files()
            .into_iter()
            .map(|(name, path)| (name, path.to_string_lossy().into_owned()))
            .collect();
        let mut tags = serde_json::Map::new();
        for (name, value) in [("experiment", &purpose.experiment), ("trial", &purpose.trial)] {
            if let Some(value) = value {
                tags.insert(format!("aec-bench-{name}"), value.clone().into());
            }
        }
        let wanted = json!({
            "app": self.0.app,
            "dockerfile": image.environment.join(DOCKERFILE),
            "context": image.environment,
            "layers": layers,
            "files": files,
            "place": Entry::place(),
            "command": self.0.entry.command(),
            "cpus": spec.limits.cpus,
            "memory_mb": spec.limits.memory_mb,
            "seconds": purpose.lifetime.as_secs().max(60),
            "network": spec.network,
            "tags": tags,
        });
        let mut child = Command::new(&self.0.python)
            .args(["-I", "-c", BRIDGE, &wanted.to_string()])
            .env_clear()
            .envs(self.0.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let said = Arc::<Mutex<String>>::default();
        if let Some(complaints) = child.stderr.take() {
            let said = Arc::clone(&said);
            std::thread::spawn(move || {
                for line in BufReader::new(complaints).lines().map_while(Result::ok) {
                    let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
                    if said.len() < SAID_LIMIT {
                        said.push_str(&line);
                        said.push('\n');
                    } else if line.starts_with('{') {
                        // The last word counts, however much came before.
                        *said = line + "\n";
                    }
                }
            });
        }
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let bridge = Bridge { child: Some(child), said };
        match (input, output) {
            (Some(input), Some(output)) => Ok((bridge, input, output)),
            _ => Err(SandboxError::Gone),
        }
    }
}

/// The process that speaks to Modal for one room.
#[derive(Debug)]
struct Bridge {
    /// Taken when it is dropped.
    child: Option<Child>,
    said: Arc<Mutex<String>>,
}

/// What a bridge says when something goes wrong.
#[derive(Deserialize)]
struct LastWord {
    kind: String,
    message: String,
}

impl Keeper for Bridge {
    fn why_gone(&self) -> SandboxError {
        // It says why before it ends, and both are heard by other threads.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(2) {
            let said = self.said.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let last = said.lines().rev().find_map(|line| serde_json::from_str::<LastWord>(line).ok());
            if let Some(LastWord { kind, message }) = last {
                let error = match kind.as_str() {
                    "image_build" => EngineError::Build(message),
                    "engine_lost" => EngineError::Unreachable(message),
                    _ => EngineError::Refused(message),
                };
                return error.into();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        SandboxError::Gone
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        // Its stdin is closed by now: it ends the sandbox, then itself.
        let Some(mut child) = self.child.take() else { return };
        std::thread::spawn(move || {
            let begun = Instant::now();
            while begun.elapsed() < FAREWELL {
                if !matches!(child.try_wait(), Ok(None)) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            child.kill().ok();
            child.wait().ok();
        });
    }
}
