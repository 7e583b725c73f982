//! Runs Prime's own program against a stand-in server and compares its requests with those of this crate.
//!
//! The program is installed from pinned requirements into a virtual environment below the target directory. With
//! `AEC_TEST=full` every version is tried instead of only the newest.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod cli;
mod compare;
mod ignore;
mod wheel;

use std::path::Path;

use aec_prime::service::settings::Settings;
use aec_xtest::prime::StandIn;
use cli::{Prime, Version};

/// Runs a check with the newest version of the program; with `AEC_TEST=full`, with each.
fn with_each(versions: &[Version], check: impl Fn(&Prime)) {
    let wanted = |version: &&Version| aec_xtest::full() || **version == Version::Newest;
    for version in versions.iter().filter(wanted) {
        check(&Prime::install(*version));
    }
}

fn settings(stand_in: &StandIn) -> Settings {
    let variables = stand_in.variables();
    let find = |name: &str| Some(variables.iter().find(|(known, _)| *known == name)?.1.clone());
    Settings::load(Path::new("/nowhere"), find).unwrap()
}
