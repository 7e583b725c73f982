//! The command line of aec-bench: parses arguments, calls the other crates and renders their results.

#[cfg(test)]
mod advice;
mod arguments;
mod commands;
mod context;
mod entry;
mod failure;
mod groups;
mod output;
mod progress;
mod signals;
mod table;

pub use entry::run;
