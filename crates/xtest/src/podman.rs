//! A real container engine for tests: Podman's service on a separate socket, with storage in the target directory and
//! an image in place of `python:3.12-slim`, made from Debian's packages because no image registry is available.

use std::fs::File;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use crate::venv::directory;
use crate::wait::{until, until_some};

/// The base image of tasks.
pub const IMAGE: &str = "docker.io/library/python:3.12-slim";

/// `runc`, because the default runtime does not work on every kernel; limits that this process could set itself.
const CONTAINERS_CONF: &str = "[containers]\ndefault_ulimits = [\"nofile=4096:4096\", \"nproc=4096:4096\"]\n\
    [engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\n";

/// The name of a socket, before the id of the process of its tests.
const SOCKET: &str = "aec-test-podman-";

pub struct Podman {
    root: PathBuf,
    socket: PathBuf,
}

pub struct Service {
    child: Child,
    /// The service's address.
    pub host: String,
    _directory: tempfile::TempDir,
}

impl Drop for Service {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Podman {
    /// The engine that all tests of a process share. Its tests need the part `podman`.
    pub fn get() -> &'static Self {
        static PODMAN: OnceLock<Result<Podman, String>> = OnceLock::new();
        let started = PODMAN.get_or_init(Self::start).as_ref();
        started.unwrap_or_else(|why| crate::cannot("start Podman", "podman", why))
    }

    fn start() -> Result<Self, String> {
        let root = directory().join("podman");
        fs_err::create_dir_all(&root).map_err(|error| error.to_string())?;
        let lock = File::create(root.join("lock")).map_err(|error| error.to_string())?;
        lock.lock().map_err(|error| error.to_string())?;
        let text = |error: std::io::Error| error.to_string();
        fs_err::write(root.join("containers.conf"), CONTAINERS_CONF).map_err(text)?;
        let storage = format!(
            "[storage]\ndriver = \"overlay\"\nrunroot = \"{0}/run\"\ngraphroot = \"{0}/graph\"\n",
            root.display()
        );
        fs_err::write(root.join("storage.conf"), storage).map_err(text)?;
        remove_old_sockets();
        // Paths of sockets must be short.
        let socket = std::env::temp_dir().join(format!("{SOCKET}{}.sock", std::process::id()));
        let podman = Self { root, socket };
        if !podman.run(&["image", "exists", IMAGE]).is_ok_and(|output| output.status.success()) {
            podman.import()?;
        }
        // The service ends by itself when this process ends.
        drop(podman.serve(&podman.socket)?);
        Ok(podman)
    }

    /// Starts a service that one test may end.
    pub fn own_service(&self) -> Service {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let socket = directory.path().join("podman.sock");
        let child = self.serve(&socket).expect("a service");
        Service { child, host: format!("unix://{}", socket.display()), _directory: directory }
    }

    /// Starts a service whose storage holds little more than the image. The storage is a private mount, which ends with
    /// the service.
    pub fn small_service(&self, mebibytes: u32) -> Service {
        const SCRIPT: &str = r#"set -e
            mount -t tmpfs -o size="$SIZE" tmpfs "$STORAGE"
            printf '[storage]\ndriver = "overlay"\nrunroot = "%s/run"\ngraphroot = "%s/graph"\n' "$STORAGE" "$STORAGE" > "$STORAGE/storage.conf"
            mkdir "$STORAGE/tmp"
            export CONTAINERS_STORAGE_CONF="$STORAGE/storage.conf" TMPDIR="$STORAGE/tmp"
            podman import "$ARCHIVE" "$IMAGE"
            exec podman system service --time=0 "$HOST""#;
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (socket, storage) = (directory.path().join("podman.sock"), directory.path().join("storage"));
        std::fs::create_dir(&storage).expect("a directory");
        let host = format!("unix://{}", socket.display());
        let mut command = self.command("setpriv");
        command
            .args([
                "--pdeathsig",
                "KILL",
                "unshare",
                "--mount",
                "--propagation",
                "private",
                "sh",
                "-c",
                SCRIPT,
            ])
            .env("SIZE", format!("{mebibytes}m"))
            .env("STORAGE", &storage)
            .env("ARCHIVE", self.root.join("root.tar"))
            .env("IMAGE", IMAGE)
            .env("HOST", &host);
        let child = begun(command, &socket).expect("a service");
        Service { child, host, _directory: directory }
    }

