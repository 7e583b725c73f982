//! The records that a plan expects, for readers that know records but not plans.

use aec_base::digest::Digest;

/// The expected records: one for each task, agent and repetition.
#[derive(Clone, Debug)]
pub struct Expected<'a> {
    pub experiment_id: &'a str,
    /// Ids of the tasks and digests of their files.
    pub tasks: Vec<(&'a str, Digest)>,
    pub agents: Vec<ExpectedAgent<'a>>,
    pub repetitions: usize,
}

/// An agent, with the names used in its records.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedAgent<'a> {
    pub name: &'a str,
    pub harness: &'static str,
    pub model: Option<&'a str>,
    /// Digest of harness, model, parameters and prompt.
    pub digest: Digest,
}
