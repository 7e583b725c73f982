//! The built-in library: every template is sound, every instance can be solved from exactly what an agent is given, and
//! every verdict can be trusted.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod content;
mod solvable;
mod trusted;

use std::path::PathBuf;

use aec_author::engine::Engines;
use aec_author::library::Library;
use aec_judge::judge::Isolation;
use aec_sandbox::python::{self, Python};

fn library() -> Library {
    let library = Library::load(&[]);
    assert!(library.problems.is_empty(), "{:#?}", library.problems);
    library
}

fn interpreter() -> Python {
    python::find(std::env::var_os("PATH").as_deref()).unwrap()
}

fn engines() -> Engines {
    aec_sandbox::use_shim(env!("CARGO_BIN_EXE_aec-bench").into());
    Engines::new(Isolation::Room, Some(interpreter()))
}

/// The template directory of this repository.
fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../library")
}
