//! A room that is a container.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Seek as _, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aec_sandbox::wire::{Answer, Body, Call, Command, MAIN, STDERR, STDOUT};
use aec_sandbox::{
    Capture, Elsewhere, Enforce, ExecResult, ExecSpec, Exit, Held, Hold, Level, Listed, RoomSpec, Sandbox,
    SandboxError, Stopper, Stream, Tree, WalkLimits,
};
use aec_task::compose::Compose;
use bollard::models::{ContainerCreateBody, HostConfig, HostConfigLogConfig};
use bollard::query_parameters::InspectContainerOptions;

use crate::attached;
use crate::beside::{Beside, blame, hosts};
use crate::engine::{Engine, EngineError, LABEL, Started, remove};
use crate::image::TaskImage;
use crate::leftovers::{boot, host_name};
use crate::line::{Conversation, Line, PATIENCE};
use crate::places::Taken;

/// Size limit of verifier files in MiB; the opener has already bounded them.
const SEALED_MB: u32 = 2048;
/// Memory for the first process of a container, in addition to the task's limit.
const OWN_MB: i64 = 32;
/// How long the first process of a container may take to answer.
pub(crate) const FIRST_WORD: Duration = Duration::from_mins(1);
/// How long a killed command may take to end.
const LAST_WORD: Duration = Duration::from_secs(10);
/// Capabilities of the first process: it gives files to the commands' user, switches to that user, ends processes and
/// listens for services. Commands have none of them.
const CAPABILITIES: [&str; 7] =
    ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"];

/// What a container is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Purpose {
    pub experiment: Option<String>,
    pub trial: Option<String>,
    /// Whose room it is: `agent` or `judge`.
    pub role: &'static str,
    /// Whether `/workspace` begins with the image's files.
    pub seeded: bool,
    /// How long it may exist; Modal ends it afterwards.
    pub lifetime: Duration,
}

/// A room that is a container. Dropping it ends everything inside and removes the container.
#[derive(Debug)]
pub struct ContainerRoom {
    line: Line,
    held: Held,
    places: Vec<(String, Tree)>,
    frozen: bool,
    // Declared last: dropping it removes the container.
    keeper: Box<dyn Keeper>,
}

/// The owner of a container. Dropping it removes the container.
pub(crate) trait Keeper: std::fmt::Debug + Send {
    /// Why the container no longer answers.
    fn why_gone(&self) -> SandboxError;

    /// Whether the container ran out of memory, as far as that is known.
    fn ran_out_of_memory(&self) -> bool {
        false
    }
}

#[derive(Debug)]
pub(crate) struct Kept {
    engine: Engine,
    id: String,
}

/// A room's container and its services.
#[derive(Debug)]
struct KeptRoom {
    container: Kept,
    _beside: Arc<Beside>,
    _places: Taken,
}

impl ContainerRoom {
    /// Builds the images that a room needs.
    pub(crate) fn prepare(engine: &Engine, image: &TaskImage) -> Result<(), SandboxError> {
        let kit = engine.kit(image)?;
        engine.room_image(&kit)?;
        for number in 0..kit.compose.services.len() {
            engine.service_image(&kit, number)?;
        }
        Ok(())
    }

    /// Opens a room of a task's image, and builds the image if necessary. Waits for an engine that is restarting.
    pub fn open(
        engine: &Engine,
        image: &TaskImage,
        spec: &RoomSpec,
        purpose: &Purpose,
    ) -> Result<Self, SandboxError> {
        match Self::open_once(engine, image, spec, purpose) {
            Err(SandboxError::Elsewhere { kind: "engine_lost", .. }) if engine.comes_back() => {
                Self::open_once(engine, image, spec, purpose)
            }
            opened => opened,
        }
    }

