//! The container engine: where it is, what it can do, building images, and removing what was left behind.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use aec_sandbox::SandboxError;
use bollard::Docker;
use bollard::models::{ContainerCreateBody, ContainerSummary};
use bollard::query_parameters::{
    AttachContainerOptions, BuildImageOptions, CreateContainerOptions, ListContainersOptions,
    ListImagesOptions, RemoveContainerOptions, RemoveImageOptions, StartContainerOptions,
};
use bytes::Bytes;
use futures_util::StreamExt as _;
use rustix::process::{Pid, test_kill_process};
use tokio::runtime::Runtime;

use crate::entry::Entry;
use crate::image::{BuildContext, Extension, Names, TaskImage, room_archive};

/// How long the engine may take to answer; builds have limits of their own.
const PATIENCE: u64 = 120;
/// What is kept of the log of a build that failed.
const LOG_TAIL: usize = 4000;
/// On everything that this program makes.
pub(crate) const LABEL: &str = "org.aec-bench";

/// What the engine cannot do.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EngineError {
    /// Nobody answers.
    #[error("the container engine does not answer: {0}")]
    Unreachable(String),
    /// There is no disk space left for it.
    #[error("the container engine has no space left: {0}")]
    Full(String),
    /// The image of a task cannot be made.
    #[error("the image cannot be built: {0}")]
    Build(String),
    /// It refused.
    #[error("the container engine refused: {0}")]
    Refused(String),
}

impl EngineError {
    /// The kind, as records tell it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "engine_lost",
            Self::Full(_) => "disk_full",
            Self::Build(_) => "image_build",
            Self::Refused(_) => "engine_refused",
        }
    }

    /// Whether another attempt may go better.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::Refused(_))
    }
}

impl From<bollard::errors::Error> for EngineError {
    fn from(error: bollard::errors::Error) -> Self {
        use bollard::errors::Error;
        match &error {
            Error::DockerResponseServerError { message, .. } => refused(message),
            Error::DockerStreamError { error } => refused(error),
            other => Self::Unreachable(said(other)),
        }
    }
}

impl From<EngineError> for SandboxError {
    fn from(error: EngineError) -> Self {
        Self::Elsewhere { kind: error.kind(), may_pass: error.may_pass(), message: error.to_string() }
    }
}

fn refused(message: &str) -> EngineError {
    let message = message.trim().to_owned();
    if message.contains("no space left") || message.contains("disk quota") {
        EngineError::Full(message)
    } else {
        EngineError::Refused(message)
    }
}

/// An error with all its reasons.
fn said(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(reason) = source {
        let reason_text = reason.to_string();
        if !text.contains(&reason_text) {
            text = format!("{text}: {reason_text}");
        }
        source = reason.source();
    }
    text
}

/// How much at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Images that are built at once.
    pub builds: usize,
    /// Containers that run at once.
    pub containers: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { builds: 2, containers: 64 }
    }
}

/// What the engine says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// `Docker` or `Podman`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Version of its interface.
    pub api_version: String,
    /// Where it answers.
    pub host: String,
}

/// A container engine. Clones share one connection.
#[derive(Clone, Debug)]
pub struct Engine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Taken when the last clone goes.
    runtime: Option<Runtime>,
    docker: Docker,
    facts: Facts,
    entry: Entry,
    builds: Places,
    containers: Places,
    images: Mutex<HashMap<Names, Arc<Made>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// What became of a build, for everyone who waits for it.
type Made = OnceLock<Result<(), EngineError>>;

/// So many at once, and the others wait.
#[derive(Debug)]
struct Places {
    free: Mutex<usize>,
    freed: Condvar,
}

/// A place that is taken.
#[derive(Debug)]
pub(crate) struct Taken {
    engine: Engine,
    of: fn(&Inner) -> &Places,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let places = (self.of)(&self.engine.0);
        *places.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        places.freed.notify_one();
    }
}

