//! Containers beside a room: the services of a task, such as a database or a simulator.
//!
//! They share no network with the room. Every service has a loopback address and, in the other containers, a host
//! name for it; connections to its ports there are carried to it over the lines that rooms have anyway. So a trial
//! needs no network to be made and removed, and services end when their opener does.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aec_sandbox::RoomSpec;
use aec_sandbox::wire::{Answer, Body, Call, Command, STDERR, STDOUT};
use aec_task::compose::{Compose, Condition, Service, argv_of_test};
use bollard::models::{ContainerCreateBody, HostConfig, ImageConfig};

use crate::engine::{Engine, EngineError, LABEL};
use crate::image::Kit;
use crate::line::{Conversation, Line};
use crate::room::{FIRST_WORD, Kept, Purpose, attended, labels};

/// How long a service may take to listen on the ports that its file names.
const LISTENING: Duration = Duration::from_mins(1);
/// How long a service may take to end if others wait for its end.
const ENDING: Duration = Duration::from_mins(10);
/// The engines' defaults for health checks.
const INTERVAL: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_secs(30);
const RETRIES: u32 = 3;
/// The first and the longest pause between two checks while a container waits.
const PAUSE: Duration = Duration::from_millis(50);
const LONG_PAUSE: Duration = Duration::from_secs(1);
/// Bytes kept of a service's output.
const LOG_TAIL: usize = 4000;

/// The services of a room. Dropping them ends them.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    services: Vec<Running>,
}

/// A service that was started.
#[derive(Debug)]
struct Running {
    name: String,
    address: Ipv4Addr,
    /// Ports that other containers may connect to.
    ports: Vec<u16>,
    /// The ports in the task's file, which a room waits for.
    named: Vec<u16>,
    health: Option<HealthCheck>,
    directory: String,
    line: Line,
    process: Arc<Process>,
    // Declared after the line: dropping it removes the container.
    _kept: Kept,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.line.hang_up();
    }
}

/// How the health of a service is checked.
#[derive(Debug)]
struct HealthCheck {
    test: Vec<String>,
    interval: Duration,
    timeout: Duration,
    /// Time from the start of the service until it counts as failed.
    patience: Duration,
}

/// The state of the service's own process.
#[derive(Debug, Default)]
struct Process {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    log: String,
    ended: Option<Ended>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug)]
struct Ended {
    /// The exit code, if it exited by itself.
    code: Option<i32>,
}

/// Connections to make once the service listens.
#[derive(Debug, Default)]
pub(crate) struct PendingLinks(Vec<PendingLink>);

#[derive(Debug)]
struct PendingLink {
    from: Line,
    to: Line,
    address: SocketAddrV4,
}

/// Host names of a task's services, in the engine's format.
pub(crate) fn hosts(compose: &Compose) -> Vec<String> {
    let named = compose.services.iter().enumerate();
    named.map(|(number, service)| format!("{}:{}", service.name, address(number))).collect()
}

/// The address of a service in all other containers.
fn address(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 1, u8::try_from(number + 1).unwrap_or(u8::MAX))
}

impl Beside {
    /// Starts the services of a task, each after those that it needs, and waits until a room may start.
    pub(crate) fn start(
        engine: &Engine,
        kit: &Kit,
        spec: &RoomSpec,
        purpose: &Purpose,
    ) -> Result<Self, EngineError> {
        let compose = &kit.compose;
        let mut beside = Self::default();
        for (number, service) in compose.services.iter().enumerate() {
            for (needed, condition) in &service.needs {
                beside.wait_for(needed, *condition)?;
            }
            let (name, config) = engine.service_image(kit, number)?;
            let start = || Kept::start(engine, created(engine, &name, service, spec, purpose, compose));
            let (kept, line) = match start() {
                // Another process has removed the image meanwhile.
                Err(_) if engine.has_lost(&name) => {
                    engine.service_image(kit, number).and_then(|_| start())?
                }
                started => started?,
            };
            begin(&line, &service.name)?;
            beside.introduce(&line, address(number), &ports(service, &config));
            let running = Running::start(service, &config, address(number), line, kept)?;
            beside.services.push(running);
        }
        for (needed, condition) in &compose.needs {
            beside.wait_for(needed, *condition)?;
        }
        for service in &beside.services {
            service.wait_until_ready()?;
        }
        Ok(beside)
    }

