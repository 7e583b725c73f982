//! Directories of the scripts of these tests and of the Python environments that they need.

use std::path::{Path, PathBuf};

pub(crate) use aec_xtest::venv::{directory as venvs, interpreter, with_verifiers};

/// The directory of the scripts and their files.
pub(crate) fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/prime/python")
}