    fn open_once(
        engine: &Engine,
        image: &TaskImage,
        spec: &RoomSpec,
        purpose: &Purpose,
    ) -> Result<Self, SandboxError> {
        let kit = engine.kit(image)?;
        let compose = &kit.compose;
        let name = engine.room_image(&kit)?;
        let places = engine.places(1 + compose.services.len());
        let beside =
            Arc::new(Beside::start(engine, &kit, spec, purpose).map_err(|error| blame(engine, error))?);
        let volumes = engine.volumes(&name)?;
        let start = || Kept::start(engine, created(engine, (&name, &volumes), spec, purpose, compose));
        let (container, line) = match start() {
            // Another process has removed the image meanwhile.
            Err(_) if engine.has_lost(&name) => engine.room_image(&kit).and_then(|_| start())?,
            started => started?,
        };
        let links = beside.links(&line);
        let held = Held { cpus: Hold::Tree, memory: Hold::Tree, storage: Hold::Tree, pids: Hold::Tree };
        let keeper = KeptRoom { container, _beside: Arc::clone(&beside), _places: places };
        let room = Self::begin(line, spec, purpose, (held, FIRST_WORD), Box::new(keeper))?;
        // By now a service that fails at once has failed.
        beside.check().map_err(|error| blame(engine, error))?;
        links.open();
        Ok(room)
    }

    /// Makes a room from a connection to its first process; `patience` limits the wait for its answer.
    pub(crate) fn begin(
        line: Line,
        spec: &RoomSpec,
        purpose: &Purpose,
        (held, patience): (Held, Duration),
        keeper: Box<dyn Keeper>,
    ) -> Result<Self, SandboxError> {
        let directories = spec.writable.iter().chain(&spec.sealed);
        let places = directories
            .map(|place| {
                let directory = Directory { line: line.clone(), place: place.clone() };
                (place.clone(), Tree::elsewhere(directory))
            })
            .collect();
        let room = Self { line, held, places, frozen: false, keeper };
        let opening = room
            .line
            .call(Call::Open {
                writable: spec.writable.clone(),
                sealed: spec.sealed.clone(),
                seeded: purpose.seeded,
                enforce: Enforce { storage_mb: spec.limits.storage_mb, ..Enforce::default() },
            })
            .map_err(|_| room.keeper.why_gone())?;
        match opening.next(patience).map_err(|_| room.keeper.why_gone())? {
            Some(Body::Answer(Answer::Done)) => Ok(room),
            Some(Body::Answer(Answer::Failed(failed))) => {
                let message = io::Error::from(failed).to_string();
                Err(EngineError::Refused(message).into())
            }
            _ => Err(EngineError::Refused("the container did not start".to_owned()).into()),
        }
    }

    fn gone(&self, error: io::Error) -> SandboxError {
        if error.kind() == io::ErrorKind::BrokenPipe { self.keeper.why_gone() } else { error.into() }
    }

    fn ask(&self, call: Call) -> Result<Answer, SandboxError> {
        self.line.ask(call).map_err(|error| self.gone(error))
    }
}

/// The failure of a container that is gone although its provider still answers.
pub(crate) fn container_lost() -> SandboxError {
    SandboxError::Elsewhere {
        kind: "container_lost",
        may_pass: true,
        message: "the container ended before it was closed".to_owned(),
    }
}

impl Kept {
    /// Starts a container and connects to its first process.
    pub(crate) fn start(engine: &Engine, body: ContainerCreateBody) -> Result<(Self, Line), EngineError> {
        let Started { id, streams } = engine.start(body)?;
        let kept = Self { engine: engine.clone(), id };
        let handle = engine.handle().ok_or_else(|| EngineError::Unreachable("it is closed".to_owned()))?;
        Ok((kept, attached::line(handle, streams)))
    }
}

impl Keeper for KeptRoom {
    fn why_gone(&self) -> SandboxError {
        let docker = self.container.engine.docker();
        let answers = self.container.engine.wait(async move { Ok(docker.ping().await?) });
        answers.map_or_else(Into::into, |_| container_lost())
    }

