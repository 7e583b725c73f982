//! Cassettes: model calls recorded into a directory and answered from it. See `docs/cassettes.md`.
//!
//! A call is found by its scope, the digest of its request in canonical form, and the number of equal requests before
//! it in the same scope. A [`Recorder`] fixes that number when a call begins, a [`Player`] returns the answers in the
//! same order, a [`Cache`] does either.

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

/// Problems of cassettes are `K…`.
pub const FAMILY: Family = Family('K');
