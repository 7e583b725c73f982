//! A Python environment with a version of `verifiers`, independent of the user's packages.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use aec_base::staging::Staging;

use crate::service::hub::Package;

/// Marks a complete installation.
const MARK: &str = "installed";

/// Lines of an installer's output that are shown when it fails.
const TOLD: usize = 12;

#[derive(Clone, Debug)]
pub struct Venv {
    directory: PathBuf,
    version: String,
}

#[derive(Debug, thiserror::Error)]
pub enum VenvError {
    #[error("`{0}` is not a version of verifiers")]
    Version(String),
    #[error("{what} failed: {said}")]
    Failed { what: &'static str, said: String },
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Venv {
    /// Opens the environment of a version, creating it if it does not exist. `say` is called before long steps.
    pub fn open(
        below: &Path,
        python: &Path,
        version: &str,
        mut say: impl FnMut(&str),
    ) -> Result<Self, VenvError> {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '.';
        if version.is_empty() || version.len() > 32 || !version.chars().all(is_plain) {
            return Err(VenvError::Version(version.chars().take(32).collect()));
        }
        let venv =
            Self { directory: below.join(format!("verifiers-{version}")), version: version.to_owned() };
        if venv.directory.join(MARK).is_file() {
            return Ok(venv);
        }
        say(&format!("Installing verifiers {version}, once; this takes a few minutes …"));
        // The remains of a killed installation are useless.
        match fs_err::remove_dir_all(&venv.directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        fs_err::create_dir_all(below)?;
        let mut make = Command::new(python);
        make.args(["-m", "venv"]).arg(&venv.directory);
        run("making a Python environment", &mut make)?;
        let mut install = venv.pip();
        install.arg(format!("verifiers=={version}"));
        // From 0.4 on the library prepares its chat program with `uv`; before, it needs an older `datasets`.
        install.arg(if venv.is_v1_only() { "uv" } else { "datasets<4.7" });
        run("installing verifiers", &mut install)?;
        fs_err::write(venv.directory.join(MARK), version)?;
        Ok(venv)
    }

    /// The versions that are installed below a directory, sorted.
    pub fn installed(below: &Path) -> Vec<String> {
        let Ok(entries) = fs_err::read_dir(below) else { return Vec::new() };
        let mut versions: Vec<String> = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.path().join(MARK).is_file())
            .filter_map(|entry| Some(entry.file_name().to_str()?.strip_prefix("verifiers-")?.to_owned()))
            .collect();
        versions.sort();
        versions
    }

    /// Installs a package as other users would get it.
    pub fn install(&self, package: &Package) -> Result<(), VenvError> {
        let place = Staging::scratch()?;
        let wheel = place.path().join(&package.wheel_name);
        fs_err::write(&wheel, &package.wheel)?;
        let mut install = self.pip();
        install.args(["--no-deps", "--no-index", "--force-reinstall"]).arg(&wheel);
        run("installing the package", &mut install)
    }

    pub fn is_v1_only(&self) -> bool {
        let mut parts = self.version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (0, 4)
    }

    pub fn program(&self, name: &str) -> Command {
        let bin = self.directory.join("bin");
        let mut command = Command::new(bin.join(name));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(bin).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(all).unwrap_or(path));
        command.env_remove("PYTHONPATH").env_remove("PYTHONHOME").stdin(Stdio::null());
        command
    }

    fn pip(&self) -> Command {
        let mut pip = self.program("python");
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        pip
    }
}

fn run(what: &'static str, command: &mut Command) -> Result<(), VenvError> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(VenvError::Failed { what, said: last_lines(&output.stderr) })
}

/// The last lines of a program's error output.
pub(super) fn last_lines(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(TOLD)..].join("\n")
}
