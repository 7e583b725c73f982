//! Environments of our own tasks, without Python: the tasks of a package, a dataset or a selection, asked and judged as
//! an exported package would.

mod arguments;
mod driven;
mod environment;
mod measure;
mod rollout;
mod source;
mod tools;
mod verdict;
mod workspace;

use std::sync::{Arc, LazyLock};

use aec_judge::judge::Judge;

/// A judge that is created when a room is first needed: finding its interpreter takes longer than this program's start.
pub type LazyJudge = Arc<LazyLock<Judge, Box<dyn FnOnce() -> Judge + Send>>>;

pub use environment::{Example, NativeEnvironment, NativeSetup};
pub use rollout::{Generated, Generation, NativeExecutor};
pub use source::PackageSource;
