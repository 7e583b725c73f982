//! From a frozen submission to a verdict: in a fresh room, with the verifier's files read-only and only the frozen
//! files of the agent.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use aec_base::digest::Digest;
use aec_container::{Containers, Purpose, TaskImage};
use aec_sandbox::python::Python;
use aec_sandbox::{BareRoom, ExecSpec, Exit, Limits, Room, RoomSpec, Sandbox, SandboxError, Tree};
use aec_task::task::Task;

use crate::pool::{Pool, Script};
use crate::reward::{self, REWARD_LIMIT, RewardError};
use crate::scorer::{self, Answers, Unreadable};
use crate::submission::Submission;
use crate::verdict::{Judged, OUT_OF_MEMORY, Outcome, Verdict};
use crate::verifier::{PlainPython, VerifierFiles};

/// Details are for people; longer ones are not kept.
const DETAILS_LIMIT: u64 = 1024 * 1024;
/// Lifetime of a container in addition to the verifier's time limit.
const MARGIN: Duration = Duration::from_mins(10);
/// Most processes and threads of a verifier.
const MAX_PIDS: u32 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Only in a room.
    Room,
    /// On the host, because the user asked for it.
    None,
}

/// The environment of a verifier, which must not affect the reward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surface {
    pub time_zone: String,
    pub locale: String,
    /// Python's hash seed.
    pub hash_seed: String,
}

impl Default for Surface {
    fn default() -> Self {
        Self { time_zone: "UTC".into(), locale: "C.UTF-8".into(), hash_seed: "0".into() }
    }
}

#[derive(Clone, Debug)]
pub struct Judge {
    pub isolation: Isolation,
    /// The `python3` of rooms.
    pub python: Option<Python>,
    pub surface: Surface,
    /// Rooms with a waiting interpreter, for verifiers that are plain Python; without a pool every verifier starts an
    /// interpreter.
    pub pool: Option<Arc<Pool>>,
    /// Whether the native twin of the standard verifier may replace it.
    pub native: bool,
    /// The provider of containers; if present, verifiers run in containers of their task's image, whatever
    /// `isolation` is.
    pub containers: Option<Containers>,
}

/// The limits of a verifier, and where it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgeLimits {
    /// Seconds.
    pub timeout_sec: f64,
    /// Processor cores.
    pub cpus: u32,
    /// Memory in MiB.
    pub memory_mb: u32,
    /// Disk in MiB.
    pub storage_mb: u32,
    /// The image of containers; absent if the task has no directory.
    pub image: Option<Arc<TaskImage>>,
    /// The labels of containers.
    pub purpose: Purpose,
}

impl JudgeLimits {
    /// Longest lifetime of a verifier's container.
    pub fn lifetime(&self) -> Duration {
        Duration::from_secs_f64(self.timeout_sec) + MARGIN
    }
}

pub fn image_of(task: &Task) -> TaskImage {
    let environment = &task.environment;
    TaskImage {
        environment: task.path.join("environment"),
        extensions: environment.extensions.clone(),
        build_timeout: Duration::try_from_secs_f64(environment.build_timeout_sec).unwrap_or(Duration::MAX),
    }
}

impl From<&Task> for JudgeLimits {
    fn from(task: &Task) -> Self {
        Self {
            timeout_sec: task.verifier.timeout_sec,
            cpus: task.environment.cpus,
            memory_mb: task.environment.memory_mb,
            storage_mb: task.environment.storage_mb,
            image: Some(Arc::new(image_of(task))),
            purpose: Purpose::default(),
        }
    }
}

/// Why the verifier gave no reward.
enum Fault {
    Verifier(String),
    Infra(String),
    /// A fault of a container, whose provider reports its kind.
    Elsewhere {
        kind: &'static str,
        may_pass: bool,
        reason: String,
    },
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Infra(error.to_string())
    }
}

impl From<SandboxError> for Fault {
    fn from(error: SandboxError) -> Self {
        match error {
            SandboxError::Elsewhere { kind, may_pass, message } => {
                Self::Elsewhere { kind, may_pass, reason: message }
            }
            other => Self::Infra(other.to_string()),
        }
    }
}