    /// Checks that every service works or has completed.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        self.services.iter().try_for_each(|service| service.is_over(false).map(drop))
    }

    fn wait_for(&self, name: &str, condition: Condition) -> Result<(), EngineError> {
        let Some(service) = self.services.iter().find(|service| service.name == name) else { return Ok(()) };
        match condition {
            Condition::Started => Ok(()),
            Condition::Healthy => service.wait_until_healthy(),
            Condition::Completed => service.wait_until_completed(),
        }
    }

    /// Links a new container with the running services. Two containers that use the same port are not linked on it,
    /// because a service that listens on all addresses of its container already occupies the port.
    fn introduce(&self, line: &Line, address: Ipv4Addr, ports: &[u16]) {
        let mut links = PendingLinks::default();
        for other in &self.services {
            for port in other.ports.iter().filter(|port| !ports.contains(port)) {
                links.0.push(PendingLink {
                    from: line.clone(),
                    to: other.line.clone(),
                    address: SocketAddrV4::new(other.address, *port),
                });
            }
            for port in ports.iter().filter(|port| !other.ports.contains(port)) {
                links.0.push(PendingLink {
                    from: other.line.clone(),
                    to: line.clone(),
                    address: SocketAddrV4::new(address, *port),
                });
            }
        }
        links.open();
    }

    /// The links of a room to all services.
    pub(crate) fn links(&self, room: &Line) -> PendingLinks {
        let mut links = PendingLinks::default();
        for service in &self.services {
            links.0.extend(service.ports.iter().map(|port| PendingLink {
                from: room.clone(),
                to: service.line.clone(),
                address: SocketAddrV4::new(service.address, *port),
            }));
        }
        links
    }
}

impl PendingLinks {
    /// Opens the links whose services listen now, and the others as soon as they do.
    pub(crate) fn open(mut self) {
        self.try_open();
        if self.0.is_empty() {
            return;
        }
        std::thread::spawn(move || {
            let mut pause = PAUSE;
            while !self.0.is_empty() {
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONG_PAUSE);
                self.try_open();
            }
        });
    }

    fn try_open(&mut self) {
        self.0.retain(|link| match link.to.ask(Call::Listens(link.address.port())) {
            Ok(Answer::Is(true)) => {
                if let Err(error) = link.from.lead(link.address, &link.to) {
                    tracing::debug!(address = %link.address, %error, "a service cannot be reached");
                }
                false
            }
            Ok(_) => true,
            // The container is gone.
            Err(_) => false,
        });
    }
}

impl Running {
    fn start(
        service: &Service,
        config: &ImageConfig,
        address: Ipv4Addr,
        line: Line,
        kept: Kept,
    ) -> Result<Self, EngineError> {
        let own = config.working_dir.clone().filter(|directory| !directory.is_empty());
        let directory = service.working_dir.clone().or(own).unwrap_or_else(|| "/".to_owned());
        let argv = argv(service, config);
        if argv.is_empty() {
            return Err(EngineError::Service(format!("{} has no command", service.name)));
        }
        let process = Arc::<Process>::default();
        let command = Command { argv, env: Vec::new(), cwd: directory.clone() };
        let conversation = run(&line, command).map_err(|error| failed(&service.name, &error))?;
        let watched = Arc::clone(&process);
        std::thread::spawn(move || watched.follow(&conversation));
        Ok(Self {
            name: service.name.clone(),
            address,
            ports: ports(service, config),
            named: service.ports.clone(),
            health: HealthCheck::of(service, config),
            directory,
            line,
            process,
            _kept: kept,
        })
    }

    /// An error that names the service and quotes its log.
    fn complaint(&self, what: &str) -> EngineError {
        let log = self.process.state().log.clone();
        EngineError::Service(format!("{} {what}\n{log}", self.name).trim().to_owned())
    }

