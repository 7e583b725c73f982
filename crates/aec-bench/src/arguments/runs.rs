//! The arguments of `aec-bench runs`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::LedgerRootArgument;

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List experiments: planned, executed, rewards, cost and state
    List(RunsListArguments),
    /// Show where an experiment stands, and what is under way
    Status(RunsStatusArguments),
    /// Ask a run to stop: it finishes the trials under way, or with --force cancels them
    Stop(RunsStopArguments),
    /// Bring together what the shards of an experiment recorded, and say what is missing
    Merge(RunsMergeArguments),
    /// Remove what no record refers to, and what runs left behind
    Clean(RunsCleanArguments),
    /// Write all records of an experiment into one file
    Export(RunsExportArguments),
    /// Take the records of an experiment from a file
    Import(RunsImportArguments),
    /// Make a key to sign packages with
    Keygen(RunsKeygenArguments),
}

#[derive(Debug, Args)]
pub(crate) struct RunsListArguments {
    /// At most this many, the latest first
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}

#[derive(Debug, Args)]
pub(crate) struct RunsStatusArguments {
    /// The experiment, or a beginning of its id that fits only one
    #[arg(value_name = "EXPERIMENT")]
    pub(crate) experiment: String,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}

#[derive(Debug, Args)]
pub(crate) struct RunsStopArguments {
    /// The experiment, or a beginning of its id that fits only one
    #[arg(value_name = "EXPERIMENT")]
    pub(crate) experiment: String,
    /// Cancel the trials under way instead of waiting for them, and the jobs of a cluster
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}

#[derive(Debug, Args)]
pub(crate) struct RunsMergeArguments {
    /// The experiment, or a beginning of its id that fits only one
    #[arg(value_name = "EXPERIMENT")]
    pub(crate) experiment: String,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
    /// Folder with the contract of the run; engines pass it
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) contract: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RunsCleanArguments {
    /// Say what would be removed and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove images of tasks from the container engine as well; they are built again when they are needed
    #[arg(long)]
    pub(crate) images: bool,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}

#[derive(Debug, Args)]
pub(crate) struct RunsExportArguments {
    /// The experiment, or a beginning of its id that fits only one
    #[arg(value_name = "EXPERIMENT")]
    pub(crate) experiment: String,
    /// File to write [default: EXPERIMENT.tar.zst]
    #[arg(long, short, value_name = "FILE.tar.zst", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Replace a file that exists
    #[arg(long)]
    pub(crate) force: bool,
    /// Keep back these trials; the root of the package stays the same
    #[arg(long, value_name = "TRIAL", num_args = 1..)]
    pub(crate) withhold: Vec<String>,
    /// Annotations go along
    #[arg(long)]
    pub(crate) annotations: bool,
    /// Sign with the key in this file, which `runs keygen` made
    #[arg(long, value_name = "KEYFILE", value_hint = ValueHint::FilePath)]
    pub(crate) sign: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RunsImportArguments {
    /// File that `runs export` wrote
    #[arg(value_name = "FILE.tar.zst", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Verify everything and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Refuse a package that this key has not signed: the public key, or a file with it
    #[arg(long, value_name = "KEY|FILE.pub", value_hint = ValueHint::FilePath)]
    pub(crate) expect_key: Option<String>,
    /// Refuse a package with another root
    #[arg(long, value_name = "DIGEST")]
    pub(crate) expect_root: Option<String>,
    /// Refuse a package that unpacks to more bytes, such as 500MB or 2GiB
    #[arg(long, value_name = "SIZE", default_value = "16GiB", value_parser = size)]
    pub(crate) max_size: u64,
    /// Make the files of all attempts in paths.jobs as well
    #[arg(long)]
    pub(crate) jobs: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunsKeygenArguments {
    /// File for the private key; the public one goes to FILE.pub
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
}

/// A number of bytes with or without a unit.
fn size(text: &str) -> Result<u64, String> {
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
