//! Task directories: what a task is, where tasks are, which tasks a selection contains, how tasks are checked, and
//! how a new one begins.
//!
//! Nothing here runs a task or knows how trials run.

pub mod catalogue;
pub mod compose;
pub mod dataset;
pub mod file;
pub mod id;
pub mod long_documents;
pub mod scaffold;
pub mod search;
pub mod seed;
pub mod selection;
pub mod suite;
pub mod task;
pub mod validate;
pub mod workspace;
