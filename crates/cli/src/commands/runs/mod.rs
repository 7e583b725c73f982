//! `aec-bench runs`.

pub(crate) mod clean;
pub(crate) mod cluster;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod keygen;
pub(crate) mod list;
pub(crate) mod merge;
pub(crate) mod status;
pub(crate) mod stop;

use clap::Subcommand;

use crate::commands::runs::clean::RunsCleanArguments;
use crate::commands::runs::export::RunsExportArguments;
use crate::commands::runs::import::RunsImportArguments;
use crate::commands::runs::keygen::RunsKeygenArguments;
use crate::commands::runs::list::RunsListArguments;
use crate::commands::runs::merge::RunsMergeArguments;
use crate::commands::runs::status::RunsStatusArguments;
use crate::commands::runs::stop::RunsStopArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List experiments: planned, executed, rewards, cost and state
    List(RunsListArguments),
    /// Show the progress of an experiment, and the trials under way
    Status(RunsStatusArguments),
    /// Ask a run to stop: it finishes the trials under way, or with --force cancels them
    Stop(RunsStopArguments),
    /// Merge the records of an experiment's shards, and report what is missing
    Merge(RunsMergeArguments),
    /// Remove files that no record refers to, and what runs left behind
    Clean(RunsCleanArguments),
    /// Write all records of an experiment into one file
    Export(RunsExportArguments),
    /// Read the records of an experiment from a file
    Import(RunsImportArguments),
    /// Create a key to sign packages with
    Keygen(RunsKeygenArguments),
}

/// Parses a number of bytes, with or without a unit.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 7] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("B", 1),
    ];
    let (number, unit) = UNITS
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))
        .unwrap_or((text, 1));
    number
        .trim()
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(unit))
        .ok_or_else(|| "a whole number with B, KiB, MiB, GiB, TiB, MB or GB is expected".to_owned())
}

impl RunsCommand {
    pub(crate) fn execute(self, context: &Context) -> Result<Outcome, Failure> {
        match self {
            Self::List(arguments) => list::list(context, &arguments),
            Self::Status(arguments) => status::status(context, &arguments),
            Self::Stop(arguments) => stop::stop(context, &arguments),
            Self::Merge(arguments) => merge::merge(context, &arguments),
            Self::Clean(arguments) => clean::clean(context, &arguments),
            Self::Export(arguments) => export::export(context, &arguments),
            Self::Import(arguments) => import::import(context, &arguments),
            Self::Keygen(arguments) => keygen::keygen(context, &arguments),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [("0", 0), ("17", 17), ("5 B", 5), ("2GiB", 2 << 30), ("500MB", 500_000_000)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "x", "-1", "1.5GiB", "GiB", "99999999999TiB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
