//! From a frozen submission to a verdict: in a fresh room, with the verifier's files read-only and only the frozen
//! files of the agent.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use aec_base::digest::{Digest, Hasher};
use aec_container::{Containers, Purpose, TaskImage};
use aec_sandbox::python::Python;
use aec_sandbox::{BareRoom, ExecSpec, Exit, Limits, Room, RoomSpec, Sandbox, SandboxError, Tree};
use aec_task::task::Task;

use crate::pool::{Pool, Script};
use crate::probe::{self, References, Shown, Trial};
use crate::reward::{self, REWARD_LIMIT, RewardError};
use crate::scorer::{self, Answers, Unreadable};
use crate::settle::outcome::{ROOM_LOST, RoomFault};
use crate::submission::{Submission, SubmissionLimits};
use crate::verdict::{CausedBy, Judged, OUT_OF_MEMORY, Outcome, Verdict};
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

/// Why there is no reward.
enum Fault {
    /// No submission can be judged: the task's own files are at fault.
    Task(Failure),
    /// The verifier failed on this submission.
    Verifier(Failure),
    /// The room failed after the submission was put into it.
    Room(RoomFault),
    /// This machine failed before that.
    Machine(RoomFault),
}

/// How a verifier failed.
struct Failure {
    kind: &'static str,
    message: String,
}

impl Failure {
    fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

impl From<RewardError> for Fault {
    fn from(error: RewardError) -> Self {
        let kind = match error {
            RewardError::Missing => "no_reward",
            RewardError::Two => "two_rewards",
            RewardError::Unreadable(_) | RewardError::Invalid(_) | RewardError::OutOfRange(_) => "bad_reward",
        };
        Self::Verifier(Failure::new(kind, error.to_string()))
    }
}

/// A failure of working with the verifier's room.
impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Room(error.into())
    }
}

impl From<SandboxError> for Fault {
    fn from(error: SandboxError) -> Self {
        Self::Room(error.into())
    }
}

impl Judge {
    /// Judges a submission with the task's current verifier.
    pub fn verdict(&self, task: &Task, submission: &Submission) -> Verdict {
        match VerifierFiles::read(&task.path) {
            Ok(files) => self.judge(&files, &task.into(), &|| References::read(task), submission),
            Err(error) => Verdict {
                fault: Some(format!("its files cannot be read: {error}")),
                fault_kind: Some("no_verifier"),
                caused_by: Some(CausedBy::Task),
                ..undecided(submission, Digest::of(b""))
            },
        }
    }

    /// Judges a submission with a verifier that was read before, even if its files have changed since. If the verifier
    /// fails, `references` show who is at fault.
    pub fn verdict_by(
        &self,
        files: &VerifierFiles,
        limits: &JudgeLimits,
        references: &References,
        submission: &Submission,
    ) -> Verdict {
        self.judge(files, limits, &|| references.clone(), submission)
    }

    /// The one rule for verifiers that fail, whoever asks for the verdict: a submission is at fault if the verifier
    /// fails on it twice and, in the same conditions, gives the task's reference a reward.
    fn judge(
        &self,
        files: &VerifierFiles,
        limits: &JudgeLimits,
        references: &dyn Fn() -> References,
        submission: &Submission,
    ) -> Verdict {
        let started = Instant::now();
        let (mut verdict, open) = self.attempt(files, limits, submission);
        if open {
            let judge_again = |reference: &Submission| {
                let (verdict, open) = self.attempt(files, limits, reference);
                match verdict.reward {
                    Some(_) => Trial::Works,
                    None if open => Trial::Fails,
                    None => Trial::Machine(verdict.fault.unwrap_or_default()),
                }
            };
            let references = references();
            verdict = match probe::ask(&self.conditions(files, limits, &references), &references, judge_again)
            {
                // What happened only once was an accident of the machine.
                Shown::Works => match self.attempt(files, limits, submission).0 {
                    again if again.reward.is_some() || again.outcome == Outcome::InfraFault => again,
                    again => Verdict {
                        outcome: Outcome::Scored,
                        reward: Some(0.0),
                        caused_by: Some(CausedBy::Submission),
                        ..again
                    },
                },
                Shown::Machine(reason) => {
                    Verdict { outcome: Outcome::InfraFault, fault: Some(reason), fault_kind: None, ..verdict }
                }
                Shown::Fails if references.are_golden => {
                    Verdict { outcome: Outcome::VerifierFault, caused_by: Some(CausedBy::Task), ..verdict }
                }
                Shown::Fails => Verdict {
                    outcome: Outcome::AgentFault,
                    may_pass: false,
                    caused_by: Some(CausedBy::Unknown),
                    ..verdict
                },
            };
        }
        verdict.duration = started.elapsed();
        verdict
    }