/// What this program left with the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Ids of containers whose opener is gone.
    pub containers: Vec<String>,
    /// Names of images.
    pub images: Vec<String>,
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Containers.
    pub containers: usize,
    /// Images.
    pub images: usize,
}

/// The places where an engine may answer: what somebody said, or those that engines use.
pub fn hosts(said: Option<&str>, runtime_directory: Option<&Path>) -> Vec<String> {
    if let Some(host) = said.filter(|host| !host.is_empty()) {
        return vec![host.to_owned()];
    }
    let own = runtime_directory.map(|directory| directory.join("podman/podman.sock"));
    let usual = ["/var/run/docker.sock", "/run/podman/podman.sock"].map(PathBuf::from);
    let sockets = usual.into_iter().chain(own);
    sockets.filter(|socket| socket.exists()).map(|socket| format!("unix://{}", socket.display())).collect()
}

impl Engine {
    /// Connects to the first of some hosts that answers.
    pub fn connect(hosts: &[String], limits: Limits) -> Result<Self, EngineError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("containers")
            .enable_all()
            .build()
            .map_err(|error| EngineError::Unreachable(error.to_string()))?;
        let mut last = EngineError::Unreachable("there is no socket of Docker or Podman".to_owned());
        for host in hosts {
            match run_on(&runtime, connect(host.clone())) {
                Ok((docker, facts)) => {
                    let entry = Entry::find().map_err(|error| EngineError::Refused(error.to_string()))?;
                    let places =
                        |count: usize| Places { free: Mutex::new(count.max(1)), freed: Condvar::new() };
                    return Ok(Self(Arc::new(Inner {
                        runtime: Some(runtime),
                        docker,
                        facts,
                        entry,
                        builds: places(limits.builds),
                        containers: places(limits.containers),
                        images: Mutex::default(),
                    })));
                }
                Err(error) => last = error,
            }
        }
        runtime.shutdown_background();
        Err(last)
    }

    /// What the engine says of itself.
    pub fn facts(&self) -> &Facts {
        &self.0.facts
    }

    pub(crate) fn entry_command(&self) -> Vec<String> {
        self.0.entry.command()
    }

    /// Waits for a future from any thread, also from one that serves others.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T, EngineError>> + Send + 'static,
    ) -> Result<T, EngineError> {
        match &self.0.runtime {
            Some(runtime) => run_on(runtime, future),
            None => Err(EngineError::Unreachable("the connection is closed".to_owned())),
        }
    }

    /// Lets something happen that nobody waits for.
    pub(crate) fn leave(&self, future: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.0.runtime {
            runtime.spawn(future);
        }
    }

    pub(crate) fn handle(&self) -> Option<tokio::runtime::Handle> {
        self.0.runtime.as_ref().map(|runtime| runtime.handle().clone())
    }

    pub(crate) fn docker(&self) -> Docker {
        self.0.docker.clone()
    }

    fn take(&self, of: fn(&Inner) -> &Places) -> Taken {
        let places = of(&self.0);
        let free = places.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free =
            places.freed.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        drop(free);
        Taken { engine: self.clone(), of }
    }

    /// A place for a container.
    pub(crate) fn place(&self) -> Taken {
        self.take(|inner| &inner.containers)
    }

    /// The name of the image that rooms of a task are made of. It is built if there is none; whoever asks for it
    /// meanwhile waits for the same build.
    pub fn image(&self, wanted: &TaskImage) -> Result<String, EngineError> {
        let context =
            BuildContext::read(&wanted.environment).map_err(|error| EngineError::Build(error.to_string()))?;
        let layers = wanted.layers().map_err(|error| EngineError::Build(error.to_string()))?;
        let names = Names::of(&context, &layers, &self.0.entry);
        let made = {
            let mut images = self.0.images.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(images.entry(names.clone()).or_default())
        };
        let result = made.get_or_init(|| self.make(&context, &layers, wanted.build_timeout, &names)).clone();
        if result.as_ref().is_err_and(EngineError::may_pass) {
            // The next one who asks tries again.
            self.0.images.lock().unwrap_or_else(PoisonError::into_inner).remove(&names);
        }
        result.map(|()| names.room)
    }

    fn make(
        &self,
        context: &BuildContext,
        layers: &[Extension],
        timeout: Duration,
        names: &Names,
    ) -> Result<(), EngineError> {
        if self.has_image(&names.room)? {
            return Ok(());
        }
        let _place = self.take(|inner| &inner.builds);
        let archived = |archive: &dyn Fn(&mut fs_err::File) -> io::Result<()>| {
            spooled(archive).map_err(|error| EngineError::Build(error.to_string()))
        };
        if !self.has_image(&names.own)? {
            let files = archived(&|file| context.archive(file))?;
            self.build(&names.own, files, timeout)?;
        }
        let files = archived(&|file| room_archive(&names.own, layers, &self.0.entry, file))?;
        self.build(&names.room, files, timeout)
    }

    fn has_image(&self, name: &str) -> Result<bool, EngineError> {
        let (docker, name) = (self.docker(), name.to_owned());
        self.wait(async move {
            match docker.inspect_image(&name).await {
                Ok(_) => Ok(true),
                Err(bollard::errors::Error::DockerResponseServerError { status_code: 404, .. }) => Ok(false),
                Err(error) => Err(error.into()),
            }
        })
    }

    fn build(&self, name: &str, archive: std::fs::File, timeout: Duration) -> Result<(), EngineError> {
        let (docker, name) = (self.docker(), name.to_owned());
        let options = BuildImageOptions {
            dockerfile: crate::image::DOCKERFILE.to_owned(),
            t: Some(name),
            rm: true,
            forcerm: true,
            labels: Some([(LABEL.to_owned(), "image".to_owned())].into()),
            ..BuildImageOptions::default()
        };
        tracing::debug!(image = options.t, "building");
        self.wait(async move {
            let body = bollard::body_try_stream(pieces(archive));
            let mut log = String::new();
            let following = async {
                let mut steps = std::pin::pin!(docker.build_image(options, None, Some(body)));
                while let Some(step) = steps.next().await {
                    match step {
                        Ok(step) => {
                            log.push_str(
                                step.stream.as_deref().or(step.status.as_deref()).unwrap_or_default(),
                            );
                            if let Some(failed) = step.error_detail {
                                return Err(failed.message.unwrap_or_default());
                            }
                        }
                        Err(error) => match EngineError::from(error) {
                            lost @ (EngineError::Unreachable(_) | EngineError::Full(_)) => {
                                return Ok(Err(lost));
                            }
                            other => return Err(other.to_string()),
                        },
                    }
                }
                Ok(Ok(()))
            };
            let ended = tokio::time::timeout(timeout, following).await;
            match ended {
                Ok(Ok(made)) => made,
                Ok(Err(reason)) => match refused(&reason) {
                    full @ EngineError::Full(_) => Err(full),
                    _ => Err(EngineError::Build(
                        format!("{}\n{}", reason.trim(), tail(&log)).trim().to_owned(),
                    )),
                },
                Err(_) => {
                    let what = format!("it took more than {} seconds\n{}", timeout.as_secs(), tail(&log));
                    Err(EngineError::Build(what.trim().to_owned()))
                }
            }
        })
    }

    /// Makes a container and starts it, with both of its streams.
    pub(crate) fn start(&self, body: ContainerCreateBody) -> Result<Started, EngineError> {
        let docker = self.docker();
        self.wait(async move {
            let made = docker.create_container(None::<CreateContainerOptions>, body).await?;
            let id = made.id;
            let attach = AttachContainerOptions {
                stream: true,
                stdin: true,
                stdout: true,
                stderr: true,
                ..AttachContainerOptions::default()
            };
            let started = async {
                let streams = docker.attach_container(&id, Some(attach)).await?;
                docker.start_container(&id, None::<StartContainerOptions>).await?;
                Ok::<_, EngineError>(streams)
            };
            match started.await {
                Ok(streams) => Ok(Started { id, streams }),
                Err(error) => {
                    remove(&docker, &id).await;
                    Err(error)
                }
            }
        })
    }

    /// Containers that openers of this machine left behind, and all images that this program made: those are built
    /// again when they are needed.
    pub fn leftovers(&self) -> Result<Found, EngineError> {
        let docker = self.docker();
        self.wait(async move {
            let filters = HashMap::from([("label".to_owned(), vec![format!("{LABEL}=room")])]);
            let options = ListContainersOptions { all: true, filters: Some(filters), ..Default::default() };
            let containers = docker.list_containers(Some(options)).await?;
            let filters = HashMap::from([("label".to_owned(), vec![format!("{LABEL}=image")])]);
            let options = ListImagesOptions { filters: Some(filters), ..Default::default() };
            let images = docker.list_images(Some(options)).await?;
            Ok(Found {
                containers: containers.into_iter().filter(is_left_behind).filter_map(|one| one.id).collect(),
                images: images.into_iter().flat_map(|image| image.repo_tags).collect(),
            })
        })
    }

    /// Removes what was found.
    pub fn clean(&self, found: &Found) -> Result<Cleaned, EngineError> {
        let (docker, found) = (self.docker(), found.clone());
        self.wait(async move {
            let mut cleaned = Cleaned::default();
            for id in &found.containers {
                cleaned.containers += usize::from(remove(&docker, id).await);
            }
            for image in &found.images {
                let options = RemoveImageOptions { force: true, ..RemoveImageOptions::default() };
                cleaned.images += usize::from(docker.remove_image(image, Some(options), None).await.is_ok());
            }
            Ok(cleaned)
        })
    }
}

