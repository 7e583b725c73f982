//! What a plan says of the records that there should be, for readers that know records and nothing of plans.

use aec_base::digest::Digest;

/// Records that there should be: one for each task, agent and repetition.
#[derive(Clone, Debug)]
pub struct Expected<'a> {
    pub experiment_id: &'a str,
    /// Tasks: their ids and the digests of their files.
    pub tasks: Vec<(&'a str, Digest)>,
    pub agents: Vec<ExpectedAgent<'a>>,
    /// How often each agent does each task.
    pub repetitions: usize,
}

/// An agent, as its records name it.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedAgent<'a> {
    pub name: &'a str,
    pub harness: &'static str,
    pub model: Option<&'a str>,
    /// Digest of everything about it.
    pub digest: Digest,
}
