//! The workspace of one rollout: files in memory until a command needs a room, the same to the model either way.
//!
//! The runtime of exported packages (`python/environment/workspace.py`) is the twin of this module: the tools say the
//! same words there.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aec_base::text::printable;
use aec_judge::judge::Isolation;
use aec_judge::settle::order::{Submitted, is_directory};
use aec_sandbox::{
    BareRoom, ExecSpec, Exit, Kind, Level, Limits, OutputLimits, Room, RoomSpec, Sandbox, SandboxError, Tree,
    WalkLimits,
};
use rustix::io::Errno;

use super::LazyJudge;
use super::path::{self, PathError};

/// Where agents work.
pub(super) const ROOT: &str = "/workspace";
/// Bytes of a file that the model is shown at most.
const MOST_READ: usize = 256 * 1024;
/// Bytes of a file that the model writes at most.
const MOST_WRITTEN: usize = 8 * 1024 * 1024;
/// Lines of a listing at most.
const MOST_LISTED: usize = 1000;
const WALK: WalkLimits = WalkLimits { entries: 10_000, depth: 16 };
/// What the kernel takes as one argument of a program.
const LONGEST_COMMAND: usize = 128 * 1024 - 1;
/// Bytes of what a command prints that are kept from its beginning, and as many from its end.
const KEPT_OUTPUT: usize = 16 * 1024;
const MAX_PIDS: u32 = 256;
/// Bytes that are kept in memory; more of them go into a room.
const MOST_IN_MEMORY: usize = 4 * 1024 * 1024;
const BLOCK: u64 = 4096;

/// What went wrong with a tool.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The model's own mistake, in one line for it.
    Told(String),
    /// This machine failed.
    Machine(String),
}

impl From<SandboxError> for Trouble {
    fn from(error: SandboxError) -> Self {
        Self::Machine(error.to_string())
    }
}

/// A file that lies in the workspace from the beginning.
#[derive(Clone, Debug)]
pub(super) struct GivenFile {
    pub(super) path: String,
    pub(super) content: Arc<[u8]>,
    pub(super) executable: bool,
}

/// What a rollout may take, and how its commands run.
pub(super) struct WorkspaceSetup {
    pub(super) given: Arc<[GivenFile]>,
    pub(super) output_path: String,
    pub(super) cpus: u32,
    pub(super) memory_mb: u32,
    pub(super) storage_mb: u32,
    pub(super) command_timeout: Duration,
    pub(super) isolation: Isolation,
    /// Knows the interpreter that rooms get.
    pub(super) judge: LazyJudge,
}

/// The workspace of one rollout.
pub(super) struct Workspace {
    setup: Arc<WorkspaceSetup>,
    files: Files,
    /// What was handed in.
    pub(super) submitted: Option<Submitted>,
}

/// A room in use.
pub(super) type SharedRoom = Arc<Mutex<Box<dyn Sandbox>>>;

/// Where the files are.
pub(super) enum Files {
    /// In memory: nothing has been run.
    Memory(BTreeMap<String, Arc<[u8]>>),
    /// In a room.
    Room(SharedRoom),
}

impl Workspace {
    /// A workspace with the task's files in it.
    pub(super) fn new(setup: Arc<WorkspaceSetup>) -> Self {
        let given = setup.given.iter().map(|file| (file.path.clone(), Arc::clone(&file.content)));
        Self { files: Files::Memory(given.collect()), setup, submitted: None }
    }

    /// Where the files are.
    pub(super) fn files(&self) -> &Files {
        &self.files
    }

    pub(super) async fn read_file(&mut self, path: &str) -> Result<String, Trouble> {
        let place = file_place(path)?;
        let read = match &self.files {
            Files::Memory(files) => read_in_memory(files, &place),
            Files::Room(room) => {
                let place = place.clone();
                in_room(room, move |tree| read_beginning(tree, &place)).await?
            }
        };
        let (data, size) = read.map_err(|error| told(path, &error))?;
        if data.contains(&0) {
            return Ok(format!("{path} is not text: {size} bytes."));
        }
        let text = String::from_utf8_lossy(&data);
        Ok(match () {
            () if size > data.len() as u64 => format!("{text}\n[the first {MOST_READ} of {size} bytes]"),
            () if text.is_empty() => format!("{path} is empty."),
            () => text.into_owned(),
        })
    }