    /// Runs the verifier once. The second value tells that it failed in a way that a submission can cause.
    fn attempt(
        &self,
        files: &VerifierFiles,
        limits: &JudgeLimits,
        submission: &Submission,
    ) -> (Verdict, bool) {
        let mut verdict = undecided(submission, files.digest);
        verdict.scorer = files.standard_revision();
        let open = match self.run(limits, submission, files, &mut verdict) {
            Ok(reward) => {
                verdict.outcome = Outcome::Scored;
                verdict.reward = Some(reward);
                false
            }
            Err(Fault::Task(Failure { kind, message })) => {
                (verdict.fault, verdict.fault_kind) = (Some(message), Some(kind));
                verdict.caused_by = Some(CausedBy::Task);
                false
            }
            Err(Fault::Verifier(Failure { kind, message })) => {
                (verdict.fault, verdict.fault_kind) = (Some(message), Some(kind));
                true
            }
            Err(Fault::Room(fault)) if fault.commands_could => {
                verdict.fault = Some(format!("its room failed: {}", fault.message));
                verdict.fault_kind = fault.kind.or(Some(ROOM_LOST));
                true
            }
            Err(Fault::Room(fault) | Fault::Machine(fault)) => {
                verdict.outcome = Outcome::InfraFault;
                (verdict.fault, verdict.fault_kind) = (Some(fault.message), fault.kind);
                verdict.may_pass = fault.may_pass;
                false
            }
        };
        (verdict, open)
    }

    /// Everything on which it may depend whether a verifier works.
    fn conditions(&self, files: &VerifierFiles, limits: &JudgeLimits, references: &References) -> Digest {
        let mut hasher = Hasher::default();
        hasher.part(files.digest.bytes());
        hasher.part(references.digest().bytes());
        let JudgeLimits { timeout_sec, cpus, memory_mb, storage_mb, image, purpose: _ } = limits;
        let place = (self.isolation, &self.surface, &self.python, self.native);
        let here = self.containers.as_ref().map(|containers| (containers.version(), image));
        let told = format!("{timeout_sec} {cpus} {memory_mb} {storage_mb} {place:?} {here:?}");
        hasher.part(told.as_bytes());
        hasher.finish()
    }

