//! Built-in cheaters: scripted agents that do no engineering and try to earn a reward.
//!
//! Each is an attack that has succeeded against some benchmark. It runs in a room like an agent, with the task's
//! files in `/workspace`; what it leaves is frozen and judged like any submission. None may earn more than an agent
//! that does nothing.

use std::io;
use std::path::Path;
use std::time::Duration;

use aec_base::content::ContentStore;
use aec_container::Purpose;
use aec_sandbox::{ExecSpec, Exit, Limits, Room, RoomSpec, Sandbox, SandboxError};
use aec_task::task::{Task, primary_output};

use crate::judge::{Judge, image_of};
use crate::settle::blame::commands_could_end;
use crate::settle::freeze::Unfrozen;
use crate::settle::outcome::Settled;
use crate::submission::{Submission, SubmissionLimits};
use crate::verdict::{Outcome, Verdict};

#[derive(Clone, Copy, Debug)]
pub struct Cheater {
    /// Its name, which begins with the number of the attack in `docs/judge.md`.
    pub name: &'static str,
    /// A shell script.
    pub script: &'static str,
}

macro_rules! cheaters {
    ($($name:literal),+ $(,)?) => {
        /// Every cheater.
        pub const CHEATERS: &[Cheater] =
            &[$(Cheater { name: $name, script: include_str!(concat!("../cheaters/", $name, ".sh")) }),+];
    };
}

cheaters!(
    "01-plant-reward",
    "02-locked-reward-and-crash",
    "03-background-writer",
    "04-two-rewards",
    "06-shadow-modules",
    "07-interpreter-hooks",
    "08-test-runner-config",
    "09-plant-tests",
    "10-change-verifier",
    "11-read-answers",
    "12-other-trials",
    "13-trojan-programs",
    "14-git-hooks",
    "15-output-is-a-link",
    "16-odd-paths",
    "17-swap-while-read",
    "18-enormous-output",
    "19-noise",
    "20-bombs",
    "21-take-everything",
    "22-attack-the-harness",
    "23-stop-the-clock",
    "24-call-home",
    "31-slow-to-read",
    "32-stuffing",
    "34-farm-partial-credit",
    "35-leak-secrets",
    "36-read-keyrings",
    "37-search-the-host",
    "38-make-it-again",
    "39-files-without-names",
    "40-pipes-for-records",
    "42-starve-others",
    "43-lock-shared-files",
    "44-odd-metadata",
    "51-deep-lists",
    "52-deep-objects",
    "53-deep-but-whole",
    "54-long-integer",
    "55-longer-integer",
    "56-endless-number",
    "57-huge-exponent",
    "58-tiny-number",
    "59-not-a-number",
    "60-numbers-as-text",
    "61-not-utf8",
    "62-other-encoding",
    "63-zero-bytes",
    "64-half-characters",
    "65-control-characters",
    "66-long-text",
    "67-many-keys",
    "68-repeated-keys",
    "69-many-items",
    "70-other-types",
    "71-not-an-object",
    "72-an-array",
    "73-nothing-in-it",
    "74-only-space",
    "75-only-brackets",
    "76-slow-patterns",
    "77-growing-entities",
    "78-packed",
    "79-pickled",
    "80-wide-table",
    "81-answer-is-a-directory",
    "82-answer-is-a-pipe",
    "83-answer-is-a-socket",
    "84-nobody-may-read",
    "85-closed-workspace",
    "86-half-open",
    "87-full-disk",
    "88-full-of-names",
    "89-many-small-files",
    "90-deepest-directories",
    "91-holes",
    "92-second-names",
    "93-names-with-lines",
    "94-links-in-circles",
    "95-limit-the-keeper",
    "96-leave-no-process",
    "97-leave-no-memory",
    "98-stop-everything",
);

impl Cheater {
    /// What it does: the first line of its script.
    pub fn about(&self) -> &'static str {
        self.script.lines().next().unwrap_or_default().trim_start_matches(['#', ' '])
    }
}

