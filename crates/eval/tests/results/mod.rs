//! Rows, aggregates, metadata, directories, resuming and comparing, from outside.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]
#![expect(clippy::float_cmp, reason = "aggregates are exact")]
#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of tests are small"
)]

mod aggregates;
mod comparing;
mod configurations;
mod directories;
mod facts;
mod kill;
mod metadata;
mod resuming;
mod rows;
mod support;
mod write_rows;
mod writing;