    fn run(
        &self,
        limits: &JudgeLimits,
        submission: &Submission,
        files: &VerifierFiles,
        verdict: &mut Verdict,
    ) -> Result<f64, Fault> {
        let nothing = || Fault::Task(Failure::new("no_verifier", "there is no tests/test.sh"));
        let entry = files.entry().ok_or_else(nothing)?;
        if self.native && files.is_standard() {
            return native(submission, files, verdict);
        }
        if let (Some(pool), Some(plain)) = (self.usable_pool(), files.plain_python()) {
            match self.run_warm(pool, plain, limits, submission, files, verdict) {
                // After any failure of a warm room, a new room decides.
                Err(Fault::Room(fault) | Fault::Machine(fault)) => {
                    tracing::debug!(reason = fault.message, "a warm room failed");
                }
                settled => return settled,
            }
        }
        let mut room = self.open(limits, submission).map_err(Fault::Machine)?;
        verdict.level = Some(room.level());
        verdict.held = Some(room.held());
        let command = self.command(limits, entry);
        let judged = run_cold(room.as_mut(), &command, limits, submission, files, verdict);
        judged.map_err(|fault| match (fault, room.lost()) {
            (Fault::Room(_), Some(why)) => why.into(),
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
            verifier: files.digest,
        };
        let spec = self.room_spec(self.room_limits(limits, submission));
        let result = pool.run(&spec, &script, command.deadline, |room| {
            stage(room, submission, files).map_err(|fault| {
                io::Error::other(match fault {
                    Fault::Room(RoomFault { message, .. })
                    | Fault::Machine(RoomFault { message, .. })
                    | Fault::Task(Failure { message, .. })
                    | Fault::Verifier(Failure { message, .. }) => message,
                })
            })
        });
        // Whatever failed, a new room decides.
        let result = result.map_err(Fault::from)?;
        let [_, logs, tests] = result.directories.as_slice() else {
            return Err(SandboxError::Gone.into());
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
        Ok(read_reward(logs)?)
    }

    fn open(&self, limits: &JudgeLimits, submission: &Submission) -> Result<Box<dyn Sandbox>, RoomFault> {
        let spec = self.room_spec(self.room_limits(limits, submission));
        if let Some(containers) = &self.containers {
            let Some(image) = &limits.image else {
                return Err("there is no image of the task".to_owned().into());
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

    /// What the room of a verifier may use: everything that the task allows, and beside it what a submission takes, so
    /// that no agent can leave its verifier without space.
    fn room_limits(&self, limits: &JudgeLimits, submission: &Submission) -> Limits {
        let in_memory = match &self.containers {
            // The files of such a room are in memory, and a file that is being written exists twice.
            Some(Containers::Engine(_)) => submission.disk_bytes().saturating_mul(2).div_ceil(1 << 20),
            Some(Containers::Modal(_)) | None => 0,
        };
        Limits {
            cpus: limits.cpus,
            memory_mb: limits.memory_mb.saturating_add(u32::try_from(in_memory).unwrap_or(u32::MAX)),
            // The same for all submissions, so that rooms can wait for them. Nothing is reserved.
            storage_mb: limits.storage_mb.saturating_add(SubmissionLimits::default().disk_mb()),
            pids: MAX_PIDS,
        }
    }

    fn room_spec(&self, limits: Limits) -> RoomSpec {
        let mut spec = RoomSpec {
            writable: vec!["/workspace".into(), "/logs".into()],
            sealed: vec!["/tests".into()],
            show: Vec::new(),
            programs: Vec::new(),
            limits,
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
    check_end(limits, result.exit, room.out_of_memory())?;
    check_files(place(room, "/tests")?, files)?;
    Ok(read_reward(logs)?)
}

/// A verdict before the judge knows anything.
fn undecided(submission: &Submission, verifier: Digest) -> Verdict {
    Verdict {
        outcome: Outcome::VerifierFault,
        reward: None,
        fault: None,
        fault_kind: None,
        caused_by: None,
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
    let broken = |what: String| Fault::Task(Failure::new("broken_answers", what));
    let answers = Answers::parse(answers).map_err(|error| broken(format!("answers.json: {error}")))?;
    let output = answers.output();
    let score = match submission.read(output).map_err(unreadable)? {
        Some(bytes) => scorer::score(&answers, &bytes),
        None => scorer::score_unreadable(&answers, why_unreadable(submission, output)),
    };
    verdict.exit_code = Some(0);
    verdict.details = aec_base::json::from_str(&score.to_details_json()).ok();
    // The same parser as for any other verifier.
    reward::from_json(score.to_reward_json().as_bytes()).map_err(|error| broken(error.to_string()))
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
    room.directory(place).ok_or_else(|| Fault::Machine(format!("the room has no {place}").into()))
}

/// The store of this machine failed.
#[expect(clippy::needless_pass_by_value, reason = "it is passed to map_err")]
fn unreadable(error: io::Error) -> Fault {
    Fault::Machine(error.to_string().into())
}

/// Writes the frozen files and the verifier's files into the room.
fn stage(room: &dyn Sandbox, submission: &Submission, files: &VerifierFiles) -> Result<(), Fault> {
    let workspace = place(room, "/workspace")?;
    for (path, file) in &submission.files {
        if let Some(bytes) = submission.read(path).map_err(unreadable)? {
            workspace.write(Path::new(path), &bytes, file.executable)?;
        }
    }
    files.write(place(room, "/tests")?)?;
    place(room, "/logs")?.make_directory(Path::new("verifier"))?;
    Ok(())
}

/// Checks that the verifier's files did not change while it ran.
fn check_files(tests: &Tree, files: &VerifierFiles) -> Result<(), Fault> {
    let changed = |what: String| Fault::Verifier(Failure::new("changed_files", what));
    let after = VerifierFiles::from_tree(tests).map_err(|error| changed(error.to_string()))?;
    if after.digest == files.digest {
        Ok(())
    } else {
        Err(changed("the verifier's files changed while it ran".to_owned()))
    }
}

/// Whether the verifier ended well.
fn check_end(limits: &JudgeLimits, exit: Exit, out_of_memory: bool) -> Result<(), Fault> {
    let memory = if out_of_memory { " after running out of memory" } else { "" };
    let (kind, message) = match exit {
        Exit::Code(0) => return Ok(()),
        Exit::Code(code) => ("exit_code", format!("it exited with {code}{memory}")),
        Exit::Signal(signal) => ("signal", format!("it was ended by signal {signal}{memory}")),
        Exit::Deadline => ("deadline", format!("it took more than its {} seconds", limits.timeout_sec)),
    };
    let kind = if out_of_memory { OUT_OF_MEMORY } else { kind };
    Err(Fault::Verifier(Failure::new(kind, message)))
}

fn read_details(logs: &Tree) -> Option<serde_json::Value> {
    let bytes = logs.read(Path::new("verifier/details.json"), DETAILS_LIMIT).ok()?;
    aec_base::json::from_slice(&bytes).ok()
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