    fn serve(&self, socket: &Path) -> Result<Child, String> {
        std::fs::remove_file(socket).ok();
        let mut command = self.command("setpriv");
        command
            .args(["--pdeathsig", "KILL", "podman", "system", "service", "--time=0"])
            .arg(format!("unix://{}", socket.display()));
        begun(command, socket)
    }

    /// Makes the image from a new root file system of Debian's packages.
    fn import(&self) -> Result<(), String> {
        let root = self.root.join("root");
        let archive = self.root.join("root.tar");
        if !archive.is_file() {
            std::fs::remove_dir_all(&root).ok();
            succeed(
                Command::new("debootstrap")
                    .env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()))
                    .args(["--variant=minbase", "--include=python3", "bookworm"])
                    .arg(&root),
            )?;
            let partial = self.root.join("root.tar.partial");
            let leave = ["./var/cache/apt", "./var/lib/apt/lists", "./usr/share/doc", "./usr/share/locale"];
            let leave = leave.map(|path| format!("--exclude={path}"));
            succeed(Command::new("tar").arg("-C").arg(&root).args(leave).arg("-cf").arg(&partial).arg("."))?;
            fs_err::rename(&partial, &archive).map_err(|error| error.to_string())?;
            std::fs::remove_dir_all(&root).ok();
        }
        let mut command = self.command("podman");
        command.arg("import").arg(&archive).arg(IMAGE);
        succeed(&mut command)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("CONTAINERS_CONF", self.root.join("containers.conf"))
            .env("CONTAINERS_STORAGE_CONF", self.root.join("storage.conf"));
        command
    }

    /// Runs the engine's own command line.
    pub fn run(&self, arguments: &[&str]) -> std::io::Result<std::process::Output> {
        self.command("podman").args(arguments).stdin(Stdio::null()).output()
    }

    /// The engine's address, for `DOCKER_HOST`.
    pub fn host(&self) -> String {
        format!("unix://{}", self.socket.display())
    }

    /// Waits until there is no container with a label. The engine removes a container a moment after it has ended.
    pub fn until_none(&self, label: &str) {
        until(&format!("the end of containers with {label}"), || self.containers(label).is_empty());
    }

    /// Like `until_none`, after a run was killed: containers that were created but not started would stay until
    /// `runs clean`, so this removes them.
    pub fn until_none_started(&self, label: &str) {
        until(&format!("the end of containers with {label}"), || {
            for state in ["created", "initialized"] {
                let filters = [format!("label={label}"), format!("status={state}")];
                let listed = self
                    .run(&["ps", "-a", "-q", "--filter", &filters[0], "--filter", &filters[1]])
                    .expect("a list");
                for id in String::from_utf8_lossy(&listed.stdout).lines() {
                    self.run(&["rm", id]).expect("an engine");
                }
            }
            self.containers(label).is_empty()
        });
    }

    /// Containers with a label, running or not, one line each.
    pub fn containers(&self, label: &str) -> Vec<String> {
        let filter = format!("label={label}");
        let output = self.run(&["ps", "-a", "--filter", &filter, "--format", "{{.ID}}"]).expect("a list");
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }
}

/// Removes the sockets of processes that have ended: a service that is killed leaves its own behind.
fn remove_old_sockets() {
    for entry in std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.strip_prefix(SOCKET)?.strip_suffix(".sock"));
        if id.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            std::fs::remove_file(entry.path()).ok();
        }
    }
}

/// Starts a service and waits until it answers.
fn begun(mut command: Command, socket: &Path) -> Result<Child, String> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = spawn_for_good(command)?;
    let ended = until_some("an engine that answers", || match child.try_wait() {
        Ok(Some(status)) => Some(Err(format!("the service ended with {status}"))),
        _ => UnixStream::connect(socket).is_ok().then_some(Ok(())),
    });
    ended.map(|()| child)
}

/// Starts a program from a thread that never ends: the kernel ends the program when its parent thread ends.
fn spawn_for_good(mut command: Command) -> Result<Child, String> {
    let (to, from) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        to.send(command.spawn()).ok();
        loop {
            std::thread::park();
        }
    });
    from.recv().map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last: Vec<&str> = said.lines().rev().take(3).collect();
    Err(format!("{} failed: {}", command.get_program().to_string_lossy(), last.join("; ")))
}
