//! The arguments of `aec-bench ledger`.

use std::path::PathBuf;

use aec_ledger::export::Format;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueHint};

#[derive(Debug, Subcommand)]
pub(crate) enum LedgerCommand {
    /// List records, newest first
    List(LedgerListArguments),
    /// Show one record: what became of the trial and why
    Show(LedgerShowArguments),
    /// Write records for other programs: JSON lines, CSV or Parquet
    Export(LedgerExportArguments),
    /// Check that the records are what the runs wrote
    Verify(LedgerVerifyArguments),
    /// Put right what a crash left; no record is deleted
    Repair(LedgerRepairArguments),
    /// Make the index anew from the records
    Reindex(LedgerReindexArguments),
    /// Say what you think of a record, or show what others said
    Annotate(LedgerAnnotateArguments),
}

/// The flag rung of `paths.ledger`.
#[derive(Debug, Args)]
pub(crate) struct LedgerRootArgument {
    /// Ledger to use instead of the configured one
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) ledger_root: Option<String>,
}

/// Filters on records that intersect.
#[derive(Debug, Args)]
pub(crate) struct RecordFilterArguments {
    /// Only this experiment
    #[arg(long = "experiment-id", short = 'e', visible_alias = "experiment", value_name = "EXP")]
    pub(crate) experiments: Vec<String>,
    /// Only tasks whose ids begin like this
    #[arg(long, value_name = "PREFIX")]
    pub(crate) task_prefix: Option<String>,
    /// Only this agent
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Only this harness
    #[arg(long, visible_alias = "adapter", value_name = "NAME")]
    pub(crate) harness: Option<String>,
    /// Only this model
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Only this outcome
    #[arg(long, value_name = "OUTCOME", value_parser = ["scored", "agent_fault", "infra_fault", "verifier_fault", "cancelled", "unverified"])]
    pub(crate) outcome: Option<String>,
    /// Only records whose field has this value, such as domain=civil or difficulty=unknown
    #[arg(long, value_name = "FIELD=VALUE")]
    pub(crate) filter: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct LedgerListArguments {
    #[command(flatten)]
    pub(crate) filter: RecordFilterArguments,
    /// Every attempt at each trial instead of the latest one
    #[arg(long)]
    pub(crate) all_attempts: bool,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}

#[derive(Debug, Args)]
pub(crate) struct LedgerShowArguments {
    /// The record: TRIAL or EXPERIMENT/TRIAL or a beginning that fits only one; TRIAL.2 is the second attempt
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}

#[derive(Debug, Args)]
pub(crate) struct LedgerExportArguments {
    /// File to write; `-` is stdout, for jsonl and csv
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// The format [default: that of the file's ending]
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(Format::NAMES))]
    pub(crate) format: Option<String>,
    /// Replace a file that exists
    #[arg(long)]
    pub(crate) force: bool,
    /// Only the latest attempt at each trial instead of all of them
    #[arg(long)]
    pub(crate) latest_attempts: bool,
    #[command(flatten)]
    pub(crate) filter: RecordFilterArguments,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}

#[derive(Debug, Args)]
pub(crate) struct LedgerVerifyArguments {
    /// Only this experiment
    #[arg(long = "experiment-id", short = 'e', visible_alias = "experiment", value_name = "EXP")]
    pub(crate) experiments: Vec<String>,
    /// The head that the experiment must have, as it was printed and kept elsewhere
    #[arg(long, value_name = "DIGEST")]
    pub(crate) head: Option<String>,
    /// Do not read the contents of artefacts
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}

#[derive(Debug, Args)]
pub(crate) struct LedgerRepairArguments {
    /// Only this experiment
    #[arg(long = "experiment-id", short = 'e', visible_alias = "experiment", value_name = "EXP")]
    pub(crate) experiments: Vec<String>,
    /// Say what would be done and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}

#[derive(Debug, Args)]
pub(crate) struct LedgerReindexArguments {
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}

#[derive(Debug, Args)]
pub(crate) struct LedgerAnnotateArguments {
    /// The record: TRIAL or EXPERIMENT/TRIAL or a beginning that fits only one; TRIAL.2 is the second attempt
    #[arg(value_name = "TRIAL")]
    pub(crate) id: String,
    /// What you think of the answer
    #[arg(long, value_name = "JUDGMENT", value_parser = ["pass", "fail", "defer"], required_unless_present = "list")]
    pub(crate) judgment: Option<String>,
    /// A kind of mistake, in words of your own
    #[arg(long, value_name = "WORD")]
    pub(crate) category: Vec<String>,
    /// What else there is to say
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    /// Who you are
    #[arg(long, value_name = "ID")]
    pub(crate) reviewer: Option<String>,
    /// Your discipline
    #[arg(long, value_name = "NAME")]
    pub(crate) discipline: Option<String>,
    /// Show what was said, and say nothing
    #[arg(long, conflicts_with_all = ["judgment", "category", "note", "reviewer", "discipline"])]
    pub(crate) list: bool,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
}
