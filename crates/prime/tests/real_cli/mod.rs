//! Runs Prime's own program against a stand-in server and compares its requests with those of this crate.
//!
//! The program is installed from pinned requirements into a virtual environment below the target directory. If that is
//! impossible, because there is no Python or no package index, a test says so and checks nothing. With `AEC_TEST=full`
//! every version is tried instead of only the newest, and a version that cannot be installed is a failure.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod cli;
mod compare;
mod ignore;
mod wheel;

use std::path::Path;

use aec_prime::service::settings::Settings;
use aec_test::prime::StandIn;
use cli::{Prime, Version};

/// Runs a check with each version of the program that can be installed.
fn with_each(versions: &[Version], check: impl Fn(&Prime)) {
    let wanted = |version: &&Version| aec_test::full() || **version == Version::Newest;
    for version in versions.iter().filter(wanted) {
        match Prime::install(*version) {
            Ok(prime) => check(&prime),
            Err(reason) => aec_test::venv::skip(&format!("prime {}: {reason}", version.number())),
        }
    }
}

fn settings(stand_in: &StandIn) -> Settings {
    let variables = stand_in.variables();
    let find = |name: &str| Some(variables.iter().find(|(known, _)| *known == name)?.1.clone());
    Settings::load(Path::new("/nowhere"), find).unwrap()
}
