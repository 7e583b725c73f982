//! Runs the git command with a fixed identity, without hooks, user or system settings, prompts or network. This program
//! reads and writes the files of the working tree itself, so a repository's filters never run.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The author of commits.
pub const IDENTITY: (&str, &str) = ("aec-bench", "evolution@aec-bench.invalid");

#[derive(Clone, Debug)]
pub struct GitProgram {
    program: PathBuf,
    search_path: OsString,
}

impl GitProgram {
    /// The first `git` of a search path.
    pub fn find(search_path: Option<OsString>) -> io::Result<Self> {
        let search_path = search_path.unwrap_or_default();
        let program = std::env::split_paths(&search_path)
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join("git"))
            .find(|file| file.is_file())
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no git on the search path"))?;
        Ok(Self { program, search_path })
    }

    pub fn path(&self) -> &Path {
        &self.program
    }
}

#[derive(Clone, Debug)]
pub(super) struct Git {
    program: GitProgram,
    directory: PathBuf,
}

impl Git {
    pub(super) fn new(program: GitProgram, workspace: &Path) -> Self {
        Self { program, directory: workspace.join(".git") }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn init(&self, workspace: &Path) -> io::Result<()> {
        let mut command = self.bare();
        command.args(["init", "-q", "--template=", "--initial-branch=main"]).arg(workspace);
        answer(command, None).map(drop)
    }

    /// Runs a command and returns its output.
    pub(super) fn ask<const N: usize>(&self, arguments: [&str; N]) -> io::Result<Vec<u8>> {
        let mut command = self.command();
        command.args(arguments);
        answer(command, None)
    }

    /// Runs a command with an input.
    pub(super) fn tell<const N: usize>(&self, arguments: [&str; N], input: &[u8]) -> io::Result<Vec<u8>> {
        let mut command = self.command();
        command.args(arguments);
        answer(command, Some(input))
    }

    /// A command on another working tree of the repository.
    pub(super) fn ask_in<const N: usize>(&self, tree: &Path, arguments: [&str; N]) -> io::Result<Vec<u8>> {
        let mut command = self.bare();
        command.current_dir(tree).args(arguments);
        answer(command, None)
    }

    /// Names the directory explicitly, so that a workspace without a repository never uses one around it.
    fn command(&self) -> Command {
        let mut command = self.bare();
        command.arg("--git-dir").arg(&self.directory);
        if let Some(workspace) = self.directory.parent() {
            command.arg("--work-tree").arg(workspace).current_dir(workspace);
        }
        command
    }

    fn bare(&self) -> Command {
        let mut command = Command::new(&self.program.program);
        command
            .env_clear()
            .env("PATH", &self.program.search_path)
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_OPTIONAL_LOCKS", "0");
        for setting in [
            "core.hooksPath=/dev/null",
            "core.fsmonitor=false",
            "core.fsync=committed",
            "core.autocrlf=false",
            "core.quotePath=false",
            "commit.gpgSign=false",
            "gc.auto=0",
            "maintenance.auto=false",
        ] {
            command.args(["-c", setting]);
        }
        command
    }
}

fn answer(mut command: Command, input: Option<&[u8]>) -> io::Result<Vec<u8>> {
    let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
    let mut child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let pipe = child.stdin.take();
    let Output { status, stdout, stderr } = std::thread::scope(|scope| {
        if let (Some(mut pipe), Some(input)) = (pipe, input) {
            // A process that ends early closes its end; its output tells why.
            scope.spawn(move || pipe.write_all(input).ok());
        }
        child.wait_with_output()
    })?;
    if status.success() {
        return Ok(stdout);
    }
    let said = String::from_utf8_lossy(&stderr);
    Err(io::Error::other(format!("git failed: {}", said.trim().replace('\n', "; "))))
}
