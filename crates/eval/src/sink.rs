//! Where finished rollouts of an evaluation go: the aggregates, the disk, and whoever looks on.

use std::sync::{Arc, Mutex, PoisonError};

use aec_base::secret::Redactor;

use crate::engine::Finished;
use crate::event::{EvalEvent, RolloutFinished};
use crate::results::aggregate::Aggregate;
use crate::results::summary::Summary;
use crate::results::writer::{NotTaken, ReadyRow, ResultsWriter};

/// Hears of events while they happen. It must not wait.
pub type Observer = Arc<dyn Fn(&EvalEvent) + Send + Sync>;

/// Where the rollouts of one evaluation go.
pub struct Sink {
    /// What all rollouts say together.
    aggregate: Mutex<Aggregate>,
    /// Writes rows, when results are saved.
    writer: Option<ResultsWriter>,
    redactor: Arc<Redactor>,
    observer: Observer,
    /// Whether those who look on want to see rows.
    wants_rows: bool,
}

impl Sink {
    /// A sink; without a writer nothing is saved.
    pub(crate) fn new(
        aggregate: Aggregate,
        writer: Option<ResultsWriter>,
        redactor: Arc<Redactor>,
        observer: Observer,
        wants_rows: bool,
    ) -> Self {
        Self { aggregate: Mutex::new(aggregate), writer, redactor, observer, wants_rows }
    }

    /// Tells those who look on.
    pub(crate) fn tell(&self, event: &EvalEvent) {
        (self.observer)(event);
    }

    /// Takes a finished rollout.
    pub(crate) fn take(&self, evaluation: usize, finished: Finished) -> Result<(), String> {
        let Finished { line, facts, .. } = finished;
        let line = self.scrubbed(line);
        self.aggregate.lock().unwrap_or_else(PoisonError::into_inner).add(&facts);
        let row = self.wants_rows.then(|| Arc::from(line.as_slice()));
        let event = RolloutFinished { evaluation, facts: facts.clone(), row };
        if let Some(writer) = &self.writer {
            match writer.try_write(ReadyRow { line, facts }) {
                Ok(()) => {}
                // The disk is slower than the models: this thread waits for it, the others go on.
                Err(NotTaken::Full(row)) => {
                    let written = tokio::task::block_in_place(|| writer.write(*row));
                    written.map_err(|problem| problem.what)?;
                }
                Err(NotTaken::Failed(problem)) => return Err(problem.what),
            }
        }
        self.tell(&EvalEvent::Finished(Box::new(event)));
        Ok(())
    }

    /// No secret of this machine gets into a row, whatever a model or a tool said.
    fn scrubbed(&self, line: Vec<u8>) -> Vec<u8> {
        match String::from_utf8(line) {
            Ok(text) => self.redactor.scrub(text).into_bytes(),
            Err(error) => error.into_bytes(),
        }
    }

    /// What all rollouts say together.
    pub(crate) fn summary(&self) -> Summary {
        self.aggregate.lock().unwrap_or_else(PoisonError::into_inner).summary()
    }

    /// Ends it: the writer, if there is one, and what all rollouts say together.
    pub(crate) fn end(self) -> (Option<ResultsWriter>, Summary) {
        let summary = self.summary();
        (self.writer, summary)
    }
}
