//! Environment packages: tasks with their verifiers as a Python package that `verifiers` loads.

mod assemble;
pub mod interaction;
pub mod manifest;
mod project;
mod runtime;
pub mod select;
mod write;

pub use assemble::{Assembled, assemble};
pub use project::PackageName;
pub use write::{WriteError, Written, write};

use aec_base::document::Family;

/// Problems of packages are `H…`, and so are those of pushing, evaluating and importing them.
pub const FAMILY: Family = aec_run::import::FAMILY;

#[derive(Clone, Debug)]
pub struct PackageSpec {
    pub name: PackageName,
    pub version: String,
    /// How it is loaded unless its caller chooses otherwise.
    pub harness: interaction::HarnessMode,
    /// The dataset that the tasks come from.
    pub dataset: Option<String>,
    pub tool_version: String,
    pub audience: Audience,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Anyone may train on it, so it may contain only public tasks.
    Everybody,
    /// Only this machine, for an evaluation: it may contain held-out tasks.
    Here,
}