impl Judge {
    /// Judges a submission with the task's current verifier.
    pub fn verdict(&self, task: &Task, submission: &Submission) -> Verdict {
        match VerifierFiles::read(&task.path) {
            Ok(files) => self.verdict_by(&files, &task.into(), submission),
            Err(error) => Verdict {
                fault: Some(format!("its files cannot be read: {error}")),
                ..undecided(submission, Digest::of(b""))
            },
        }
    }

    /// Judges a submission with a verifier that was read before, even if its files have changed since.
    pub fn verdict_by(
        &self,
        files: &VerifierFiles,
        limits: &JudgeLimits,
        submission: &Submission,
    ) -> Verdict {
        let started = Instant::now();
        let mut verdict = undecided(submission, files.digest);
        verdict.scorer = files.standard_revision();
        match self.run(limits, submission, files, &mut verdict) {
            Ok(reward) => {
                verdict.outcome = Outcome::Scored;
                verdict.reward = Some(reward);
            }
            Err(Fault::Verifier(reason)) => verdict.fault = Some(reason),
            Err(Fault::Infra(reason)) => {
                verdict.outcome = Outcome::InfraFault;
                verdict.fault = Some(reason);
            }
            Err(Fault::Elsewhere { kind, may_pass, reason }) => {
                verdict.outcome = Outcome::InfraFault;
                verdict.fault = Some(reason);
                verdict.fault_kind = Some(kind);
                verdict.may_pass = may_pass;
            }
        }
        verdict.duration = started.elapsed();
        verdict
    }

    fn run(
        &self,
        limits: &JudgeLimits,
        submission: &Submission,
        files: &VerifierFiles,
        verdict: &mut Verdict,
    ) -> Result<f64, Fault> {
        let entry = files.entry().ok_or_else(|| Fault::Verifier("there is no tests/test.sh".to_owned()))?;
        if self.native && files.is_standard() {
            return native(submission, files, verdict);
        }
        if let (Some(pool), Some(plain)) = (self.usable_pool(), files.plain_python()) {
            match self.run_warm(pool, plain, limits, submission, files, verdict) {
                // After any failure of a warm room, a new room decides.
                Err(Fault::Infra(reason)) => tracing::debug!(reason, "a warm room failed"),
                settled => return settled,
            }
        }
        let mut room = self.open(limits, submission)?;
        verdict.level = Some(room.level());
        verdict.held = Some(room.held());
        let command = self.command(limits, entry);
        let judged = run_cold(room.as_mut(), &command, limits, submission, files, verdict);
        judged.map_err(|fault| match (fault, room.lost()) {
            (Fault::Infra(_), Some(why)) => why.into(),
            (fault, _) => fault,
        })
    }

    /// Waiting interpreters have the default environment; other environments need a new interpreter.
    fn usable_pool(&self) -> Option<&Pool> {
        let usual = self.containers.is_none()
            && self.isolation == Isolation::Room
            && self.surface == Surface::default()
            && self.python.is_some();
        self.pool.as_deref().filter(|_| usual)
    }

    fn run_warm(
        &self,
        pool: &Pool,
        plain: PlainPython,
        limits: &JudgeLimits,
        submission: &Submission,
        files: &VerifierFiles,
        verdict: &mut Verdict,
    ) -> Result<f64, Fault> {
        let command = self.command(limits, Vec::new());
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", aec_sandbox::PROGRAMS);
        let mut env: std::collections::BTreeMap<&str, &str> =
            command.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        env.insert("PATH", &path);
        let script = Script {
            path: "/tests/verify.py",
            env,
            cwd: &command.cwd,
            own_directory_first: plain.script_directory_first,
        };
        let result = pool.run(&self.room_spec(limits), &script, command.deadline, |room| {
            stage(room, submission, files).map_err(|fault| match fault {
                Fault::Infra(reason) | Fault::Verifier(reason) | Fault::Elsewhere { reason, .. } => {
                    io::Error::other(reason)
                }
            })
        })?;
        let [_, logs, tests] = result.directories.as_slice() else {
            return Err(Fault::Infra("the room has lost its directories".to_owned()));
        };
        verdict.level = Some(aec_sandbox::Level::Namespaces);
        verdict.held = Some(result.held);
        verdict.stdout = result.stdout.text();
        verdict.stderr = result.stderr.text();
        verdict.details = read_details(logs);
        let exit = match result.code {
            None => Exit::Deadline,
            Some(code @ 0..) => Exit::Code(code),
            Some(signal) if plain.under_shell => Exit::Code(128 - signal),
            Some(signal) => Exit::Signal(-signal),
        };
        verdict.exit_code = if let Exit::Code(code) = exit { Some(code) } else { None };
        check_end(limits, exit, false)?;
        check_files(tests, files)?;
        read_reward(logs).map_err(|error| Fault::Verifier(error.to_string()))
    }

