//! Opens the sandbox in which an agent works.

use std::io;
use std::path::Path;
use std::time::Duration;

use aec_container::{Containers, Purpose};
use aec_judge::judge::{Isolation, image_of};
use aec_sandbox::python::Python;
use aec_sandbox::{BareRoom, Limits, Room, RoomSpec, Sandbox, SandboxError};
use aec_task::task::Task;

use crate::task::PreparedTask;
use crate::workspace::{WORKSPACE, Workspace, blocking};

/// Most processes and threads of an agent.
pub const MAX_PIDS: u32 = 512;

/// How long the container of an agent with this time may exist.
pub(crate) fn lifetime(agent_time: Duration) -> Duration {
    agent_time.saturating_add(Duration::from_mins(10))
}

/// How a run opens sandboxes.
#[derive(Clone, Debug)]
pub struct RoomOpener {
    pub isolation: Isolation,
    /// The container service, if sandboxes are containers, and their labels.
    pub containers: Option<(Containers, Purpose)>,
    /// The interpreter that sandboxes get as `python3`; containers use that of their image.
    pub python: Option<Python>,
    pub limits: Limits,
    /// Files for the sandbox besides the task's: directory, path in it, content, executable. The directories are
    /// read-only for the agent.
    pub extra: Vec<ExtraFile>,
    /// Whether the agent may run this very program.
    pub ourselves: bool,
}

/// A file that a harness puts into a sandbox.
#[derive(Clone, Debug)]
pub struct ExtraFile {
    /// The directory, such as `/solution`.
    pub directory: &'static str,
    pub place: String,
    pub content: std::sync::Arc<[u8]>,
    pub executable: bool,
}

impl RoomOpener {
    /// Opens a sandbox with the task's files in `/workspace` and nothing of its verifier.
    pub(crate) async fn open(&self, task: &std::sync::Arc<PreparedTask>) -> Result<Workspace, SandboxError> {
        let (opener, task) = (self.clone(), std::sync::Arc::clone(task));
        blocking(move || opener.open_now(&task)).await?.map(Workspace::new)
    }

    pub(crate) fn open_now(&self, task: &PreparedTask) -> Result<Box<dyn Sandbox>, SandboxError> {
        let files = task.files.iter().map(|file| (file.place.as_str(), &*file.content));
        self.open_with(files, Some(&task.task))
    }

    /// Opens a sandbox on this machine, without a network, with files in `/workspace`.
    pub fn open_here<'a>(
        &self,
        files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Result<Box<dyn Sandbox>, SandboxError> {
        self.open_with(files, None)
    }

    fn open_with<'a>(
        &self,
        files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
        task: Option<&Task>,
    ) -> Result<Box<dyn Sandbox>, SandboxError> {
        let mut sealed: Vec<String> = self.extra.iter().map(|file| file.directory.to_owned()).collect();
        sealed.sort();
        sealed.dedup();
        let mut spec = RoomSpec {
            writable: vec![WORKSPACE.to_owned(), "/logs".to_owned()],
            sealed,
            show: Vec::new(),
            programs: Vec::new(),
            limits: self.limits,
            network: task.is_some_and(|task| task.environment.allow_internet),
        };
        if let Some(python) = &self.python {
            spec.offer_python(python);
        }
        if self.ourselves {
            spec.offer_ourselves()?;
        }
        let mut room: Box<dyn Sandbox> = match (&self.containers, task, self.isolation) {
            (Some((containers, purpose)), Some(task), _) => {
                let purpose = Purpose { role: "agent", seeded: true, ..purpose.clone() };
                containers.open(&image_of(task), &spec, &purpose)?
            }
            (_, _, Isolation::Room) => Box::new(Room::open(&spec)?),
            (_, _, Isolation::None) => Box::new(BareRoom::open(&spec)?),
        };
        let place = |name: &str| {
            room.directory(name).ok_or_else(|| io::Error::other("the sandbox has lost a directory"))
        };
        let workspace = place(WORKSPACE)?;
        for (path, content) in files {
            workspace.write(Path::new(path), content, false)?;
        }
        for file in &self.extra {
            place(file.directory)?.write(Path::new(&file.place), &file.content, file.executable)?;
        }
        if !self.extra.is_empty() {
            room.seal()?;
        }
        Ok(room)
    }
}