    /// Whether the process has ended. It is an error if it failed, or if it ended although it should serve.
    fn is_over(&self, serves: bool) -> Result<bool, EngineError> {
        let ended = self.process.state().ended;
        match ended {
            None => Ok(false),
            Some(Ended { code: Some(0) }) if !serves => Ok(true),
            Some(Ended { code: Some(code) }) => Err(self.complaint(&format!("ended with code {code}"))),
            Some(Ended { code: None }) => Err(self.complaint("was killed")),
        }
    }

    fn wait_until_ready(&self) -> Result<(), EngineError> {
        if self.health.is_some() {
            self.wait_until_healthy()?;
        }
        let begun = Instant::now();
        for port in &self.named {
            while !self.is_over(true)? && !self.listens(*port)? {
                if begun.elapsed() > LISTENING {
                    let what = format!("did not listen on port {port} within {} s", LISTENING.as_secs());
                    return Err(self.complaint(&what));
                }
                std::thread::sleep(PAUSE);
            }
        }
        self.is_over(false).map(drop)
    }

    fn listens(&self, port: u16) -> Result<bool, EngineError> {
        let answer = self.line.ask(Call::Listens(port)).map_err(|error| failed(&self.name, &error))?;
        Ok(answer == Answer::Is(true))
    }

    fn wait_until_completed(&self) -> Result<(), EngineError> {
        let state = self.process.state();
        let (state, _) = self
            .process
            .changed
            .wait_timeout_while(state, ENDING, |state| state.ended.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        drop(state);
        if self.is_over(false)? {
            return Ok(());
        }
        Err(self.complaint(&format!("did not end within {} s", ENDING.as_secs())))
    }

    fn wait_until_healthy(&self) -> Result<(), EngineError> {
        let Some(check) = &self.health else {
            return Err(self.complaint("has no health check, and others wait for its health"));
        };
        let begun = Instant::now();
        while !self.is_over(true)? && !self.is_healthy(check)? {
            if begun.elapsed() > check.patience {
                return Err(self.complaint(&format!("was not healthy after {} s", check.patience.as_secs())));
            }
            std::thread::sleep(check.interval.clamp(PAUSE, LONG_PAUSE));
        }
        Ok(())
    }

    fn is_healthy(&self, check: &HealthCheck) -> Result<bool, EngineError> {
        let command = Command { argv: check.test.clone(), env: Vec::new(), cwd: self.directory.clone() };
        let conversation = run(&self.line, command).map_err(|error| failed(&self.name, &error))?;
        let deadline = Instant::now() + check.timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match conversation.next(left).map_err(|error| failed(&self.name, &error))? {
                Some(Body::Answer(Answer::Exited { code, .. })) => return Ok(code == Some(0)),
                Some(Body::Answer(Answer::Failed(_))) => return Ok(false),
                Some(_) => {}
                None => {
                    conversation
                        .speaker()
                        .say(Body::Call(Call::Kill))
                        .map_err(|error| failed(&self.name, &error))?;
                    return Ok(false);
                }
            }
        }
    }
}

impl HealthCheck {
    /// Takes the values of the task's file, or else those of the image.
    fn of(service: &Service, config: &ImageConfig) -> Option<Self> {
        let image = config.healthcheck.clone().unwrap_or_default();
        let own = image.test.as_deref().and_then(argv_of_test);
        let test = service.health.test.clone().or(own).filter(|test| !test.is_empty())?;
        // Images count in nanoseconds, and 0 means not set.
        let told =
            |count: Option<i64>| count.and_then(|count| u64::try_from(count).ok()).filter(|count| *count > 0);
        let lasting = |of_file: Option<Duration>, of_image: Option<i64>| {
            of_file.or_else(|| told(of_image).map(Duration::from_nanos))
        };
        let interval = lasting(service.health.interval, image.interval).unwrap_or(INTERVAL);
        let timeout = lasting(service.health.timeout, image.timeout);
        let start = lasting(service.health.start_period, image.start_period);
        let retries = told(image.retries).and_then(|count| u32::try_from(count).ok());
        let retries = service.health.retries.or(retries).unwrap_or(RETRIES);
        Some(Self {
            test,
            interval,
            timeout: timeout.unwrap_or(TIMEOUT),
            patience: start.unwrap_or_default().saturating_add(interval.saturating_mul(retries)),
        })
    }
}

