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

/// Problems of packages are `H…`, and so are those of the loop that packages go through.
pub const FAMILY: Family = aec_run::import::FAMILY;

#[derive(Clone, Debug)]
pub struct PackageSpec {
    pub name: PackageName,
    pub version: String,
    /// How it is loaded unless its caller says otherwise.
    pub harness: interaction::HarnessMode,
    /// The dataset that the tasks come from.
    pub dataset: Option<String>,
    /// The version of this program.
    pub tool_version: String,
    /// Who gets it.
    pub audience: Audience,
}

/// Who gets a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Whoever trains on it: only public tasks may be in it.
    Everybody,
    /// This machine alone, for an evaluation: tasks that are held out measure something here.
    Here,
}
