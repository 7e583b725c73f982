//! Asks a run to stop: first to finish the running trials, then to give up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;

/// Asks a run to stop. Clones control the same run.
#[derive(Clone, Debug, Default)]
pub struct Control(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    wish: AtomicU8,
    changed: Notify,
}

/// What the user asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wish {
    GoOn,
    /// Start no further trial; finish and record running ones.
    Finish,
    /// Cancel and record running trials.
    GiveUp,
}

impl Control {
    /// Asks the run to start no further trial, or, if it was asked already, to give up.
    pub fn ask(&self) {
        self.wish_for(if self.wish() == Wish::GoOn { Wish::Finish } else { Wish::GiveUp });
    }

    /// Makes a wish. Wishes can only become stronger.
    pub fn wish_for(&self, wish: Wish) {
        self.0.wish.fetch_max(wish as u8, Ordering::AcqRel);
        self.0.changed.notify_waiters();
    }

    pub fn wish(&self) -> Wish {
        match self.0.wish.load(Ordering::Acquire) {
            0 => Wish::GoOn,
            1 => Wish::Finish,
            _ => Wish::GiveUp,
        }
    }

    /// Completes when the wish is at least this strong.
    pub async fn reached(&self, wish: Wish) {
        loop {
            let changed = self.0.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.wish() >= wish {
                return;
            }
            changed.await;
        }
    }
}
