//! What happens during evaluations: one stream of events. Progress lines, bars and the full screen are readers of it;
//! nothing in the runner prints.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aec_model::meter::Account;

use crate::results::RowFacts;

/// One thing that happened. The number is the place of the evaluation among those of this run.
#[derive(Clone, Debug)]
pub enum EvalEvent {
    /// The environments are loaded and the first requests go out.
    Started(Arc<[EvalStarted]>),
    /// A rollout is finished: judged, and on its way to the disk.
    Finished(Box<RolloutFinished>),
    /// A rollout failed through no fault of the model and is tried again.
    Retried {
        evaluation: usize,
        example_id: i64,
        /// How often it was tried.
        attempt: u32,
        /// How long until it is tried again.
        wait: Duration,
        /// What went wrong.
        why: String,
    },
    /// No further rollout is started.
    Stopping(String),
    /// All rollouts of an evaluation are done.
    Ended(usize),
    /// A line for those who look on.
    Note {
        evaluation: usize,
        /// The line.
        text: String,
    },
}

/// What an evaluation is about to do.
#[derive(Clone, Debug)]
pub struct EvalStarted {
    /// The environment.
    pub env_id: String,
    pub model: String,
    pub num_examples: usize,
    pub rollouts_per_example: u32,
    /// Rollouts that are there already.
    pub done_before: usize,
    /// How it is run: `native`, or `python` with the version of the library.
    pub lane: String,
    /// Where results are written, if they are.
    pub directory: Option<PathBuf>,
    /// Knows what it has spent.
    pub account: Account,
}

impl EvalStarted {
    /// Rollouts in all.
    pub fn total(&self) -> usize {
        self.num_examples.saturating_mul(self.rollouts_per_example as usize)
    }
}

#[derive(Clone, Debug)]
pub struct RolloutFinished {
    pub evaluation: usize,
    /// What aggregates know of it.
    pub facts: Arc<RowFacts>,
    /// The row, where somebody wants to see it.
    pub row: Option<Arc<[u8]>>,
}
