//! Whether calls are live, recorded, or replayed.

use crate::cassette::{Cache, Player, Recorder};

#[derive(Default)]
pub enum Tape {
    /// Calls go to the model.
    #[default]
    Live,
    /// Calls go to the model and are recorded.
    Record(Recorder),
    /// Calls are answered from a recording only.
    Replay(Player),
    /// Calls are answered from a recording if possible; others go to the model and are recorded.
    Cache(Cache),
}
