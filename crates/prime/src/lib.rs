//! Work with Prime: pushes environment packages, evaluates and trains there, and imports the rollouts into the ledger.

pub mod import;
pub mod rollouts;
pub mod service;
pub mod smoke;
pub mod training_data;

use aec_base::document::Family;

/// Problems of the service and of imports have the same letter as those of packages.
pub const FAMILY: Family = aec_package::FAMILY;