/// A container that runs.
pub(crate) struct Started {
    pub(crate) id: String,
    pub(crate) streams: bollard::container::AttachContainerResults,
}

/// Ends a container and takes it away. False when there was none.
pub(crate) async fn remove(docker: &Docker, id: &str) -> bool {
    let options = RemoveContainerOptions { force: true, v: true, ..RemoveContainerOptions::default() };
    docker.remove_container(id, Some(options)).await.is_ok()
}

/// Whether the process that made it is one of this machine, and no more.
fn is_left_behind(container: &ContainerSummary) -> bool {
    let of = |name: &str| container.labels.as_ref()?.get(&format!("{LABEL}.{name}"));
    let ours = of("host").is_some_and(|host| *host == host_name());
    ours && of("pid").is_some_and(|pid| !is_running(pid))
}

/// Whether a process of this machine still does something. What is no number is nobody's.
pub(crate) fn is_running(pid: &str) -> bool {
    let Some(pid) = pid.parse().ok().filter(|pid| *pid > 0).and_then(Pid::from_raw) else { return false };
    // Processes of others may be hidden from `/proc`, but not from this.
    if test_kill_process(pid) == Err(rustix::io::Errno::SRCH) {
        return false;
    }
    // One that has ended stays until its parent has looked.
    let status = fs_err::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !status.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('Z'))
}

