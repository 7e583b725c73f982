//! Ctrl-C and termination signals for servers and runs: the first asks them to finish, the second to give up.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Catches signals from now on. It comes first, because a client may send a signal as soon as the server is ready.
    pub(crate) fn catch() -> Result<Self, Failure> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