impl Process {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows the process until its end.
    fn follow(&self, conversation: &Conversation) {
        let ended = loop {
            match conversation.next(Duration::MAX) {
                Ok(Some(Body::Data(STDOUT | STDERR, bytes))) => {
                    let mut state = self.state();
                    state.log.push_str(&String::from_utf8_lossy(&bytes));
                    let over = state.log.len().saturating_sub(LOG_TAIL);
                    let start = (over..=state.log.len()).find(|at| state.log.is_char_boundary(*at));
                    state.log.drain(..start.unwrap_or(0));
                }
                Ok(Some(Body::Answer(Answer::Exited { code, .. }))) => break Ended { code },
                Ok(Some(Body::Answer(Answer::Failed(failed)))) => {
                    self.state().log.push_str(&io::Error::from(failed).to_string());
                    break Ended { code: None };
                }
                Ok(_) => {}
                Err(_) => break Ended { code: None },
            }
        };
        self.state().ended = Some(ended);
        self.changed.notify_all();
    }
}

fn created(
    engine: &Engine,
    image: &str,
    service: &Service,
    spec: &RoomSpec,
    purpose: &Purpose,
    compose: &Compose,
) -> ContainerCreateBody {
    // A network would be shared with services of other trials.
    let common = attended(engine, image, &RoomSpec { network: false, ..spec.clone() });
    let mut labels = labels(purpose, "service");
    labels.insert(format!("{LABEL}.service"), service.name.clone());
    ContainerCreateBody {
        hostname: Some(service.name.clone()),
        user: service.user.clone(),
        working_dir: service.working_dir.clone(),
        env: Some(service.environment.iter().map(|(name, value)| format!("{name}={value}")).collect()),
        labels: Some(labels),
        host_config: common.host_config.map(|host| HostConfig {
            extra_hosts: Some(hosts(compose)),
            // The first process runs as the image's user and must listen on any port that services use.
            sysctls: Some([("net.ipv4.ip_unprivileged_port_start".to_owned(), "0".to_owned())].into()),
            ..host
        }),
        ..common
    }
}

/// Tells the first process of a container to start.
fn begin(line: &Line, name: &str) -> Result<(), EngineError> {
    let begun = line.call(Call::Beside).map_err(|error| failed(name, &error))?;
    match begun.next(FIRST_WORD).map_err(|error| failed(name, &error))? {
        Some(Body::Answer(Answer::Done)) => Ok(()),
        _ => Err(EngineError::Service(format!("{name} did not start"))),
    }
}

fn run(line: &Line, command: Command) -> io::Result<Conversation> {
    let conversation = line.call(Call::Exec(command))?;
    conversation.speaker().send_all(&[])?;
    Ok(conversation)
}

fn failed(name: &str, error: &io::Error) -> EngineError {
    EngineError::Service(format!("{name} does not respond: {error}"))
}

/// Blames the engine instead of the service if the engine no longer answers.
pub(crate) fn blame(engine: &Engine, error: EngineError) -> EngineError {
    if !matches!(error, EngineError::Service(_)) {
        return error;
    }
    let docker = engine.docker();
    let answers = engine.wait(async move { Ok(docker.ping().await?) });
    answers.err().unwrap_or(error)
}

/// The command of a service. An entry point in the file drops the image's command, as engines do.
fn argv(service: &Service, config: &ImageConfig) -> Vec<String> {
    let (entrypoint, command) = match (&service.entrypoint, &service.command) {
        (Some(entrypoint), command) => (Some(entrypoint), command.as_ref()),
        (None, Some(command)) => (config.entrypoint.as_ref(), Some(command)),
        (None, None) => (config.entrypoint.as_ref(), config.cmd.as_ref()),
    };
    entrypoint.into_iter().chain(command).flatten().cloned().collect()
}

/// TCP ports from the task's file and the image.
fn ports(service: &Service, config: &ImageConfig) -> Vec<u16> {
    let exposed = config.exposed_ports.iter().flatten();
    let of_image = exposed.filter_map(|port| port.strip_suffix("/tcp").unwrap_or(port).parse().ok());
    let mut ports: Vec<u16> = service.ports.iter().copied().chain(of_image).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}
