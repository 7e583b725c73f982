//! The container engine: finds it, asks what it can do, builds images and starts containers.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use aec_sandbox::SandboxError;
use bollard::Docker;
use bollard::models::{ContainerCreateBody, ImageConfig};
use bollard::query_parameters::{
    AttachContainerOptions, BuildImageOptions, CreateContainerOptions, RemoveContainerOptions,
    StartContainerOptions,
};
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::runtime::Runtime;

use aec_task::compose::Build;

use crate::entry::Entry;
use crate::image::{Kit, Names, Recipe, TaskImage};
use crate::places::{Places, Taken};

/// Seconds that the engine may take to answer; builds have their own limits.
const PATIENCE: u64 = 120;
/// Bytes kept of the log of a failed build.
const LOG_TAIL: usize = 4000;
/// How long a restart of the engine may take.
const RETURN: Duration = Duration::from_secs(15);
/// The label of everything that this program makes.
pub(crate) const LABEL: &str = "org.aec-bench";

#[derive(Clone, Debug, thiserror::Error)]
pub enum EngineError {
    #[error("the container engine does not answer: {0}")]
    Unreachable(String),
    #[error("the container engine has no space left: {0}")]
    Full(String),
    #[error("the image cannot be built: {0}")]
    Build(String),
    #[error("the container engine refused: {0}")]
    Refused(String),
    #[error("the service {0}")]
    Service(String),
}

impl EngineError {
    /// The kind of failure, as recorded.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "engine_lost",
            Self::Full(_) => "disk_full",
            Self::Build(_) => "image_build",
            Self::Refused(_) => "engine_refused",
            Self::Service(_) => "service_failed",
        }
    }

    /// Whether another attempt may succeed.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::Refused(_) | Self::Service(_))
    }
}

