//! Trial records: written once and durably, found again through an index that can always be rebuilt, verified against
//! a chain of digests, packed, exported and annotated.
//!
//! Files are the truth. A record is one JSON file, its artefacts are contents under their digests. Nothing here knows
//! how trials run.

pub mod chain;
pub mod jobs;
pub mod layout;
pub mod package;
pub mod record;
#[cfg(test)]
mod sample;

use aec_base::document::Family;

/// Problems of the ledger are `L…`.
pub const FAMILY: Family = Family('L');
