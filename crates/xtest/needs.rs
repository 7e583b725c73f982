//! The build script of crates with tests that need more than a plain machine. Each part that is here becomes a `cfg`.
//!
//! A test that needs a part has `#[cfg_attr(not(podman), ignore = "needs ...")]`, so that where the part is missing the
//! test counts as ignored and not as passed. `AEC_TEST_WITHOUT=podman,slurm` leaves parts out. With `CI` set, nothing may
//! be missing that can be installed.

#![expect(clippy::print_stdout, reason = "this is how a build script speaks to cargo")]

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Something that tests need and that not every machine has.
pub(crate) struct Part {
    /// The name of its `cfg`, and in `AEC_TEST_WITHOUT`.
    pub(crate) name: &'static str,
    /// What has to be done where it is missing.
    pub(crate) brought_by: &'static str,
    /// Whether it can be had on every machine, so that it must be there in CI.
    can_be_had: bool,
    find: fn() -> bool,
}

pub(crate) const PARTS: [Part; 8] = [
    Part {
        name: "podman",
        brought_by: "root, and apt-get install podman runc debootstrap util-linux",
        can_be_had: true,
        find: || is_root() && all_on_path(&["podman", "runc", "debootstrap", "setpriv"]),
    },
    Part {
        name: "slurm",
        brought_by: "root, and apt-get install slurm-wlm munge",
        can_be_had: true,
        find: || {
            let is_daemon = |name: &&str| Path::new("/usr/sbin").join(name).is_file();
            is_root() && on_path("sbatch") && ["munged", "slurmctld", "slurmd"].iter().all(is_daemon)
        },
    },
    Part {
        name: "chromium",
        brought_by: "apt-get install chromium",
        can_be_had: true,
        find: || ["chromium", "chromium-browser", "google-chrome"].iter().any(|name| on_path(name)),
    },
    Part { name: "root", brought_by: "running the tests as root", can_be_had: true, find: is_root },
    Part {
        name: "python312",
        brought_by: "a Python 3.12 or newer, on PATH or from `pyenv install 3.12`",
        can_be_had: true,
        find: has_python312,
    },
    // That an index answers is seen only when packages are installed; a test fails then, and says why.
    Part {
        name: "packages",
        brought_by: "a Python package index that pip can reach",
        can_be_had: true,
        find: || true,
    },
    Part {
        name: "free_places",
        brought_by: "a host without its own /workspace, /logs and /tests",
        can_be_had: false,
        find: || !["/workspace", "/logs", "/tests"].iter().any(|place| Path::new(place).exists()),
    },
    Part {
        name: "ordinary_user",
        brought_by: "root, a Python 3.10 at /usr/bin/python3, and a working copy and target directory that others can read",
        can_be_had: false,
        find: || is_root() && can_others_look(),
    },
];

/// Crates whose tests need only some parts. They are not built again whenever something is installed.
const ONLY: [(&str, &[&str]); 2] = [("aec-eval", &["packages"]), ("aec-prime", &["packages"])];

fn main() {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let package = variable("CARGO_PKG_NAME");
    let only = ONLY.iter().find(|(name, _)| *name == package).map(|(_, parts)| *parts);
    for name in ["AEC_TEST_WITHOUT", "CI"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    if only.is_none() {
        println!("cargo::rerun-if-env-changed=PATH");
        // What is installed or removed changes a directory of the search path.
        for directory in places().filter(|place| place.is_dir()) {
            println!("cargo::rerun-if-changed={}", directory.display());
        }
    }
    // Not a part: tests that have no short version.
    println!("cargo::rerun-if-env-changed=AEC_TEST");
    println!("cargo::rustc-check-cfg=cfg(full)");
    if variable("AEC_TEST") == "full" {
        println!("cargo::rustc-cfg=full");
    }
    for unknown in left_out().iter().filter(|name| !PARTS.iter().any(|part| part.name == *name)) {
        let known = PARTS.map(|part| part.name).join(", ");
        println!("cargo::error=AEC_TEST_WITHOUT has `{unknown}`, which is none of {known}");
    }
    // A release is not built for tests.
    let is_strict = !variable("CI").is_empty() && variable("PROFILE") == "debug";
    for part in &PARTS {
        println!("cargo::rustc-check-cfg=cfg({})", part.name);
        if only.is_some_and(|only| !only.contains(&part.name)) {
            continue;
        }
        if part.is_here() {
            println!("cargo::rustc-cfg={}", part.name);
        } else if is_strict && part.can_be_had {
            println!(
                "cargo::error=tests need `{}`, and in CI every test runs: it takes {}",
                part.name, part.brought_by
            );
        }
    }
}

impl Part {
    /// Whether this machine has it and it is not left out.
    pub(crate) fn is_here(&self) -> bool {
        !left_out().iter().any(|name| name == self.name) && (self.find)()
    }
}

/// The parts that `AEC_TEST_WITHOUT` names.
fn left_out() -> Vec<String> {
    let named = std::env::var("AEC_TEST_WITHOUT").unwrap_or_default();
    named.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The search path. Daemons are not on every user's.
fn places() -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).filter(|place| place.is_absolute()).collect();
    for place in ["/usr/sbin", "/sbin"].map(PathBuf::from) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places.into_iter()
}

fn on_path(program: &str) -> bool {
    places().any(|place| place.join(program).is_file())
}

fn all_on_path(programs: &[&str]) -> bool {
    programs.iter().all(|program| on_path(program))
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Whether `aec_xtest::venv` will find an interpreter for Harbor.
fn has_python312() -> bool {
    let is_recent = |python: &OsStr| {
        let question = "import sys; sys.exit(sys.version_info < (3, 12))";
        succeeds(Command::new(python).args(["-I", "-S", "-c", question]))
    };
    let names = ["python3", "python3.12", "python3.13", "python3.14"];
    let kept = std::env::home_dir().and_then(|home| std::fs::read_dir(home.join(".pyenv/versions")).ok());
    let mut kept = kept.into_iter().flatten().flatten().map(|version| version.path().join("bin/python3"));
    names.iter().any(|name| is_recent(OsStr::new(name))) || kept.any(|python| is_recent(python.as_os_str()))
}

/// Whether a user without permissions can run the system's Python on files of this working copy and see what is built.
fn can_others_look() -> bool {
    const NOBODY: u32 = 65534;
    const QUESTION: &str =
        "import os, sys; open(sys.argv[1]); os.stat(sys.argv[2]); sys.exit(sys.version_info < (3, 10))";
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let Ok(built) = std::env::current_exe() else { return false };
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-I", "-c", QUESTION]).arg(here.join("Cargo.toml")).arg(built).current_dir("/");
    succeeds(command.uid(NOBODY).gid(NOBODY))
}
