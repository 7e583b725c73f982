//! Rooms in Modal's sandboxes. Modal's client is a Python package: a small Python program of ours makes the sandbox
//! and carries bytes between it and this process. Everything else works as in a container on this machine. The same
//! program reports what sandboxes cost, and finds and ends those that were left behind.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, BufRead as _, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use aec_base::digest::Digest;
use aec_sandbox::process::is_running;
use aec_sandbox::{Held, Hold, RoomSpec, SandboxError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::engine::EngineError;
use crate::entry::Entry;
use crate::image::{DOCKERFILE, TaskImage};
use crate::leftovers::{boot, host_name};
use crate::line::Line;
use crate::room::{ContainerRoom, Keeper, Purpose, container_lost};

/// The program that uses Modal's client.
const BRIDGE: &str = include_str!("../../../python/modal_bridge.py");
/// How long a sandbox may take to start, in addition to the build of its image.
const BEGINNING: Duration = Duration::from_mins(5);
/// How long the bridge may take to end the sandbox before it is killed.
const FAREWELL: Duration = Duration::from_secs(20);
/// Bytes kept of the bridge's messages.
const SAID_LIMIT: usize = 8000;
/// How long a question that needs no room may take. The client itself tries for a minute to reach Modal, which is too
/// long for a user who waits for an answer.
const ANSWER: Duration = Duration::from_secs(30);
/// How long ending several sandboxes may take.
const ENDING: Duration = Duration::from_mins(5);
/// Shortest lifetime of a sandbox: starting it takes time too.
const SHORTEST: Duration = Duration::from_mins(1);
/// Modal's names for the rates of sandboxes, in dollars per hour for a physical core and for a GiB. The rates of
/// Modal's functions are lower and have other names.
const RATES: [&str; 2] = ["cpu_hour_cost_sandbox", "mem_gib_hour_cost_sandbox"];
/// Modal's limit for the value of a tag.
const LONGEST_TAG: usize = 63;

/// An interpreter that has Modal's client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModalClient {
    python: PathBuf,
    version: String,
}

impl ModalClient {
    /// The first Python on a search path that has the client. Virtual environments count, so the interpreters behind
    /// them are not resolved.
    pub fn find(search_path: Option<&OsStr>) -> Option<Self> {
        let places = search_path.map(std::env::split_paths).into_iter().flatten();
        places
            .map(|place| place.join("python3"))
            .filter(|python| python.is_file())
            .find_map(|python| Some(Self { version: client_version(&python)?, python }))
    }
}