/// The name of this machine.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

async fn connect(host: String) -> Result<(Docker, Facts), EngineError> {
    let docker = match host.strip_prefix("unix://") {
        Some(path) => Docker::connect_with_unix(path, PATIENCE, bollard::API_DEFAULT_VERSION)?,
        None => Docker::connect_with_http(&host, PATIENCE, bollard::API_DEFAULT_VERSION)?,
    };
    let docker = docker.negotiate_version().await?;
    let version = docker.version().await?;
    let components = version.components.unwrap_or_default();
    let is_podman = components.iter().any(|component| component.name.contains("Podman"));
    let facts = Facts {
        name: if is_podman { "Podman" } else { "Docker" }.to_owned(),
        version: version.version.unwrap_or_default(),
        api_version: version.api_version.unwrap_or_default(),
        host,
    };
    Ok((docker, facts))
}

fn run_on<T: Send + 'static>(
    runtime: &Runtime,
    future: impl Future<Output = Result<T, EngineError>> + Send + 'static,
) -> Result<T, EngineError> {
    let (to, from) = std::sync::mpsc::sync_channel(1);
    runtime.spawn(async move {
        to.send(future.await).ok();
    });
    from.recv().unwrap_or_else(|_| Err(EngineError::Unreachable("the connection was closed".to_owned())))
}

