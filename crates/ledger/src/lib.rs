//! Trial records: written once and durably, found through an index that can always be rebuilt, verified against a
//! chain of digests, packed, exported and annotated.
//!
//! Files are authoritative. A record is one JSON file, its artefacts are contents named by their digests. This crate
//! does not know how trials run.

pub mod annotate;
pub mod chain;
#[cfg(any(test, feature = "example"))]
pub mod example;
pub mod expected;
pub mod export;
pub mod garbage;
pub mod head;
pub mod imported;
pub mod index;
pub mod jobs;
pub mod journal;
pub mod layout;
pub mod package;
pub mod read;
pub mod record;
pub mod repair;
pub mod transcript;
pub mod unknown;
pub mod verify;
pub mod writer;

use aec_base::document::Family;

/// Problems of the ledger are `L…`.
pub const FAMILY: Family = Family('L');