    fn ran_out_of_memory(&self) -> bool {
        let (docker, id) = (self.container.engine.docker(), self.container.id.clone());
        let state = self.container.engine.wait(async move {
            Ok(docker.inspect_container(&id, None::<InspectContainerOptions>).await?.state)
        });
        state.is_ok_and(|state| state.and_then(|state| state.oom_killed) == Some(true))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let (docker, id) = (self.engine.docker(), self.id.clone());
        // Normally it ends by itself; this removes it if it does not.
        self.engine.leave(async move {
            remove(&docker, &id).await;
        });
    }
}

/// The labels of a container.
pub(crate) fn labels(purpose: &Purpose, role: &str) -> HashMap<String, String> {
    let mut labels = HashMap::from([
        (LABEL.to_owned(), "room".to_owned()),
        (format!("{LABEL}.role"), role.to_owned()),
        (format!("{LABEL}.host"), host_name()),
        (format!("{LABEL}.boot"), boot().unwrap_or_default()),
        (format!("{LABEL}.pid"), std::process::id().to_string()),
    ]);
    for (name, value) in [("experiment", &purpose.experiment), ("trial", &purpose.trial)] {
        labels.extend(value.clone().map(|value| (format!("{LABEL}.{name}"), value)));
    }
    labels
}

/// Settings of every container: it reads from its opener and ends when the opener closes the stream for any reason;
/// it may use no more than the task allows; and the engine removes it.
pub(crate) fn attended(engine: &Engine, image: &str, spec: &RoomSpec) -> ContainerCreateBody {
    const MEBIBYTE: i64 = 1024 * 1024;
    let memory = (i64::from(spec.limits.memory_mb) + OWN_MB) * MEBIBYTE;
    ContainerCreateBody {
        image: Some(image.to_owned()),
        entrypoint: Some(engine.entry_command()),
        cmd: Some(Vec::new()),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        open_stdin: Some(true),
        stdin_once: Some(true),
        tty: Some(false),
        host_config: Some(HostConfig {
            auto_remove: Some(true),
            memory: Some(memory),
            memory_swap: Some(memory),
            nano_cpus: Some(i64::from(spec.limits.cpus) * 1_000_000_000),
            pids_limit: Some(i64::from(spec.limits.pids)),
            network_mode: (!spec.network).then(|| "none".to_owned()),
            security_opt: Some(vec!["no-new-privileges".to_owned()]),
            init: Some(false),
            // The engine must not log the bytes of the connection.
            log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    }
}

fn created(
    engine: &Engine,
    (image, volumes): (&str, &[String]),
    spec: &RoomSpec,
    purpose: &Purpose,
    compose: &Compose,
) -> ContainerCreateBody {
    // Podman has no option for the number of files; small files count as memory.
    let tmpfs = |megabytes: u32| format!("rw,nosuid,nodev,exec,size={megabytes}m,mode=755");
    let (storage_mb, memory_mb) = (spec.limits.storage_mb, spec.limits.memory_mb);
    // Together they leave some memory free: files stay when the processes that wrote them are killed, and could
    // otherwise use up the room's memory.
    let part = |sixteenths: u32| tmpfs(storage_mb.min(memory_mb / 16 * sixteenths).max(1));
    let own = [("/tmp", 4), ("/home/agent", 1)].map(|(place, parts)| (place.to_owned(), part(parts)));
    let writable = spec.writable.iter().enumerate();
    let writable = writable.map(|(at, place)| (place.clone(), part(if at == 0 { 8 } else { 1 })));
    let sealed = spec.sealed.iter().map(|place| (place.clone(), tmpfs(SEALED_MB)));
    // An image's volumes would otherwise be written to the engine's disk, without a limit.
    let volumes = volumes.iter().map(|place| (place.clone(), tmpfs(storage_mb)));
    // By default Podman makes it writable for everyone.
    let closed = ("/var/tmp".to_owned(), tmpfs(1));
    let common = attended(engine, image, spec);
    ContainerCreateBody {
        hostname: Some("room".to_owned()),
        user: Some("0:0".to_owned()),
        working_dir: Some("/".to_owned()),
        env: Some(compose.environment.iter().map(|(name, value)| format!("{name}={value}")).collect()),
        labels: Some(labels(purpose, purpose.role)),
        host_config: common.host_config.map(|host| HostConfig {
            readonly_rootfs: Some(true),
            tmpfs: Some(volumes.chain(writable).chain(own).chain(sealed).chain([closed]).collect()),
            shm_size: Some((i64::from(memory_mb) / 16).clamp(1, 64) << 20),
            cap_drop: Some(vec!["ALL".to_owned()]),
            cap_add: Some(CAPABILITIES.map(str::to_owned).to_vec()),
            extra_hosts: Some(hosts(compose)),
            ..host
        }),
        ..common
    }
}

impl Sandbox for ContainerRoom {
    fn level(&self) -> Level {
        Level::Container
    }

    fn held(&self) -> Held {
        self.held
    }

    fn exec(
        &mut self,
        command: &ExecSpec,
        watch: &mut dyn FnMut(Stream, &[u8]),
    ) -> Result<ExecResult, SandboxError> {
        let started = Instant::now();
        let deadline = started + command.deadline;
        let mut stdout = Capture::new(command.stdout.clone())?;
        let mut stderr = Capture::new(command.stderr.clone())?;
        let conversation = self
            .line
            .call(Call::Exec(told(command)))
            .and_then(|conversation| conversation.speaker().send_all(&command.stdin).map(|()| conversation))
            .map_err(|error| self.gone(error))?;
        let mut killed = false;
        let exit = loop {
            let now = Instant::now();
            if now >= deadline && !killed {
                conversation.speaker().say(Body::Call(Call::Kill)).map_err(|error| self.gone(error))?;
                killed = true;
            }
            let patience = if killed { LAST_WORD } else { deadline - now };
            match conversation.next(patience).map_err(|error| self.gone(error))? {
                Some(Body::Data(STDOUT, bytes)) => {
                    stdout.push(&bytes);
                    watch(Stream::Stdout, &bytes);
                }
                Some(Body::Data(STDERR, bytes)) => {
                    stderr.push(&bytes);
                    watch(Stream::Stderr, &bytes);
                }
                Some(Body::Answer(Answer::Exited { .. })) if killed => break Exit::Deadline,
                Some(Body::Answer(Answer::Exited { code: Some(code), .. })) => break Exit::Code(code),
                Some(Body::Answer(Answer::Exited { signal, .. })) => break Exit::Signal(signal.unwrap_or(0)),
                Some(Body::Answer(Answer::Failed(failed))) => return Err(io::Error::from(failed).into()),
                None if killed => {
                    // A process left the group, or the room no longer answers.
                    self.freeze()?;
                    break Exit::Deadline;
                }
                _ => {}
            }
        };
        let (stdout, stderr) = (stdout.finish(), stderr.finish());
        Ok(ExecResult { exit, stdout, stderr, duration: started.elapsed() })
    }

    fn directory(&self, place: &str) -> Option<&Tree> {
        self.places.iter().find(|(known, _)| known == place).map(|(_, tree)| tree)
    }

    /// Does nothing: the sealed directories never belong to the commands' user.
    fn seal(&mut self) -> Result<(), SandboxError> {
        Ok(())
    }

    fn freeze(&mut self) -> Result<(), SandboxError> {
        if !self.frozen {
            self.ask(Call::Freeze)?;
            self.frozen = true;
        }
        Ok(())
    }

    fn out_of_memory(&self) -> bool {
        match self.line.ask(Call::OutOfMemory) {
            Ok(answer) => answer == Answer::Is(true),
            // Only the room's own processes can use up its memory, and the kernel kills the first process last.
            Err(_) => {
                self.line.is_gone() && (self.line.is_short_of_memory() || self.keeper.ran_out_of_memory())
            }
        }
    }

    fn lost(&self) -> Option<SandboxError> {
        self.line.is_gone().then(|| self.keeper.why_gone())
    }

    /// A socket of this machine; connections to the same port inside the container are carried to it.
    fn listen(&mut self) -> Result<TcpListener, SandboxError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        self.line.lead_here(listener.local_addr()?.port()).map_err(|error| self.gone(error))?;
        Ok(listener)
    }

    fn settle(&mut self, command: &ExecSpec, socket: &OwnedFd, output: &OwnedFd) -> Result<(), SandboxError> {
        let conversation = self.line.call(Call::Settle(told(command))).map_err(|error| self.gone(error))?;
        conversation.answer().map_err(|error| self.gone(error))?;
        let (socket, output) = (File::from(socket.try_clone()?), File::from(output.try_clone()?));
        std::thread::spawn(move || serve_resident(&conversation, socket, output));
        Ok(())
    }

    fn evict(&mut self) -> Result<(), SandboxError> {
        self.ask(Call::Evict).map(drop)
    }

    fn stopper(&self) -> Option<Stopper> {
        let line = self.line.clone();
        Some(Stopper::new(move || line.tell(Call::Freeze)))
    }
}

/// Carries bytes between a resident and the socket that serves as its stdin.
fn serve_resident(conversation: &Conversation, socket: File, mut output: File) {
    let Ok(reading) = socket.try_clone() else { return };
    let mut writing = socket;
    std::thread::scope(|scope| {
        let speaker = conversation.speaker();
        scope.spawn(|| speaker.pump(&reading));
        let (mut silent, mut mute) = (false, false);
        while !(silent && mute)
            && let Ok(Some(body)) = conversation.next(Duration::MAX)
        {
            let written = match body {
                Body::Data(MAIN, bytes) => writing.write_all(&bytes),
                Body::Data(STDOUT, bytes) => output.write_all(&bytes),
                Body::End(stream) => {
                    silent |= stream == MAIN;
                    mute |= stream == STDOUT;
                    Ok(())
                }
                _ => Ok(()),
            };
            if written.is_err() {
                break;
            }
        }
        // Tells readers that the resident is gone.
        rustix::net::shutdown(&writing, rustix::net::Shutdown::Both).ok();
    });
}

impl Drop for ContainerRoom {
    fn drop(&mut self) {
        self.line.hang_up();
    }
}

fn told(command: &ExecSpec) -> Command {
    Command { argv: command.argv.clone(), env: command.env.clone(), cwd: command.cwd.clone() }
}

/// A directory of a container.
#[derive(Debug)]
struct Directory {
    line: Line,
    place: String,
}

impl Elsewhere for Directory {
    fn open_file(&self, path: &Path) -> io::Result<File> {
        let conversation = self.line.call(Call::Read { place: self.place.clone(), path: path.into() })?;
        let Answer::File { executable } = conversation.answer()? else { return Err(odd()) };
        let mut file = tempfile::tempfile()?;
        conversation.copy_to(&mut file, PATIENCE)?;
        let mode = if executable { 0o755 } else { 0o644 };
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode))?;
        file.rewind()?;
        Ok(file)
    }

    fn write(&self, path: &Path, bytes: &[u8], executable: bool) -> io::Result<()> {
        let call = Call::Write { place: self.place.clone(), path: path.into(), executable };
        let conversation = self.line.call(call)?;
        conversation.speaker().send_all(bytes)?;
        conversation.answer().map(drop)
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        self.line.ask(Call::MakeDirectory { place: self.place.clone(), path: path.into() }).map(drop)
    }

    fn list(&self, limits: WalkLimits) -> io::Result<Vec<Listed>> {
        let call = Call::List { place: self.place.clone(), entries: limits.entries, depth: limits.depth };
        let Answer::Listed(entries) = self.line.ask(call)? else { return Err(odd()) };
        entries.iter().map(aec_sandbox::wire::Entry::listed).collect()
    }
}

fn odd() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the room answered with something else")
}