    fn open(&self, limits: &JudgeLimits, submission: &Submission) -> Result<Box<dyn Sandbox>, Fault> {
        let mut spec = self.room_spec(limits);
        if let Some(containers) = &self.containers {
            if let Containers::Engine(_) = containers {
                // The files of such a room are in memory; the submission must not use up the verifier's. A file that
                // is being written exists twice.
                let submitted: u64 = submission.files.values().map(|file| file.size).sum();
                let megabytes = u32::try_from(submitted.saturating_mul(2) >> 20).unwrap_or(u32::MAX);
                spec.limits.memory_mb = spec.limits.memory_mb.saturating_add(megabytes);
            }
            let Some(image) = &limits.image else {
                return Err(Fault::Infra("there is no image of the task".to_owned()));
            };
            let lifetime = limits.lifetime();
            let purpose = Purpose { role: "judge", seeded: false, lifetime, ..limits.purpose.clone() };
            return Ok(containers.open(image, &spec, &purpose)?);
        }
        Ok(match self.isolation {
            Isolation::Room => Box::new(Room::open(&spec)?),
            Isolation::None => Box::new(BareRoom::open(&spec)?),
        })
    }

    fn room_spec(&self, limits: &JudgeLimits) -> RoomSpec {
        let mut spec = RoomSpec {
            writable: vec!["/workspace".into(), "/logs".into()],
            sealed: vec!["/tests".into()],
            show: Vec::new(),
            programs: Vec::new(),
            limits: Limits {
                cpus: limits.cpus,
                memory_mb: limits.memory_mb,
                storage_mb: limits.storage_mb,
                pids: MAX_PIDS,
            },
            // A verifier that downloads something could give another verdict tomorrow.
            network: false,
        };
        if let Some(python) = &self.python {
            spec.offer_python(python);
        }
        spec
    }

