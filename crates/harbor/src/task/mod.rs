//! Converts tasks to Harbor's directory contract and back.

pub mod export;
pub mod import;
mod translate;

/// Directory of a translated task for data that Harbor has no place for.
pub(crate) const OWN: &str = "aec-bench";
/// Directory below `environment/` with the files that the agent finds in `/workspace`.
pub(crate) const WORKSPACE: &str = "aec-workspace";
/// The note about the translation, in [`OWN`].
pub(crate) const NOTE: &str = "aec-bench/export.json";
