//! Whether calls go out, are recorded, or come from a recording.

use crate::cassette::{Cache, Player, Recorder};

/// What stands between a call and the network.
#[derive(Default)]
pub enum Tape {
    /// Nothing.
    #[default]
    Live,
    /// Calls go out and are written down.
    Record(Recorder),
    /// Calls are answered from a recording and never go out.
    Replay(Player),
    /// Calls are answered from a recording where it has them; others go out and are written down.
    Cache(Cache),
}
