//! Configurations of evaluations: options, files of several evaluations, defaults of packages, checked settings.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod common;
mod file;
mod file_problems;
mod options;
mod package;
mod seed;
