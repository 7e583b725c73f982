//! Prime's program in a virtual environment.

use std::path::{Path, PathBuf};
use std::process::Command;

use aec_xtest::prime::StandIn;
use aec_xtest::venv::{self, run};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// The version that the documents describe.
    Described,
    /// The last one that starts shared training.
    LastShared,
    Newest,
}

impl Version {
    pub(crate) fn number(self) -> &'static str {
        match self {
            Self::Described => "0.6.2",
            Self::LastShared => "0.12.0",
            Self::Newest => "0.18.0",
        }
    }
}

/// An installed program with its own home.
pub(crate) struct Prime {
    pub(crate) version: Version,
    environment: PathBuf,
    home: tempfile::TempDir,
}

impl Prime {
    /// Installs a version, once for all tests.
    pub(crate) fn install(version: Version) -> Self {
        let environment = venv::install(&format!("prime-{}", version.number()));
        Self { version, environment, home: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn is_newest(&self) -> bool {
        self.version == Version::Newest
    }

    pub(crate) fn python(&self, code: &str, arguments: &[PathBuf]) -> Result<String, String> {
        let mut command = Command::new(self.environment.join("bin/python"));
        run(command.args(["-c", code]).args(arguments).env("HOME", self.home.path()))
    }

    /// Runs the program against a server and returns its output.
    pub(crate) fn run(
        &self,
        stand_in: &StandIn,
        directory: &Path,
        arguments: &[&str],
    ) -> Result<String, String> {
        let key = stand_in.with(|state| state.key.clone());
        // Only the environment's own programs: a `uv` on the machine would build the package differently.
        let path = format!("{}:/usr/bin:/bin", self.environment.join("bin").display());
        let mut command = Command::new(self.environment.join("bin/prime"));
        command
            .args(arguments)
            .current_dir(directory)
            .env("HOME", self.home.path())
            .env("PATH", path)
            .env("PRIME_API_KEY", key)
            .env("PRIME_API_BASE_URL", stand_in.base_url())
            .env("PRIME_FRONTEND_URL", stand_in.base_url())
            .env("PRIME_INFERENCE_URL", stand_in.inference_url())
            .env("PRIME_DISABLE_VERSION_CHECK", "1")
            .env("PIP_DISABLE_PIP_VERSION_CHECK", "1")
            .env("COLUMNS", "200");
        for name in ["PRIME_TEAM_ID", "PRIME_CONTEXT", "PRIME_USER_ID", "PRIME_BASE_URL"] {
            command.env_remove(name);
        }
        run(&mut command)
    }
}
