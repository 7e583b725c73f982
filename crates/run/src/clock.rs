//! The time of an agent. It stops while a sandbox is opened: an agent is not charged for building an image or for
//! waiting for a container slot and for services.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// The clock of one attempt.
#[derive(Debug)]
pub(crate) struct Clock(watch::Sender<Option<Instant>>);

/// An observer of the clock in another task.
#[derive(Debug)]
pub(crate) struct Watcher(watch::Receiver<Option<Instant>>);

impl Clock {
    /// A clock that runs to this deadline.
    pub(crate) fn new(deadline: Instant) -> Self {
        Self(watch::Sender::new(Some(deadline)))
    }

    pub(crate) fn watcher(&self) -> Watcher {
        Watcher(self.0.subscribe())
    }

    /// Stops the clock.
    pub(crate) fn stop(&self) {
        self.0.send_replace(None);
    }

    /// Continues, with this deadline.
    pub(crate) fn go_on(&self, deadline: Instant) {
        self.0.send_replace(Some(deadline));
    }
}

impl Watcher {
    /// Waits until `grace` after the deadline.
    pub(crate) async fn over(mut self, grace: Duration) {
        loop {
            let deadline = *self.0.borrow_and_update();
            let passed = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline + grace).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = passed => return,
                // A dropped clock cannot change any more.
                Ok(()) = self.0.changed() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_does_not_pass_while_it_stands_still() {
        let begun = Instant::now();
        let clock = Clock::new(begun + Duration::from_secs(10));
        let over = tokio::spawn(clock.watcher().over(Duration::from_secs(2)));
        tokio::time::sleep(Duration::from_secs(5)).await;
        clock.stop();
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert!(!over.is_finished());
        clock.go_on(begun + Duration::from_secs(10) + Duration::from_hours(1));
        over.await.unwrap();
        assert_eq!(begun.elapsed().as_secs(), 3600 + 12);
        let gone = Clock::new(begun).watcher();
        gone.over(Duration::ZERO).await;
    }
}
