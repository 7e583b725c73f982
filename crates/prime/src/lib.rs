//! The loop through Prime: environment packages are pushed, evaluated and trained elsewhere, and their rollouts come back
//! into the ledger.

pub mod import;
pub mod rollouts;
pub mod service;
pub mod smoke;
pub mod training_data;

use aec_base::document::Family;

/// Problems of the service and of imports have the letter of packages.
pub const FAMILY: Family = aec_package::FAMILY;
