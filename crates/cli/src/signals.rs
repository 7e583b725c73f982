//! Ctrl-C, termination signals and the end of the terminal, for servers and runs: the first asks them to finish, the
//! second to give up.

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Absent under `nohup`, which asks to go on without a terminal.
    hang_up: Option<Signal>,
}

impl Signals {
    /// Catches signals from now on. It comes first, because a client may send a signal as soon as the server is ready.
    pub(crate) fn catch() -> Result<Self, Failure> {
        let hang_up = if ignores_hang_up() { None } else { Some(signal(SignalKind::hangup())?) };
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(Self { interrupt, terminate, hang_up })
    }

    /// The same before the runtime runs anything.
    pub(crate) fn catch_in(runtime: &Runtime) -> Result<Self, Failure> {
        let _entered = runtime.enter();
        Self::catch()
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = heard(self.hang_up.as_mut()) => {}
        }
    }
}

async fn heard(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Whether this program was started with the signal ignored.
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
