//! Which trials an experiment is to record: what reports hold against the records that are there.

use aec_base::digest::Digest;

/// Every agent does every task so many times.
#[derive(Clone, Debug)]
pub struct Design {
    /// The experiment.
    pub experiment: String,
    /// Ids of the tasks with the digests of their files.
    pub tasks: Vec<(String, Digest)>,
    /// The agents.
    pub agents: Vec<DesignedAgent>,
    /// How often each agent does each task.
    pub repetitions: u32,
}

/// An agent, as records name it.
#[derive(Clone, Debug)]
pub struct DesignedAgent {
    /// Its name.
    pub name: String,
    /// The harness.
    pub harness: String,
    /// The model.
    pub model: Option<String>,
    /// Digest of harness, model, parameters and prompt.
    pub digest: Digest,
}
