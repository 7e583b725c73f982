//! The crate that all others build on: projects and paths, layered settings, documents with positions, names, the
//! environment, secrets, and careful reading and atomic writing of files.
//!
//! Nothing here knows tasks or models, reads arguments, prints, or looks up the home directory: the caller passes all
//! paths.

pub mod archive;
pub mod content;
pub mod decimal;
pub mod digest;
pub mod document;
pub mod env;
pub mod file;
pub mod json;
pub mod jsonl;
pub mod label;
pub mod name;
pub mod parallel;
pub mod problem;
pub mod project;
pub mod secret;
pub mod settings;
pub mod staging;
pub mod text;
pub mod timestamp;
pub mod user;