    pub(super) async fn write_file(&mut self, path: &str, content: &str) -> Result<String, Trouble> {
        self.write(path, content).await?;
        Ok(format!("Wrote {} bytes to {path}.", content.len()))
    }

    pub(super) async fn list_files(&mut self, path: Option<&str>) -> Result<String, Trouble> {
        let path = path.filter(|path| !path.is_empty()).unwrap_or(".");
        let below = path::parts(path).map_err(|error| refused(path, &error))?.join("/");
        let listed = match &self.files {
            Files::Memory(files) => list_in_memory(files, &below),
            Files::Room(room) => in_room(room, move |tree| list(tree, &below)).await?,
        };
        let entries = listed.map_err(|error| told(path, &error))?;
        if entries.is_empty() {
            return Ok(format!("No files in {path}."));
        }
        let mut text = String::new();
        for (at, (name, about)) in entries.iter().take(MOST_LISTED).enumerate() {
            text.push_str(if at == 0 { "" } else { "\n" });
            text.push_str(&format!("{} ({about})", shown(name)));
        }
        if entries.len() > MOST_LISTED {
            text.push_str("\n[there are more]");
        }
        Ok(text)
    }

    pub(super) async fn submit_answer(
        &mut self,
        content: &str,
        path: Option<&str>,
    ) -> Result<String, Trouble> {
        let own = self.setup.output_path.clone();
        let target = path.filter(|path| !path.is_empty()).unwrap_or(&own);
        file_place(target)?;
        match self.write(target, content).await {
            // The content is the answer, also when something lies in its file's way.
            Err(Trouble::Told(_)) if content.len() <= MOST_WRITTEN => {}
            written => drop(written?),
        }
        self.submitted = Some(Submitted::Content(content.as_bytes().to_vec()));
        Ok("Submitted. The rollout ends with this turn.".to_owned())
    }

    pub(super) async fn run_command(
        &mut self,
        command: &str,
        time_left: Duration,
    ) -> Result<String, Trouble> {
        if command.trim().is_empty() {
            return Err(Trouble::Told("`command` must be a text that is not empty".to_owned()));
        }
        if command.contains('\0') || command.len() > LONGEST_COMMAND {
            let what = "the command has a NUL or is too long; write it to a file and run that";
            return Err(Trouble::Told(what.to_owned()));
        }
        let room = self.room().await?;
        let deadline = self.setup.command_timeout.min(time_left);
        // One stream, as a terminal would show it; `$0` of the command stays `bash`.
        let mut spec = ExecSpec::new(["bash", "-c", "exec bash -c \"$1\" 2>&1", "bash", command]);
        ROOT.clone_into(&mut spec.cwd);
        spec.deadline = deadline;
        spec.stdout = OutputLimits { head: KEPT_OUTPUT, tail: KEPT_OUTPUT, spill: None };
        let ran = blocking(move || {
            let mut room = room.lock().unwrap_or_else(PoisonError::into_inner);
            let home = if room.level() == Level::None { "/tmp" } else { "/home/agent" };
            spec.env = environment(home);
            room.exec(&spec, &mut |_, _| {})
        })
        .await??;
        let output = kept_text(&ran.stdout);
        let mut lines = Vec::new();
        if !output.trim().is_empty() {
            lines.push(output.trim_end_matches('\n').to_owned());
        }
        match ran.exit {
            Exit::Deadline => {
                let seconds = deadline.as_secs_f64();
                lines.push(format!("[stopped: it took more than {seconds} seconds]"));
            }
            Exit::Code(0) if !lines.is_empty() => {}
            Exit::Code(code) | Exit::Signal(code) => {
                let code = if matches!(ran.exit, Exit::Signal(_)) { 128 + code } else { code };
                let nothing = if lines.is_empty() { ", no output" } else { "" };
                lines.push(format!("[exit code {code}{nothing}]"));
            }
        }
        Ok(lines.join("\n"))
    }

