//! Events of evaluations, as one stream, which progress lines, bars and the full screen read; the runner prints
//! nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aec_model::meter::Account;

use crate::results::RowFacts;

/// One event. `evaluation` is the number of the evaluation within this run.
#[derive(Clone, Debug)]
pub enum EvalEvent {
    /// The environments are loaded and the first requests go out.
    Started(Arc<[EvalStarted]>),
    /// A rollout is judged and on its way to the disk.
    Finished(Box<RolloutFinished>),
    /// A rollout failed through no fault of the model and will be retried.
    Retried {
        evaluation: usize,
        example_id: i64,
        /// How often it has been tried.
        attempt: u32,
        /// How long until the next try.
        wait: Duration,
        why: String,
    },
    /// No further rollout will start.
    Stopping(String),
    /// All rollouts of an evaluation are done.
    Ended(usize),
    /// A line for the user.
    Note { evaluation: usize, text: String },
}

#[derive(Clone, Debug)]
pub struct EvalStarted {
    pub env_id: String,
    pub model: String,
    pub num_examples: usize,
    pub rollouts_per_example: u32,
    /// Rollouts that earlier sessions finished.
    pub done_before: usize,
    /// How it is run: `native`, or `python` with the version of the library.
    pub lane: String,
    /// Where results are written; absent if they are not saved.
    pub directory: Option<PathBuf>,
    pub account: Account,
}

impl EvalStarted {
    pub fn total(&self) -> usize {
        self.num_examples.saturating_mul(self.rollouts_per_example as usize)
    }
}

#[derive(Clone, Debug)]
pub struct RolloutFinished {
    pub evaluation: usize,
    pub facts: Arc<RowFacts>,
    /// Present if the observer wants to see rows.
    pub row: Option<Arc<[u8]>>,
}