#[derive(Debug)]
pub struct CheatResult {
    /// How its script ended; absent if its room ended first.
    pub exit: Option<Exit>,
    /// The verdict on its files; absent if they exceed the limits of a submission.
    pub verdict: Option<Verdict>,
    /// Why nothing was submitted.
    pub refused: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum CheatError {
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Time limit of a cheater.
const PATIENCE: Duration = Duration::from_secs(20);
/// Small enough to be filled quickly, large enough for any task's files.
const ROOM_LIMITS: Limits = Limits { cpus: 1, memory_mb: 512, storage_mb: 256, pids: 128 };

/// A room like an agent's, with the task's files in `/workspace` and without the verifier.
fn agent_room(judge: &Judge, task: &Task, limits: Limits) -> Result<Box<dyn Sandbox>, CheatError> {
    let mut spec = RoomSpec {
        writable: vec!["/workspace".into(), "/logs".into()],
        sealed: Vec::new(),
        show: Vec::new(),
        programs: Vec::new(),
        limits,
        network: task.environment.allow_internet,
    };
    if let Some(python) = &judge.python {
        spec.offer_python(python);
    }
    // What agents get by the name of this program. Where it is missing they get nothing, which is no help either.
    drop(spec.offer_ourselves());
    let room: Box<dyn Sandbox> = match &judge.containers {
        Some(containers) => {
            let lifetime = Duration::from_mins(10);
            let purpose = Purpose { role: "agent", seeded: true, lifetime, ..Purpose::default() };
            containers.open(&image_of(task), &spec, &purpose)?
        }
        None => Box::new(Room::open(&spec)?),
    };
    let workspace = room.directory("/workspace").ok_or(SandboxError::Gone)?;
    for file in task.workspace_files()? {
        workspace.write(Path::new(&file.place), &fs_err::read(&file.source)?, false)?;
    }
    Ok(room)
}

/// Runs a cheater on a task and judges the files that it leaves.
pub fn cheat(
    judge: &Judge,
    task: &Task,
    cheater: &Cheater,
    store: &ContentStore,
) -> Result<CheatResult, CheatError> {
    let instruction = task.instruction().map_err(|error| io::Error::other(error.to_string()))?;
    let mut room = agent_room(judge, task, ROOM_LIMITS)?;
    let mut command = ExecSpec::new(["bash", "-c", cheater.script]);
    command.cwd = "/workspace".into();
    command.deadline = PATIENCE;
    command.env = vec![
        ("HOME".into(), "/home/agent".into()),
        ("OUTPUT".into(), primary_output(&instruction)),
        ("INSTRUCTION".into(), instruction),
    ];
    // A cheater that brings down its room is judged by what it left, like any agent.
    let exit = match room.exec(&command, &mut |_, _| {}) {
        Ok(result) => Some(result.exit),
        Err(error) if commands_could_end(&error) => None,
        Err(error) => return Err(error.into()),
    };
    let frozen = frozen(room.as_mut(), task, store).map_err(|error| Settled::unfrozen(&error));
    let (verdict, refused) = match frozen {
        Ok(submission) => (Some(judge.verdict(task, &submission)), None),
        Err(Settled { outcome: Outcome::AgentFault, fault, .. }) => {
            (None, Some(fault.map(|fault| fault.message).unwrap_or_default()))
        }
        Err(Settled { fault, .. }) => {
            let why = fault.map(|fault| fault.message).unwrap_or_default();
            return Err(io::Error::other(why).into());
        }
    };
    Ok(CheatResult { exit, verdict, refused })
}

/// The files that a cheater left, by the rules for agents.
fn frozen(room: &mut dyn Sandbox, task: &Task, store: &ContentStore) -> Result<Submission, Unfrozen> {
    room.freeze()?;
    let workspace = room.directory("/workspace").ok_or(SandboxError::Gone)?;
    workspace.reopen().map_err(SandboxError::from)?;
    Ok(Submission::freeze(workspace, &task.agent.outputs, &SubmissionLimits::default(), store)?)
}

impl CheatResult {
    /// Whether it counts in the mean: with a reward, or as a fault of the agent, which is 0. Anything else would leave
    /// the denominator, or be tried again.
    pub fn counts(&self) -> bool {
        self.verdict
            .as_ref()
            .is_none_or(|verdict| matches!(verdict.outcome, Outcome::Scored | Outcome::AgentFault))
    }

    /// Its reward; 0 if there was none.
    pub fn reward(&self) -> f64 {
        self.verdict.as_ref().and_then(|verdict| verdict.reward).unwrap_or(0.0)
    }

    /// Why it has no reward, if the verdict says so.
    pub fn fault(&self) -> &str {
        let told = self.verdict.as_ref().and_then(|verdict| verdict.fault.as_deref());
        told.or(self.refused.as_deref()).unwrap_or_default()
    }
}
