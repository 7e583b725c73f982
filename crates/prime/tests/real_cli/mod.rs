//! Prime's own program against the stand-in, and what it sends compared with what this crate sends.
//!
//! The program is installed from pinned requirements into a virtual environment below the target directory. Where that
//! cannot be done, because there is no Python or no package index, a test says so and checks nothing. With `AEC_TEST=full`
//! every version is tried instead of the newest alone, and one that cannot be had is a failure.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod cli;
mod compare;
mod ignore;
mod wheel;

use std::path::Path;

use aec_prime::service::settings::Settings;
use aec_test::prime::StandIn;
use cli::{Prime, Version};

/// Runs a check with each version of the program that can be had.
fn with_each(versions: &[Version], check: impl Fn(&Prime)) {
    let wanted = |version: &&Version| aec_test::full() || **version == Version::Newest;
    for version in versions.iter().filter(wanted) {
        match Prime::install(*version) {
            Ok(prime) => check(&prime),
            Err(reason) => aec_test::venv::skip(&format!("prime {}: {reason}", version.number())),
        }
    }
}

/// The settings of the stand-in's user.
fn settings(stand_in: &StandIn) -> Settings {
    let variables = stand_in.variables();
    let find = |name: &str| Some(variables.iter().find(|(known, _)| *known == name)?.1.clone());
    Settings::load(Path::new("/nowhere"), find).unwrap()
}