fn client_version(python: &Path) -> Option<String> {
    const QUESTION: &str = "import modal; print(modal.__version__)";
    let output = Command::new(python)
        .args(["-I", "-c", QUESTION])
        .stdin(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModalRates {
    /// Dollars per hour for one physical core.
    pub cpu_core_hour_usd: f64,
    /// Dollars per hour for one GiB of memory.
    pub memory_gib_hour_usd: f64,
}

/// Modal's client and our credentials.
#[derive(Clone, Debug)]
pub struct Modal(Arc<Inner>);

struct Inner {
    client: ModalClient,
    variables: Vec<(String, String)>,
    app: String,
    entry: Entry,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The variables hold keys.
        f.debug_struct("Modal").field("client", &self.client).field("app", &self.app).finish_non_exhaustive()
    }
}

impl Modal {
    /// `variables` are all that the client may see.
    pub fn new(
        client: ModalClient,
        variables: Vec<(String, String)>,
        app: String,
    ) -> Result<Self, EngineError> {
        let entry = Entry::find().map_err(|error| EngineError::Refused(error.to_string()))?;
        Ok(Self(Arc::new(Inner { client, variables, app, entry })))
    }

    pub fn version(&self) -> &str {
        &self.0.client.version
    }

    /// Seconds after which Modal ends a sandbox, even if its opener still runs.
    pub fn seconds(lifetime: Duration) -> u64 {
        lifetime.max(SHORTEST).as_secs()
    }

    /// The rates of this workspace.
    pub fn rates(&self) -> Result<ModalRates, String> {
        let told: HashMap<String, String> = self.ask(&json!({ "do": "rates" }), ANSWER)?;
        rates_of(&told).ok_or_else(|| format!("it names no {}", RATES.join(" and ")))
    }

    /// Sandboxes that were opened on this machine and whose opener is gone.
    pub fn left_behind(&self) -> Result<Vec<String>, String> {
        let tags = opener_tags().map_err(|error| error.to_string())?;
        let found: Vec<Sandbox> =
            self.ask(&json!({ "do": "sandboxes", "app": self.0.app, "tags": tags }), ANSWER)?;
        let is_left = |sandbox: &Sandbox| sandbox.pid.as_deref().is_some_and(|pid| !is_running(pid));
        Ok(found.into_iter().filter(is_left).map(|sandbox| sandbox.id).collect())
    }

    /// Ends sandboxes, and returns how many still existed.
    pub fn end(&self, sandboxes: &[String]) -> Result<usize, String> {
        self.ask(&json!({ "do": "end", "sandboxes": sandboxes }), ENDING)
    }

    /// Asks a question that needs no room.
    fn ask<T: DeserializeOwned>(&self, question: &Value, patience: Duration) -> Result<T, String> {
        let mut child =
            self.bridge(question).stdin(Stdio::null()).spawn().map_err(|error| error.to_string())?;
        let (answer, said) = (heard(child.stdout.take()), heard(child.stderr.take()));
        let Ok(answer) = answer.recv_timeout(patience) else {
            child.kill().ok();
            child.wait().ok();
            return Err(format!("no answer within {} seconds", patience.as_secs()));
        };
        let ended = child.wait().map_err(|error| error.to_string())?;
        if ended.success() {
            return aec_base::json::from_str(&answer)
                .map_err(|error| format!("an unexpected answer: {error}"));
        }
        let said = said.recv_timeout(FAREWELL).unwrap_or_default();
        Err(last_word(&said).map_or_else(|| format!("the client ended with {ended}"), |last| last.message))
    }

    /// The bridge program and its task.
    fn bridge(&self, wanted: &Value) -> Command {
        let mut command = Command::new(&self.0.client.python);
        command
            .args(["-I", "-c", BRIDGE, &wanted.to_string()])
            .env_clear()
            .envs(self.0.variables.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for this program, which then ends its rooms in an orderly way.
            .process_group(0);
        command
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
        // Modal offers no limit on disk or processes.
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
        let mut tags = opener_tags()?;
        for (name, value) in [("experiment", &purpose.experiment), ("trial", &purpose.trial)] {
            if let Some(value) = value {
                tags.insert(format!("aec-bench-{name}"), tag_value(value).into());
            }
        }
        let wanted = json!({
            "do": "room",
            "app": self.0.app,
            "dockerfile": image.environment.join(DOCKERFILE),
            "context": image.environment,
            "layers": layers,
            "files": files,
            "place": Entry::place(),
            "command": self.0.entry.command(),
            "cpus": spec.limits.cpus,
            "memory_mb": spec.limits.memory_mb,
            "seconds": Self::seconds(purpose.lifetime),
            "network": spec.network,
            "tags": tags,
        });
        let mut child = self.bridge(&wanted).stdin(Stdio::piped()).spawn()?;
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
                        // Only the last line counts.
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

/// A running sandbox.
#[derive(Deserialize)]
struct Sandbox {
    id: String,
    /// The process that opened it.
    pid: Option<String>,
}

/// Picks the rates of sandboxes from all that Modal reports.
fn rates_of(told: &HashMap<String, String>) -> Option<ModalRates> {
    let rate = |name: &str| {
        let rate = told.get(name)?.parse::<f64>().ok()?;
        (rate.is_finite() && rate >= 0.0).then_some(rate)
    };
    let [cpu, memory] = RATES.map(rate);
    Some(ModalRates { cpu_core_hour_usd: cpu?, memory_gib_hour_usd: memory? })
}

/// Tags that identify the machine and the process that opened a sandbox.
fn opener_tags() -> io::Result<Map<String, Value>> {
    let tags = [("host", host_name()), ("boot", boot()?)];
    Ok(tags
        .map(|(name, value)| (format!("aec-bench-{name}"), tag_value(&value).into()))
        .into_iter()
        .collect())
}

/// A text as the value of a tag. If Modal would refuse it, it is shortened and made distinct by its digest.
fn tag_value(text: &str) -> String {
    const KEPT: usize = LONGEST_TAG - 17;
    let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if (1..=LONGEST_TAG).contains(&text.len()) && text.chars().all(is_fit) {
        return text.to_owned();
    }
    let kept: String = text.chars().map(|c| if is_fit(c) { c } else { '-' }).take(KEPT).collect();
    format!("{kept}-{}", &Digest::of(text.as_bytes()).hex()[..16])
}

/// Reads a stream in the background and delivers everything at its end.
fn heard(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (to, from) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            stream.read_to_end(&mut bytes).ok();
        }
        to.send(String::from_utf8_lossy(&bytes).into_owned()).ok();
    });
    from
}

/// The bridge process of one room.
#[derive(Debug)]
struct Bridge {
    /// Taken when this is dropped.
    child: Option<Child>,
    said: Arc<Mutex<String>>,
}

/// The message of a bridge that failed.
#[derive(Deserialize)]
struct LastWord {
    kind: String,
    message: String,
}

fn last_word(said: &str) -> Option<LastWord> {
    said.lines().rev().find_map(|line| aec_base::json::from_str(line).ok())
}

impl Keeper for Bridge {
    fn why_gone(&self) -> SandboxError {
        // The bridge reports the reason before it ends, and other threads read both.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(2) {
            let said = self.said.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(LastWord { kind, message }) = last_word(&said) {
                let error = match kind.as_str() {
                    "image_build" => EngineError::Build(message),
                    "engine_lost" => EngineError::Unreachable(message),
                    _ => EngineError::Refused(message),
                };
                return error.into();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        container_lost()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_tags_are_what_modal_takes() {
        for fit in ["x", "civil-channel.oracle_1", &"a".repeat(LONGEST_TAG)] {
            assert_eq!(tag_value(fit), fit);
        }
        let odd = ["", "a b", "ü", &"a".repeat(LONGEST_TAG + 1), &"ü".repeat(100)];
        let values = odd.map(tag_value);
        for (index, value) in values.iter().enumerate() {
            assert!(value.len() <= LONGEST_TAG && tag_value(value) == *value, "{value}");
            assert!(!values[..index].contains(value), "{value}");
        }
        let tags = opener_tags().unwrap();
        assert_eq!(tags, opener_tags().unwrap());
        assert_eq!(tags.keys().collect::<Vec<_>>(), ["aec-bench-host", "aec-bench-boot"]);
    }

    #[test]
    fn rates_are_those_of_sandboxes() {
        let rates = |told: &[(&str, &str)]| {
            rates_of(&told.iter().map(|(name, rate)| ((*name).to_owned(), (*rate).to_owned())).collect())
        };
        let [cpu, memory] = RATES;
        let found = rates(&[(cpu, "0.5"), (memory, "0.125"), ("cpu_hour_cost", "0.1")]);
        assert_eq!(found, Some(ModalRates { cpu_core_hour_usd: 0.5, memory_gib_hour_usd: 0.125 }));
        assert_eq!(rates(&[("cpu_hour_cost", "0.1"), ("mem_gib_hour_cost", "0.1")]), None);
        for odd in ["-1", "NaN", "inf", "", "free"] {
            assert_eq!(rates(&[(cpu, "0.5"), (memory, odd)]), None, "{odd}");
        }
    }

    #[test]
    fn a_sandbox_has_time_to_begin() {
        assert_eq!(Modal::seconds(Duration::from_millis(3)), 60);
        assert_eq!(Modal::seconds(Duration::from_mins(12)), 720);
    }
}
