//! Which rewards from elsewhere count: one rule for rows, jobs and packages.
//!
//! A reward enters a mean if it was given here, or elsewhere for the task that is here, at the same revision. A source
//! that does not say which revision it was, or says another, may have judged anything. Such a trial is `unverified`,
//! unless the user trusts the source; then its record says so.

use aec_base::digest::Digest;
use aec_judge::verdict::Outcome;

use super::foreign::ForeignTrial;
use super::known::KnownTasks;

/// What the user says about rewards that cannot be matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rewards {
    /// They do not count.
    #[default]
    Matching,
    /// They count, and are marked (`--trust-rewards`).
    Trusted,
}

/// Whether the result of a foreign trial counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// As it is: it was judged here, or there for the same task, or it has no part in a mean.
    Own,
    /// Only because the user trusts its source.
    Trusted,
    /// It does not, for this reason.
    Unverified(&'static str),
}

impl Rewards {
    /// The standing of a result. `judged` says whether the judge here had a look at it, and so the task is here.
    pub(super) fn standing(self, outcome: Outcome, trial: &ForeignTrial, judged: bool) -> Standing {
        match (&trial.here, self) {
            _ if judged || !outcome.is_counted() => Standing::Own,
            (Ok(_), _) => Standing::Own,
            (Err(_), Self::Trusted) => Standing::Trusted,
            (Err(why), Self::Matching) => Standing::Unverified(why),
        }
    }
}

impl KnownTasks<'_> {
    /// Why a reward that was given elsewhere for a revision of a task does not count.
    pub fn objection(&self, task_id: &str, revision: Digest) -> Option<&'static str> {
        match self.position(task_id).map(|at| self.revision(at)) {
            Some(Some(here)) if here == revision => None,
            Some(Some(_)) => Some("the task here has another revision"),
            Some(None) => Some("the task here cannot be read"),
            None => Some("the task is not here"),
        }
    }
}
