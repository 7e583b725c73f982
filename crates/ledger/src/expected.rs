//! The records that a plan expects, for readers that know records but not plans.

use aec_base::digest::Digest;
use serde::Serialize;

use crate::imported::WithheldTrial;

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

/// A trial that was run and whose record a package withheld.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Absent {
    #[serde(flatten)]
    pub trial: WithheldTrial,
    /// What the plan says about it; absent if no plan is here that names it.
    pub planned: Option<AbsentPlan>,
}

/// What a plan says about a trial that is not here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AbsentPlan {
    pub task_id: String,
    pub task_revision: Digest,
    pub agent: String,
    pub harness: String,
    pub model: Option<String>,
    /// Digest of harness, model, parameters and prompt.
    pub agent_digest: Digest,
    pub repetition: u32,
}
