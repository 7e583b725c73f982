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
use crate::submission::{FreezeError, Submission, SubmissionLimits};
use crate::verdict::Verdict;

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
);

impl Cheater {
    /// What it does: the first line of its script.
    pub fn about(&self) -> &'static str {
        self.script.lines().next().unwrap_or_default().trim_start_matches(['#', ' '])
    }
}

#[derive(Debug)]
pub struct CheatResult {
    pub exit: Exit,
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
    let result = room.exec(&command, &mut |_, _| {})?;
    room.freeze()?;
    let workspace = room.directory("/workspace").ok_or(SandboxError::Gone)?;
    let frozen = Submission::freeze(workspace, &task.agent.outputs, &SubmissionLimits::default(), store);
    let (verdict, refused) = match frozen {
        Ok(submission) => (Some(judge.verdict(task, &submission)), None),
        Err(FreezeError::TooLarge(reason)) => (None, Some(reason)),
        Err(FreezeError::Io(error)) => return Err(error.into()),
    };
    Ok(CheatResult { exit: result.exit, verdict, refused })
}

impl CheatResult {
    /// Its reward; 0 if there was none.
    pub fn reward(&self) -> f64 {
        self.verdict.as_ref().and_then(|verdict| verdict.reward).unwrap_or(0.0)
    }
}