    /// The room, opened and filled when a command first needs it.
    async fn room(&mut self) -> Result<SharedRoom, Trouble> {
        let files = match &mut self.files {
            Files::Room(room) => return Ok(Arc::clone(room)),
            Files::Memory(files) => std::mem::take(files),
        };
        let setup = Arc::clone(&self.setup);
        let room = blocking(move || open(&setup, &files)).await??;
        let room: SharedRoom = Arc::new(Mutex::new(room));
        self.files = Files::Room(Arc::clone(&room));
        Ok(room)
    }

    /// Writes a file: its path below the workspace.
    async fn write(&mut self, path: &str, content: &str) -> Result<String, Trouble> {
        if content.len() > MOST_WRITTEN {
            return Err(Trouble::Told(format!("the content is longer than {MOST_WRITTEN} bytes")));
        }
        let place = file_place(path)?;
        let full = || {
            let what = format!("the workspace is full: the task allows {} MiB", self.setup.storage_mb);
            Trouble::Told(what)
        };
        let most = u64::from(self.setup.storage_mb) * 1024 * 1024;
        if let Files::Memory(files) = &mut self.files {
            let held: usize = files.values().map(|content| content.len()).sum();
            let taken: u64 =
                files.values().map(|content| (content.len() as u64).div_ceil(BLOCK) * BLOCK).sum();
            if taken > most {
                return Err(full());
            }
            if held + content.len() <= MOST_IN_MEMORY {
                return match fits_in_memory(files, &place) {
                    Ok(()) => {
                        files.insert(place.clone(), content.as_bytes().into());
                        Ok(place)
                    }
                    Err(error) => Err(told(path, &error)),
                };
            }
        }
        let room = self.room().await?;
        let (target, bytes) = (place.clone(), content.as_bytes().to_vec());
        let written = in_room(&room, move |tree| tree.write(Path::new(&target), &bytes, false));
        written.await?.map_err(|error| told(path, &error))?;
        Ok(place)
    }
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace").field("submitted", &self.submitted).finish_non_exhaustive()
    }
}

fn open(setup: &WorkspaceSetup, files: &BTreeMap<String, Arc<[u8]>>) -> Result<Box<dyn Sandbox>, Trouble> {
    let mut spec = RoomSpec {
        writable: vec![ROOT.to_owned()],
        sealed: Vec::new(),
        show: Vec::new(),
        programs: Vec::new(),
        limits: Limits {
            cpus: setup.cpus,
            memory_mb: setup.memory_mb,
            storage_mb: setup.storage_mb,
            pids: MAX_PIDS,
        },
        network: false,
    };
    if let Some(python) = &setup.judge.python {
        spec.offer_python(python);
    }
    let room: Box<dyn Sandbox> = match setup.isolation {
        Isolation::Room => Box::new(Room::open(&spec)?),
        Isolation::None => Box::new(BareRoom::open(&spec)?),
    };
    let tree = room.directory(ROOT).ok_or(SandboxError::Gone)?;
    for (path, content) in files {
        let executable = setup.given.iter().any(|file| file.path == *path && file.executable);
        tree.write(Path::new(path), content, executable)
            .map_err(|error| Trouble::Machine(error.to_string()))?;
    }
    Ok(room)
}

