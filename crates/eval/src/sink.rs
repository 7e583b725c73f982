//! Passes finished rollouts of an evaluation on to the aggregates, the disk and the observer.

use std::sync::{Arc, Mutex, PoisonError};

use aec_base::secret::Redactor;

use crate::engine::Finished;
use crate::event::{EvalEvent, RolloutFinished};
use crate::results::aggregate::Aggregate;
use crate::results::writer::{NotTaken, ReadyRow, ResultsWriter};

/// Receives events as they happen. It must not block.
pub type Observer = Arc<dyn Fn(&EvalEvent) + Send + Sync>;

pub(crate) enum Kept {
    /// Only the aggregates.
    Memory(Box<Aggregate>),
    /// All rows; the writer also has the aggregates.
    Disk(ResultsWriter),
}

pub struct Sink {
    /// The aggregates, if no writer keeps them.
    aggregate: Option<Mutex<Aggregate>>,
    /// Present if results are saved.
    writer: Option<ResultsWriter>,
    redactor: Arc<Redactor>,
    observer: Observer,
    /// Whether the observer wants to see rows.
    wants_rows: bool,
}

impl Sink {
    pub(crate) fn new(kept: Kept, redactor: Arc<Redactor>, observer: Observer, wants_rows: bool) -> Self {
        let (aggregate, writer) = match kept {
            Kept::Memory(aggregate) => (Some(Mutex::new(*aggregate)), None),
            Kept::Disk(writer) => (None, Some(writer)),
        };
        Self { aggregate, writer, redactor, observer, wants_rows }
    }

    pub(crate) fn tell(&self, event: &EvalEvent) {
        (self.observer)(event);
    }

    pub(crate) fn take(&self, evaluation: usize, finished: Finished) -> Result<(), String> {
        let Finished { line, facts, .. } = finished;
        let facts = Arc::new(facts);
        let line = self.scrubbed(line);
        if let Some(aggregate) = &self.aggregate {
            aggregate.lock().unwrap_or_else(PoisonError::into_inner).add(&facts);
        }
        let row = self.wants_rows.then(|| Arc::from(line.as_slice()));
        let event = RolloutFinished { evaluation, facts: Arc::clone(&facts), row };
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

    /// Removes the secrets of this machine from a row, whatever a model or a tool wrote.
    fn scrubbed(&self, line: Vec<u8>) -> Vec<u8> {
        match String::from_utf8(line) {
            Ok(text) => self.redactor.scrub(text).into_bytes(),
            Err(error) => error.into_bytes(),
        }
    }

    pub(crate) fn end(self) -> Kept {
        match (self.writer, self.aggregate) {
            (Some(writer), _) => Kept::Disk(writer),
            (None, aggregate) => {
                let aggregate =
                    aggregate.map(|aggregate| aggregate.into_inner().unwrap_or_else(PoisonError::into_inner));
                Kept::Memory(Box::new(aggregate.unwrap_or_else(|| Aggregate::new(1, 0.5))))
            }
        }
    }
}
