//! The workspace of one rollout: files in memory until a command needs a room, and what was handed in.

use std::sync::Arc;
use std::time::Duration;

use aec_judge::judge::Isolation;
use aec_judge::settle::order::{Files, Submitted};
use aec_model::message::ToolCall;
use aec_run::harness::tools::{Allowed, Ran, TIME_IS_UP, Toolset};
use aec_run::parameters::DEFAULT_TOOL_OUTPUT;
use aec_run::room::{MAX_PIDS, RoomOpener};
use aec_run::workspace::Workspace as Place;
use aec_sandbox::{Limits, SandboxError};

use super::LazyJudge;

/// A file that lies in the workspace from the beginning.
#[derive(Clone, Debug)]
pub(super) struct GivenFile {
    pub(super) path: String,
    pub(super) content: Arc<[u8]>,
}

/// What a rollout may take, and how its commands run.
pub(super) struct WorkspaceSetup {
    pub(super) given: Arc<[GivenFile]>,
    pub(super) cpus: u32,
    pub(super) memory_mb: u32,
    pub(super) storage_mb: u32,
    pub(super) command_timeout: Duration,
    pub(super) isolation: Isolation,
    /// Knows the interpreter that rooms get.
    pub(super) judge: LazyJudge,
}

/// The workspace of one rollout.
#[derive(Debug)]
pub(super) struct Workspace {
    setup: Arc<WorkspaceSetup>,
    /// Its files and commands.
    pub(super) place: Place,
    /// What was handed in last.
    pub(super) submitted: Option<Submitted>,
}

impl Workspace {
    /// A workspace with the task's files in it.
    pub(super) fn new(setup: Arc<WorkspaceSetup>) -> Self {
        let given = setup.given.iter().map(|file| (file.path.clone(), Arc::clone(&file.content)));
        let bytes = u64::from(setup.storage_mb) * 1024 * 1024;
        let opened = Arc::clone(&setup);
        let open = Box::new(move |files: &Files| {
            let opener = opened.opener();
            opener.open_here(files.iter().map(|(path, content)| (path.as_str(), &**content)))
        });
        let place = Place::in_memory(given.collect(), bytes, setup.isolation, open);
        Self { setup, place, submitted: None }
    }

    /// Carries out one call. The model's own mistakes are results too.
    pub(super) async fn carry_out(
        &mut self,
        tools: &Toolset,
        call: &ToolCall,
        number: u32,
        time_left: Duration,
    ) -> Result<Ran, SandboxError> {
        if time_left.is_zero() {
            return Ok(Ran::refused(TIME_IS_UP.to_owned()));
        }
        let action = match tools.read(call) {
            Ok(action) => action,
            Err(complaint) => return Ok(Ran::refused(complaint)),
        };
        let allowed =
            Allowed { output: DEFAULT_TOOL_OUTPUT as usize, time: self.setup.command_timeout.min(time_left) };
        let mut ran = action.carry_out(&self.place, number, &allowed).await?;
        if let Some(submitted) = ran.submitted.take() {
            self.submitted = Some(submitted);
        }
        Ok(ran)
    }
}

impl WorkspaceSetup {
    fn opener(&self) -> RoomOpener {
        RoomOpener {
            isolation: self.isolation,
            containers: None,
            python: self.judge.python.clone(),
            limits: Limits {
                cpus: self.cpus,
                memory_mb: self.memory_mb,
                storage_mb: self.storage_mb,
                pids: MAX_PIDS,
            },
            extra: Vec::new(),
            ourselves: false,
        }
    }
}

impl std::fmt::Debug for WorkspaceSetup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkspaceSetup").field("isolation", &self.isolation).finish_non_exhaustive()
    }
}