/// All that commands find in their environment.
fn environment(home: &str) -> Vec<(String, String)> {
    [
        ("HOME", home),
        ("LANG", "C.UTF-8"),
        ("LC_ALL", "C.UTF-8"),
        ("TZ", "UTC"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("PYTHONHASHSEED", "0"),
        ("PYTHONNOUSERSITE", "1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

fn kept_text(kept: &aec_sandbox::Captured) -> String {
    let (head, tail) = (String::from_utf8_lossy(&kept.head), String::from_utf8_lossy(&kept.tail));
    if kept.omitted == 0 {
        format!("{head}{tail}")
    } else {
        format!("{head}\n[{} bytes left out]\n{tail}", kept.omitted)
    }
}

/// The path of a file as somebody wrote it, below the workspace.
fn file_place(path: &str) -> Result<String, Trouble> {
    let parts = path::parts(path).map_err(|error| refused(path, &error))?;
    if parts.is_empty() {
        let named = if path.is_empty() { "the path" } else { path };
        return Err(Trouble::Told(format!("{}: {named} is the workspace itself, not a file", shown(path))));
    }
    Ok(parts.join("/"))
}

fn refused(path: &str, error: &PathError) -> Trouble {
    Trouble::Told(format!("{}: {error}", shown(path)))
}

/// What the system says no to becomes one line.
fn told(path: &str, error: &io::Error) -> Trouble {
    let reason = match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        io::ErrorKind::IsADirectory => "is a directory".to_owned(),
        io::ErrorKind::NotADirectory => "not a directory".to_owned(),
        _ if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => "it is a link".to_owned(),
        _ => {
            let text = error.to_string().to_lowercase();
            text.split(" (os error").next().unwrap_or_default().to_owned()
        }
    };
    Trouble::Told(format!("{}: {reason}", shown(path)))
}

fn shown(path: &str) -> String {
    printable(path).chars().take(300).collect()
}

/// Whether a file can lie at a path, as a file system has it.
fn fits_in_memory(files: &BTreeMap<String, Arc<[u8]>>, place: &str) -> io::Result<()> {
    if is_directory(files, place) {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
    }
    if place.match_indices('/').any(|(at, _)| files.contains_key(&place[..at])) {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(())
}

fn read_in_memory(files: &BTreeMap<String, Arc<[u8]>>, place: &str) -> io::Result<(Vec<u8>, u64)> {
    match files.get(place) {
        Some(content) => Ok((content[..content.len().min(MOST_READ)].to_vec(), content.len() as u64)),
        None => Err(fits_in_memory(files, place).err().unwrap_or_else(|| io::ErrorKind::NotFound.into())),
    }
}

fn read_beginning(tree: &Tree, place: &str) -> io::Result<(Vec<u8>, u64)> {
    let file = tree.open_file(Path::new(place))?;
    let size = file.metadata()?.len();
    let mut data = Vec::new();
    file.take(MOST_READ as u64).read_to_end(&mut data)?;
    Ok((data, size))
}

/// Paths with what is to be said of them, in the order of their parts.
type Entries = Vec<(String, String)>;

fn in_order(mut entries: Entries) -> Entries {
    entries.sort_by(|(a, _), (b, _)| a.split('/').cmp(b.split('/')));
    entries
}

fn list_in_memory(files: &BTreeMap<String, Arc<[u8]>>, below: &str) -> io::Result<Entries> {
    if !below.is_empty() && !is_directory(files, below) {
        let under_a_file = files.contains_key(below) || fits_in_memory(files, below).is_err();
        let kind = if under_a_file { io::ErrorKind::NotADirectory } else { io::ErrorKind::NotFound };
        return Err(kind.into());
    }
    let prefix = if below.is_empty() { String::new() } else { format!("{below}/") };
    let wanted = files.iter().filter(|(path, _)| path.starts_with(&prefix));
    Ok(in_order(wanted.map(|(path, content)| (path.clone(), format!("{} bytes", content.len()))).collect()))
}

fn list(tree: &Tree, below: &str) -> io::Result<Entries> {
    let listed = tree.list(WALK)?;
    if let Some(found) = listed.iter().find(|entry| entry.path == Path::new(below)) {
        match found.kind {
            Kind::Directory => {}
            Kind::Link => return Err(Errno::LOOP.into()),
            Kind::File | Kind::Special => return Err(io::ErrorKind::NotADirectory.into()),
        }
    } else if !below.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let wanted =
        listed.into_iter().filter(|entry| entry.kind != Kind::Directory && entry.path.starts_with(below));
    let entries = wanted.map(|entry| {
        let about = match entry.kind {
            Kind::File => format!("{} bytes", entry.size),
            Kind::Link => "link".to_owned(),
            Kind::Directory | Kind::Special => "special".to_owned(),
        };
        (entry.path.to_string_lossy().into_owned(), about)
    });
    Ok(in_order(entries.collect()))
}

/// Works on the directory of a room.
async fn in_room<T: Send + 'static>(
    room: &SharedRoom,
    work: impl FnOnce(&Tree) -> io::Result<T> + Send + 'static,
) -> Result<io::Result<T>, Trouble> {
    let room = Arc::clone(room);
    let done = blocking(move || {
        let room = room.lock().unwrap_or_else(PoisonError::into_inner);
        room.directory(ROOT).map(work).ok_or(SandboxError::Gone)
    });
    Ok(done.await??)
}

/// Runs work that blocks on a thread that may.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Trouble> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Trouble::Machine(error.to_string()))
}