    fn command(&self, limits: &JudgeLimits, entry: Vec<String>) -> ExecSpec {
        let mut command = ExecSpec::new(entry);
        command.cwd = "/tests".into();
        command.deadline = Duration::from_secs_f64(limits.timeout_sec);
        command.env = [
            ("HOME", "/home/agent"),
            ("LANG", &self.surface.locale),
            ("LC_ALL", &self.surface.locale),
            ("TZ", &self.surface.time_zone),
            ("PYTHONDONTWRITEBYTECODE", "1"),
            ("PYTHONHASHSEED", &self.surface.hash_seed),
            ("PYTHONNOUSERSITE", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
        command
    }
}

/// Runs a verifier in a new room.
fn run_cold(
    room: &mut dyn Sandbox,
    command: &ExecSpec,
    limits: &JudgeLimits,
    submission: &Submission,
    files: &VerifierFiles,
    verdict: &mut Verdict,
) -> Result<f64, Fault> {
    stage(room, submission, files)?;
    room.seal()?;
    let result = room.exec(command, &mut |_, _| {})?;
    // The verifier has ended; processes that it left must not write another reward.
    room.freeze()?;
    verdict.stdout = result.stdout.text();
    verdict.stderr = result.stderr.text();
    verdict.exit_code = if let Exit::Code(code) = result.exit { Some(code) } else { None };
    let logs = place(room, "/logs")?;
    verdict.details = read_details(logs);
    let out_of_memory = room.out_of_memory();
    if let Err(fault) = check_end(limits, result.exit, out_of_memory) {
        verdict.fault_kind = out_of_memory.then_some(OUT_OF_MEMORY);
        return Err(fault);
    }
    check_files(place(room, "/tests")?, files)?;
    read_reward(logs).map_err(|error| Fault::Verifier(error.to_string()))
}

/// A verdict before the judge knows anything.
fn undecided(submission: &Submission, verifier: Digest) -> Verdict {
    Verdict {
        outcome: Outcome::VerifierFault,
        reward: None,
        fault: None,
        fault_kind: None,
        may_pass: true,
        details: None,
        judged: Judged::Room,
        scorer: None,
        submission: submission.digest,
        verifier,
        level: None,
        held: None,
        exit_code: None,
        stdout: String::new(),
        stderr: String::new(),
        duration: Duration::ZERO,
    }
}

/// The verdict of the standard verifier, without running it.
fn native(submission: &Submission, files: &VerifierFiles, verdict: &mut Verdict) -> Result<f64, Fault> {
    verdict.judged = Judged::Native;
    let answers = files.get("answers.json").unwrap_or_default();
    let answers =
        Answers::parse(answers).map_err(|error| Fault::Verifier(format!("answers.json: {error}")))?;
    let output = answers.output();
    let score = match submission.read(output)? {
        Some(bytes) => scorer::score(&answers, &bytes),
        None => scorer::score_unreadable(&answers, why_unreadable(submission, output)),
    };
    verdict.exit_code = Some(0);
    verdict.details = serde_json::from_str(&score.to_details_json()).ok();
    // The same parser as for any other verifier.
    reward::from_json(score.to_reward_json().as_bytes()).map_err(|error| Fault::Verifier(error.to_string()))
}

/// The error of opening a file that was not submitted.
fn why_unreadable(submission: &Submission, output: &str) -> Unreadable {
    let is_directory = |path: &str| {
        submission.files.keys().any(|file| file.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')))
    };
    let under_a_file = output.match_indices('/').any(|(at, _)| submission.files.contains_key(&output[..at]));
    if is_directory(output) {
        Unreadable::NotRegular
    } else if under_a_file {
        Unreadable::Failed
    } else {
        Unreadable::Missing
    }
}

fn place<'a>(room: &'a dyn Sandbox, place: &str) -> Result<&'a Tree, Fault> {
    room.directory(place).ok_or_else(|| Fault::Infra(format!("the room has no {place}")))
}

/// Writes the frozen files and the verifier's files into the room.
fn stage(room: &dyn Sandbox, submission: &Submission, files: &VerifierFiles) -> Result<(), Fault> {
    let workspace = place(room, "/workspace")?;
    for (path, file) in &submission.files {
        if let Some(bytes) = submission.read(path)? {
            workspace.write(Path::new(path), &bytes, file.executable)?;
        }
    }
    files.write(place(room, "/tests")?)?;
    place(room, "/logs")?.make_directory(Path::new("verifier"))?;
    Ok(())
}

/// Checks that the verifier's files did not change while it ran.
fn check_files(tests: &Tree, files: &VerifierFiles) -> Result<(), Fault> {
    let after = VerifierFiles::from_tree(tests).map_err(|error| Fault::Verifier(error.to_string()))?;
    if after.digest == files.digest {
        Ok(())
    } else {
        Err(Fault::Verifier("the verifier's files changed while it ran".to_owned()))
    }
}

fn check_end(limits: &JudgeLimits, exit: Exit, out_of_memory: bool) -> Result<(), Fault> {
    let memory = if out_of_memory { " after running out of memory" } else { "" };
    match exit {
        Exit::Code(0) => Ok(()),
        Exit::Code(code) => Err(Fault::Verifier(format!("it exited with {code}{memory}"))),
        Exit::Signal(signal) => Err(Fault::Verifier(format!("it was ended by signal {signal}{memory}"))),
        Exit::Deadline => {
            Err(Fault::Verifier(format!("it took more than its {} seconds", limits.timeout_sec)))
        }
    }
}

fn read_details(logs: &Tree) -> Option<serde_json::Value> {
    let bytes = logs.read(Path::new("verifier/details.json"), DETAILS_LIMIT).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn read_reward(logs: &Tree) -> Result<f64, RewardError> {
    let read = |name: &str| -> Result<Option<Vec<u8>>, RewardError> {
        match logs.read(&PathBuf::from("verifier").join(name), REWARD_LIMIT) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(RewardError::Unreadable(error.to_string())),
        }
    };
    match (read("reward.json")?, read("reward.txt")?) {
        (Some(json), None) => reward::from_json(&json),
        (None, Some(text)) => reward::from_text(&text),
        (Some(_), Some(_)) => Err(RewardError::Two),
        (None, None) => Err(RewardError::Missing),
    }
}
