//! Tasks in Harbor's directory contract, and back.

pub mod export;
pub mod import;
mod translate;

/// Directory of a translated task in which this program keeps what Harbor has no place for.
pub(crate) const OWN: &str = "aec-bench";
/// Directory below `environment/` with what the agent finds in `/workspace`.
pub(crate) const WORKSPACE: &str = "aec-workspace";
/// What was translated, in [`OWN`].
pub(crate) const NOTE: &str = "aec-bench/export.json";
