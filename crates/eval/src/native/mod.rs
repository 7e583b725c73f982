//! Environments of our own tasks, without Python: the tasks of a package, a dataset or a selection, asked and judged as
//! an exported package would ask and judge them.

mod arguments;
mod environment;
mod path;
mod rollout;
mod source;
mod tools;
mod verdict;
mod workspace;

pub use environment::{Example, NativeEnvironment, NativeSetup};
pub use rollout::{Generated, Generation};
pub use source::PackageSource;
