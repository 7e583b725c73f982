//! Cassettes: model calls recorded into a directory and answered from it. The document is `docs/cassettes.md`.
//!
//! A call is found by its scope, the digest of its request in canonical form, and the number of equal requests
//! that were asked before it in the same scope. A [`Recorder`] fixes that number when a call begins, a [`Player`]
//! gives the answers out in the same order, a [`Cache`] does one or the other.

mod cache;
mod canonical;
mod difference;
mod format;
mod log;
mod nearest;
mod play;
mod record;
mod redact;
mod shelf;
mod tape;

use aec_base::document::Family;

pub use cache::{Cache, Lookup};
pub use canonical::request_digest;
pub use play::{Miss, Played, Player};
pub use record::{Call, Recorder, Ticket};

/// The letter of the problems of cassettes.
pub const FAMILY: Family = Family('K');
