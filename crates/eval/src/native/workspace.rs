//! The workspace of one rollout: files in memory until a command needs a room.

use std::sync::Arc;
use std::time::Duration;

use aec_judge::judge::Isolation;
use aec_judge::settle::order::Files;
use aec_run::harness::tools::Allowed;
use aec_run::parameters::DEFAULT_TOOL_OUTPUT;
use aec_run::room::{MAX_PIDS, RoomOpener};
use aec_run::workspace::Workspace;
use aec_sandbox::Limits;

use super::LazyJudge;

/// A file that is in the workspace from the beginning.
#[derive(Clone, Debug)]
pub(super) struct GivenFile {
    pub(super) path: String,
    pub(super) content: Arc<[u8]>,
}

/// Limits of a rollout, and how its commands run.
pub(super) struct WorkspaceSetup {
    pub(super) given: Arc<[GivenFile]>,
    pub(super) cpus: u32,
    pub(super) memory_mb: u32,
    pub(super) storage_mb: u32,
    pub(super) command_timeout: Duration,
    pub(super) isolation: Isolation,
    /// Provides the interpreter for rooms.
    pub(super) judge: LazyJudge,
}

impl WorkspaceSetup {
    pub(super) fn workspace(self: &Arc<Self>) -> Workspace {
        let given = self.given.iter().map(|file| (file.path.clone(), Arc::clone(&file.content)));
        let bytes = u64::from(self.storage_mb) * 1024 * 1024;
        let setup = Arc::clone(self);
        let open = Box::new(move |files: &Files| {
            let opener = setup.opener();
            opener.open_here(files.iter().map(|(path, content)| (path.as_str(), &**content)))
        });
        Workspace::in_memory(given.collect(), bytes, self.isolation, open)
    }

    pub(super) fn allowed(&self) -> Allowed {
        Allowed { output: DEFAULT_TOOL_OUTPUT as usize, time: self.command_timeout }
    }

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