impl From<bollard::errors::Error> for EngineError {
    fn from(error: bollard::errors::Error) -> Self {
        use bollard::errors::Error;
        match &error {
            Error::DockerResponseServerError { status_code, message } if message.trim().is_empty() => {
                Self::Refused(format!("it gave no reason (status {status_code})"))
            }
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

/// An error with all its causes.
pub(crate) fn said(error: &dyn std::error::Error) -> String {
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

/// What the engine reports about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// `Docker` or `Podman`.
    pub name: String,
    pub version: String,
    /// Version of its API.
    pub api_version: String,
    /// Its address.
    pub host: String,
}

/// A container engine. Clones share one connection.
#[derive(Clone, Debug)]
pub struct Engine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Taken when the last clone is dropped.
    runtime: Option<Runtime>,
    docker: Docker,
    facts: Facts,
    entry: Entry,
    builds: Places,
    containers: Places,
    images: Mutex<HashMap<Names, Arc<Made>>>,
    kits: Mutex<HashMap<TaskImage, Arc<Kit>>>,
    volumes: Mutex<HashMap<String, Arc<[String]>>>,
    /// When the engine first failed to answer.
    lost_since: Mutex<Option<Instant>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The result of a build, shared by all callers that wait for it.
type Made = OnceLock<Result<(), EngineError>>;

/// Addresses at which an engine may answer: the configured one, or those that engines use by default.
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
    /// Connects to the first host that answers.
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
                    return Ok(Self(Arc::new(Inner {
                        runtime: Some(runtime),
                        docker,
                        facts,
                        entry,
                        builds: Places::new(limits.builds),
                        containers: Places::new(limits.containers),
                        images: Mutex::default(),
                        kits: Mutex::default(),
                        volumes: Mutex::default(),
                        lost_since: Mutex::default(),
                    })));
                }
                Err(error) => last = error,
            }
        }
        runtime.shutdown_background();
        Err(last)
    }

    /// What the engine reports about itself.
    pub fn facts(&self) -> &Facts {
        &self.0.facts
    }

    pub(crate) fn entry_command(&self) -> Vec<String> {
        self.0.entry.command()
    }

    /// Waits for a future from any thread, also from a thread of an async runtime.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T, EngineError>> + Send + 'static,
    ) -> Result<T, EngineError> {
        match &self.0.runtime {
            Some(runtime) => run_on(runtime, future),
            None => Err(EngineError::Unreachable("the connection is closed".to_owned())),
        }
    }

    /// Runs a future in the background.
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

    /// Waits for `count` free places for containers.
    pub(crate) fn places(&self, count: usize) -> Taken {
        self.0.containers.take(count)
    }

    /// The recipes of a task's containers. They are read once: later callers get the same, even if the task's files
    /// have changed since.
    pub(crate) fn kit(&self, wanted: &TaskImage) -> Result<Arc<Kit>, EngineError> {
        let mut kits = self.0.kits.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kit) = kits.get(wanted) {
            return Ok(Arc::clone(kit));
        }
        let kit = Arc::new(Kit::read(wanted, &self.0.entry).map_err(|error| unbuildable(&error))?);
        kits.insert(wanted.clone(), Arc::clone(&kit));
        Ok(kit)
    }

    /// The name of the image of a task's rooms.
    pub fn image(&self, wanted: &TaskImage) -> Result<String, EngineError> {
        self.room_image(&*self.kit(wanted)?)
    }

    pub(crate) fn room_image(&self, kit: &Kit) -> Result<String, EngineError> {
        self.made(&kit.room, kit.build_timeout)
    }

    /// The name and the configuration of the image of a container beside a room.
    pub(crate) fn service_image(
        &self,
        kit: &Kit,
        number: usize,
    ) -> Result<(String, ImageConfig), EngineError> {
        let recipe = kit
            .services
            .get(number)
            .ok_or_else(|| EngineError::Service("there are fewer services than there were".to_owned()))?;
        let name = self.made(recipe, kit.build_timeout)?;
        let (docker, asked) = (self.docker(), name.clone());
        let config = self.wait(async move { Ok(docker.inspect_image(&asked).await?.config) })?;
        Ok((name, config.unwrap_or_default()))
    }

    /// Builds an image unless it exists; callers that ask for it meanwhile wait for the same build.
    fn made(&self, recipe: &Recipe, timeout: Duration) -> Result<String, EngineError> {
        let made = {
            let mut images = self.0.images.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(images.entry(recipe.names.clone()).or_default())
        };
        let result = made.get_or_init(|| self.make(recipe, timeout)).clone();
        if result.as_ref().is_err_and(EngineError::may_pass) {
            // The next caller tries again.
            self.0.images.lock().unwrap_or_else(PoisonError::into_inner).remove(&recipe.names);
        }
        result.map(|()| recipe.names.room.clone())
    }

    fn make(&self, recipe: &Recipe, timeout: Duration) -> Result<(), EngineError> {
        let Names { own, room } = &recipe.names;
        if self.has_image(room)? {
            return Ok(());
        }
        let _place = self.0.builds.take(1);
        if let Some((context, build)) = recipe.own()
            && !self.has_image(own)?
        {
            let files = spooled(&|file| {
                let mut archive = tar::Builder::new(file);
                context.archive(Path::new(""), &mut archive)?;
                archive.finish()
            });
            let files = files.map_err(|error| unbuildable(&error))?;
            refuse_changed(recipe)?;
            self.build(own, files, build, timeout)?;
        }
        let files =
            spooled(&|file| recipe.archive(&self.0.entry, file)).map_err(|error| unbuildable(&error))?;
        refuse_changed(recipe)?;
        self.build(room, files, &Build::default(), timeout)
    }

    /// Whether an image that was built before is gone; the next caller then builds it again.
    pub(crate) fn has_lost(&self, name: &str) -> bool {
        let gone = self.has_image(name).is_ok_and(|there| !there);
        if gone {
            let mut images = self.0.images.lock().unwrap_or_else(PoisonError::into_inner);
            images.retain(|names, _| names.room != name);
        }
        gone
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

    fn build(
        &self,
        name: &str,
        archive: std::fs::File,
        build: &Build,
        timeout: Duration,
    ) -> Result<(), EngineError> {
        let docker = self.docker();
        let options = BuildImageOptions {
            dockerfile: build.dockerfile.to_string_lossy().into_owned(),
            buildargs: (!build.args.is_empty()).then(|| build.args.iter().cloned().collect()),
            target: build.target.clone().unwrap_or_default(),
            t: Some(name.to_owned()),
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
                            shorten(&mut log);
                            if let Some(failed) = step.error_detail {
                                return Err(failed.message.unwrap_or_default());
                            }
                        }
                        Err(error) => {
                            let silent = matches!(
                                &error,
                                bollard::errors::Error::DockerResponseServerError { message, .. }
                                    if message.trim().is_empty()
                            );
                            match EngineError::from(error) {
                                // A failure without a reason is not the image's fault.
                                other if silent => return Ok(Err(other)),
                                lost @ (EngineError::Unreachable(_) | EngineError::Full(_)) => {
                                    return Ok(Err(lost));
                                }
                                other => return Err(other.to_string()),
                            }
                        }
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

    /// Directories that an image declares as volumes. Only needed for Podman, where a new directory in their place
    /// starts with the image's files.
    pub(crate) fn volumes(&self, name: &str) -> Result<Arc<[String]>, EngineError> {
        if self.0.facts.name != "Podman" {
            return Ok(Arc::from([]));
        }
        let known = self.0.volumes.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let (docker, asked) = (self.docker(), name.to_owned());
        let config = self.wait(async move { Ok(docker.inspect_image(&asked).await?.config) })?;
        let volumes = config.and_then(|config| config.volumes).unwrap_or_default();
        let volumes: Arc<[String]> = volumes.into_iter().collect();
        let mut all = self.0.volumes.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(name.to_owned(), Arc::clone(&volumes));
        Ok(volumes)
    }

    /// Waits for an engine that does not answer, and returns whether it answers again. All callers wait until the
    /// same moment, so an engine that stays away delays them only once.
    pub(crate) fn comes_back(&self) -> bool {
        let since = *self.lost_since().get_or_insert_with(Instant::now);
        loop {
            let docker = self.docker();
            if self.wait(async move { Ok(docker.ping().await?) }).is_ok() {
                *self.lost_since() = None;
                return true;
            }
            if since.elapsed() >= RETURN {
                return false;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn lost_since(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.0.lost_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates and starts a container, and attaches to both of its streams.
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
}

/// Otherwise an image of other files would be found under this name forever.
fn refuse_changed(recipe: &Recipe) -> Result<(), EngineError> {
    if recipe.has_changed() {
        let what = "files of environment/ changed while the run went on: restore them, then go on";
        return Err(EngineError::Build(what.to_owned()));
    }
    Ok(())
}

/// Keeps only the end of a log.
fn shorten(log: &mut String) {
    if log.len() > 2 * LOG_TAIL {
        let from = log.ceil_char_boundary(log.len() - LOG_TAIL);
        log.drain(..from);
    }
}

fn unbuildable(error: &io::Error) -> EngineError {
    EngineError::Build(error.to_string())
}

/// A running container.
pub(crate) struct Started {
    pub(crate) id: String,
    pub(crate) streams: bollard::container::AttachContainerResults,
}

/// Ends and removes a container. False if it does not exist.
pub(crate) async fn remove(docker: &Docker, id: &str) -> bool {
    let options = RemoveContainerOptions { force: true, v: true, ..RemoveContainerOptions::default() };
    docker.remove_container(id, Some(options)).await.is_ok()
}

async fn connect(host: String) -> Result<(Docker, Facts), EngineError> {
    let docker = match host.split_once("://") {
        Some(("unix", path)) => Docker::connect_with_unix(path, PATIENCE, bollard::API_DEFAULT_VERSION)?,
        None | Some(("tcp" | "http", _)) => {
            Docker::connect_with_http(&host, PATIENCE, bollard::API_DEFAULT_VERSION)?
        }
        Some((other, _)) => {
            let what = format!("engines are not reached through {other}: forward the socket of {host}");
            return Err(EngineError::Unreachable(what));
        }
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

/// Writes an archive to a file, because it may be too large for memory.
fn spooled(archive: &dyn Fn(&mut fs_err::File) -> io::Result<()>) -> io::Result<std::fs::File> {
    use std::io::Seek as _;
    let mut file = fs_err::File::from_parts(tempfile::tempfile()?, "the files of a build");
    archive(&mut file)?;
    file.rewind()?;
    Ok(file.into_parts().0)
}

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
