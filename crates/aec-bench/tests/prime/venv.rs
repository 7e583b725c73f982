//! Where the scripts of these tests and the environments that they need lie.

use std::path::{Path, PathBuf};

pub(crate) use aec_test::venv::{directory as venvs, interpreter, with_verifiers};

/// Where the scripts and what they need lie.
pub(crate) fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/prime/python")
}