/// An archive in a file of its own: it may be larger than what memory should hold.
fn spooled(archive: &dyn Fn(&mut fs_err::File) -> io::Result<()>) -> io::Result<std::fs::File> {
    use std::io::Seek as _;
    let mut file = fs_err::File::from_parts(tempfile::tempfile()?, "the files of a build");
    archive(&mut file)?;
    file.rewind()?;
    Ok(file.into_parts().0)
}

/// A file as a stream of pieces.
fn pieces(file: std::fs::File) -> impl futures_util::Stream<Item = io::Result<Bytes>> + Send {
    futures_util::stream::unfold(file, |mut file| async move {
        let mut buffer = vec![0; 256 * 1024];
        match io::Read::read(&mut file, &mut buffer) {
            Ok(0) => None,
            Ok(count) => {
                buffer.truncate(count);
                Some((Ok(Bytes::from(buffer)), file))
            }
            Err(error) => Some((Err(error), file)),
        }
    })
}

fn tail(log: &str) -> &str {
    let start = log.len().saturating_sub(LOG_TAIL);
    let start = (start..log.len()).find(|at| log.is_char_boundary(*at)).unwrap_or(log.len());
    log[start..].trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_what_somebody_said_or_sockets_that_are_there() {
        assert_eq!(hosts(Some("tcp://10.0.0.1:2375"), None), ["tcp://10.0.0.1:2375"]);
        let directory = tempfile::tempdir().unwrap();
        fs_err::create_dir(directory.path().join("podman")).unwrap();
        fs_err::write(directory.path().join("podman/podman.sock"), "").unwrap();
        let found = hosts(Some(""), Some(directory.path()));
        assert!(found.last().is_some_and(|host| host.ends_with("podman/podman.sock")), "{found:?}");
    }

    #[test]
    fn processes_that_have_ended_do_not_run() {
        assert!(is_running(&std::process::id().to_string()));
        assert!(is_running("1"), "one of somebody else");
        for odd in ["", "0", "-1", "x", "4194305", "99999999999"] {
            assert!(!is_running(odd), "{odd}");
        }
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = Pid::from_child(&child);
        rustix::process::waitid(
            rustix::process::WaitId::Pid(pid),
            rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT,
        )
        .unwrap();
        assert!(!is_running(&pid.as_raw_nonzero().to_string()), "nobody has looked at it yet");
        child.wait().unwrap();
        assert!(!is_running(&pid.as_raw_nonzero().to_string()));
    }

    #[test]
    fn nobody_there_is_an_error_that_may_pass() {
        let directory = tempfile::tempdir().unwrap();
        let host = format!("unix://{}", directory.path().join("none.sock").display());
        for hosts in [vec![], vec![host]] {
            let error = Engine::connect(&hosts, Limits::default()).unwrap_err();
            assert_eq!((error.kind(), error.may_pass()), ("engine_lost", true), "{error}");
        }
        assert_eq!(refused("write /x: no space left on device").kind(), "disk_full");
        assert_eq!(refused("no such image").kind(), "engine_refused");
        assert_eq!(tail(&"é".repeat(LOG_TAIL)).len(), LOG_TAIL);
    }
}
