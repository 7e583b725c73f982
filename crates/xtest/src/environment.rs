//! A separate environment for each test: an empty home, an empty directory, cleared variables and the real binary.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

/// Memory that must be free before tests keep their files in it.
const FREE_MEMORY: u64 = 4 << 30;

/// Where tests keep their files: in memory if there is enough of it, since on a disk they wait for it at every durable
/// record, and a file system that has just removed many files searches long for free ones.
fn fastest_place() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let free = rustix::fs::statvfs(memory).map_or(0, |found| found.f_bavail * found.f_frsize);
    if free > FREE_MEMORY && memory.metadata().is_ok_and(|found| found.permissions().mode() & 0o777 == 0o777)
    {
        return memory.to_path_buf();
    }
    std::env::temp_dir()
}

/// The search path of tests, with the interpreter behind `python3` first: a shim in its place takes longer than most runs
/// of the program, which looks for the interpreter each time.
fn search_path() -> &'static OsStr {
    static PATH: LazyLock<OsString> = LazyLock::new(|| {
        let given = std::env::var_os("PATH").unwrap_or_default();
        let asked = Command::new("python3")
            .args(["-I", "-S", "-c", "import os, sys; print(os.path.dirname(sys._base_executable), end='')"])
            .output();
        match asked {
            Ok(asked) if asked.status.success() && !asked.stdout.is_empty() => {
                let first = PathBuf::from(OsString::from_vec(asked.stdout));
                std::env::join_paths(std::iter::once(first).chain(std::env::split_paths(&given)))
                    .unwrap_or(given)
            }
            _ => given,
        }
    });
    &PATH
}

/// A directory tree that only one test uses.
pub struct TestEnv {
    program: PathBuf,
    directory: tempfile::TempDir,
    variables: Vec<(String, String)>,
    user: Option<u32>,
}

/// The result of one run of the program.
#[must_use = "a run whose result is not checked tests nothing"]
#[derive(Debug)]
pub struct Run {
    /// Exit code; `None` if a signal ended the program.
    pub code: Option<i32>,
    /// Standard output, with paths and times replaced by fixed words.
    pub stdout: String,
    /// Standard error, with the same replacements.
    pub stderr: String,
}

impl TestEnv {
    /// Makes an empty environment for the program at this path.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        let directory = tempfile::Builder::new().prefix("aec-test-").tempdir_in(fastest_place());
        let directory = directory.expect("a temporary directory");
        let env = Self { program: program.into(), directory, variables: Vec::new(), user: None };
        fs_err::create_dir(env.home()).expect("a home");
        fs_err::create_dir(env.dir()).expect("a working directory");
        env
    }

    pub fn dir(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    pub fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    pub fn user_file(&self) -> PathBuf {
        self.home().join(".config/aec-bench/config.json")
    }

    /// A path relative to the working directory.
    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.dir().join(relative)
    }

    /// Writes a file in the working directory.
    pub fn write(&self, relative: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        write(&self.path(relative), content);
    }

    /// Reads a file in the working directory.
    pub fn read(&self, relative: impl AsRef<Path>) -> String {
        fs_err::read_to_string(self.path(relative)).expect("a readable file")
    }

    pub fn write_user_file(&self, content: impl AsRef<[u8]>) {
        write(&self.user_file(), content);
    }

    /// Sets a variable for later runs.
    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// Makes later runs happen as an ordinary user who may read everything here. Only root can arrange that.
    pub fn become_ordinary_user(&mut self) {
        const NOBODY: u32 = 65534;
        let open = std::fs::Permissions::from_mode(0o755);
        fs_err::set_permissions(self.directory.path(), open).expect("an open directory");
        self.user = Some(NOBODY);
    }

    /// Runs the program in the working directory.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Run {
        self.run_in(&self.dir(), arguments)
    }

    /// Starts the program in the working directory, and does not wait for it.
    pub fn start<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Child {
        let mut command = self.command(&self.dir(), arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts")
    }

    /// Starts the program in the working directory, with piped output.
    pub fn start_piped<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Child {
        let mut command = self.command(&self.dir(), arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
    }

    /// Runs the program in some directory.
    pub fn run_in<S: AsRef<OsStr>>(&self, directory: &Path, arguments: impl IntoIterator<Item = S>) -> Run {
        let output = self.command(directory, arguments).output().expect("the program starts");
        Run {
            code: output.status.code(),
            stdout: self.normalise(&String::from_utf8_lossy(&output.stdout)),
            stderr: self.normalise(&String::from_utf8_lossy(&output.stderr)),
        }
    }

    /// The program with its environment, in a directory and without input.
    pub fn command<S: AsRef<OsStr>>(
        &self,
        directory: &Path,
        arguments: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .current_dir(directory)
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", search_path())
            .env("LC_ALL", "C.UTF-8")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    pub fn init(&self) {
        let run = self.run(["init"]);
        assert_eq!(run.code, Some(0), "{run:?}");
    }

    fn normalise(&self, text: &str) -> String {
        let here = self.directory.path().to_string_lossy();
        let text = text.replace(here.as_ref(), "[TEST]");
        replace_after(&text, "\"duration_seconds\":", "[SECONDS]")
    }
}

fn write(path: &Path, content: impl AsRef<[u8]>) {
    fs_err::create_dir_all(path.parent().expect("a parent")).expect("directories");
    fs_err::write(path, content).expect("a written file");
}

/// Replaces the number after a marker.
fn replace_after(text: &str, marker: &str, word: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(marker) {
        let number = at + marker.len();
        result.push_str(&rest[..number]);
        result.push_str(word);
        rest =
            rest[number..].trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | '-'));
    }
    result.push_str(rest);
    result
}

impl Run {
    /// Everything as one text, for snapshots.
    pub fn snapshot(&self) -> String {
        let code = self.code.map_or_else(|| "signal".to_owned(), |code| code.to_string());
        format!("exit code: {code}\n----- stdout -----\n{}\n----- stderr -----\n{}", self.stdout, self.stderr)
    }

    /// The envelope. It must be the only line on stdout.
    pub fn envelope(&self) -> serde_json::Value {
        let line = self.stdout.replace(":[SECONDS]", ":0");
        assert_eq!(line.matches('\n').count(), 1, "one line of JSON: {self:?}");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The `data` of the envelope of a run that succeeded.
    pub fn data(&self) -> serde_json::Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.envelope()["data"].clone()
    }

    /// The ids and messages of the envelope's errors.
    pub fn errors(&self) -> Vec<(String, String)> {
        let envelope = self.envelope();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let errors = envelope["errors"].as_array().cloned().unwrap_or_default();
        errors.iter().map(|error| (text(&error["id"]), text(&error["what"]))).collect()
    }
}
