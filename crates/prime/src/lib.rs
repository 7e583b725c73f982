//! The loop through Prime: tasks leave as environment packages, are evaluated and trained elsewhere, and their rollouts
//! come back into the ledger.

pub mod connections;
pub mod import;
pub mod package;
pub mod rollouts;
mod runtime;
pub mod service;
pub mod smoke;
pub mod training_data;

use aec_base::document::Family;

/// Problems of packages and of the service are `H…`, as those of imports.
pub const FAMILY: Family = aec_run::import::FAMILY;
